package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain/web"
	"waybill/domain/wire"
)

// Tool is one tool of a catalog.
type Tool struct {
	Local      string
	Digest     string         // SHA-256 of the definition's bytes, hex
	Definition jsontext.Value // as the peer wrote it; of Build, a part of the page's frame
	Marks      []Mark         // what Hidden finds in it; nil where the page was not read strictly
}

// BadTool is a tool left out of a catalog.
type BadTool struct {
	Position int    // from 0, over all pages
	Name     string // by ShortName; empty where there is none
	Problem  Problem
	Reason   string // one plain sentence in ASCII; empty where the catalog was not built strictly
	Raw      string // the name as the peer wrote it: for comparison, never to be shown
}

// Catalog is the list of tools one peer gave, complete and checked. Its tools
// stand in the order of page and position, each name once. It is safe for
// concurrent use as long as nobody changes Tools, of which only the bytes of
// the definitions may be replaced by equal ones.
type Catalog struct {
	Tools      []Tool
	Digest     string // of names and digests in order, hex
	CacheScope string
	TTL        int64 // milliseconds

	index map[string]int // of Tools, by local name
}

// Empty returns the catalog of a peer that has no tools to list.
func Empty() Catalog { return Catalog{Digest: digestOf(nil), CacheScope: ScopePrivate} }

// Has reports whether a tool of this name is listed.
func (c Catalog) Has(local string) bool {
	_, ok := c.index[local]
	return ok
}

// Definition returns the definition of a tool, or nil if it is not listed.
func (c Catalog) Definition(local string) jsontext.Value {
	if i, ok := c.index[local]; ok {
		return c.Tools[i].Definition
	}
	return nil
}

// Locals returns the names of all tools, in the order of Tools.
func (c Catalog) Locals() []string {
	locals := make([]string, len(c.Tools))
	for i, t := range c.Tools {
		locals[i] = t.Local
	}
	return locals
}

// Keep returns the catalog without the tools that keep says no to. It asks of
// each in order, and leaves c as it is.
func Keep(c Catalog, keep func(Tool) bool) Catalog {
	kept := Catalog{CacheScope: c.CacheScope, TTL: c.TTL, index: make(map[string]int, len(c.Tools))}
	for _, t := range c.Tools {
		if keep(t) {
			kept.add(t)
		}
	}
	kept.Digest = digestOf(kept.Tools)
	return kept
}

func (c *Catalog) add(t Tool) {
	c.index[t.Local] = len(c.Tools)
	c.Tools = append(c.Tools, t)
}

// Build puts pages together: tools in order of page and position, the unusable
// and the repeated left out one by one, of which the first stands. The list is
// as fresh as its earliest-expiring page, and public only if every page is
// (specification, server/utilities/caching, "Interaction with Pagination").
//
// Strictly, tools are left out too whose definition is beyond the bounds, or
// whose schemas are: not valid in their dialect, referring outside of
// themselves, or to nothing. Such a tool keeps its name from others of the
// list, so strictly built a catalog has the same tools, or fewer. Schemas in a
// dialect that is not known are kept, with a warning.
//
// Tools of pages that were read by other rules are judged again. Those of modern
// pages over HTTP are held to the rules of x-mcp-header in either case.
func Build(pages []Page, strict bool) (c Catalog, bad []BadTool, warnings []string) {
	c.index = map[string]int{}
	c.CacheScope = ScopePublic
	var b builder
	for i, p := range pages {
		warnings = addNew(warnings, p.warnings...)
		if p.scope != pages[0].scope {
			warnings = addNew(warnings, "cache hint: the pages of tools/list disagree on cacheScope, taken as private")
		}
		if p.scope != ScopePublic {
			c.CacheScope = ScopePrivate
		}
		if i == 0 || p.ttl < c.TTL {
			c.TTL = p.ttl
		}
		for _, e := range p.tools {
			if by := (rules{strict, e.rules.headers}); e.rules != by {
				e = readTool(e.tool.Definition, by)
			}
			b.tool(&c, e)
		}
	}
	c.Digest = digestOf(c.Tools)
	return c, b.bad, append(warnings, b.warnings()...)
}

// builder is what Build knows besides the catalog.
type builder struct {
	position int
	bad      []BadTool
	left     map[string]bool // the names of tools left out by more than the rules that always hold
	foreign  []string        // the tools with schemas in a dialect that is not known
}

