package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

var errTrailing = errors.New("more than one JSON value")

// ended says whether nothing follows what a decoder has read.
func ended(dec *jsontext.Decoder) error {
	if len(bytes.TrimSpace(dec.UnreadBuffer())) != 0 {
		return errTrailing
	}
	return nil
}

// reader makes the values that the library works on, within bounds. Numbers
// stay text: the library makes exact fractions of them.
type reader struct {
	dec    *jsontext.Decoder
	depth  int // levels that are left
	values int // values that are left
}

func readSchema(raw jsontext.Value) (doc map[string]any, reason string) {
	if len(raw) > maxSchemaBytes {
		return nil, reasonBytes
	}
	v, reason := read(raw, maxSchemaDepth, maxSchemaBytes)
	if reason != "" {
		return nil, reason
	}
	doc, ok := v.(map[string]any)
	if !ok {
		return nil, reasonObject
	}
	return doc, ""
}

func readValue(raw jsontext.Value) (v any, reason string) {
	if len(raw) > maxValueBytes {
		return nil, reasonBytes
	}
	return read(raw, maxValueDepth, maxValues)
}

func read(raw jsontext.Value, depth, values int) (v any, reason string) {
	r := reader{dec: jsontext.NewDecoder(bytes.NewBuffer(raw)), depth: depth, values: values}
	v, reason = r.value()
	if reason == "" && ended(r.dec) != nil {
		reason = reasonText
	}
	return v, reason
}

func (r *reader) value() (v any, reason string) {
	if r.values--; r.values < 0 {
		return nil, reasonBytes
	}
	token, err := r.dec.ReadToken()
	if err != nil {
		return nil, reasonText
	}
	switch token.Kind() {
	case '{':
		return r.nested(r.object)
	case '[':
		return r.nested(r.array)
	case '"':
		return token.String(), ""
	case '0':
		return number(token.String())
	case 't', 'f':
		return token.Bool(), ""
	}
	return nil, ""
}

func (r *reader) nested(rest func() (any, string)) (v any, reason string) {
	if r.depth--; r.depth < 0 {
		return nil, reasonDepth
	}
	if v, reason = rest(); reason != "" {
		return nil, reason
	}
	r.depth++
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, reasonText
	}
	return v, ""
}

func (r *reader) object() (v any, reason string) {
	object := make(map[string]any)
	for r.dec.PeekKind() == '"' {
		token, err := r.dec.ReadToken()
		if err != nil {
			return nil, reasonText
		}
		name := token.String()
		if object[name], reason = r.value(); reason != "" {
			return nil, reason
		}
	}
	return object, ""
}

func (r *reader) array() (v any, reason string) {
	array := []any{}
	for kind := r.dec.PeekKind(); kind != ']' && kind != 0; kind = r.dec.PeekKind() {
		item, reason := r.value()
		if reason != "" {
			return nil, reason
		}
		array = append(array, item)
	}
	return array, ""
}

// number refuses what would make a fraction of many digits: 1e1000000000 is
// twelve bytes here and half a gigabyte as one.
func number(text string) (v any, reason string) {
	digits, exponent := numberSize(text)
	if digits > maxDigits || exponent > maxExponent {
		return nil, reasonNumber
	}
	return json.Number(text), ""
}

// numberSize gives the characters before the exponent and the exponent without
// its sign, or more than maxExponent.
func numberSize(text string) (digits, exponent int) {
	e := strings.IndexAny(text, "eE")
	if e < 0 {
		return len(text), 0
	}
	exponent, err := strconv.Atoi(strings.TrimLeft(text[e+1:], "+-"))
	if err != nil {
		exponent = maxExponent + 1
	}
	return e, exponent
}
