package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// object is the schema of an object with these properties.
func object(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }

// region is a property that is annotated as it should be.
const region = `{"type":"string","x-mcp-header":"Region"}`

// shown writes params as "Region:region Count:opts/count".
func shown(params []Param) string {
	var words []string
	for _, p := range params {
		words = append(words, strings.TrimPrefix(p.Field, ParamPrefix)+":"+strings.Join(p.Path, "/"))
	}
	return strings.Join(words, " ")
}

// TestParamsFound has what is valid (server/tools, "x-mcp-header"; transports/
// streamable-http, "Schema Extension").
func TestParamsFound(t *testing.T) {
	for _, c := range []struct{ rule, schema, want string }{
		{"the example of the specification", object(`"region":` + region + `,"query":{"type":"string"}`), "Region:region"},
		{"nested in properties alone", object(`"opts":` + object(`"count":{"type":"integer","x-mcp-header":"Count"}`)), "Count:opts/count"},
		{"each of the three types", object(`"a":{"type":"string","x-mcp-header":"A"},"b":{"x-mcp-header":"B","type":"integer"},"c":{"type":"boolean","x-mcp-header":"C"}`), "A:a B:b C:c"},
		{"null besides", object(`"a":{"type":["string","null"],"x-mcp-header":"A"}`), "A:a"},
		{"several of the three", object(`"a":{"type":["boolean","null","integer"],"x-mcp-header":"A"}`), "A:a"},
		{"the name of another header", object(`"a":{"type":"string","x-mcp-header":"Method"}`), "Method:a"},
		{"all characters of a token", object("\"a\":{\"type\":\"string\",\"x-mcp-header\":\"!#$%&'*+-.^_`|~09azAZ\"}"), "!#$%&'*+-.^_`|~09azAZ:a"},
		{"escapes", object(`"a\/b":{"t\u0079pe":"str\u0069ng","x\u002dmcp\u002Dheader":"\u0041"}`), "A:a/b"},
		{"escapes all over", `{"\u0070roperties":{"a":{"type":"string","\u0078\u002d\u006d\u0063\u0070-header":"A"}}}`, "A:a"},
		{"whatever else the chain has", `{"properties":{"o":{"$ref":"#/$defs/o","allOf":[true],"properties":{"r":` + region + `}}}}`, "Region:o/r"},
		{"a property called so is none", object(`"x-mcp-header":{"type":"number"}`), ""},
		{"a property called so may have one", object(`"x-mcp-header":` + region), "Region:x-mcp-header"},
		{"a property called like a keyword", object(`"items":` + region + `,"properties":` + object(`"$ref":{"type":"integer","x-mcp-header":"Ref"}`)), "Region:items Ref:properties/$ref"},
		{"a definition called so is none", `{"$defs":{"x-mcp-header":{"type":"object"}}}`, ""},
		{"a requirement called so is none", `{"required":["x-mcp-header"],"dependentRequired":{"x-mcp-header":["a"]},"dependencies":{"x-mcp-header":["a"]}}`, ""},
		{"plain data", object(`"a":{"default":{"x-mcp-header":""},"const":{"x-mcp-header":7},"enum":[{"x-mcp-header":"A b"}],"examples":[[{"x-mcp-header":null}]]}`), ""},
		{"plain data that looks like a schema", object(`"a":{"default":` + object(`"r":`+region) + `}`), ""},
		{"a text about it", object(`"a":{"type":"string","description":"see x-mcp-header: \"a\""}`), ""},
		{"boolean schemas", `{"properties":{"x-mcp-header":true,"b":false},"items":true,"not":false}`, ""},
		{"a boolean for a schema", `true`, ""},
		{"a reference to what is annotated mirrors nothing", object(`"a":` + region + `,"b":{"$ref":"#/properties/a"},"c":{"$ref":"#"}`), "Region:a"},
		{"another spelling is another keyword", object(`"a":{"type":"number","X-Mcp-Header":"","x_mcp_header":""}`), ""},
		{"nothing to read", ``, ""},
		{"not judged where it is not named", `{"a":1,"a":{`, ""},
		{"as deep as may be", deep(31), "Region:" + strings.Repeat("a/", 30) + "a"},
	} {
		params, reason := Params(jsontext.Value(c.schema))
		if got := shown(params); got != c.want || reason != "" {
			t.Errorf("%s: %.200s has %q, %q; want %q", c.rule, c.schema, got, reason, c.want)
		}
	}
}

