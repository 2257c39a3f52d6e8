package schema

import (
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	draft7    = `"$schema":"http://json-schema.org/draft-07/schema#"`
	draft2019 = `"$schema":"https://json-schema.org/draft/2019-09/schema"`
	draft2020 = `"$schema":"https://json-schema.org/draft/2020-12/schema"`
)

// structured makes the result of a call from the value it carries.
func structured(value string) jsontext.Value {
	return jsontext.Value(`{"content":[{"type":"text","text":"a"}],"structuredContent":` + value + `}`)
}

// A judged row is a schema with values that match it and values that do not.
type judged struct {
	name, schema string
	valid        []string
	invalid      []string
}

var rows = []judged{
	{"type", `{"type":"object"}`, []string{`{}`}, []string{`[]`, `null`, `1`, `"{}"`}},
	{"the example of the specification", `{"type":"object","properties":{"temperature":{"type":"number","description":"Celsius"},
		"conditions":{"type":"string"},"humidity":{"type":"number"}},"required":["temperature","conditions","humidity"]}`,
		[]string{`{"temperature":22.5,"conditions":"Partly cloudy","humidity":65}`},
		[]string{`{"temperature":22.5,"conditions":"Partly cloudy"}`, `{"temperature":"22.5","conditions":"a","humidity":65}`}},
	{"array", `{"type":"array","items":{"type":"object","required":["id"]}}`, []string{`[]`, `[{"id":1}]`}, []string{`[{"id":1},{}]`, `{}`}},
	{"null is a value", `{"type":"null"}`, []string{`null`}, []string{`0`, `{}`}},
	{"anything", `{}`, []string{`null`, `0`, `{}`, `[[]]`, `"a"`, `false`}, nil},
	{"nothing", `{"not":{}}`, nil, []string{`null`, `{}`}},
	{"enum and const", `{"properties":{"a":{"enum":["x",1,[1],{"k":null}]},"b":{"const":1.0}}}`,
		[]string{`{"a":"x","b":1}`, `{"a":1e0}`, `{"a":[1.0]}`, `{"a":{"k":null}}`}, []string{`{"a":"y"}`, `{"b":true}`, `{"a":{"k":0}}`}},
	{"large integers are exact", `{"type":"integer","maximum":9007199254740993}`,
		[]string{`9007199254740993`, `9007199254740992.0`, `9.007199254740993e15`}, []string{`9007199254740994`, `9007199254740993.5`, `1e16`}},
	{"decimals are exact", `{"multipleOf":0.01,"exclusiveMaximum":0.3}`, []string{`0.29`, `-5`, `1e-2`}, []string{`0.30`, `0.295`, `0.30000000000000000001`}},
	{"numbers in const are exact", `{"const":18446744073709551617}`, []string{`18446744073709551617`}, []string{`18446744073709551616`}},
	{"numbers as large as they get", `{"minimum":1e400}`, []string{`1e400`, `1.5E+0400`}, []string{`9e399`, `1e-400`}},
	{"objects", `{"properties":{"a":{}},"patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false,
		"minProperties":1,"maxProperties":2,"propertyNames":{"maxLength":3}}`,
		[]string{`{"a":1}`, `{"x-1":"b"}`}, []string{`{}`, `{"b":1}`, `{"x-1":1}`, `{"x-12":"a"}`, `{"a":1,"x-1":"","x-2":""}`}},
	{"arrays", `{"prefixItems":[{"type":"string"}],"items":{"type":"number"},"contains":{"const":5},"maxContains":2,"minItems":2,"uniqueItems":true}`,
		[]string{`["a",5]`, `["a",1,5,2]`}, []string{`["a"]`, `["a",1]`, `[5,5]`, `["a",5,"b"]`, `["a",5,5.0]`}},
	{"many unique items", `{"uniqueItems":true}`, []string{list(100, `{"a":%d}`)}, []string{strings.Replace(list(100, `{"a":%d}`), "99", "98", 1)}},
	{"strings", `{"minLength":2,"maxLength":3,"pattern":"^\\p{L}+$"}`, []string{`"ab"`, `"äöü"`, `"日本"`}, []string{`"a"`, `"abcd"`, `"a1"`}},
	{"combinations", `{"allOf":[{"type":"number"}],"anyOf":[{"minimum":5},{"maximum":1}],"oneOf":[{"multipleOf":2},{"multipleOf":3}],"not":{"const":8}}`,
		[]string{`10`, `-3`, `9`}, []string{`3`, `12`, `7`, `8`, `"a"`}},
	{"conditions", `{"if":{"properties":{"k":{"const":"a"}},"required":["k"]},"then":{"required":["a"]},"else":{"required":["b"]}}`,
		[]string{`{"k":"a","a":1}`, `{"b":1}`}, []string{`{"k":"a","b":1}`, `{"k":"b"}`}},
	{"dependents", `{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"properties":{"d":{"type":"string"}}}}}`,
		[]string{`{"d":1}`, `{"a":1,"b":1}`, `{"c":1,"d":"e"}`}, []string{`{"a":1}`, `{"c":1,"d":1}`}},
	{"unevaluated", `{"allOf":[{"properties":{"a":{}}}],"properties":{"b":{}},"unevaluatedProperties":false}`,
		[]string{`{"a":1,"b":1}`}, []string{`{"a":1,"c":1}`}},
	{"unevaluated items", `{"prefixItems":[true],"anyOf":[{"prefixItems":[true,{"const":1}]},true],"unevaluatedItems":false}`,
		[]string{`[0]`, `[0,1]`}, []string{`[0,2]`, `[0,1,2]`}},
	{"format is an annotation", `{"format":"email","contentMediaType":"application/json"}`, []string{`"a"`, `"a@b.example"`}, nil},
	{"format in draft-07 too", `{` + draft7 + `,"format":"date-time","contentEncoding":"base64"}`, []string{`"%"`}, nil},
	{"unknown keywords", `{"x-order":1,"$comment":"a","required":["a"]}`, []string{`{"a":1}`}, []string{`{}`}},
}

