package schema

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Verdict is what a check found. The empty Verdict is that there was nothing
// to judge.
type Verdict string

// The verdicts.
const (
	Valid     Verdict = "valid"
	Invalid   Verdict = "invalid"   // the result has no structuredContent, or one that does not match its schema
	Unchecked Verdict = "unchecked" // the schema or the value is beyond the bounds or cannot be read
)

// Schema is a compiled output schema. It is not changed by use and is safe for
// concurrent use.
type Schema struct {
	reason  string
	inverse *jsonschema.Schema // accepts what the schema refuses
	start   *node
}

// Compile reads an outputSchema as the peer wrote it, and keeps nothing of raw.
// It never fails: a schema that is wrong or beyond the bounds gives a Schema
// whose every check is Unchecked and whose Reason says why.
func Compile(raw jsontext.Value) *Schema {
	doc, reason := readSchema(raw)
	if reason != "" {
		return &Schema{reason: reason}
	}
	s, reason := surveyOf(doc)
	if reason != "" {
		return &Schema{reason: reason}
	}
	c, reason := compile(doc, s)
	if reason != "" {
		return &Schema{reason: reason}
	}
	g, reason := graphOf(c, s)
	if reason != "" {
		return &Schema{reason: reason}
	}
	return &Schema{inverse: c.inverse, start: g.start}
}

// Reason says in one fixed sentence why no check is made, and is empty if
// checks are made. It quotes nothing of the schema.
func (s *Schema) Reason() string { return s.reason }

// Check judges the result member of an answer to tools/call. The structured
// content of a result that is no tool error must be there and match; null is a
// value like any other. A tool error is not judged and gives "". The same
// result always gives the same verdict. Check takes time in proportion to the
// length of result, and beyond that at most what maxSteps allows.
func (s *Schema) Check(result jsontext.Value) Verdict {
	structured, isError, err := parts(result)
	switch {
	case err == nil && isError:
		return ""
	case err != nil || s.reason != "":
		return Unchecked
	case structured == nil:
		return Invalid
	}
	v, reason := readValue(structured)
	if reason != "" {
		return Unchecked
	}
	if w := (work{left: maxSteps}); !w.affords(s.start, v) {
		return Unchecked
	}
	return s.judge(v)
}

// judge asks the library. It asks whether the inverse accepts the value: below
// a "not" the library stops at the first thing that is wrong, and does not
// describe each in memory of its own.
//
// A panic in the library would be one of its faults met by a schema or a value
// that a peer chose. It must not end the service, which serves other peers too,
// and says nothing about the value.
func (s *Schema) judge(v any) (verdict Verdict) {
	defer func() {
		if recover() != nil {
			verdict = Unchecked
		}
	}()
	if s.inverse.Validate(v) == nil {
		return Invalid
	}
	return Valid
}

// parts finds the two members of a result that a check depends on. The
// structured content aliases result, and is nil if there is none. A result
// that is no object has no members.
func parts(result jsontext.Value) (structured jsontext.Value, isError bool, err error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(result))
	if dec.PeekKind() != '{' {
		_, err := dec.ReadValue()
		return nil, false, errors.Join(err, ended(dec))
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, false, err
	}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, false, err
		}
		name := token.String()
		value, err := dec.ReadValue()
		if err != nil {
			return nil, false, err
		}
		switch name {
		case "structuredContent":
			end := dec.InputOffset() // value is good only until the next call
			structured = result[end-int64(len(value)) : end]
		case "isError":
			isError = value.Kind() == 't'
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, false, err
	}
	return structured, isError, ended(dec)
}
