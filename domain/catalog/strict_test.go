package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// output is a definition with an output schema.
func output(name, schema string) string { return tool(name, `,"outputSchema":`+schema) }

// one builds a list of one tool and a good one strictly, and returns what is
// said of the first.
func one(t *testing.T, definition string) (b BadTool, warnings []string) {
	t.Helper()
	c, bad, warnings := Build(pages(t, answer(hints, definition, tool("good", ""))), true)
	if !c.Has("good") || len(bad) > 1 || len(c.Tools) != 2-len(bad) {
		t.Fatalf("%.300s: %s", definition, listing(c, bad))
	}
	if len(bad) == 1 {
		b = bad[0]
	}
	return b, warnings
}

// nested puts a text into n objects or lists.
func nested(n int, open, inner, shut string) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
}

// TestStrictlyLeftOut has each strict rule with tools that break it, and with
// what is said to people: which rule, and where.
func TestStrictlyLeftOut(t *testing.T) {
	filler := func(n int, around string) string {
		return strings.Replace(around, "*", strings.Repeat("a", n-len(around)+1), 1)
	}
	for _, c := range []struct {
		name, source, definition string
		problem                  Problem
		reason                   string
	}{
		{"a definition that is too long", "basic, Composition-Keyword Resource Use", filler(maxDefinition+1, tool("t", `,"title":"*"`)),
			ToolTooLarge, "the definition is longer than 256 KiB"},
		{"a definition that is too deep", "basic, Composition-Keyword Resource Use", tool("t", `,"_meta":`+nested(maxDepth, "[", "", "]")),
			ToolTooLarge, "the definition is nested deeper than 64 levels"},
		{"a schema that is too long", "basic, Composition-Keyword Resource Use", filler(66_000, withInput("t", `{"type":"object","title":"*"}`)),
			ToolTooLarge, "inputSchema: the schema is longer than 64 KiB"},
		{"too many schemas", "basic, Composition-Keyword Resource Use", output("t", `{"anyOf":[`+strings.Repeat("true,", 5000)+`true]}`),
			ToolTooLarge, "outputSchema: the schema has more than 4096 objects and booleans, or its paths are too long"},
		{"work that doubles with every step", "basic, Composition-Keyword Resource Use", output("t", doubling(25)),
			ToolTooLarge, "outputSchema/$defs/d0: the schema asks for more than 500000 evaluations of one value"},
		{"a number that is a bomb", "basic, Composition-Keyword Resource Use", output("t", `{"multipleOf":1e1000000000}`),
			ToolTooLarge, "outputSchema: the schema has a number of more than 400 digits, or an exponent beyond 400"},
		{"a reference to a site", "basic, $ref Resolution", withInput("t", `{"type":"object","properties":{"v":{"$ref":"https://example.com/s.json"}}}`),
			ToolSchemaExternal, "inputSchema/properties/v: a reference leads outside of the schema, and nothing outside is ever loaded"},
		{"a reference to a file", "basic, $ref Resolution", output("t", `{"$ref":"file:///etc/passwd"}`),
			ToolSchemaExternal, "outputSchema: a reference leads outside of the schema, and nothing outside is ever loaded"},
		{"a dynamic reference to a neighbour", "basic, $ref Resolution", output("t", `{"items":{"$dynamicRef":"other.json#a"}}`),
			ToolSchemaExternal, "outputSchema/items: a reference leads outside of the schema, and nothing outside is ever loaded"},
		{"a reference to nothing", "basic, Schema Validation", output("t", `{"type":"object","properties":{"v":{"$ref":"#/$defs/Gone"}}}`),
			ToolSchemaInvalid, "outputSchema/properties/v: a reference leads to nothing in the schema"},
		{"an anchor that is not there", "basic, Schema Validation", withInput("t", `{"type":"object","allOf":[{"$ref":"#gone"}]}`),
			ToolSchemaInvalid, "inputSchema/allOf/0: a reference leads to nothing in the schema"},
		{"required null", "basic, Schema Validation", withInput("t", `{"type":"object","properties":{},"required":null}`),
			ToolSchemaInvalid, "inputSchema: its required must be a list of different strings"},
		{"a type that is none", "basic, Schema Validation", withInput("t", `{"type":"object","properties":{"a b\u00e9":{"type":"any"}}}`),
			ToolSchemaInvalid, `inputSchema/properties/"a b\u00e9": its type must be one of the seven types, or a list of different ones`},
		{"the tuples of another dialect", "basic, Schema Dialect", withInput("t", `{"type":"object","properties":{"p":{"items":[{}]}}}`),
			ToolSchemaInvalid, "inputSchema/properties/p/items: it must be a schema, which is an object or true or false"},
		{"an output schema that is no object", "server/tools, Tool", output("t", `true`),
			ToolSchemaInvalid, "outputSchema: the schema is not a JSON object"},
		{"a circle", "basic, Composition-Keyword Resource Use", output("t", `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#"}]}}}`),
			ToolSchemaInvalid, "outputSchema: the schema refers to itself without end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, warnings := one(t, c.definition)
			if b.Problem != c.problem || b.Reason != c.reason || b.Name != "t" || len(warnings) != 0 {
				t.Errorf("%s: %+v, %q; want %s, %s", c.source, b, warnings, c.problem, c.reason)
			}
			if kept, bad, _ := Build(pages(t, answer(hints, c.definition)), false); listing(kept, bad) != "t" {
				t.Errorf("not strictly it is %s", listing(kept, bad))
			}
		})
	}
}

