package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// hints are what a modern answer says besides its tools.
const hints = `,"resultType":"complete","ttlMs":1000,"cacheScope":"public"`

// answer is an answer to tools/list with these definitions.
func answer(more string, definitions ...string) string {
	return `{"jsonrpc":"2.0","id":1,"result":{"tools":[` + strings.Join(definitions, ",") + `]` + more + `}}`
}

// tool is a definition with more members.
func tool(name, more string) string {
	return fmt.Sprintf(`{"name":%q,"description":"a tool","inputSchema":{"type":"object"}%s}`, name, more)
}

// withInput is a definition with another input schema.
func withInput(name, schema string) string {
	return fmt.Sprintf(`{"name":%q,"inputSchema":%s}`, name, schema)
}

// pages reads modern answers that must be good.
func pages(t testing.TB, frames ...string) []Page {
	t.Helper()
	var out []Page
	for _, frame := range frames {
		p, problem, reason := ParsePage([]byte(frame), true, false)
		if problem != "" || reason != "" {
			t.Fatalf("%.200s: %s, %s", frame, problem, reason)
		}
		out = append(out, p)
	}
	return out
}

// listing shows a catalog with what was left out: "a b left 2:c tool_duplicate".
func listing(c Catalog, bad []BadTool) string {
	words := c.Locals()
	for _, b := range bad {
		words = append(words, fmt.Sprintf("left %d:%s %s", b.Position, b.Name, b.Problem))
	}
	return strings.Join(words, " ")
}

// TestPagesInOrder (design, "Lists"): every page is read, an empty cursor is a
// cursor, and the tools stand in the order of page and position.
func TestPagesInOrder(t *testing.T) {
	all := pages(t, answer(hints+`,"nextCursor":""`, tool("beta", ""), tool("alpha", "")), answer(hints+`,"nextCursor":"c\u00e9"`, tool("gamma", "")),
		answer(hints+`,"nextCursor":null`), answer(hints))
	for i, want := range []string{"", "cé"} {
		if next := all[i].Next(); next == nil || *next != want {
			t.Errorf("the cursor of page %d is %v, want %q", i, next, want)
		}
	}
	if all[2].Next() != nil || all[3].Next() != nil || all[0].Tools() != 2 || all[3].Tools() != 0 || all[0].TTL() != 1000 {
		t.Errorf("pages are %+v", all)
	}
	c, bad, warnings := Build(all, false)
	if got := listing(c, bad); got != "beta alpha gamma" || len(warnings) != 0 || c.TTL != 1000 || c.CacheScope != ScopePublic {
		t.Errorf("the catalog is %s with %q, %+v", got, warnings, c)
	}
	if alpha, ok := c.Tool("alpha"); !ok || alpha.Local != "alpha" || alpha.Digest != digest([]byte(tool("alpha", ""))) {
		t.Errorf("alpha is %+v, %t", alpha, ok)
	}
	if nobody, ok := c.Tool("nobody"); ok {
		t.Errorf("nobody is %+v", nobody)
	}
	if !c.Has("alpha") || c.Has("Alpha") || c.Definition("nobody") != nil || string(c.Definition("gamma")) != tool("gamma", "") {
		t.Errorf("a tool is not found by its name, or another is: %s", c.Definition("gamma"))
	}
}

