package wire

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// frameSeeds are frames as peers send them, good and bad.
func frameSeeds() [][]byte {
	var out [][]byte
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"a","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32022.0,"data":{"supported":["2026-07-28"]}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":""}}`,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, "\xef\xbb\xbf{}", `[{"jsonrpc":"2.0"}]`, `{"id":1e0}`, `{"id":"1","id":1}`,
		`{"result":{"a":{"b":[1,2,{"c":null}]}}}`, "{\"a\":\"\xff\"}", `{"a":"\ud83d"}`, `{"id":7,"result":{"a":1,"a":2}}`,
	} {
		out = append(out, []byte(s))
	}
	return out
}

// FuzzParseMessage: a frame is one object or refused, and its members are slices
// of it that stand where the text says.
func FuzzParseMessage(f *testing.F) {
	for _, s := range frameSeeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		kept := bytes.Clone(frame)
		m, err := ParseMessage(frame)
		again, err2 := ParseMessage(frame)
		if (err == nil) != (err2 == nil) || !reflect.DeepEqual(m, again) || !bytes.Equal(kept, frame) {
			t.Fatalf("read twice: %+v %v, %+v %v", m, err, again, err2)
		}
		if err != nil {
			return
		}
		for _, v := range [][]byte{m.Version, m.ID, m.Method, m.Params, m.Result, m.Error} {
			if !bytes.Contains(frame, v) {
				t.Errorf("%q is no part of %q", v, frame)
			}
		}
		if id, ok := m.RequestID(); ok && (id <= 0 || !m.HasID()) {
			t.Errorf("id %d of %q", id, m.ID)
		}
		if other, err := ParseMessage(append(append([]byte("["), frame...), ']')); err == nil {
			t.Errorf("a batch was taken for %+v", other)
		}
		if _, err := ParseMessage(append(bytes.Clone(frame), frame...)); err == nil {
			t.Errorf("two messages on a line were taken for one")
		}
	})
}

// FuzzParts: what reads parts of a frame is total, agrees with itself, and is
// not sure of an id that a whole message would not have.
func FuzzParts(f *testing.F) {
	for _, s := range frameSeeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		id, ok := DoubtfulID(frame)
		if m, err := ParseMessage(frame); err == nil && m.Method == nil {
			if whole, sure := m.RequestID(); whole != id || sure != ok {
				t.Errorf("of a whole message the id is %d, %t, and %d, %t in doubt", whole, sure, id, ok)
			}
		}
		if m := Object(frame); m != nil && (!IsObject(frame) || !jsontext.Value(frame).IsValid()) {
			t.Errorf("%q has members: %q", frame, m)
		}
		if code, data, ok := RPCError(frame); ok && (!IsObject(frame) || data != nil && !bytes.Contains(frame, data)) {
			t.Errorf("%q is error %d with %q", frame, code, data)
		}
		elements := 0
		if Elements(frame, func(v jsontext.Value) { elements += len(v) }) && elements > len(frame) {
			t.Errorf("%q has elements of %d bytes", frame, elements)
		}
		if valid := jsontext.Value(frame).IsValid(); valid && Depth(frame) > len(frame)/2 {
			t.Errorf("%q is %d deep", frame, Depth(frame))
		}
	})
}
