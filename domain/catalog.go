package domain

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of one catalog. A list beyond them is refused and the last good one
// kept.
const (
	MaxPages = 100
	MaxTools = 25_000
	MaxList  = 64 << 20 // bytes of all its pages

	listPatience = 3       // times probe_timeout for all its pages together
	MaxCursor    = 4 << 10 // bytes
)

// Cache scopes.
const (
	ScopePrivate = "private"
	ScopePublic  = "public"
)

// Tool is one tool of a catalog.
type Tool struct {
	Local      string
	Digest     string         // SHA-256 of the definition's bytes, hex
	Definition jsontext.Value // as the peer wrote it
}

// BadTool is a tool left out of a catalog.
type BadTool struct {
	Position int // from 0, over all pages
	Name     string
	Code     Code
}

// Catalog is the list of tools one peer gave, complete and checked.
type Catalog struct {
	Seq        int64 // the catalog.accepted that made it
	Tools      []Tool
	Digest     string
	CacheScope string
	TTL        int64 // milliseconds

	index map[string]int // of Tools, by local name
}

// page is one answered tools/list.
type page struct {
	tools    []jsontext.Value
	next     *string
	scope    string
	ttl      int64
	warnings []string
}

// parsePage reads an answer to tools/list. A modern answer must say resultType
// "complete"; a legacy one that says nothing is complete (specification,
// server/tools and basic, "ResultType").
func parsePage(frame []byte, era Era) (page, Code, string) {
	m, err := ParseMessage(frame)
	if err != nil || !m.Is2() || (m.Result != nil) == (m.Error != nil) {
		return page{}, CodeListInvalid, "the answer to tools/list is no JSON-RPC response"
	}
	if m.Error != nil {
		code, _, _ := rpcError(m.Error)
		return page{}, CodeListError, "tools/list was answered with error " + strconv.FormatInt(code, 10)
	}
	r := object(m.Result)
	if era == EraModern || r["resultType"] != nil {
		if s, _ := text(r["resultType"]); s != "complete" {
			return page{}, CodeListInvalid, `the answer to tools/list has no resultType "complete"`
		}
	}
	var p page
	if !elements(r["tools"], func(v jsontext.Value) { p.tools = append(p.tools, v) }) {
		return page{}, CodeListInvalid, "the answer to tools/list has no list of tools"
	}
	p.ttl, p.scope = 0, ScopePrivate
	if era == EraModern {
		p.ttl, p.scope, p.warnings = cacheHints(r, "tools/list")
	}
	return p.withCursor(r["nextCursor"])
}

func (p page) withCursor(v jsontext.Value) (page, Code, string) {
	if v == nil || v.Kind() == 'n' {
		return p, "", ""
	}
	s, ok := text(v)
	switch {
	case !ok:
		return page{}, CodeListCursor, "nextCursor is no string"
	case len(s) > MaxCursor:
		return page{}, CodeListCursor, "nextCursor is longer than 4096 bytes"
	}
	p.next = &s
	return p, "", ""
}

// cacheHints reads ttlMs and cacheScope of a modern result. What is missing or
// bad is taken as 0 and private, with a warning (specification,
// server/utilities/caching).
func cacheHints(m map[string]jsontext.Value, method string) (ttl int64, scope string, warnings []string) {
	scope = ScopePrivate
	f, err := strconv.ParseFloat(string(m["ttlMs"]), 64)
	if m["ttlMs"].Kind() != '0' || err != nil || f < 0 || f > math.MaxInt32*1000 {
		warnings = append(warnings, "cache hint: "+method+" has no usable ttlMs, taken as 0")
	} else {
		ttl = int64(f)
	}
	switch s, _ := text(m["cacheScope"]); s {
	case ScopePublic:
		scope = ScopePublic
	case ScopePrivate:
	default:
		warnings = append(warnings, "cache hint: "+method+" has no usable cacheScope, taken as private")
	}
	return ttl, scope, warnings
}

// buildCatalog puts pages together: tools in order of page and position, the
// unusable and the repeated left out one by one. The list is as fresh as its
// earliest-expiring page, and public only if every page is.
func buildCatalog(pages []page) (c Catalog, bad []BadTool, warnings []string) {
	c.index = map[string]int{}
	position := 0
	c.CacheScope = ScopePublic
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
		for _, v := range p.tools {
			t, code := parseTool(v)
			if _, again := c.index[t.Local]; code == "" && again {
				code = CodeToolDuplicate
			}
			if code != "" {
				bad = append(bad, BadTool{Position: position, Name: shortName(t.Local), Code: code})
			} else {
				c.index[t.Local] = len(c.Tools)
				c.Tools = append(c.Tools, t)
			}
			position++
		}
	}
	c.Digest = catalogDigest(c.Tools)
	return c, bad, warnings
}

// addNew appends what is not there yet: a warning is worth one line, however
// many pages give cause for it.
func addNew(list []string, more ...string) []string {
	for _, s := range more {
		if !contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

func parseTool(v jsontext.Value) (Tool, Code) {
	m := object(v)
	name, ok := text(m["name"])
	t := Tool{Local: name, Definition: v, Digest: digest(v)}
	switch {
	case !ok || name == "":
		return t, CodeToolUnnamed
	case !ValidToolName(name):
		return t, CodeToolNameInvalid
	case !ofObjects(m["inputSchema"]):
		return t, CodeToolSchemaInvalid
	}
	return t, ""
}

// ofObjects reports whether an inputSchema describes objects, as that of a tool
// must: it is an object with type "object" (specification, schema, "Tool").
func ofObjects(schema jsontext.Value) bool {
	s, _ := text(object(schema)["type"])
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
		if !nameByte(s[i]) && s[i] != '.' && s[i] != '/' && (s[i] < 'A' || s[i] > 'Z') {
			return false
		}
	}
	return true
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// ValidName reports whether s can name a peer, a node, a host or an
// authorization context: [a-z0-9][a-z0-9_-]{0,62}.
func ValidName(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '_' || s[0] == '-' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !nameByte(s[i]) {
			return false
		}
	}
	return true
}

func shortName(s string) string {
	const most = 128
	if len(s) > most {
		s = s[:most]
	}
	q := strconv.QuoteToASCII(s)
	return q[1 : len(q)-1]
}

func catalogDigest(tools []Tool) string {
	var b []byte
	for _, t := range tools {
		b = appendField(b, t.Local)
		b = appendField(b, t.Digest)
	}
	return digest(b)
}