// TestPagesThatAreRefused runs every way in which an answer is no page.
func TestPagesThatAreRefused(t *testing.T) {
	long := `"` + strings.Repeat("c", MaxCursor+1) + `"`
	result := func(s string) string { return `{"jsonrpc":"2.0","id":1,"result":` + s + `}` }
	for _, c := range []struct {
		name, source, frame string
		want                Problem
	}{
		{"a cursor that is no string", "server/utilities/pagination", answer(hints + `,"nextCursor":8`), ListCursor},
		{"a cursor that is an object", "server/utilities/pagination", answer(hints + `,"nextCursor":{}`), ListCursor},
		{"a cursor that is too long", "server/utilities/pagination", answer(hints + `,"nextCursor":` + long), ListCursor},
		{"no resultType", "basic, ResultType", answer(`,"ttlMs":1,"cacheScope":"public"`), ListInvalid},
		{"another resultType", "basic, ResultType", answer(`,"resultType":"input_required"`), ListInvalid},
		{"resultType is no string", "basic, ResultType", answer(`,"resultType":["complete"]`), ListInvalid},
		{"no tools", "server/tools, Listing Tools", result(`{"resultType":"complete"}`), ListInvalid},
		{"tools that are an object", "server/tools, Listing Tools", result(`{"resultType":"complete","tools":{}}`), ListInvalid},
		{"tools null", "server/tools, Listing Tools", result(`{"resultType":"complete","tools":null}`), ListInvalid},
		{"a result that is a list", "basic, Result Responses", result(`[]`), ListInvalid},
		{"both result and error", "basic, Responses", `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1}}`, ListInvalid},
		{"neither", "basic, Responses", `{"jsonrpc":"2.0","id":1}`, ListInvalid},
		{"another jsonrpc", "basic, Responses", `{"jsonrpc":"1.0","id":1,"result":{"tools":[],"resultType":"complete"}}`, ListInvalid},
		{"a key twice", "basic, Messages", result(`{"resultType":"complete","tools":[],"tools":[]}`), ListInvalid},
		{"an error", "basic, Error Responses", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}`, ListError},
		{"a modern error", "basic, Error Codes", `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":""}}`, ListError},
		{"an error that is none", "basic, Error Responses", `{"jsonrpc":"2.0","id":1,"error":"no"}`, ListError},
		{"nothing", "basic, Messages", ``, ListInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, problem, reason := ParsePage([]byte(c.frame), true, false)
			if problem != c.want || reason == "" || p.Tools() != 0 || p.Next() != nil {
				t.Errorf("%s: %s, %q, %+v; want %s", c.source, problem, reason, p, c.want)
			}
		})
	}
	if p, problem, _ := ParsePage([]byte(answer(hints+`,"nextCursor":`+long[1:])), true, false); problem == "" {
		t.Errorf("a broken frame was read as %+v", p)
	}
	just := `"` + strings.Repeat("c", MaxCursor) + `"`
	if p := pages(t, answer(hints+`,"nextCursor":`+just))[0]; len(*p.Next()) != MaxCursor {
		t.Errorf("a cursor of %d bytes has %d", MaxCursor, len(*p.Next()))
	}
}

// TestLegacyPagesNeedNoModernMembers (design, "Lists"): an absent resultType is
// complete, and no cache hint is read. One that is there must say so too.
func TestLegacyPagesNeedNoModernMembers(t *testing.T) {
	for _, more := range []string{``, hints, `,"ttlMs":-1,"cacheScope":7`} {
		p, problem, _ := ParsePage([]byte(answer(more, tool("old", ""))), false, false)
		c, bad, warnings := Build([]Page{p}, false)
		if problem != "" || listing(c, bad) != "old" || c.TTL != 0 || c.CacheScope != ScopePrivate || len(warnings) != 0 {
			t.Errorf("%q: %s, %+v, %q", more, problem, c, warnings)
		}
	}
	if _, problem, _ := ParsePage([]byte(answer(`,"resultType":"partial"`)), false, false); problem != ListInvalid {
		t.Errorf("a partial list is %q", problem)
	}
}

// badTools are tools that every catalog leaves out, by what is wrong.
var badTools = []struct {
	definition string
	problem    Problem
}{
	{`{"name":"","inputSchema":{"type":"object"}}`, ToolUnnamed},
	{`{"title":"x","inputSchema":{"type":"object"}}`, ToolUnnamed},
	{`{"name":7,"inputSchema":{"type":"object"}}`, ToolUnnamed},
	{`{"name":null,"inputSchema":{"type":"object"}}`, ToolUnnamed},
	{`null`, ToolUnnamed},
	{`"search"`, ToolUnnamed},
	{`["search"]`, ToolUnnamed},
	{withInput("has space", `{"type":"object"}`), ToolNameInvalid},
	{withInput("com,ma", `{"type":"object"}`), ToolNameInvalid},
	{`{"name":"tab\tname","inputSchema":{"type":"object"}}`, ToolNameInvalid},
	{`{"name":"new\nline","inputSchema":{"type":"object"}}`, ToolNameInvalid},
	{withInput(strings.Repeat("x", 129), `{"type":"object"}`), ToolNameInvalid},
	{withInput(strings.Repeat("x", 300), `{"type":"object"}`), ToolNameInvalid},
	{withInput("party🎉", `{"type":"object"}`), ToolNameInvalid},
	{`{"name":"se\u0430rch","inputSchema":{"type":"object"}}`, ToolNameInvalid}, // Cyrillic
	{`{"name":"search\u200b","inputSchema":{"type":"object"}}`, ToolNameInvalid},
	{`{"name":"\uff53earch","inputSchema":{"type":"object"}}`, ToolNameInvalid}, // full width
	{`{"name":"\u202ehcraes","inputSchema":{"type":"object"}}`, ToolNameInvalid},
	{`{"name":"s_missing"}`, ToolSchemaInvalid},
	{withInput("s_null", `null`), ToolSchemaInvalid},
	{withInput("s_true", `true`), ToolSchemaInvalid},
	{withInput("s_list", `[]`), ToolSchemaInvalid},
	{withInput("s_string", `{"type":"string"}`), ToolSchemaInvalid},
	{withInput("s_types", `{"type":["object"]}`), ToolSchemaInvalid},
	{withInput("s_any_of", `{"anyOf":[{"type":"object"}]}`), ToolSchemaInvalid},
	{tool("search", `,"title":"again"`), ToolDuplicate},
}

