package catalog

import (
	"testing"
)

// property is a definition whose parameter v has this schema.
func property(name, schema string) string {
	return withInput(name, `{"type":"object","properties":{"v":`+schema+`}}`)
}

// badHeaders are tools that are left out over HTTP, by what is wrong.
var badHeaders = []struct {
	definition string
	problem    Problem
}{
	{property("empty", `{"type":"string","x-mcp-header":""}`), ToolHeaderInvalid},
	{property("space", `{"type":"string","x-mcp-header":"My Region"}`), ToolHeaderInvalid},
	{property("break", `{"type":"string","x-mcp-header":"A\r\nEvil: 1"}`), ToolHeaderInvalid},
	{property("number", `{"type":"number","x-mcp-header":"Score"}`), ToolHeaderInvalid},
	{property("twice", `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`), ToolHeaderInvalid},
	{property("items", `{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`), ToolHeaderInvalid},
	{withInput("definition", `{"type":"object","properties":{"v":{"$ref":"#/$defs/v"}},"$defs":{"v":{"type":"string","x-mcp-header":"A"}}}`), ToolHeaderInvalid},
	{property("spelled", `{"type":"string","x\u002dmcp-header":7}`), ToolHeaderInvalid},
}

// pageHTTP reads an answer over HTTP that must be good.
func pageHTTP(t *testing.T, modern bool, frame string) Page {
	t.Helper()
	p, problem, reason := ParsePageHTTP([]byte(frame), modern)
	if problem != "" || reason != "" || !p.HTTP() || p.Modern() != modern {
		t.Fatalf("%.200s: %s, %s, %+v", frame, problem, reason, p)
	}
	return p
}

// TestBadHeadersAreLeftOutOneByOne (specification, server/tools, "x-mcp-header"):
// of a modern list over HTTP, strictly or not, and of no other.
func TestBadHeadersAreLeftOutOneByOne(t *testing.T) {
	definitions := []string{tool("plain", ""), property("good", `{"type":["string","null"],"x-mcp-header":"Region"}`)}
	all, some := "plain good", "plain good"
	for _, b := range badHeaders {
		definitions = append(definitions, b.definition)
	}
	frame := answer(hints, definitions...)
	for _, name := range []string{"empty", "space", "break", "number", "twice", "items", "definition", "spelled"} {
		all += " " + name
	}
	for i, name := range []string{"empty", "space", "break", "number", "twice", "items", "definition", "spelled"} {
		some += " left " + string(rune('2'+i)) + ":" + name + " tool_header_invalid"
	}
	for _, strict := range []bool{true, false} {
		c, bad, warnings := Build([]Page{pageHTTP(t, true, frame)}, strict)
		if got := listing(c, bad); got != some || len(warnings) != 0 {
			t.Errorf("modern over HTTP, strictly %t: %s, %q; want %s", strict, got, warnings, some)
		}
		for _, b := range bad {
			if (b.Reason != "") != strict {
				t.Errorf("strictly %t: %+v", strict, b)
			}
		}
		if c, bad, _ := Build([]Page{pageHTTP(t, false, frame)}, strict); listing(c, bad) != all {
			t.Errorf("legacy over HTTP, strictly %t: %s", strict, listing(c, bad))
		}
		if c, bad, _ := Build(pages(t, frame), strict); listing(c, bad) != all {
			t.Errorf("modern, but not over HTTP, strictly %t: %s", strict, listing(c, bad))
		}
	}
}

// TestBadHeaderReasons: it is said which rule is broken, and where, and what
// breaks a rule of all transports is said first.
func TestBadHeaderReasons(t *testing.T) {
	for _, c := range []struct {
		definition string
		problem    Problem
		reason     string
	}{
		{badHeaders[3].definition, ToolHeaderInvalid, "inputSchema/properties/v: its x-mcp-header needs a type that is string, integer or boolean"},
		{badHeaders[5].definition, ToolHeaderInvalid, "inputSchema/properties/v/items: no chain of properties alone leads to its x-mcp-header"},
		{property("t", `{"type":"text","x-mcp-header":""}`), ToolSchemaInvalid, "inputSchema/properties/v: its type must be one of the seven types, or a list of different ones"},
		{withInput("a b", `{"type":"object","x-mcp-header":""}`), ToolNameInvalid, "the name is not 1 to 128 of A-Z a-z 0-9 _ - . /"},
	} {
		_, bad, _ := Build([]Page{pageHTTP(t, true, answer(hints, c.definition))}, true)
		if len(bad) != 1 || bad[0].Problem != c.problem || bad[0].Reason != c.reason {
			t.Errorf("%s: %+v, want %s, %q", c.definition, bad, c.problem, c.reason)
		}
	}
}

// TestBadHeadersKeepTheirNames: no definition comes up over HTTP that another
// transport would not show under the name, and a later page is no way around.
func TestBadHeadersKeepTheirNames(t *testing.T) {
	first, second := property("dup", `{"type":"number","x-mcp-header":"A"}`), tool("dup", "")
	for _, strict := range []bool{true, false} {
		list := []Page{pageHTTP(t, true, answer(hints+`,"nextCursor":"2"`, first)), pageHTTP(t, true, answer(hints, second, tool("a", "")))}
		c, bad, _ := Build(list, strict)
		if got := listing(c, bad); got != "a left 0:dup tool_header_invalid left 1:dup tool_duplicate" {
			t.Errorf("strictly %t: %s", strict, got)
		}
	}
}

// TestPagesOverHTTPAreRefusedLikeOthers, and are then pages of no kind.
func TestPagesOverHTTPAreRefusedLikeOthers(t *testing.T) {
	for _, frame := range []string{``, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}`, answer(``, tool("a", "")), answer(hints + `,"nextCursor":8`)} {
		p, problem, reason := ParsePageHTTP([]byte(frame), true)
		if _, want, said := ParsePage([]byte(frame), true, true); problem != want || problem == "" || reason != said || p.HTTP() || p.Tools() != 0 {
			t.Errorf("%q: %s, %q, %+v; want %s", frame, problem, reason, p, want)
		}
	}
}
