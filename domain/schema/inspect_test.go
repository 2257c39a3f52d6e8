package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func inspected(raw string) Finding { return Inspect(jsontext.Value(raw)) }

// TestInspectKeywords (JSON Schema 2020-12, 2019-09 and draft-07, meta-schemas)
// has each shape of a value with some that have it and some that have not.
func TestInspectKeywords(t *testing.T) {
	for s, row := range map[shape]struct{ keyword, good, bad string }{
		aString:       {"title", `"" "a"`, `null 1 [] {} true`},
		anIdentifier:  {"$id", `"a" "a#" "" "#"`, `"a#b" "#b" "a##" null 1`},
		anAnchor:      {"$anchor", `"a" "_" "a-b.c_9"`, `"" "9" "a:b" "é" "-a" null 1`},
		aFlag:         {"uniqueItems", `true false`, `null "true" 0 {}`},
		aNumber:       {"maximum", `0 -1.5 1e9`, `null "1" true []`},
		aFactor:       {"multipleOf", `1 0.01 1e-400 10e-3`, `0 0.0 -0 -1 0e5 -1e-9 null "1"`},
		aCount:        {"minLength", `0 7 2.0 -0 -0.0 2.5e1 1.50e2 1200e-2 0.0e-9 1e400`, `-1 0.5 1.5e0 15e-1 -2.0 1e-1 1200e-3 null "1"`},
		aList:         {"enum", `[] [1,1] [null]`, `null {} "a"`},
		someNames:     {"required", `[] ["a"] ["a","b",""]`, `null {} "a" ["a","a"] ["a","\u0061"] [1] ["a",null]`},
		namesByName:   {"dependentRequired", `{} {"a":[]} {"a":["b"],"c":["b"]}`, `null [] {"a":"b"} {"a":["b","b"]} {"a":{}} {"b":[],"a":[1]}`},
		flagsByName:   {"$vocabulary", `{} {"https://example.com/v":true}`, `null [] {"a":1} {"a":true,"b":null}`},
		someTypes:     {"type", `"null" "integer" ["string"] ["array","object"]`, `"any" "Object" [] ["null","null"] ["any"] null {} true`},
		aSchema:       {"not", `{} true false`, `null [] "a" 1 {"type":1}`},
		schemas:       {"allOf", `[{}] [true,false]`, `[] {} null [1] [{},[]] [{"type":1}]`},
		schemasByName: {"properties", `{} {"a":true,"type":{}}`, `[] null {"a":1} {"a":{},"type":"string"} {"a":{"type":1}}`},
		schemaOrNames: {"dependencies", `{} {"a":[],"b":["c"],"d":{}}`, `[] null {"a":1} {"a":["b","b"]} {"a":{"type":1}}`},
		aReference:    {"$ref", `"#/$defs/x" "#"`, `null 1 {} []`},
	} {
		for _, value := range strings.Fields(row.good) {
			raw := `{"items":{"` + row.keyword + `":` + value + `},"$defs":{"x":{}}}`
			if row.keyword == "$ref" {
				raw = strings.ReplaceAll(raw, `"#"`, `"#/$defs"`)
			}
			if f := inspected(raw); f.Fault != "" {
				t.Errorf("shape %d: %s is %+v", s, raw, f)
			}
		}
		for _, value := range strings.Fields(row.bad) {
			raw := `{"items":{"` + row.keyword + `":` + value + `}}`
			if f := inspected(raw); f.Fault != Malformed || f.Reason == "" || f.Path[0] != "items" {
				t.Errorf("shape %d: %s is %+v", s, raw, f)
			}
		}
	}
}

