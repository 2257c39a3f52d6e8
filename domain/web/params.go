package web

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain/wire"
)

// Param is a parameter that a tool wants to be mirrored.
type Param struct {
	Field string   // the name of its header, with ParamPrefix
	Path  []string // of properties, from the root of the arguments; never empty
}

const annotation = "x-mcp-header"

// maxDepth bounds the levels of a schema that is walked.
const maxDepth = 64

// Params finds the x-mcp-header annotations of an inputSchema, in the order of its
// text. reason says in one sentence in ASCII, of 300 bytes at most, where and why
// one is invalid, so that the tool must be left out; "" where it may stay
// (specification 2026-07-28, server/tools, "x-mcp-header"; basic/transports/
// streamable-http, "Schema Extension").
//
// An annotation is valid where it names a token that no other one has, without
// case, and stands in a property that a chain of properties leads to, with a type of
// its own that allows strings, integers and booleans alone, and null besides. All
// others are invalid: in a list, in a composition, in a condition, and in a $defs
// too, since no way but a reference leads there. What is written counts: a
// reference to a property that is annotated mirrors nothing and breaks nothing.
//
// A keyword that is not known may hold schemas that a reference leads to, so an
// annotation in there is invalid. What is plain data by the dialects holds none:
// default, const, enum, examples. Nor is the name of a property or of a definition
// an annotation.
//
// A schema that does not name the annotation is not read at all, so it costs next
// to nothing, and is not judged. One that does must be JSON without repeated names,
// at most 64 levels deep.
func Params(inputSchema jsontext.Value) (params []Param, reason string) {
	if !mentions(inputSchema) {
		return nil, ""
	}
	w := walker{dec: jsontext.NewDecoder(bytes.NewBuffer(inputSchema)), raw: inputSchema, seen: map[string]bool{}}
	w.value(true)
	if w.reason == "" && len(bytes.TrimSpace(inputSchema[w.dec.InputOffset():])) != 0 {
		w.broken()
	}
	if w.reason != "" {
		return nil, w.reason
	}
	return w.params, ""
}

// mentions reports whether a text may contain the annotation, in any spelling. Its
// letters have no other escape than one by number.
func mentions(text []byte) bool {
	return bytes.Contains(text, []byte(annotation)) || bytes.Contains(text, []byte(`\u00`))
}

// walker reads a schema once. What follows the first reason is not looked at.
type walker struct {
	dec    *jsontext.Decoder
	raw    jsontext.Value
	path   []string // names of properties, where they alone lead to what is read
	params []Param
	seen   map[string]bool // lower case
	reason string
}

var (
	// naming are the keywords whose members are named by the author of the schema.
	naming = []string{"$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies", "dependentRequired", "$vocabulary"}
	// data are the keywords that hold values and no schemas.
	data = []string{"default", "const", "enum", "examples"}
)

// value reads what may be a schema, or a list of them. It is reachable where a
// chain of properties alone leads to it.
func (w *walker) value(reachable bool) {
	switch w.dec.PeekKind() {
	case '{':
		w.schema(reachable)
	case '[':
		w.each(']', func() { w.value(false) })
	default:
		w.take()
	}
}

func (w *walker) schema(reachable bool) {
	var name, kind jsontext.Value
	w.each('}', func() {
		switch key := w.next(); {
		case key == annotation:
			name = w.take()
		case key == "type" && w.dec.PeekKind() != '{':
			kind = w.take()
		case key == "properties":
			w.named(reachable)
		case slices.Contains(naming, key):
			w.named(false)
		case slices.Contains(data, key):
			w.take()
		default:
			w.value(false)
		}
	})
	if name != nil {
		w.annotated(name, kind, reachable)
	}
}

// named reads an object whose members are schemas under free names.
func (w *walker) named(reachable bool) {
	if w.dec.PeekKind() != '{' {
		w.value(false)
		return
	}
	w.each('}', func() {
		w.path = append(w.path, w.next())
		w.value(reachable)
		w.path = w.path[:len(w.path)-1]
	})
}

// each reads what is between two brackets. f reads one member or element, or fails.
func (w *walker) each(end jsontext.Kind, f func()) {
	w.next()
	if w.dec.StackDepth() > maxDepth {
		w.fail("it is nested deeper than 64 levels")
	}
	for w.reason == "" && w.dec.PeekKind() != end {
		f()
	}
	if w.reason == "" {
		w.next()
	}
}

// next reads a token, and returns its text: that of a name is the name.
func (w *walker) next() string {
	token, err := w.dec.ReadToken()
	if err != nil {
		w.broken()
		return ""
	}
	return token.String()
}

// take reads a value as a whole. The bytes of raw are good for ever, those of the
// decoder until its next call.
func (w *walker) take() jsontext.Value {
	v, err := w.dec.ReadValue()
	if err != nil {
		w.broken()
		return nil
	}
	end := w.dec.InputOffset()
	return w.raw[end-int64(len(v)) : end]
}

// annotated judges the annotation of the schema that was just read.
func (w *walker) annotated(name, kind jsontext.Value, reachable bool) {
	s, _ := wire.Text(name)
	folded := strings.ToLower(s)
	switch {
	case !token(s):
		w.fail("its x-mcp-header is no token, so no header can be named by it")
	case !reachable || len(w.path) == 0:
		w.fail("no chain of properties alone leads to its x-mcp-header")
	case !primitive(kind):
		w.fail("its x-mcp-header needs a type that is string, integer or boolean")
	case w.seen[folded]:
		w.fail("its x-mcp-header is that of another property too, or differs in case alone")
	default:
		w.seen[folded] = true
		w.params = append(w.params, Param{Field: ParamPrefix + s, Path: slices.Clone(w.path)})
	}
}

// fail keeps the first reason, with the place of what was read last.
func (w *walker) fail(reason string) {
	if w.reason == "" {
		w.reason = short("inputSchema"+string(w.dec.StackPointer())) + ": " + reason
	}
}

func (w *walker) broken() {
	if w.reason == "" {
		w.reason = "inputSchema: it is no JSON text, or names a member twice"
	}
}

// short shows the beginning of a text that may be anything, in ASCII.
func short(s string) string {
	const most = 100
	q := strconv.QuoteToASCII(s[:min(len(s), most)])
	q = q[1 : len(q)-1]
	if len(s) > most || len(q) > most {
		return q[:min(len(q), most)] + "..."
	}
	return q
}

// primitive reports whether a type keyword allows what has a spelling in a header,
// and null besides.
func primitive(kind jsontext.Value) bool {
	some, all := false, true
	judge := func(v jsontext.Value) {
		switch s, _ := wire.Text(v); s {
		case "string", "integer", "boolean":
			some = true
		case "null":
		default:
			all = false
		}
	}
	if kind.Kind() != '[' {
		judge(kind)
	} else if !wire.Elements(kind, judge) {
		return false
	}
	return some && all
}

// token reports whether s is a token (RFC 9110, 5.6.2).
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
