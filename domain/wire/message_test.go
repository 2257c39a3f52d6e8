package wire

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestParseMessageRefusesWhatIsNotOneObject (specification, basic, "Messages"):
// no batch, no second message, no key twice, nothing that is not text.
func TestParseMessageRefusesWhatIsNotOneObject(t *testing.T) {
	for _, bad := range []string{``, ` `, `x`, `1`, `"a"`, `null`, `[]`, `[{"jsonrpc":"2.0"}]`, `{}{}`, `{} x`, `{`, `{"a":1,}`, `{"a":1,"a":2}`,
		`{"a":{"b":1,"b":2}}`, `{"\u0061":1,"a":2}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, `{"a":01}`, `{"a":NaN}`, "\xef\xbb\xbf\xef\xbb\xbf{}"} {
		if m, err := ParseMessage([]byte(bad)); err == nil {
			t.Errorf("%q was taken for %+v", bad, m)
		}
	}
	for _, good := range []string{`{}`, " {} \r", "\xef\xbb\xbf{}", `{"a":{"b":1},"c":{"b":1}}`, `{"Result":1,"result":2}`} {
		if _, err := ParseMessage([]byte(good)); err != nil {
			t.Errorf("%q was refused: %v", good, err)
		}
	}
}

// TestMembersAreTheBytesOfThePeer, white space, escapes and digits included.
func TestMembersAreTheBytesOfThePeer(t *testing.T) {
	m, err := ParseMessage([]byte(`{ "jsonrpc" : "2.0", "id" : 7 , "method":"\u006d","params":{ "n":123456789012345678901234567890 },
		"r\u0065sult":{ "e":"\u00e9" }, "error":[1 , 2] }`))
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		string(m.Version): `"2.0"`, string(m.ID): `7`, string(m.Method): `"\u006d"`, string(m.Params): `{ "n":123456789012345678901234567890 }`,
		string(m.Result): `{ "e":"\u00e9" }`, string(m.Error): `[1 , 2]`,
	} {
		if got != want {
			t.Errorf("a member is %s, want %s", got, want)
		}
	}
	if none, err := ParseMessage([]byte(`{}`)); err != nil || none.Version != nil || none.ID != nil || none.Result != nil {
		t.Errorf("an empty object has members: %+v, %v", none, err)
	}
}

func TestWhatAMessageIs(t *testing.T) {
	for frame, want := range map[string]struct {
		response, is2, id bool
		method            string
	}{
		`{"jsonrpc":"2.0","id":1,"result":null}`:             {true, true, true, ""},
		`{"jsonrpc":"2.0","id":1,"error":{}}`:                {true, true, true, ""},
		`{"jsonrpc":"2.0","id":1}`:                           {false, true, true, ""},
		`{"jsonrpc":"2.0","id":null}`:                        {false, true, false, ""},
		`{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`:  {false, true, true, "m"},
		`{"jsonrpc":"\u0032.0","method":"notifications\/x"}`: {false, true, false, "notifications/x"},
		`{"jsonrpc":2,"method":7}`:                           {false, false, false, ""},
		`{"JSONRPC":"2.0","METHOD":"m","RESULT":{}}`:         {false, false, false, ""},
	} {
		m, err := ParseMessage([]byte(frame))
		if err != nil || m.IsResponse() != want.response || m.Is2() != want.is2 || m.HasID() != want.id || m.MethodName() != want.method {
			t.Errorf("%s: response %t, jsonrpc 2.0 %t, id %t, method %q (%v)", frame, m.IsResponse(), m.Is2(), m.HasID(), m.MethodName(), err)
		}
	}
}

func TestRequestIDIsAPlainInteger(t *testing.T) {
	for id, want := range map[string]int64{`1`: 1, `42`: 42, `9007199254740992`: 1 << 53, `"1"`: 0, `1.0`: 0, `1e0`: 0, `-1`: 0, `-0`: 0, `0`: 0,
		`null`: 0, `true`: 0, `[1]`: 0, `9223372036854775808`: 0, `7.5`: 0, ` 7 `: 7} {
		m, err := ParseMessage([]byte(`{"id":` + id + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := m.RequestID(); got != want || ok != (want != 0) {
			t.Errorf("id %s is read as %d, %t", id, got, ok)
		}
	}
}

// TestDoubtfulID: an answer that cannot be read is an answer of somebody, if it
// says of whom.
func TestDoubtfulID(t *testing.T) {
	for frame, want := range map[string]int64{
		`{"jsonrpc":"2.0","id":7,"result":{"a":1,"a":2}}`:              7,
		`{"jsonrpc":"2.0","id":7,"result":{"a":"\ud800"}}`:             7,
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\xff\"}":           7,
		`{"result":{},"result":{},"id":7}`:                             7,
		`{"jsonrpc":"2.0","id":7,"id":7,"result":{}}`:                  0,
		`{"jsonrpc":"2.0","id":7,"\u0069d":8,"result":{}}`:             0,
		`{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":1,"a":2}}`: 0,
		`{"jsonrpc":"2.0","id":"7","result":{"a":1,"a":2}}`:            0,
		`{"jsonrpc":"2.0","id":7,"result":{"a":1,"a":2}`:               0,
		`{"jsonrpc":"2.0","id":7,"result":{}} {}`:                      0,
		`[{"id":7}]`:                      0,
		`{"params":{"id":7,"a":1,"a":1}}`: 0,
		"\xef\xbb\xbf{\"id\":7}":          7,
		``:                                0,
	} {
		if id, ok := DoubtfulID([]byte(frame)); id != want || ok != (want != 0) {
			t.Errorf("%s: %d, %v", frame, id, ok)
		}
	}
}

// TestRPCError (specification, basic, "Error Responses"): an object with an
// integral code, however the number is written.
func TestRPCError(t *testing.T) {
	for raw, want := range map[string]struct {
		code int64
		data string
		ok   bool
	}{
		`{"code":-32022,"message":"m","data":{"supported":[]}}`: {-32022, `{"supported":[]}`, true},
		`{"code":-32022.0}`:         {-32022, "", true},
		`{"code":-3.2022e4}`:        {-32022, "", true},
		`{"code":1,"data":null}`:    {1, "null", true},
		`{"code":-32022.5}`:         {},
		`{"code":1e300}`:            {},
		`{"code":1e999}`:            {},
		`{"code":"-32022"}`:         {},
		`{"Code":-32022}`:           {},
		`{"message":"m"}`:           {},
		`{}`:                        {},
		`[-32022]`:                  {},
		`null`:                      {},
		`{"code":-32022,"code":-1}`: {},
		``:                          {},
	} {
		code, data, ok := RPCError(jsontext.Value(raw))
		if code != want.code || string(data) != want.data || ok != want.ok {
			t.Errorf("%s: %d, %s, %t", raw, code, data, ok)
		}
	}
	for code, want := range map[int64]bool{-32019: false, HeaderMismatch: true, CapabilityMissing: true, VersionRefused: true, -32023: false, 0: false} {
		if IsModernCode(code) != want {
			t.Errorf("IsModernCode(%d) is %t", code, !want)
		}
	}
}

func TestElementsAndObject(t *testing.T) {
	var got []string
	raw := jsontext.Value(`[ 1 , {"a" : 2}, "x",[]]`)
	if !Elements(raw, func(v jsontext.Value) { got = append(got, string(v)) }) || !slices.Equal(got, []string{`1`, `{"a" : 2}`, `"x"`, `[]`}) {
		t.Errorf("elements are %q", got)
	}
	for _, bad := range []string{``, `{}`, `"a"`, `[1`, `[1,`, `[1 2]`, `null`} {
		if Elements(jsontext.Value(bad), func(jsontext.Value) {}) {
			t.Errorf("%q was taken for a list", bad)
		}
	}
	m := Object(jsontext.Value(`{"a": [1 ],"\u0062":null}`))
	if len(m) != 2 || string(m["a"]) != `[1 ]` || string(m["b"]) != `null` {
		t.Errorf("members are %q", m)
	}
	for _, bad := range []string{``, `[]`, `{`, `{"a":1,"a":2}`, `{} {}`, `null`} {
		if m := Object(jsontext.Value(bad)); m != nil {
			t.Errorf("%q was taken for an object: %q", bad, m)
		}
	}
	if s, ok := Text(jsontext.Value(`"\u00e9\n"`)); !ok || s != "é\n" {
		t.Errorf("a text is %q, %t", s, ok)
	}
	for _, bad := range []string{``, `1`, `null`, `"a`, `"\ud800"`} {
		if s, ok := Text(jsontext.Value(bad)); ok {
			t.Errorf("%s was taken for the text %q", bad, s)
		}
	}
}

func TestDepth(t *testing.T) {
	for raw, want := range map[string]int{`1`: 0, `"[["`: 0, `"\"[["`: 0, `"\\"`: 0, `{}`: 1, `[[],{"a":[]}]`: 3, `[[[]],[]]`: 3, `{"[":"]","b":{}}`: 2,
		strings.Repeat("[", 500) + strings.Repeat("]", 500): 500} {
		if got := Depth(jsontext.Value(raw)); got != want {
			t.Errorf("%.40s is %d deep, want %d", raw, got, want)
		}
	}
}