// TestInspectDialects: what is a keyword, and what it takes, is a matter of the
// dialect (specification, basic, "Schema Dialect").
func TestInspectDialects(t *testing.T) {
	for _, row := range []struct{ members, in07, in2019, in2020 string }{
		{`"items":[{}]`, "", "", Malformed.word()},
		{`"items":[{"type":1}]`, Malformed.word(), Malformed.word(), Malformed.word()},
		{`"prefixItems":[]`, "", "", Malformed.word()},
		{`"additionalItems":1`, Malformed.word(), Malformed.word(), ""},
		{`"dependentRequired":1`, "", Malformed.word(), Malformed.word()},
		{`"dependencies":1`, Malformed.word(), Malformed.word(), Malformed.word()},
		{`"definitions":{"a":1}`, Malformed.word(), Malformed.word(), Malformed.word()},
		{`"$defs":{"a":1}`, "", Malformed.word(), Malformed.word()},
		{`"$anchor":"a:b"`, "", "", Malformed.word()},
		{`"$anchor":"_b"`, "", Malformed.word(), ""},
		{`"$id":"a#b"`, "", Malformed.word(), Malformed.word()},
		{`"deprecated":1`, "", Malformed.word(), Malformed.word()},
		{`"unevaluatedItems":1`, "", Malformed.word(), Malformed.word()},
		{`"$dynamicRef":"#gone"`, "", "", Malformed.word()},
		{`"$recursiveRef":"#gone"`, "", Malformed.word(), ""},
		{`"$recursiveAnchor":"a"`, "", Malformed.word(), ""},
		{`"nullable":1,"example":2,"$comment":""`, "", "", ""},
		{`"items":{"$ref":"#/$defs/a","type":1},"$defs":{"a":true}`, Malformed.word(), Malformed.word(), Malformed.word()},
		{`"$ref":"#/definitions/a","definitions":{"a":true},"allOf":[{"$ref":"#"}]`, "", Malformed.word(), Malformed.word()},
	} {
		for dialect, want := range map[string]string{draft7: row.in07, draft2019: row.in2019, draft2020: row.in2020} {
			if f := inspected(`{` + dialect + `,` + row.members + `}`); f.Fault.word() != want {
				t.Errorf("%s in %s is %+v, want %q", row.members, dialect, f, want)
			}
		}
		if f := inspected(`{` + row.members + `}`); f.Fault.word() != row.in2020 {
			t.Errorf("%s without a dialect is %+v", row.members, f)
		}
	}
	for _, foreign := range []string{`{"$schema":"http://json-schema.org/draft-04/schema#","required":true}`, `{"$schema":"","a":1}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/meta/core"}`, `{"items":{` + draft7 + `}}`, `{"$defs":{"a":{"$id":"a",` + draft2019 + `}},"type":1}`} {
		if f := inspected(foreign); f.Fault != Foreign || f.Reason != reasonDialect {
			t.Errorf("%s is %+v", foreign, f)
		}
	}
	for _, raw := range []string{`{"$schema":5}`, `{"items":{"$schema":null}}`} {
		if f := inspected(raw); f.Fault != Malformed {
			t.Errorf("%s is %+v", raw, f)
		}
	}
}

func (f Fault) word() string { return string(f) }