// doubling is a schema of n parts, each of which asks the next one twice.
func doubling(n int) string {
	parts := []string{fmt.Sprintf(`"d%d":{"type":"string"}`, n)}
	for i := range n {
		parts = append(parts, fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	return `{"$defs":{` + strings.Join(parts, ",") + `}}`
}

// TestStrictlyKept: what is unusual and sound stays.
func TestStrictlyKept(t *testing.T) {
	const node = `{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"}}}`
	for name, definition := range map[string]string{
		"a recursive schema":                output("t", `{"type":"object","$defs":{"Node":`+node+`},"properties":{"root":{"$ref":"#/$defs/Node"}}}`),
		"a schema that refers to its root":  withInput("t", `{"type":"object","properties":{"children":{"items":{"$ref":"#"}}}}`),
		"a bundle of schemas":               output("t", `{"$id":"https://example.com/a","$ref":"b","$defs":{"b":{"$id":"b","type":"object"}}}`),
		"an address that is only text":      withInput("t", `{"type":"object","examples":[{"$ref":"https://example.com/a"}],"properties":{"$ref":{"type":"string"}}}`),
		"no output schema, written as null": output("t", `null`),
		"a pattern with a look ahead":       withInput("t", `{"type":"object","properties":{"p":{"pattern":"^(?!a)(b)\\1$"}}}`),
		"a count beyond 64 bits":            withInput("t", `{"type":"object","maxProperties":18446744073709551615}`),
		"draft-07":                          withInput("t", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"p":{"items":[{}]}}}`),
		"2019-09":                           withInput("t", `{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","dependentRequired":{"a":["b"]}}`),
		"as long as may be":                 strings.Replace(tool("t", `,"title":"*"`), "*", strings.Repeat("a", maxDefinition-len(tool("t", `,"title":"*"`))+1), 1),
		"as deep as may be":                 tool("t", `,"_meta":`+nested(maxDepth-1, "[", "", "]")),
	} {
		t.Run(name, func(t *testing.T) {
			if b, warnings := one(t, definition); b.Problem != "" || len(warnings) != 0 {
				t.Errorf("%+v, %q", b, warnings)
			}
		})
	}
}

// TestUnknownDialectIsKeptWithAWarning (specification, basic, "Implementation
// Requirements"): what cannot be judged is not condemned, and said once for the
// whole list. A reference outside is one in any dialect.
func TestUnknownDialectIsKeptWithAWarning(t *testing.T) {
	const old = `"$schema":"http://json-schema.org/draft-04/schema#"`
	c, bad, warnings := Build(pages(t, answer(hints, tool("plain", ""),
		withInput("older", `{`+old+`,"type":"object","properties":{"a":{"minimum":0,"exclusiveMinimum":true}}}`),
		output("newer", `{"$schema":"https://example.com/dialect","required":null}`),
		`{"name":"half","inputSchema":{`+old+`,"type":"object"},"outputSchema":{"type":"object"}}`,
		output("mixed", `{"$defs":{"a":{"$id":"a",`+old+`}}}`),
		withInput("outside", `{`+old+`,"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}}`))), true)
	want := []string{"schema: 4 of the tools have a schema in a dialect that is not known here, so it is not checked; the first is older"}
	if got := listing(c, bad); got != "plain older newer half mixed left 5:outside tool_schema_external" || !slices.Equal(warnings, want) {
		t.Errorf("%s, with %q", got, warnings)
	}
	if _, _, warnings := Build(pages(t, answer(hints, output("newer", `{"$schema":"https://example.com/dialect"}`))), false); len(warnings) != 0 {
		t.Errorf("not strictly it is warned of: %q", warnings)
	}
}

// TestStrictIsASubset: a tool that is left out keeps its name from the others,
// so that no definition comes up that would not be there otherwise.
func TestStrictIsASubset(t *testing.T) {
	broken, sound := withInput("dup", `{"type":"object","required":null}`), tool("dup", "")
	list := pages(t, answer(hints, broken, sound, tool("a", "")))
	loose, _, _ := Build(list, false)
	c, bad, _ := Build(list, true)
	if got := listing(c, bad); got != "a left 0:dup tool_schema_invalid left 1:dup tool_duplicate" {
		t.Errorf("strictly: %s", got)
	}
	if string(loose.Definition("dup")) != broken {
		t.Errorf("not strictly: %s", loose.Definition("dup"))
	}
	if c.Digest != digestOf(loose.Tools[1:]) {
		t.Errorf("the digest of %q is not that of what is in it", c.Locals())
	}
}

// TestReasonsQuoteNothing: whatever names a peer makes up, what is said of its
// tools is one line of ASCII, and short.
func TestReasonsQuoteNothing(t *testing.T) {
	for _, name := range []string{`\u001b[31m`, `\n`, `\u202e`, `é`, `\"`, ``, `a/b~c`, strings.Repeat("k", 3000), strings.Repeat(`\u0000`, 3000)} {
		b, _ := one(t, withInput("t", `{"type":"object","properties":{"`+name+`":{"properties":{"`+name+`":{"type":7}}}}}`))
		if b.Problem != ToolSchemaInvalid || !ascii(b.Reason) || len(b.Reason) > 200 {
			t.Errorf("%.40q: %s, %d bytes: %q", name, b.Problem, len(b.Reason), b.Reason)
		}
	}
}
