package message

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Members returns the members of an object of a parsed message, or nil if v is none. The values alias v.
func Members(v jsontext.Value) map[string]jsontext.Value {
	dec := jsontext.NewDecoder(bytes.NewBuffer(v), jsontext.AllowDuplicateNames(true)) // there are none in a parsed message
	if dec.PeekKind() != '{' {
		return nil
	}
	members := map[string]jsontext.Value{}
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() == '"' {
		var name jsontext.Token
		if name, err = dec.ReadToken(); err != nil {
			break
		}
		key := name.String()
		var value jsontext.Value
		value, err = dec.ReadValue()
		end := dec.InputOffset()
		members[key] = v[end-int64(len(value)) : end]
	}
	if _, end := dec.ReadToken(); err != nil || end != nil {
		return nil
	}
	return members
}

// lookup returns the value that a path of names leads to in an object of a parsed message, or nil. It builds nothing on the way:
// what a peer says at will must cost little. The value aliases v.
func lookup(v jsontext.Value, path ...string) jsontext.Value {
	dec := jsontext.NewDecoder(bytes.NewBuffer(v), jsontext.AllowDuplicateNames(true)) // there are none in a parsed message
	for ; len(path) > 0; path = path[1:] {
		if dec.PeekKind() != '{' || !seek(dec, path[0]) {
			return nil
		}
	}
	value, err := dec.ReadValue()
	if err != nil {
		return nil
	}
	end := dec.InputOffset()
	return v[end-int64(len(value)) : end]
}

// seek goes to the value of a member of the object that comes next; false if it has none of that name.
func seek(dec *jsontext.Decoder, name string) bool {
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	for dec.PeekKind() == '"' {
		key, err := dec.ReadToken()
		if err != nil || key.String() == name {
			return err == nil
		}
		if dec.SkipValue() != nil {
			return false
		}
	}
	return false
}

// AppendMember appends a member to the open object in b.
func AppendMember(b []byte, name string, value []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(append(b, '"'), name...)
	return append(append(b, `":`...), value...)
}

// quoted returns s as a JSON string. What is not UTF-8 comes out invalid, and fails the check of the line.
func quoted(s string) []byte {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return nil
	}
	return b
}

func object(b []byte) []byte {
	if len(bytes.TrimSpace(b)) == 0 {
		return []byte("{}")
	}
	return oneLine(b)
}

// oneLine returns JSON as it came, but with blanks for the line breaks between its tokens: every byte that means
// something stays. A line break inside a string is no JSON and is left to the check. It may return its argument.
func oneLine(b []byte) []byte {
	if !bytes.ContainsAny(b, "\r\n") {
		return b
	}
	out := bytes.Clone(b)
	inString, escaped := false, false
	for i, c := range out {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case !inString && (c == '\n' || c == '\r'):
			out[i] = ' '
		}
	}
	return out
}
