package catalog

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain/wire"
)

// Bounds of one list, for those who read its pages. A list beyond them is
// refused and the last good one kept (design, "Lists").
const (
	MaxPages  = 100
	MaxTools  = 25_000
	MaxList   = 64 << 20 // bytes of all its pages
	MaxCursor = 4 << 10  // bytes; ParsePage holds to it
)

// The cache scopes.
const (
	ScopePrivate = "private"
	ScopePublic  = "public"
)

// Problem is a short stable word for what is wrong with a page or a tool. It
// never changes its meaning. The empty Problem is none.
type Problem string

// What is wrong with a page.
const (
	ListError   Problem = "list_error"   // tools/list was answered with an error
	ListInvalid Problem = "list_invalid" // the answer is no list of tools
	ListCursor  Problem = "list_cursor"  // the cursor is no string, or too long
)

// What is wrong with a tool.
const (
	ToolUnnamed        Problem = "tool_unnamed"         // no usable name
	ToolNameInvalid    Problem = "tool_name_invalid"    // a name that ValidToolName refuses
	ToolSchemaInvalid  Problem = "tool_schema_invalid"  // inputSchema is not for objects; strictly: a schema is not valid
	ToolDuplicate      Problem = "tool_duplicate"       // a second tool of this name
	ToolTooLarge       Problem = "tool_too_large"       // strictly: the definition or a schema is beyond the bounds
	ToolSchemaExternal Problem = "tool_schema_external" // strictly: a schema refers to something outside itself
	ToolHeaderInvalid  Problem = "tool_header_invalid"  // over HTTP: an x-mcp-header that the specification forbids
)

// Page is one answer to tools/list. It aliases the frame that it was read from.
type Page struct {
	modern   bool // the era it was read for
	http     bool // it was read by ParsePageHTTP
	tools    []entry
	next     *string
	scope    string
	ttl      int64
	warnings []string
}

// entry is one tool of a page, as it is judged alone.
type entry struct {
	tool     Tool
	problem  Problem
	reason   string
	rules    rules
	foreign  bool // a schema is in a dialect that is not known
	reserves bool // it breaks one of these rules alone: it is left out, and keeps its name from others
}

// rules are those that a tool is judged by besides the ones that always hold.
type rules struct {
	strict  bool
	headers bool // those of x-mcp-header
}

// Modern reports whether the page was read as an answer of the modern era.
func (p Page) Modern() bool { return p.modern }

// HTTP reports whether the page was read by ParsePageHTTP.
func (p Page) HTTP() bool { return p.http }

// Tools returns how many tools the page lists, good and bad.
func (p Page) Tools() int { return len(p.tools) }

// Next returns the cursor of the page after this one, or nil if this is the
// last. The empty string is a cursor.
func (p Page) Next() *string { return p.next }

// TTL returns how long the page is fresh after it was received, in
// milliseconds. It is 0 in the legacy era, which knows no such thing.
func (p Page) TTL() int64 { return p.ttl }

// ParsePage reads an answer to tools/list. A modern answer must say resultType
// "complete"; a legacy one that says nothing is complete (specification,
// server/tools and basic, "ResultType"). The reason is one plain sentence, and
// is empty where the problem is.
//
// Each tool is judged here, and alone, so that whoever has the frame can do this
// work, which may take seconds for a large page, before anybody waits for it.
func ParsePage(frame []byte, modern, strict bool) (Page, Problem, string) {
	return parsePage(frame, modern, rules{strict: strict})
}

// ParsePageHTTP is ParsePage, strictly, for an answer that came over Streamable
// HTTP. Of a modern one, tools are left out too whose x-mcp-header annotations
// break the rules: the headers of a call could not be made as the peer wants them.
// Such a tool keeps its name from others of the list. Legacy revisions know no such
// annotation, and other transports may ignore it (specification, server/tools,
// "x-mcp-header").
func ParsePageHTTP(frame []byte, modern bool) (Page, Problem, string) {
	p, problem, reason := parsePage(frame, modern, rules{strict: true, headers: modern})
	p.http = problem == ""
	return p, problem, reason
}

func parsePage(frame []byte, modern bool, by rules) (p Page, problem Problem, reason string) {
	p.modern = modern
	m, err := wire.ParseMessage(frame)
	if err != nil || !m.Is2() || (m.Result != nil) == (m.Error != nil) {
		return Page{}, ListInvalid, "the answer to tools/list is no JSON-RPC response"
	}
	if m.Error != nil {
		code, _, _ := wire.RPCError(m.Error)
		return Page{}, ListError, "tools/list was answered with error " + strconv.FormatInt(code, 10)
	}
	r := wire.Object(m.Result)
	if modern || r["resultType"] != nil {
		if s, _ := wire.Text(r["resultType"]); s != "complete" {
			return Page{}, ListInvalid, `the answer to tools/list has no resultType "complete"`
		}
	}
	if !wire.Elements(r["tools"], func(v jsontext.Value) { p.tools = append(p.tools, readTool(v, by)) }) {
		return Page{}, ListInvalid, "the answer to tools/list has no list of tools"
	}
	p.ttl, p.scope = 0, ScopePrivate
	if modern {
		p.ttl, p.scope, p.warnings = CacheHints(r, "tools/list")
	}
	return p.withCursor(r["nextCursor"])
}

func (p Page) withCursor(v jsontext.Value) (Page, Problem, string) {
	if v == nil || v.Kind() == 'n' {
		return p, "", ""
	}
	s, ok := wire.Text(v)
	switch {
	case !ok:
		return Page{}, ListCursor, "nextCursor is no string"
	case len(s) > MaxCursor:
		return Page{}, ListCursor, "nextCursor is longer than 4096 bytes"
	}
	p.next = &s
	return p, "", ""
}

// CacheHints reads ttlMs, in milliseconds, and cacheScope of the members of a
// modern result of a method. What is missing or bad is taken as 0 and private,
// with a warning (specification, server/utilities/caching).
func CacheHints(m map[string]jsontext.Value, method string) (ttl int64, scope string, warnings []string) {
	scope = ScopePrivate
	f, err := strconv.ParseFloat(string(m["ttlMs"]), 64)
	if m["ttlMs"].Kind() != '0' || err != nil || f < 0 || f > math.MaxInt32*1000 {
		warnings = append(warnings, "cache hint: "+method+" has no usable ttlMs, taken as 0")
	} else {
		ttl = int64(f)
	}
	switch s, _ := wire.Text(m["cacheScope"]); s {
	case ScopePublic:
		scope = ScopePublic
	case ScopePrivate:
	default:
		warnings = append(warnings, "cache hint: "+method+" has no usable cacheScope, taken as private")
	}
	return ttl, scope, warnings
}
