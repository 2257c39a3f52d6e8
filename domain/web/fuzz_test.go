package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain/wire"
)

// FuzzEncode: every text travels in a legal value and comes back, and what is no
// encoded value is read as it is or refused.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{"us-west1", "", " padded ", "line1\r\nEvil: 1", "=?base64?literal?=", "=?base64?=", "=?base64?SGVsbG8=?=", "世界", "a\tb", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		field := Encode(s)
		if !legalValue.MatchString(field) || strings.ContainsAny(field, "\r\n") {
			t.Errorf("%q travels as %q", s, field)
		}
		if back, ok := Decode(field); back != s || !ok {
			t.Errorf("%q travels as %q and is read as %q, %t", s, field, back, ok)
		}
		value, ok := Decode(s)
		switch {
		case !legalValue.MatchString(s) && ok, !ok && value != "":
			t.Errorf("%q is read as %q, %t", s, value, ok)
		case legalValue.MatchString(s) && !sentinel(s) && !ok:
			t.Errorf("%q is not read", s)
		case ok && !sentinel(s) && value != s:
			t.Errorf("%q is read as %q", s, value)
		case ok && sentinel(s) && s != sentinelBegin+base64.StdEncoding.EncodeToString([]byte(value))+sentinelEnd:
			t.Errorf("%q is read as %q, which has another spelling", s, value)
		}
	})
}

// FuzzParams: whatever a peer and a host say, either there is a reason or every
// field is legal, named once and carries what stands in the arguments; and the
// plain reading of the rules below comes to the same.
func FuzzParams(f *testing.F) {
	for _, schema := range []string{object(`"a":` + region + `,"b":` + object(`"c":{"type":["integer","null"],"x-mcp-header":"C"}`)), deep(3), deep(40), object(`"x-mcp-header":` + region),
		`{"$defs":{"a":` + region + `}}`, `{"items":[{"x-v":{"not":` + region + `}}]}`, `{"default":` + region + `,"type":{"a":` + region + `}}`,
		`{"properties":{"a":{"x\u002dmcp-header":"A","type":"string"}}}`, `{"properties":[{"x-mcp-header":1}]}`, `{"dependentRequired":{"x-mcp-header":["a"]}}`, `\u00`, "x-mcp-header"} {
		f.Add([]byte(schema), []byte(`{"a":" \u4e16\r\nEvil: 1","b":{"c":42.0},"x-mcp-header":true}`))
		f.Add([]byte(schema), []byte(`{"a":null,"b":{"c":1.5e-1}}`))
	}
	f.Fuzz(func(t *testing.T, schema, arguments []byte) {
		params, reason := Params(schema)
		again, reason2 := Params(bytes.Clone(schema))
		if !reflect.DeepEqual(params, again) || reason != reason2 || reason != "" && params != nil || len(reason) > 300 || !ascii(reason) {
			t.Fatalf("%q: %q, %q and then %q, %q", schema, shown(params), reason, shown(again), reason2)
		}
		if jsontext.Value(schema).IsValid() && wire.Depth(schema) <= maxDepth {
			r := referee{fields: map[string][]string{}}
			r.schema(decoded(t, schema), nil, true)
			if r.bad != (reason != "") || !r.bad && !reflect.DeepEqual(r.fields, byField(params)) {
				t.Errorf("%q: %q, %q, by the rules %v, invalid: %t", schema, shown(params), reason, r.fields, r.bad)
			}
		}
		fields, reason := ParamHeaders(params, arguments)
		if reason != "" && fields != nil || !ascii(reason) || len(reason) > 300 {
			t.Errorf("%q with %q: %q, %q", schema, arguments, fields, reason)
		}
		legal(t, params, fields)
		if reason == "" && jsontext.Value(arguments).IsValid() {
			mirrors(t, params, fields, decoded(t, arguments))
		}
	})
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// legal: no field has an illegal name or value, and none comes twice.
func legal(t *testing.T, params []Param, fields []Header) {
	names := map[string]bool{}
	for _, p := range params {
		folded := strings.ToLower(p.Field)
		if !legalName.MatchString(p.Field) || !strings.HasPrefix(p.Field, ParamPrefix) || p.Field == ParamPrefix || names[folded] || len(p.Path) == 0 {
			t.Errorf("a parameter is %+v, of %q", p, shown(params))
		}
		names[folded] = true
	}
	for _, h := range fields {
		if !names[strings.ToLower(h.Name)] || !legalValue.MatchString(h.Value) {
			t.Errorf("a field is %q, of %q", h, shown(params))
		}
		delete(names, strings.ToLower(h.Name))
	}
}

// mirrors: the fields carry what the arguments have at the paths, and all of it.
func mirrors(t *testing.T, params []Param, fields []Header, arguments any) {
	for _, p := range params {
		at := arguments
		for _, key := range p.Path {
			below, _ := at.(map[string]any)
			at = below[key]
		}
		i := slices.IndexFunc(fields, func(h Header) bool { return h.Name == p.Field })
		if (at != nil) != (i >= 0) {
			t.Errorf("%v at %q is in %q", at, p.Path, fields)
		}
		if i < 0 {
			continue
		}
		got, ok := Decode(fields[i].Value)
		want := map[any]string{true: "true", false: "false"}[at]
		switch v := at.(type) {
		case string:
			want = v
		case json.Number:
			want, _ = integer(v.String())
		}
		if got != want || !ok {
			t.Errorf("%v at %q travels as %q", at, p.Path, fields[i])
		}
	}
}

func byField(params []Param) map[string][]string {
	out := map[string][]string{}
	for _, p := range params {
		out[p.Field] = p.Path
	}
	return out
}

func decoded(t *testing.T, text []byte) (v any) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q is valid and cannot be decoded: %v", text, err)
	}
	return v
}

// referee judges a whole schema at hand, in no order, by the sentences of the
// specification.
type referee struct {
	fields map[string][]string
	bad    bool
}

func (r *referee) schema(v any, path []string, reachable bool) {
	if list, ok := v.([]any); ok {
		for _, each := range list {
			r.schema(each, nil, false)
		}
	}
	members, _ := v.(map[string]any)
	for key, value := range members {
		below, isObject := value.(map[string]any)
		_, isList := value.([]any)
		switch {
		case key == annotation:
			r.annotated(value, members["type"], path, reachable)
		case key == "type" && isList, key == "default", key == "const", key == "enum", key == "examples":
		case key == "properties" && isObject:
			for name, each := range below {
				r.schema(each, append(slices.Clone(path), name), reachable)
			}
		case isObject && slices.Contains([]string{"$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies", "dependentRequired", "$vocabulary"}, key):
			for _, each := range below {
				r.schema(each, nil, false)
			}
		default:
			r.schema(value, nil, false)
		}
	}
}

func (r *referee) annotated(name, kind any, path []string, reachable bool) {
	s, _ := name.(string)
	kinds, isList := kind.([]any)
	if !isList {
		kinds = []any{kind}
	}
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k any) bool { return k == "null" })
	good := len(kinds) > 0 && !slices.ContainsFunc(kinds, func(k any) bool { return k != "string" && k != "integer" && k != "boolean" })
	for field := range r.fields {
		good = good && !strings.EqualFold(field, ParamPrefix+s)
	}
	if !good || !reachable || len(path) == 0 || !legalName.MatchString(s) {
		r.bad = true
		return
	}
	r.fields[ParamPrefix+s] = path
}