func (b *builder) tool(c *Catalog, e entry) {
	usable := e.problem == "" || e.reserves
	if usable && (c.Has(e.tool.Local) || b.left[e.tool.Local]) {
		e.problem, e.reason, e.reserves = ToolDuplicate, "", false
		if e.rules.strict {
			e.reason = reasons[ToolDuplicate]
		}
	}
	switch e.problem {
	case "":
		c.add(e.tool)
		if e.foreign {
			b.foreign = append(b.foreign, e.tool.Local)
		}
	default:
		if e.reserves {
			b.reserve(e.tool.Local)
		}
		b.bad = append(b.bad, BadTool{b.position, ShortName(e.tool.Local), e.problem, e.reason, e.tool.Local})
	}
	b.position++
}

// reserve keeps the name of a tool that is left out by more than the rules that
// always hold from others of the list.
func (b *builder) reserve(name string) {
	if b.left == nil {
		b.left = map[string]bool{}
	}
	b.left[name] = true
}

// readTool judges one tool alone.
func readTool(v jsontext.Value, by rules) entry {
	t, m, problem := parseTool(v)
	e := entry{tool: t, problem: problem, rules: by}
	if problem != "" {
		if by.strict {
			e.reason = reasons[problem]
		}
		return e
	}
	if by.strict {
		e.problem, e.reason, e.foreign = strictly(v, m)
	}
	if by.headers && e.problem == "" {
		e.problem, e.reason = mirrored(m, by.strict)
	}
	if e.reserves = e.problem != ""; !e.reserves && by.strict {
		e.tool.Marks = Hidden(v)
	}
	return e
}

// mirrored says what is wrong with the annotations of a tool by which arguments
// become headers. The reason is for catalogs that are built strictly.
func mirrored(m members, strict bool) (Problem, string) {
	_, reason := web.Params(m.input)
	switch {
	case reason == "":
		return "", ""
	case !strict:
		return ToolHeaderInvalid, ""
	}
	return ToolHeaderInvalid, reason
}

// addNew appends what is not there yet: a warning is worth one line, however
// many pages give cause for it.
func addNew(list []string, more ...string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// members are those of a definition that Build looks at.
type members struct{ name, input, output jsontext.Value }

func parseTool(v jsontext.Value) (Tool, members, Problem) {
	var m members
	each(v, func(key string, value jsontext.Value) {
		switch key {
		case "name":
			m.name = value
		case "inputSchema":
			m.input = value
		case "outputSchema":
			m.output = value
		}
	})
	name, ok := wire.Text(m.name)
	t := Tool{Local: name, Definition: v, Digest: digest(v)}
	switch {
	case !ok || name == "":
		return t, m, ToolUnnamed
	case !ValidToolName(name):
		return t, m, ToolNameInvalid
	case !ofObjects(m.input):
		return t, m, ToolSchemaInvalid
	}
	return t, m, ""
}

// each calls f for the members of what stands in a page, if it is an object. No
// name comes twice in it, or ParsePage had refused the page, so that is not
// looked for again.
func each(v jsontext.Value, f func(key string, value jsontext.Value)) {
	if wire.IsObject(v) {
		_ = wire.Members(v, f, jsontext.AllowDuplicateNames(true)) // it is part of a message that was read
	}
}

// ofObjects reports whether an inputSchema describes objects, as that of a tool
// must: it is an object with type "object" (specification, schema, "Tool").
func ofObjects(schema jsontext.Value) bool {
	var kind jsontext.Value
	each(schema, func(key string, value jsontext.Value) {
		if key == "type" {
			kind = value
		}
	})
	s, _ := wire.Text(kind)
	return s == "object"
}

// ValidToolName reports whether a local name may enter a namespace: 1 to 128
// of A-Z a-z 0-9 _ - . / (specification, server/tools, "Tool Names", and the
// slash that earlier revisions allowed). Look-alikes and control characters
// stay out this way.
func ValidToolName(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
		case c == '_' || c == '-' || c == '.' || c == '/':
		default:
			return false
		}
	}
	return true
}

// ShortName shows a name that may be anything: its first 128 bytes, in ASCII,
// everything else escaped as in a Go string.
func ShortName(s string) string {
	const most = 128
	if len(s) > most {
		s = s[:most]
	}
	return escaped(s)
}

// escaped is a text as it stands between the quotes of a Go string in ASCII.
func escaped(s string) string {
	q := strconv.QuoteToASCII(s)
	return q[1 : len(q)-1]
}

func digestOf(tools []Tool) string {
	var b []byte
	for _, t := range tools {
		b = appendField(b, t.Local)
		b = appendField(b, t.Digest)
	}
	return digest(b)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// appendField appends a string so that no two lists of strings give the same
// bytes.
func appendField(b []byte, s string) []byte {
	n := len(s)
	b = append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	return append(b, s...)
}
