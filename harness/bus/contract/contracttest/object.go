package contracttest

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Object is a JSON object whose members have an order.
type Object []Member

// Member is one member of an Object.
type Member struct {
	Name  string
	Value any
}

// MarshalJSONTo writes the members in their order.
func (o Object) MarshalJSONTo(e *jsontext.Encoder) error {
	if err := e.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range o {
		if err := e.WriteToken(jsontext.String(m.Name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(e, m.Value); err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndObject)
}

// Text is an object as the files have it: indented, with a line feed at its end.
func (o Object) Text() []byte {
	b, err := json.Marshal(o, jsontext.Multiline(true), jsontext.WithIndent("  "), jsontext.SpaceAfterColon(true))
	if err != nil {
		panic(fmt.Sprintf("a schema cannot be encoded: %v", err)) // it holds strings, numbers and lists of them
	}
	return append(b, '\n')
}

// Of makes an object of names and values in turn.
func Of(pairs ...any) Object {
	o := make(Object, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		o = append(o, Member{pairs[i].(string), pairs[i+1]})
	}
	return o
}

// With returns the object with one more member at its end.
func (o Object) With(name string, value any) Object {
	return append(o[:len(o):len(o)], Member{name, value})
}

// Says returns a schema with a description.
func (o Object) Says(text string) Object { return o.With("description", text) }

// One-line schemas.
var (
	Text    = Of("type", "string")
	Some    = Of("type", "string", "minLength", 1)
	Number  = Of("type", "integer")
	Null    = Of("type", "null")
	Boolean = Of("type", "boolean")
)

// Or is a schema of what is null or of another schema.
func Or(s Object) Object {
	if len(s) == 1 && s[0].Name == "type" {
		return Of("type", []any{s[0].Value, "null"})
	}
	return Of("anyOf", []any{s, Null})
}
