package contracttest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Words are the values of the string types that have a fixed set of them.
type Words map[reflect.Type][]string

// WordsOf are the values of one such type.
func WordsOf[T ~string](list ...T) (out []string) {
	for _, w := range list {
		out = append(out, string(w))
	}
	return out
}

// Generator makes schemas from Go types as package json (go-json-experiment) encodes
// them: a nil slice as [], a nil pointer or raw value as null, what is marked
// omitempty or omitzero left out where it is empty.
type Generator struct {
	Docs Docs

	Words Words

	// Raw says what a raw JSON value is, by the name of its member: a schema. One that
	// is not named may be anything.
	Raw map[string]Object

	defs  map[string]Object
	names []string
}

// Head opens a schema: what it is called, and what it is of. id is what follows
// urn:waybill:schema:v1: in its $id.
func Head(id, title, description string) Object {
	o := Object{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"$id", "urn:waybill:schema:v1:" + id}, {"title", title}}
	if description != "" {
		o = o.Says(description)
	}
	return o
}

// Schema is a whole schema of a struct, with the structs in it as $defs.
func (g *Generator) Schema(head Object, t reflect.Type) Object {
	return g.Whole(head, g.Struct(t))
}

// Whole is a whole schema whose content was made with this generator since the last one.
func (g *Generator) Whole(head, content Object) Object {
	out := append(slices.Clone(head), content...)
	if len(g.names) > 0 {
		slices.Sort(g.names)
		var defs Object
		for _, name := range g.names {
			defs = append(defs, Member{name, g.defs[name]})
		}
		out = append(out, Member{"$defs", defs})
	}
	g.defs, g.names = nil, nil
	return out
}

// Struct is the schema of a struct: type, properties and required.
func (g *Generator) Struct(t reflect.Type) Object {
	var properties Object
	required := []string{}
	g.fields(t, &properties, &required)
	return Open(properties, required)
}

// Open is an object with these members, of which some are always there. Others
// may be there too.
func Open(properties Object, required []string) Object {
	if properties == nil {
		properties = Object{}
	}
	return Object{{"type", "object"}, {"properties", properties}, {"required", required}}
}

func (g *Generator) fields(t reflect.Type, properties *Object, required *[]string) {
	for f := range fieldsOf(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			g.fields(f.Type, properties, required)
			continue
		}
		if name == "-" || !f.IsExported() {
			continue
		}
		if name == "" {
			panic(fmt.Sprintf("%s.%s has no json name", t, f.Name))
		}
		optional := strings.Contains(options, "omit")
		s := g.member(f, name, optional)
		if text := g.Docs.Field(t, f.Name); text != "" {
			s = s.Says(text)
		}
		*properties = properties.With(name, s)
		if !optional {
			*required = append(*required, name)
		}
	}
}

func fieldsOf(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

var rawType = reflect.TypeFor[jsontext.Value]()

func (g *Generator) member(f reflect.StructField, name string, optional bool) Object {
	t := f.Type
	if t == rawType {
		s, ok := g.Raw[name]
		switch {
		case !ok:
			return Object{}
		case optional:
			return s
		}
		return Or(s)
	}
	if t.Kind() != reflect.Pointer {
		return g.value(t)
	}
	if optional {
		return g.value(t.Elem()) // a nil one is left out
	}
	return Or(g.value(t.Elem()))
}

func (g *Generator) value(t reflect.Type) Object {
	switch t.Kind() {
	case reflect.String:
		return g.word(t)
	case reflect.Bool:
		return Boolean
	case reflect.Int, reflect.Int64, reflect.Int32:
		return Number
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return Object{{"type", "string"}, {"contentEncoding", "base64"}}
		}
		return Object{{"type", "array"}, {"items", g.value(t.Elem())}}
	case reflect.Map:
		return Object{{"type", "object"}} // of whatever it says
	case reflect.Struct:
		return g.reference(t)
	}
	panic(fmt.Sprintf("no schema is known for %s", t))
}

func (g *Generator) word(t reflect.Type) Object {
	if words := g.Words[t]; words != nil {
		return Object{{"enum", words}}
	}
	return Text
}

// reference names the schema of a struct among the $defs, and makes it if it is not
// there.
func (g *Generator) reference(t reflect.Type) Object {
	name := t.Name()
	if _, ok := g.defs[name]; !ok {
		if g.defs == nil {
			g.defs = map[string]Object{}
		}
		g.defs[name] = nil // it may hold itself
		s := g.Struct(t)
		if text := g.Docs.Type(t); text != "" {
			s = append(Object{{"description", text}}, s...)
		}
		g.defs[name], g.names = s, append(g.names, name)
	}
	return Object{{"$ref", "#/$defs/" + name}}
}