// deep is a schema in which n properties lead to an annotation.
func deep(n int) string {
	return strings.Repeat(`{"properties":{"a":`, n) + region + strings.Repeat(`}}`, n)
}

// What is said of an annotation.
const (
	noToken   = ": its x-mcp-header is no token, so no header can be named by it"
	noChain   = ": no chain of properties alone leads to its x-mcp-header"
	noType    = ": its x-mcp-header needs a type that is string, integer or boolean"
	notAlone  = ": its x-mcp-header is that of another property too, or differs in case alone"
	unread    = "inputSchema: it is no JSON text, or names a member twice"
	firstProp = "inputSchema/properties/a"
)

// TestParamsRefused has what is invalid, by rule (as above), each before a good one:
// one is enough for the tool to be left out.
func TestParamsRefused(t *testing.T) {
	with := func(annotation string) string {
		return object(`"a":{"type":"string","x-mcp-header":` + annotation + `}`)
	}
	typed := func(kind string) string { return object(`"a":{` + kind + `"x-mcp-header":"A"},"r":` + region) }
	for _, c := range []struct{ rule, schema, reason string }{
		{"MUST NOT be empty", with(`""`), firstProp + noToken},
		{"token syntax: space", with(`"My Region"`), firstProp + noToken},
		{"token syntax: colon", with(`"Region:Primary"`), firstProp + noToken},
		{"token syntax: not ASCII", with(`"Région"`), firstProp + noToken},
		{"token syntax: no text", with(`7`), firstProp + noToken},
		{"token syntax: no text", with(`null`), firstProp + noToken},
		{"token syntax: no text", with(`["A"]`), firstProp + noToken},
		{"token syntax: no text", with(`{"x-mcp-header":"A"}`), firstProp + noToken},
		{"control characters", with(`"Region\t1"`), firstProp + noToken},
		{"control characters", with(`"A\r\nEvil"`), firstProp + noToken},
		{"control characters", with(`"A\u0000"`), firstProp + noToken},
		{"control characters", with(`"A\u007f"`), firstProp + noToken},
		{"unique", object(`"b":{"type":"integer","x-mcp-header":"Region"},"a":` + region), firstProp + notAlone},
		{"unique without case", object(`"b":{"type":"integer","x-mcp-header":"rEGION"},"a":` + region), firstProp + notAlone},
		{"unique at any depth", object(`"b":` + object(`"c":`+region) + `,"a":` + region), firstProp + notAlone},
		{"primitive types: number", typed(`"type":"number",`), firstProp + noType},
		{"primitive types: object", typed(`"type":"object",`), firstProp + noType},
		{"primitive types: array", typed(`"type":"array","items":{"type":"string"},`), firstProp + noType},
		{"primitive types: null", typed(`"type":"null",`), firstProp + noType},
		{"primitive types: null", typed(`"type":["null"],`), firstProp + noType},
		{"primitive types: a number among others", typed(`"type":["string","number"],`), firstProp + noType},
		{"primitive types: none of its own", typed(``), firstProp + noType},
		{"primitive types: one by reference", typed(`"$ref":"#/properties/r",`), firstProp + noType},
		{"primitive types: no type at all", typed(`"type":[],`), firstProp + noType},
		{"primitive types: no type at all", typed(`"type":"String",`), firstProp + noType},
		{"primitive types: no type at all", typed(`"type":{"a":1},`), firstProp + noType},
		{"the root is no parameter", `{"type":"string","x-mcp-header":"A"}`, "inputSchema" + noChain},
		{"a list is no schema", `[` + region + `]`, "inputSchema/0" + noChain},
		{"repeated keys", object(`"a":{"type":"string","x-mcp-header":"A","x-mcp-header":"A"}`), unread},
		{"repeated keys, by escapes", object(`"a":{"type":"string","x-mcp-header":"A","x\u002dmcp-header":"B"}`), unread},
		{"repeated keys", object(`"a":` + region + `,"b":{},"b":{}`), unread},
		{"no JSON", object(`"a":`+region) + `}`, unread},
		{"no JSON", `{"properties":{"a":` + region, unread},
		{"no JSON", `{"properties":{"a":{"x-mcp-header":"\ud800"}}}`, unread},
		{"too deep", deep(32), "inputSchema" + strings.Repeat("/properties/a", 6) + "/properties...: it is nested deeper than 64 levels"},
	} {
		params, reason := Params(jsontext.Value(c.schema))
		if reason != c.reason || params != nil {
			t.Errorf("%s: %.200s: %q, %q; want %q", c.rule, c.schema, shown(params), reason, c.reason)
		}
	}
}