// TestInspectReferences (specification, basic, "$ref Resolution"): nothing
// outside is ever loaded, and what leads nowhere is said to.
func TestInspectReferences(t *testing.T) {
	for _, row := range []struct {
		name, schema string
		fault        Fault
		reason       string
		path         string
	}{
		{"a tree", `{"properties":{"children":{"items":{"$ref":"#"}}}}`, "", "", ""},
		{"the empty reference", `{"items":{"$ref":""}}`, "", "", ""},
		{"a pointer with escapes", `{"items":{"$ref":"#/$defs/a~1b~0%25%20"},"$defs":{"a/b~% ":{}}}`, "", "", ""},
		{"a pointer with an escape of an escape", `{"items":{"$ref":"#/$defs/a~01"},"$defs":{"a~1":{}}}`, "", "", ""},
		{"a pointer into a list", `{"anyOf":[{},{"type":"string"}],"items":{"$ref":"#/anyOf/1"}}`, "", "", ""},
		{"a pointer into a long list", `{"anyOf":` + list(40, `{"title":"%d"}`) + `,"items":{"$ref":"#/anyOf/39"}}`, "", "", ""},
		{"a pointer beyond a long list", `{"anyOf":` + list(40, `{"title":"%d"}`) + `,"items":{"$ref":"#/anyOf/40"}}`, Malformed, reasonNothing, "items"},
		{"a pointer into many members", `{"$defs":{` + names(40, `{}`) + `},"items":{"$ref":"#/$defs/d39"}}`, "", "", ""},
		{"a leading zero", `{"anyOf":[{},{}],"items":{"$ref":"#/anyOf/01"}}`, Malformed, reasonNothing, "items"},
		{"a pointer that ends too late", `{"items":{"$ref":"#/$defs/a/"},"$defs":{"a":{}}}`, Malformed, reasonNothing, "items"},
		{"a wrong escape", `{"items":{"$ref":"#/$defs/a~2"},"$defs":{"a~2":{}}}`, Malformed, reasonNothing, "items"},
		{"a wrong percentage", `{"items":{"$ref":"#/$defs/%zz"},"$defs":{"%zz":{}}}`, Malformed, reasonNothing, "items"},
		{"nothing there", `{"properties":{"v":{"$ref":"#/$defs/Gone"}}}`, Malformed, reasonNothing, "properties v"},
		{"nothing there, and nobody asks", `{"$defs":{"a":{"$ref":"#/$defs/b"}}}`, Malformed, reasonNothing, "$defs a"},
		{"a target that is no schema", `{"items":{"$ref":"#/title"},"title":"a"}`, Malformed, reasonNone, "items"},
		{"a target that is a list", `{"items":{"$ref":"#/allOf"},"allOf":[{}]}`, Malformed, reasonNone, "items"},
		{"a target nobody knows", `{"items":{"$ref":"#/x/a"},"x":{"a":{"items":{"$ref":"#/x/b"}},"b":{}}}`, "", "", ""},
		{"a target nobody knows, which leads on to nothing", `{"items":{"$ref":"#/x/a"},"x":{"a":{"items":{"$ref":"#/x/b"}}}}`, Malformed, reasonNothing, "x a items"},
		{"a target found late, which leads on to nothing", `{"allOf":[{"$ref":"y#/p"},{"$ref":"#/x"}],"x":{"$id":"y","p":{"items":{"$ref":"#/q"}}}}`,
			Malformed, reasonNothing, "x p items"},
		{"a broken target nobody knows", `{"items":{"$ref":"#/x/a"},"x":{"a":{"items":{"type":"any"}}}}`, Malformed, "its type must be " + wanted[someTypes], "x a items"},
		{"an anchor", `{"items":{"$ref":"#b"},"$defs":{"a":{"$anchor":"b"}}}`, "", "", ""},
		{"an anchor at a place nobody knows", `{"allOf":[{"$ref":"#b"},{"$ref":"#/x"}],"x":{"$anchor":"b"}}`, "", "", ""},
		{"an anchor of the resource around", `{"items":{"$ref":"y#/x"},"$defs":{"a":{"$id":"y","x":{"items":{"$ref":"#b"}},"items":{"$anchor":"b"}}}}`, "", "", ""},
		{"an anchor of a neighbour", `{"items":{"$ref":"#b"},"$defs":{"a":{"$id":"x","$anchor":"b"}}}`, Malformed, reasonNothing, "items"},
		{"that neighbour's anchor, by its name", `{"items":{"$ref":"x#b"},"$defs":{"a":{"$id":"x","$anchor":"b"}}}`, "", "", ""},
		{"an anchor in draft-07", `{` + draft7 + `,"items":{"$ref":"#b"},"definitions":{"a":{"$id":"#b"}}}`, "", "", ""},
		{"pointers are no anchors in draft-07", `{` + draft7 + `,"items":{"$id":"#/a"},"contains":{"$id":"#/a"}}`, "", "", ""},
		{"no anchor beside a reference in draft-07", `{` + draft7 + `,"items":{"$ref":"#b"},"definitions":{"a":{"$id":"#b","$ref":"#/definitions/c"},"c":{}}}`, Malformed, reasonNothing, "items"},
		{"an anchor twice", `{"$anchor":"a","items":{"$anchor":"a"}}`, Malformed, reasonTwice, "items"},
		{"an anchor twice at one place", `{"$anchor":"a","$dynamicAnchor":"a"}`, "", "", ""},
		{"an anchor twice, in two resources", `{"$anchor":"a","items":{"$id":"x","$anchor":"a"}}`, "", "", ""},
		{"an identifier twice", `{"$defs":{"a":{"$id":"x"},"b":{"$id":"./x"}}}`, Malformed, reasonTwice, "$defs b"},
		{"an identifier that is none", `{"items":{"$id":"http://%zz"}}`, Malformed, reasonTwice, "items"},
		{"addresses in addresses", `{"$id":"https://example.com/a/","items":{"$id":"b/","items":{"$id":"c","$ref":"../d"}},"$defs":{"d":{"$id":"/a/d"}}}`, "", "", ""},
		{"a name", `{"$id":"urn:a:b","items":{"$ref":"urn:a:b#/$defs/c"},"$defs":{"c":{}}}`, "", "", ""},
		{"a name in a name", `{"$id":"urn:a:b","items":{"$id":"c"}}`, Malformed, reasonTwice, "items"}, // as for the library
		{"a pointer from another resource", `{"$id":"https://example.com/a","$defs":{"b":{"$id":"b","$defs":{"c":{}},"items":{"$ref":"#/$defs/c"}}}}`, "", "", ""},
		{"a site", `{"items":{"$ref":"https://example.com/a"}}`, External, reasonBeyond, "items"},
		{"a site, with identifiers", `{"$id":"https://example.com/b","items":{"$ref":"a"}}`, External, reasonBeyond, "items"},
		{"a file", `{"$ref":"file:///a.json"}`, External, reasonBeyond, ""},
		{"a path", `{"$ref":"a.json#/b"}`, External, reasonBeyond, ""},
		{"an address that is none", `{"$ref":"http://%zz#/b"}`, External, reasonBeyond, ""},
		{"the schema of the dialect", `{"items":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}`, External, reasonBeyond, "items"},
		{"a dynamic reference to a site", `{"items":{"$dynamicRef":"https://example.com/a#b"}}`, External, reasonBeyond, "items"},
		{"outside before all else", `{"type":1,"items":{"$ref":"x"}}`, External, reasonBeyond, "items"},
		{"outside in a foreign dialect", `{"$schema":"https://example.com/d","allOf":[{"$ref":"x"}]}`, External, reasonBeyond, "allOf 0"},
		{"only data", `{"const":{"$ref":"x"},"enum":[{"$ref":"x"}],"default":{"$ref":"x"},"examples":[{"$ref":"x"}],"x-a":{"$ref":"x"}}`, "", "", ""},
		{"a member of that name", `{"properties":{"$ref":{"type":"string"},"$id":{"type":"string"},"$anchor":{}}}`, "", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := inspected(row.schema)
			if f.Fault != row.fault || f.Reason != row.reason || strings.Join(f.Path, " ") != row.path {
				t.Errorf("%+v, want %s: %s at %q", f, row.fault, row.reason, row.path)
			}
		})
	}
}

