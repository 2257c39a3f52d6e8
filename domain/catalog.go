package domain

import (
	"slices"
	"strings"

	"waybill/domain/catalog"
)

// Cache scopes.
const (
	ScopePrivate = catalog.ScopePrivate
	ScopePublic  = catalog.ScopePublic
)

// Catalog is the list of tools one peer gave, complete and checked.
type Catalog struct {
	Seq int64 // the catalog.accepted that made it
	catalog.Catalog
}

func emptyCatalog() catalog.Catalog { return catalog.Empty() }

// listPatience is how many times probe_timeout all pages of a list together may take.
const listPatience = 3

// fetch is a list being read, page by page.
type fetch struct {
	id         int64
	why        string
	pages      []catalog.Page
	frames     []string // digests
	cursors    []string
	tools      int
	bytes      int64
	began      int64 // monotonic clock
	received   int64 // monotonic clock of the first page
	freshUntil int64 // of the page that expires first
	code       Code  // set where the last page was no good
	reason     string
	next       *string
	built      *built // of pages, once it was asked for
}

// built is what catalog.Build makes of pages, which is asked for twice: to decide, and
// to apply what was decided.
type built struct {
	pages    int
	strict   bool
	catalog  catalog.Catalog
	bad      []catalog.BadTool
	warnings []string
}

func (f *fetch) build(strict bool) *built {
	if f.built == nil || f.built.pages != len(f.pages) || f.built.strict != strict {
		c, bad, warnings := catalog.Build(f.pages, strict)
		if strict {
			lookAlikes(bad, c)
		}
		f.built = &built{len(f.pages), strict, c, bad, slices.Clip(warnings)}
	}
	return f.built
}

func (s *State) applyListRequested(mono int64, d ListRequested) {
	s.nextRequest = max(s.nextRequest, d.RequestID)
	l := s.current(d.At).line(d.Context)
	if l == nil {
		return
	}
	if l.fetch == nil || d.Page == 1 {
		l.fetch = &fetch{began: mono, why: d.Why, freshUntil: forever}
		l.begun, l.dueAt, l.dueWhy, l.dirty = max(1, mono), 0, "", false
		l.changes = 0
	}
	l.fetch.id = d.RequestID
	if d.Cursor != nil {
		l.fetch.cursors = append(l.fetch.cursors, *d.Cursor)
	}
}

func (s *State) applyListed(e Event, d CatalogListed) {
	l := s.reading(d.At, d.RequestID)
	if l == nil {
		return
	}
	modern, f := l.peer.Era == EraModern, l.fetch
	pg, problem, reason := l.peer.readPage(d.Page, e.Evidence)
	if problem != "" {
		f.code, f.reason = Code(problem), reason
		return
	}
	if len(f.pages) == 0 {
		f.received = e.Mono
	}
	if modern { // the legacy era knows no ttl
		f.freshUntil = min(f.freshUntil, e.Mono+pg.TTL()*1_000_000)
	}
	f.pages, f.frames, f.next = append(f.pages, pg), append(f.frames, d.Frame.Digest), pg.Next()
	f.tools += pg.Tools()
	f.bytes += d.Frame.Size
	f.bound(e.Mono, l.peer.Config.ProbeTimeout)
}

// readPage returns the page that an answer brings; ready is what somebody made of it
// before, or nil.
func (p *Peer) readPage(ready *catalog.Page, evidence []byte) (catalog.Page, catalog.Problem, string) {
	switch {
	case p.reads(ready):
		return *ready, "", ""
	case p.http():
		return catalog.ParsePageHTTP(evidence, p.Era == EraModern)
	}
	return catalog.ParsePage(evidence, p.Era == EraModern, p.rules() != nil)
}

// reads reports whether a page was read as an answer of this peer. That it was read less
// strictly does not matter: its tools are judged again where the list is built.
func (p *Peer) reads(page *catalog.Page) bool {
	return page != nil && page.Modern() == (p.Era == EraModern) && page.HTTP() == p.http()
}

// bound stops a list that is too long in any way.
func (f *fetch) bound(mono, patience int64) {
	switch {
	case f.next != nil && mono-f.began > listPatience*patience*1_000_000:
		f.code, f.reason = CodeListTimeout, "reading all pages takes longer than three times probe_timeout"
	case f.bytes > catalog.MaxList:
		f.code, f.reason = CodeListLimit, "the list has more than 64 MiB"
	case f.tools > catalog.MaxTools:
		f.code, f.reason = CodeListLimit, "the list has more than 25000 tools"
	case f.next != nil && len(f.pages) >= catalog.MaxPages:
		f.code, f.reason = CodeListLimit, "the list has more than 100 pages"
	case f.next != nil && contains(f.cursors, *f.next):
		f.code, f.reason = CodeListCursor, "the same nextCursor came twice"
	}
}

func (s *State) applyCatalog(e Event, d CatalogAccepted) {
	l := s.current(d.At).line(d.Context)
	if l == nil {
		return
	}
	c := emptyCatalog()
	l.freshUntil, l.receivedAt = forever, max(1, e.Mono)
	if f := l.fetch; f != nil {
		var bad []catalog.BadTool
		c, bad, _ = l.build()
		l.rejected = rejectedDigest(bad)
		l.freshUntil, l.receivedAt = f.freshUntil, max(1, f.received)
	}
	for i := range c.Tools { // order-free: each alone. The frames they were cut from are not kept
		c.Tools[i].Definition = c.Tools[i].Definition.Clone()
	}
	p := l.peer
	if l.churned++; l.changes <= mostRejected {
		l.churned = 0
	}
	l.unchanged++
	if l.catalog == nil || l.catalog.Digest != c.Digest {
		l.unchanged = 0
	}
	l.catalog, l.fetch = &Catalog{Seq: e.Seq, Catalog: c}, nil
	if l.dirty {
		l.freshUntil = 0
	}
	l.listed, l.settled, l.failures, l.failedAt, l.code, l.reason = true, true, 0, 0, "", ""
	p.Code, p.Reason = "", ""
	p.Warnings = addNew(slices.DeleteFunc(p.Warnings, func(w string) bool { return strings.HasPrefix(w, servedAnyway) }), d.Warnings...)
	l.learn(l.catalog)
	s.retable(p)
}

func (s *State) applyCatalogRefused(mono int64, d CatalogRefused) {
	l := s.current(d.At).line(d.Context)
	if l == nil {
		return
	}
	p := l.peer
	l.fetch, l.settled, l.listed, l.dirty = nil, true, l.catalog != nil, false
	l.freshUntil = 0 // also where its time was not over, or it has none
	p.Code, p.Reason, l.code, l.reason = d.Code, d.Reason, d.Code, d.Reason
	l.failures++
	if l.failedAt == 0 {
		l.failedAt = max(1, mono)
	}
	if l.listed {
		p.Warnings = addNew(p.Warnings, servedAnyway+d.Reason)
	}
}

// servedAnyway begins the warning of a list that could not be read again.
const servedAnyway = "the last good list is served: "

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
