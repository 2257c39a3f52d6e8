package web

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain/wire"
)

// Header is one field of a request. Names are compared without case.
type Header struct{ Name, Value string }

// Names of the fields that mirror a request's body (specification 2026-07-28,
// basic/transports/streamable-http, "Request Metadata").
const (
	VersionField = "MCP-Protocol-Version"
	MethodField  = "Mcp-Method"
	NameField    = "Mcp-Name"
	ParamPrefix  = "Mcp-Param-"
)

// Names of the fields of a legacy session. A modern request carries neither
// (specification 2026-07-28, "Earlier Streamable HTTP Revisions").
const (
	SessionField   = "Mcp-Session-Id"
	LastEventField = "Last-Event-ID"
)

const sentinelBegin, sentinelEnd = "=?base64?", "?="

// Encode returns a value as it travels in Mcp-Name and Mcp-Param-*: as it is where
// it is visible ASCII with spaces inside at most, else in base64 between the
// sentinels (specification, "Value Encoding"). A tab is legal in a header and is
// encoded all the same: it is a control character too, and whoever decodes gets it
// back in either reading. What looks like a sentinel is encoded, so that Decode is
// the inverse. So is the empty value: there are servers that take a header without a
// value for none. No line break gets through.
func Encode(value string) string {
	if value != "" && plain(value) && !sentinel(value) {
		return value
	}
	return sentinelBegin + base64.StdEncoding.EncodeToString([]byte(value)) + sentinelEnd
}

// Decode returns the value that a header carries; false where it carries none: no
// legal value of a header, or between sentinels no base64 (specification, "Value
// Encoding" and "Server Validation"). The sentinels are compared with case.
func Decode(value string) (string, bool) {
	if !sentinel(value) {
		if !plain(strings.ReplaceAll(value, "\t", " ")) { // a tab inside is legal, and nothing of ours
			return "", false
		}
		return value, true
	}
	if len(value) < len(sentinelBegin)+len(sentinelEnd) || strings.ContainsAny(value, "\r\n") {
		return "", false // the decoder would pass over line breaks
	}
	b, err := base64.StdEncoding.Strict().DecodeString(value[len(sentinelBegin) : len(value)-len(sentinelEnd)])
	if err != nil {
		return "", false
	}
	return string(b), true
}

// sentinel reports whether a value begins and ends like an encoded one, also where
// beginning and end share their question mark.
func sentinel(s string) bool {
	return strings.HasPrefix(s, sentinelBegin) && strings.HasSuffix(s, sentinelEnd)
}

// plain reports whether a value can stand in a header as it is.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return strings.Trim(s, " ") == s
}

// ParamHeaders are the fields that mirror the arguments of a call, in the order of
// params. reason says in one sentence in ASCII why they cannot be mirrored, and the
// call cannot be made; "" where they can.
//
// A field mirrors the value that the body carries, whatever type was declared: a
// header that says anything else is what the peer must reject. What is absent or
// null has no field, nor has what would stand in something that is no object
// (specification, "Schema Extension", "Value Encoding" and the table of "Client
// Behavior"). A number must be an integer within 2^53-1 on both sides of zero,
// in whatever spelling; it is mirrored in plain digits. Another number, a list
// or an object has no spelling in a header, and may not be sent without one, so it
// gives a reason.
func ParamHeaders(params []Param, arguments jsontext.Value) (fields []Header, reason string) {
	if len(params) == 0 {
		return nil, ""
	}
	values := make([]jsontext.Value, len(params))
	if !treeOf(params).fill(arguments, values) {
		return nil, "the arguments are no JSON text, or name a member twice"
	}
	for i, v := range values {
		switch text, present, reason := mirrored(v); {
		case reason != "":
			return nil, "the argument that is mirrored in " + short(params[i].Field) + " " + reason
		case present:
			fields = append(fields, Header{params[i].Field, Encode(text)})
		}
	}
	return fields, ""
}

// tree has the paths of params, so that arguments are read once for all of them.
type tree struct {
	ends  []int // the params whose path ends here
	below map[string]*tree
}

func treeOf(params []Param) *tree {
	root := &tree{}
	for i, p := range params {
		at := root
		for _, key := range p.Path {
			if at.below[key] == nil {
				if at.below == nil {
					at.below = map[string]*tree{}
				}
				at.below[key] = &tree{}
			}
			at = at.below[key]
		}
		at.ends = append(at.ends, i)
	}
	return root
}

// fill sets the values of the params that a value has; false where it cannot be
// read.
func (t *tree) fill(v jsontext.Value, values []jsontext.Value) bool {
	if len(t.below) == 0 || !wire.IsObject(v) {
		return true
	}
	readable := true
	err := wire.Members(v, func(key string, value jsontext.Value) {
		if next := t.below[key]; next != nil {
			for _, i := range next.ends {
				values[i] = value
			}
			readable = next.fill(value, values) && readable
		}
	})
	return err == nil && readable
}

// mirrored is the text that an argument has in a header.
func mirrored(v jsontext.Value) (text string, present bool, reason string) {
	switch v.Kind() {
	case '"':
		s, ok := wire.Text(v)
		if !ok {
			return "", false, "is no text"
		}
		return s, true, ""
	case 't', 'f':
		return string(v), true, ""
	case '0':
		s, ok := integer(string(v))
		if !ok {
			return "", false, "is no integer between -9007199254740991 and 9007199254740991"
		}
		return s, true, ""
	case '{', '[':
		return "", false, "is an object or a list, and no header can carry it"
	}
	return "", false, ""
}

// safeInteger is the largest integer that every JSON reader gets right.
const safeInteger = 1<<53 - 1

// integer writes a JSON number in plain digits, if it is a safe integer: 42 for
// 42.0 and for 4.2e1. It looks at the digits, since a binary fraction would round
// some numbers to integers that they are not.
func integer(number string) (string, bool) {
	digits, negative := strings.CutPrefix(number, "-")
	exponent := 0
	if e := strings.IndexAny(digits, "eE"); e >= 0 {
		exponent, _ = strconv.Atoi(digits[e+1:]) // beyond its range it is the end of that
		digits = digits[:e]
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0", true
	}
	if exponent < -1<<30 || exponent > 1<<30 {
		return "", false // more than the digits of any text make up for
	}
	significant := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(significant) - len(fraction)
	if exponent < 0 || len(significant)+exponent > 16 {
		return "", false
	}
	text := significant + strings.Repeat("0", exponent)
	if n, err := strconv.ParseInt(text, 10, 64); err != nil || n > safeInteger {
		return "", false
	}
	if negative {
		text = "-" + text
	}
	return text, true
}