// TestInspectCircles: what a value goes down in may come back; what it stays in
// may not.
func TestInspectCircles(t *testing.T) {
	for _, row := range []struct {
		schema, path string
		loops        bool
	}{
		{`{"$ref":"#"}`, "", true},
		{`{"properties":{"a":{"$ref":"#"}},"items":{"$ref":"#"},"propertyNames":{"$ref":"#"},"contains":{"$ref":"#"},"additionalProperties":{"$ref":"#"}}`, "", false},
		{`{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"not":{"$ref":"#/$defs/a"}}]}}}`, "$defs a", true},
		{`{"if":{"$ref":"#"}}`, "", true},
		{`{"if":{},"then":{"$ref":"#"}}`, "", true},
		{`{"then":{"$ref":"#"},"else":{"$ref":"#"}}`, "", false},
		{`{"if":true,"else":{"$ref":"#"}}`, "", false},
		{`{"if":false,"then":{"$ref":"#"}}`, "", false},
		{`{"if":false,"else":{"$ref":"#"}}`, "", true},
		{`{"dependentSchemas":{"a":{"$ref":"#"}}}`, "", true},
		{`{"dependencies":{"a":{"$ref":"#"},"b":["c"]}}`, "", true},
		{`{` + draft7 + `,"$ref":"#/definitions/a","allOf":[{"$ref":"#"}],"definitions":{"a":{}}}`, "", false},
		{`{"$dynamicAnchor":"a","$dynamicRef":"#a"}`, "", true},
		{`{"$dynamicAnchor":"a","items":{"$dynamicRef":"#a"}}`, "", false},
		{`{"$id":"a","$dynamicAnchor":"n","anyOf":[{"$ref":"b"}],"$defs":{"b":{"$id":"b","$dynamicAnchor":"n","not":{"$ref":"c"}},"c":{"$id":"c","$dynamicRef":"b#n"}}}`, "", true},
		{`{"$id":"a","$dynamicAnchor":"n","$ref":"b","$defs":{"b":{"$id":"b","$defs":{"x":{"$dynamicAnchor":"n"}},"not":{"$dynamicRef":"#n"}}}}`, "", true},
		{`{"$id":"a","$dynamicAnchor":"n","$ref":"b","$defs":{"b":{"$id":"b","$defs":{"x":{"$dynamicAnchor":"n"}},"not":{"$dynamicRef":"#/$defs/x"}}}}`, "", false},
		{`{"$id":"a","$dynamicAnchor":"n","$ref":"b","$defs":{"b":{"$id":"b","$defs":{"x":{"$dynamicAnchor":"m"}},"not":{"$dynamicRef":"#m"}}}}`, "", false},
		{`{"$id":"a","$dynamicAnchor":"n","$ref":"b","$defs":{"b":{"$id":"b","$defs":{"x":{"$dynamicAnchor":"n"}},"not":{"$ref":"#n"}}}}`, "", false},
		{`{` + draft2019 + `,"$recursiveRef":"#"}`, "", true},
		{`{` + draft2019 + `,"$id":"a","$recursiveAnchor":true,"$ref":"b#/$defs/p","$defs":{"b":{"$id":"b","$recursiveAnchor":true,"$defs":{"p":{"$recursiveRef":"#"}}}}}`, "", true},
		{`{` + draft2019 + `,"$id":"a","$ref":"b#/$defs/p","$defs":{"b":{"$id":"b","$recursiveAnchor":true,"$defs":{"p":{"$recursiveRef":"#"}}}}}`, "", false},
		{`{` + draft2019 + `,"$recursiveAnchor":true,"items":{"$recursiveRef":"#"}}`, "", false},
		{`{` + draft2019 + `,"$id":"a","$recursiveAnchor":true,"allOf":[{"$ref":"b"}],"$defs":{"b":{"$id":"b","$recursiveAnchor":true,"not":{"$recursiveRef":"#"}}}}`, "", true},
	} {
		f := inspected(row.schema)
		if looped := f.Fault == Malformed && f.Reason == reasonLoop; looped != row.loops || !looped && f.Fault != "" || strings.Join(f.Path, " ") != row.path {
			t.Errorf("%s is %+v", row.schema, f)
		}
	}
}

