package wire

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Message is one JSON-RPC message split into its members. Each member is the
// slice of the frame it was found in, byte for byte; nil means absent. Keys
// are matched exactly: "Result" is not "result".
type Message struct {
	Version jsontext.Value // the member "jsonrpc"
	ID      jsontext.Value
	Method  jsontext.Value
	Params  jsontext.Value
	Result  jsontext.Value
	Error   jsontext.Value
}

var errNotObject = errors.New("not a single JSON object")

var bom = []byte("\xef\xbb\xbf")

// ParseMessage splits one frame (a line without its terminator). It refuses
// what is not exactly one JSON object: batches, two messages on a line,
// repeated keys at any depth, invalid UTF-8 and lone surrogates. A leading byte
// order mark is passed over. The members alias frame.
func ParseMessage(frame []byte) (Message, error) {
	var m Message
	err := Members(bytes.TrimPrefix(frame, bom), func(key string, value jsontext.Value) {
		switch key {
		case "jsonrpc":
			m.Version = value
		case "id":
			m.ID = value
		case "method":
			m.Method = value
		case "params":
			m.Params = value
		case "result":
			m.Result = value
		case "error":
			m.Error = value
		}
	})
	return m, err
}

// Members calls f for each member of the one JSON object in b, in order. The
// values alias b. An error says that b is not exactly one object; f may have
// been called before that was found. Options are those of the decoder.
func Members(b []byte, f func(key string, value jsontext.Value), options ...jsontext.Options) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(b), options...)
	if dec.PeekKind() != '{' {
		return errNotObject
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		// The decoder's value is good only until its next call; the same bytes
		// of b are good for ever.
		end := dec.InputOffset()
		f(key, jsontext.Value(b[end-int64(len(value)):end]))
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if len(bytes.TrimSpace(b[dec.InputOffset():])) != 0 {
		return errNotObject
	}
	return nil
}

// DoubtfulID returns the id of a frame that is no message only because a key
// comes twice in it, or a string is no text. It is an answer, and nothing in it
// can be relied on but that its sender has answered. ok is false where the frame
// is worse than that, or names no id or more than one.
func DoubtfulID(frame []byte) (id int64, ok bool) {
	var m Message
	ids := 0
	err := Members(bytes.TrimPrefix(frame, bom), func(key string, value jsontext.Value) {
		switch key {
		case "id":
			m.ID, ids = value, ids+1
		case "method":
			m.Method = value
		}
	}, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil || ids != 1 || m.Method != nil {
		return 0, false
	}
	return m.RequestID()
}

// Elements calls f for each element of the JSON array in b; false if b is no
// array. What follows the array is not looked at. The elements alias b.
func Elements(b jsontext.Value, f func(value jsontext.Value)) bool {
	dec := jsontext.NewDecoder(bytes.NewBuffer(b))
	if dec.PeekKind() != '[' {
		return false
	}
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	for dec.PeekKind() != ']' {
		value, err := dec.ReadValue()
		if err != nil {
			return false
		}
		end := dec.InputOffset()
		f(b[end-int64(len(value)) : end])
	}
	return true
}

// Object returns the members of a JSON object that a parsed message contains,
// or nil if v is something else. The members alias v.
func Object(v jsontext.Value) map[string]jsontext.Value {
	if !IsObject(v) {
		return nil
	}
	out := map[string]jsontext.Value{}
	if Members(v, func(key string, value jsontext.Value) { out[key] = value }) != nil {
		return nil
	}
	return out
}

// IsObject reports whether v is written as a JSON object.
func IsObject(v jsontext.Value) bool { return v.Kind() == '{' }

// Text returns the string a JSON string stands for; false if v is no string.
func Text(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, v)
	return string(b), err == nil
}

// Is2 reports whether the message says JSON-RPC "2.0".
func (m Message) Is2() bool {
	s, ok := Text(m.Version)
	return ok && s == "2.0"
}

// IsResponse reports whether the message has the members of an answer.
func (m Message) IsResponse() bool { return m.Method == nil && (m.Result != nil || m.Error != nil) }

// MethodName returns the method, or "" where there is none.
func (m Message) MethodName() string {
	s, _ := Text(m.Method)
	return s
}

// HasID reports whether the message carries an id other than null.
func (m Message) HasID() bool { return m.ID != nil && m.ID.Kind() != 'n' }

// RequestID returns the id where it is an integer of the form Waybill sends:
// plain digits, no sign, no fraction, no quotes. Nothing else can be an answer.
func (m Message) RequestID() (int64, bool) {
	if m.ID.Kind() != '0' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != string(m.ID) {
		return 0, false
	}
	return n, true
}

// The modern error codes: recognised, they prove that the server understands
// the modern error vocabulary (specification, basic, "Error Codes").
const (
	HeaderMismatch    = -32020
	CapabilityMissing = -32021
	VersionRefused    = -32022
)

// RPCError reads an error member. ok is false where it is no JSON-RPC error
// object: no object, or no integral code. A code such as -32022.0 counts.
func RPCError(v jsontext.Value) (code int64, data jsontext.Value, ok bool) {
	m := Object(v)
	if m == nil || m["code"].Kind() != '0' {
		return 0, nil, false
	}
	f, err := strconv.ParseFloat(string(m["code"]), 64)
	if err != nil || f != float64(int64(f)) {
		return 0, nil, false
	}
	return int64(f), m["data"], true
}

// IsModernCode reports whether an error code is one of the modern ones.
func IsModernCode(code int64) bool { return code <= HeaderMismatch && code >= VersionRefused }

// Depth counts the levels of valid JSON: 0 for what is neither an object nor an
// array. Of anything else it gives some number.
func Depth(v jsontext.Value) int {
	most, now, quoted := 0, 0, false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}