// TestBadToolsAreLeftOutOneByOne (specification, server/tools, "Tool" and "Tool
// Names"): one bad tool never costs the list, and looks like nobody else.
func TestBadToolsAreLeftOutOneByOne(t *testing.T) {
	good := []string{tool("search", ""), tool("dotted.tool", ""), tool("sl/ash", ""), tool(strings.Repeat("n", 128), "")}
	definitions := slices.Clone(good)
	for _, b := range badTools {
		definitions = append(definitions, b.definition)
	}
	for _, strict := range []bool{false, true} {
		c, bad, _ := Build(pages(t, answer(hints, append(definitions, tool("good", ""))...)), strict)
		if got := strings.Join(c.Locals(), " "); got != "search dotted.tool sl/ash "+strings.Repeat("n", 128)+" good" || len(bad) != len(badTools) {
			t.Fatalf("strict %t: %d left out, want %d, and the rest is %s", strict, len(bad), len(badTools), got)
		}
		for i, b := range bad {
			if b.Problem != badTools[i].problem || b.Position != len(good)+i || !ascii(b.Name) || len(b.Name) > 10*128 {
				t.Errorf("strict %t: %s is left out as %+v, want %s", strict, badTools[i].definition, b, badTools[i].problem)
			}
			if (b.Reason != "") != strict || !ascii(b.Reason) {
				t.Errorf("strict %t: %s has the reason %q", strict, badTools[i].definition, b.Reason)
			}
		}
	}
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// TestTheFirstOfANameStands (server/utilities/caching, "Interaction with
// Pagination"): by page and position, in one list or across pages.
func TestTheFirstOfANameStands(t *testing.T) {
	first, second := tool("dup", `,"title":"first"`), withInput("dup", `{"type":"object","required":["x"]}`)
	for _, frames := range [][]string{
		{answer(hints, tool("a", ""), first, second, tool("c", ""))},
		{answer(hints+`,"nextCursor":"2"`, tool("a", ""), first), answer(hints, second, tool("c", ""))},
	} {
		c, bad, _ := Build(pages(t, frames...), false)
		if got := listing(c, bad); got != "a dup c left 2:dup tool_duplicate" || string(c.Definition("dup")) != first {
			t.Errorf("%s, with %s", got, c.Definition("dup"))
		}
	}
	unusable := withInput("dup", `null`)
	if c, bad, _ := Build(pages(t, answer(hints, unusable, second)), false); listing(c, bad) != "dup left 0:dup tool_schema_invalid" {
		t.Errorf("a tool that is none has taken the name: %s", listing(c, bad))
	}
}

// TestDigests: of a tool its bytes, of a catalog its names and digests in order.
// They stand in logs, so they never change.
func TestDigests(t *testing.T) {
	c, _, _ := Build(pages(t, answer(hints, tool("a", ""), ` { "name":"b" , "inputSchema":{"type":"object"}}`)), false)
	sum := sha256.Sum256([]byte(`{ "name":"b" , "inputSchema":{"type":"object"}}`))
	if c.Tools[1].Digest != hex.EncodeToString(sum[:]) {
		t.Errorf("the digest of b is %s", c.Tools[1].Digest)
	}
	var whole bytes.Buffer
	for _, tool := range c.Tools {
		for _, s := range []string{tool.Local, tool.Digest} {
			fmt.Fprintf(&whole, "\x00\x00\x00%c%s", byte(len(s)), s)
		}
	}
	sum = sha256.Sum256(whole.Bytes())
	if c.Digest != hex.EncodeToString(sum[:]) {
		t.Errorf("the digest is %s", c.Digest)
	}
	const ofNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	none, _, _ := Build(nil, true)
	if e := Empty(); e.Digest != ofNothing || none.Digest != ofNothing || e.CacheScope != ScopePrivate || e.Has("a") || e.Definition("a") != nil || len(e.Locals()) != 0 {
		t.Errorf("empty is %+v, and of no pages %+v", e, none)
	}
}

func TestKeep(t *testing.T) {
	c, _, _ := Build(pages(t, answer(hints, tool("a", ""), tool("b", ""), tool("c", ""))), false)
	two, _, _ := Build(pages(t, answer(hints, tool("a", ""), tool("c", ""))), false)
	kept := Keep(c, func(t Tool) bool { return t.Local != "b" })
	if kept.Digest != two.Digest || kept.TTL != 1000 || kept.CacheScope != ScopePublic || kept.Has("b") || string(kept.Definition("c")) != tool("c", "") {
		t.Errorf("kept are %+v", kept)
	}
	if len(c.Tools) != 3 || !c.Has("b") {
		t.Errorf("the catalog itself became %+v", c)
	}
	if none := Keep(Empty(), func(Tool) bool { return true }); none.Digest != Empty().Digest {
		t.Errorf("of nothing %+v is kept", none)
	}
}

// TestCacheHintsOfPages (server/utilities/caching, "Interaction with
// Pagination"): as fresh as the earliest-expiring page, private on any doubt.
func TestCacheHintsOfPages(t *testing.T) {
	for _, c := range []struct {
		name     string
		pages    []string
		ttl      int64
		scope    string
		warnings int
	}{
		{"all public", []string{`"ttlMs":5,"cacheScope":"public"`, `"ttlMs":9,"cacheScope":"public"`}, 5, ScopePublic, 0},
		{"the second expires first", []string{`"ttlMs":9,"cacheScope":"public"`, `"ttlMs":5,"cacheScope":"public"`}, 5, ScopePublic, 0},
		{"all private", []string{`"ttlMs":9,"cacheScope":"private"`, `"ttlMs":9,"cacheScope":"private"`}, 9, ScopePrivate, 0},
		{"pages disagree", []string{`"ttlMs":3600000,"cacheScope":"public"`, `"ttlMs":3600000,"cacheScope":"private"`}, 3_600_000, ScopePrivate, 1},
		{"pages disagree the other way", []string{`"ttlMs":9,"cacheScope":"private"`, `"ttlMs":9,"cacheScope":"public"`}, 9, ScopePrivate, 1},
		{"no ttlMs anywhere: one warning", []string{`"cacheScope":"public"`, `"cacheScope":"public"`, `"cacheScope":"public"`}, 0, ScopePublic, 1},
		{"no ttlMs on one page", []string{`"ttlMs":9,"cacheScope":"public"`, `"cacheScope":"public"`}, 0, ScopePublic, 1},
		{"ttlMs null", []string{`"ttlMs":null,"cacheScope":"public"`}, 0, ScopePublic, 1},
		{"ttlMs negative", []string{`"ttlMs":-5,"cacheScope":"public"`}, 0, ScopePublic, 1},
		{"ttlMs beyond all time", []string{`"ttlMs":1e300,"cacheScope":"public"`}, 0, ScopePublic, 1},
		{"ttlMs with a fraction", []string{`"ttlMs":5.9,"cacheScope":"public"`}, 5, ScopePublic, 0},
		{"unknown scope", []string{`"ttlMs":5,"cacheScope":"team"`}, 5, ScopePrivate, 1},
		{"neither", []string{`"x":1`}, 0, ScopePrivate, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var frames []string
			for i, p := range c.pages {
				frames = append(frames, answer(`,"resultType":"complete",`+p, tool(fmt.Sprint("t", i), "")))
			}
			built, bad, warnings := Build(pages(t, frames...), true)
			if built.TTL != c.ttl || built.CacheScope != c.scope || len(warnings) != c.warnings || len(bad) != 0 {
				t.Errorf("built with %d, %s, %q", built.TTL, built.CacheScope, warnings)
			}
		})
	}
	ttl, scope, warnings := CacheHints(map[string]jsontext.Value{"ttlMs": jsontext.Value(`7`)}, "server/discover")
	if ttl != 7 || scope != ScopePrivate || len(warnings) != 1 || !strings.Contains(warnings[0], "server/discover") {
		t.Errorf("hints are %d, %s, %q", ttl, scope, warnings)
	}
}