// TestInspectBounds holds Inspect to the bounds of Compile that do not concern
// patterns and counts.
func TestInspectBounds(t *testing.T) {
	for _, row := range boundRows() {
		in, out := inspected(row.in), inspected(row.out)
		if row.reason == reasonPattern || row.reason == reasonCount {
			row.reason = ""
		}
		if in.Fault != "" || out.Reason != row.reason || (out.Fault == TooLarge) != (row.reason != "") {
			t.Errorf("%s: within the bound %+v, beyond it %+v", row.name, in, out)
		}
	}
	const deep = `{"$id":"a/","items":*}`
	long := strings.Repeat("i", 200)
	for name, raw := range map[string]string{
		"relative addresses that add up": nest(7, strings.Replace(deep, "a", long, 1), `{}`),
		"a reference as long":            `{"$id":"a","$ref":"` + strings.Repeat("i", 1000) + `"}`,
	} {
		if f := inspected(raw); f.Fault != Malformed && f.Fault != External {
			t.Errorf("%s: %+v", name, f)
		}
	}
	var doubling []string
	for i := range 400 { // if each were counted anew it would take longer than there is time
		doubling = append(doubling, fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	if f := inspected(`{"$defs":{` + strings.Join(doubling, ",") + `,"d400":{}}}`); f.Fault != TooLarge || f.Reason != reasonWork {
		t.Errorf("work that doubles: %+v", f)
	}
	many := `{"$defs":{` + names(60, `{"$id":"r%d","anyOf":`+list(12, `{"$ref":"r%d"}`)+`}`) + `}}`
	if f := inspected(many); f.Fault != TooLarge || f.Reason != reasonRefs {
		t.Errorf("addresses beyond counting: %+v", f)
	}
	for raw, reason := range map[string]string{``: reasonText, `{`: reasonText, `{} {}`: reasonText, `{"a":1,"a":2}`: reasonText, "{\"a\":\"\xff\"}": reasonText,
		`{"a":"\ud800"}`: reasonText, `{"a" 1}`: reasonText, `true`: reasonObject, `null`: reasonObject, `[{}]`: reasonObject, ` "a" `: reasonObject, `-1e3`: reasonObject} {
		if f := inspected(raw); f.Fault != Malformed || f.Reason != reason || f.Path != nil {
			t.Errorf("%q is %+v", raw, f)
		}
	}
}

// TestInspectPaths: the path is what leads to the fault, as it was written
// before escapes.
func TestInspectPaths(t *testing.T) {
	f := inspected(` { "properties" : { "a\u00e9\n/~" : { "anyOf" : [ {"title":"\"}]"} , true,{ "items" :{"type": 7 } } ] } } } `)
	if want := []string{"properties", "aé\n/~", "anyOf", "2", "items"}; !slices.Equal(f.Path, want) || f.Fault != Malformed {
		t.Errorf("%+v, want %q", f, want)
	}
	first := inspected(`{"$defs":{"b":{"type":1},"a":{"type":1}},"allOf":[1]}`)
	if want := []string{"$defs", "b"}; !slices.Equal(first.Path, want) {
		t.Errorf("the first in the text is %q, not %q", want, first.Path)
	}
}

// TestInspectMeasuresAsCompile, so that both draw the line at the same schema.
func TestInspectMeasuresAsCompile(t *testing.T) {
	all := []string{ordinary, `{"a\u00e9":[{"b":[true,[],{}]},1,2,3,4,5,6,7,8,9,{"$ref":"x","$id":"\u0061b"},{"$ref":"\u0078"},[[]]]}`}
	for _, pair := range nasty() {
		all = append(all, pair[0])
	}
	for _, raw := range all {
		var d document
		doc, reason := readSchema(jsontext.Value(raw))
		if got := d.read([]byte(raw)); got != "" || reason != "" {
			t.Fatalf("%s: %s, %s", raw, got, reason)
		}
		s := survey{refs: make(map[string]bool)}
		s.measure(doc, 0)
		if d.schemas != s.schemas || d.pointers != s.pointers || len(d.refs) != len(s.refs) || d.ids != s.ids || d.idBytes != s.idBytes {
			t.Errorf("%s: %d schemas, %d bytes of paths, %d references, %d identifiers of %d bytes; for Compile %d, %d, %d, %d, %d",
				raw, d.schemas, d.pointers, len(d.refs), d.ids, d.idBytes, s.schemas, s.pointers, len(s.refs), s.ids, s.idBytes)
		}
	}
}