var referenceRows = []judged{
	{"$defs", `{"$ref":"#/$defs/a~1b%25","$defs":{"a/b%":{"type":"string"}}}`, []string{`"a"`}, []string{`1`}},
	{"$anchor and $id", `{"$id":"https://example.com/x","$ref":"#here","properties":{"a":{"$ref":"y"},"b":{"$ref":"https://example.com/y#/$defs/z"}},
		"$defs":{"h":{"$anchor":"here","type":"object"},"y":{"$id":"y","type":"string","$defs":{"z":{"const":1}}}}}`,
		[]string{`{"a":"b","b":1}`}, []string{`[]`, `{"a":1}`, `{"b":2}`}},
	{"a tree", `{"type":"object","properties":{"children":{"items":{"$ref":"#"}}},"required":["name"]}`,
		[]string{`{"name":1,"children":[{"name":2,"children":[]}]}`}, []string{`{"name":1,"children":[{"children":[]}]}`, `{"name":1,"children":[1]}`}},
	{"$dynamicRef", `{"$id":"strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,"$defs":{"tree":{"$id":"tree",
		"$dynamicAnchor":"node","type":"object","properties":{"data":true,"children":{"type":"array","items":{"$dynamicRef":"#node"}}}}}}`,
		[]string{`{"children":[{"data":1,"children":[{"data":2}]}]}`}, []string{`{"children":[{"daat":1}]}`, `{"children":[{"children":[{"daat":1}]}]}`, `{"children":1}`}},
	{"$recursiveRef to the root", `{` + draft2019 + `,"properties":{"a":{"$recursiveRef":"#"}},"required":["b"]}`,
		[]string{`{"b":1,"a":{"b":1}}`}, []string{`{"b":1,"a":{}}`}},
	{"draft-07", `{` + draft7 + `,"definitions":{"a":{"type":"string"}},"items":[{"$ref":"#/definitions/a"}],"additionalItems":{"type":"number"},
		"dependencies":{"a":["b"],"c":{"required":["d"]}}}`,
		[]string{`["a",1]`, `{"a":1,"b":1}`, `{"c":1,"d":1}`}, []string{`[1]`, `["a","b"]`, `{"a":1}`, `{"c":1}`}},
	{"$defs in draft-07", `{` + draft7 + `,"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, []string{`"a"`}, []string{`1`}},
	{"beside a reference in draft-07", `{` + draft7 + `,"definitions":{"a":{"type":"string"}},"properties":{"b":{"$ref":"#/definitions/a",
		"const":"c","enum":["d"],"minLength":9}}}`, []string{`{"b":"e"}`}, []string{`{"b":1}`}},
	{"beside a reference in 2020-12", `{` + draft2020 + `,"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a","maxLength":1}`,
		[]string{`"a"`}, []string{`1`, `"ab"`}},
	{"2019-09", `{` + draft2019 + `,"items":[true,{"type":"string"}],"unevaluatedItems":false,"minContains":0,"contains":{"const":1}}`,
		[]string{`[1,"a"]`, `[2]`}, []string{`[1,1]`, `[1,"a",1]`}},
	{"https for http", `{"$schema":"https://json-schema.org/draft-07/schema","const":1}`, []string{`1`}, []string{`2`}},
	{"the identifier of the dialect", `{"$id":"https://json-schema.org/draft/2020-12/schema","$ref":"https://json-schema.org/draft/2020-12/schema#/$defs/a",
		"$defs":{"a":{"const":1}}}`, []string{`1`}, []string{`{}`}},
}

// TestVerdicts judges each value with the library as it is by default too: the
// detour over the inverse must not change what it says.
func TestVerdicts(t *testing.T) {
	for _, row := range append(rows, referenceRows...) {
		t.Run(row.name, func(t *testing.T) {
			s := Compile(jsontext.Value(row.schema))
			if s.Reason() != "" {
				t.Fatalf("not checked: %s", s.Reason())
			}
			for _, v := range row.valid {
				judges(t, s, v, Valid)
			}
			for _, v := range row.invalid {
				judges(t, s, v, Invalid)
			}
		})
	}
}

func judges(t *testing.T, s *Schema, value string, want Verdict) {
	t.Helper()
	if got := s.Check(structured(value)); got != want {
		t.Errorf("%s is %s, want %s", value, got, want)
	}
	v, reason := readValue(jsontext.Value(value))
	if reason != "" {
		t.Fatal(reason)
	}
	plain := Valid
	if s.inverse.Not.Ref.Validate(v) != nil {
		plain = Invalid
	}
	if plain != want {
		t.Errorf("without the inverse %s is %s, want %s", value, plain, want)
	}
}

func TestResults(t *testing.T) {
	const object, broken = `{"type":"object"}`, `{"type":5}`
	for _, row := range []struct {
		name, schema, result string
		want                 Verdict
	}{
		{"a match", object, `{"content":[],"structuredContent":{}}`, Valid},
		{"isError is false", object, `{"isError":false,"structuredContent":{}}`, Valid},
		{"no structured content", object, `{"content":[]}`, Invalid},
		{"none where anything would do", `{}`, `{"content":[]}`, Invalid},
		{"null where an object must be", object, `{"structuredContent":null}`, Invalid},
		{"no object", object, `[]`, Invalid},
		{"names are exact", object, `{"StructuredContent":{},"structured_content":{}}`, Invalid},
		{"a tool error", object, `{"isError":true,"structuredContent":1}`, ""},
		{"a tool error, said last", object, `{"structuredContent":1,"isError":true}`, ""},
		{"a tool error without content", object, `{"isError":true}`, ""},
		{"a tool error under a broken schema", broken, `{"isError":true}`, ""},
		{"isError is no boolean", object, `{"isError":"true","structuredContent":1}`, Invalid},
		{"a broken schema", broken, `{"structuredContent":{}}`, Unchecked},
		{"a broken schema and no content", broken, `{}`, Unchecked},
		{"no JSON", object, `{"structuredContent":{}`, Unchecked},
		{"no JSON, and no object", object, `[`, Unchecked},
		{"empty", object, ``, Unchecked},
		{"two values", object, `{"structuredContent":{}} {}`, Unchecked},
		{"two values, no object", object, `[] []`, Unchecked},
		{"a member twice", object, `{"structuredContent":{},"structuredContent":[]}`, Unchecked},
		{"a member twice below", object, `{"structuredContent":{"a":1,"a":2}}`, Unchecked},
		{"a member twice beside it", object, `{"structuredContent":{},"content":{"a":1,"a":2}}`, Unchecked},
		{"bad UTF-8", object, "{\"structuredContent\":{\"a\":\"\xff\"}}", Unchecked},
		{"white space", object, " {\n\"structuredContent\" : {} } ", Valid},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := Compile(jsontext.Value(row.schema)).Check(jsontext.Value(row.result)); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// TestResultIsNotChanged: a caller's bytes are its own, before and after.
func TestResultIsNotChanged(t *testing.T) {
	raw := jsontext.Value(`{"const":{"a":[1,"b"]}}`)
	result := structured(`{"a":[1,"b"]}`)
	kept := string(result)
	s := Compile(raw)
	clear(raw)
	for range 2 {
		if got := s.Check(result); got != Valid {
			t.Errorf("got %s after the schema's bytes were used again", got)
		}
	}
	if string(result) != kept {
		t.Errorf("the result became %s", result)
	}
}

func TestConcurrentChecks(t *testing.T) {
	s := Compile(jsontext.Value(referenceRows[3].schema))
	var wait sync.WaitGroup
	for i := range 8 {
		value, want := referenceRows[3].valid[0], Valid
		if i%2 == 1 {
			value, want = referenceRows[3].invalid[0], Invalid
		}
		wait.Go(func() {
			for range 50 {
				if got := s.Check(structured(value)); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
	wait.Wait()
}

// TestPanicOfTheLibraryIsNoVerdict provokes one with schemas that the library
// would not make.
func TestPanicOfTheLibraryIsNoVerdict(t *testing.T) {
	target := &jsonschema.Schema{DynamicAnchor: "a"}
	s := &Schema{
		inverse: &jsonschema.Schema{DraftVersion: 2020, DynamicRef: &jsonschema.DynamicRef{Ref: target, Anchor: "a"}},
		start:   &node{always: true},
	}
	if got := s.Check(structured(`1`)); got != Unchecked {
		t.Errorf("got %s", got)
	}
	if _, reason := compile(map[string]any{"$schema": draft2020}, &survey{draft: nil}); reason != reasonCompile {
		t.Errorf("compiled without a dialect, with the reason %q", reason)
	}
}