// TestParamsOnlyByProperties (transports/streamable-http, "Schema Extension": "An
// annotation anywhere else makes the tool definition invalid") has every other way
// to a schema, from the root and from a property.
func TestParamsOnlyByProperties(t *testing.T) {
	ways := []string{"x-vendor", "components", "$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies"}
	for _, keyword := range []string{"items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contains",
		"propertyNames", "not", "if", "then", "else", "contentSchema", "x-vendor"} {
		ways = append(ways, keyword+" one")
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf", "prefixItems", "items", "x-vendor"} {
		ways = append(ways, keyword+" list")
	}
	for _, way := range ways {
		keyword, kind, _ := strings.Cut(way, " ")
		for name, inner := range map[string]string{"itself": region, "a property of it": object(`"p":` + region), "in lists": `{"anyOf":[[` + region + `]]}`} {
			value := map[string]string{"": `{"n":` + inner + `}`, "one": inner, "list": `[true,` + inner + `]`}[kind]
			for _, schema := range []string{fmt.Sprintf(`{"type":"object",%q:%s}`, keyword, value), object(fmt.Sprintf(`"a":{%q:%s}`, keyword, value))} {
				if params, reason := Params(jsontext.Value(schema)); params != nil || !strings.HasSuffix(reason, noChain) {
					t.Errorf("%s, %s: %s has %q, %q", way, name, schema, shown(params), reason)
				}
			}
		}
	}
	malformed := `{"properties":[` + region + `]}`
	if params, reason := Params(jsontext.Value(malformed)); params != nil || reason != "inputSchema/properties/0"+noChain {
		t.Errorf("%s has %q, %q", malformed, shown(params), reason)
	}
}

// BenchmarkParams is what a schema costs that names no annotation, one that only
// might, and one that is full of them.
func BenchmarkParams(b *testing.B) {
	ordinary := object(strings.Repeat(`"query":{"type":"string","description":"What to look for","minLength":1},`, 500) + `"a":{}`)
	var full []string
	for i := range 1500 {
		full = append(full, fmt.Sprintf(`"p%d":{"type":"string","x-mcp-header":"P%d"}`, i, i))
	}
	for name, schema := range map[string]string{
		"plain":     ordinary,
		"escapes":   object(strings.ReplaceAll(ordinary[1:len(ordinary)-1], `"query":`, `"query\u00e9":`)[len(`"type":"object","properties":{`):] + `,"x":{"enum":["\u00e9"]}`),
		"annotated": object(strings.Join(full, ",")),
	} {
		b.Run(name, func(b *testing.B) {
			schema := jsontext.Value(schema)
			b.SetBytes(int64(len(schema)))
			b.ReportAllocs()
			for b.Loop() {
				if params, _ := Params(schema); (len(params) > 0) != (name == "annotated") {
					b.Fatal(len(params))
				}
			}
		})
	}
}
