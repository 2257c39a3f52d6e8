package domain

import (
	"math"
	"slices"
)

// contextKey is the name of an authorization context as the state keeps it: what
// names none is of the default one.
func contextKey(context string) string {
	if context == "" {
		return DefaultContext
	}
	return context
}

// contextWord is the name of a context as events of a peer carry it.
func contextWord(context string) string {
	if context == DefaultContext {
		return ""
	}
	return context
}

// line is one list of a peer: what it lists for one authorization context. Lists
// of two contexts have nothing in common but the peer.
type line struct {
	peer    *Peer
	context string
	catalog *Catalog // the last good one, whatever incarnation gave it
	fetch   *fetch
	listed  bool // this incarnation's list was accepted, or failed beside a last good one
	settled bool // has listed or failed once since the configuration was loaded

	// Monotonic clock; they are worth nothing in another life of the service.
	begun      int64 // when it was read last
	receivedAt int64 // the first page of the catalog
	freshUntil int64 // the catalog; 0 where it is stale
	failedAt   int64 // the first try in a row that failed; 0 for none
	dueAt      int64 // a list.due is to come then; 0 for none

	dueWhy    string
	failures  int    // in a row
	unchanged int    // readings in a row that brought nothing new
	changes   int    // tools that the reading under way found changed
	churned   int    // readings in a row that changed more tools than anybody can look at
	dirty     bool   // a change was announced while it was being read
	rejected  string // digest of what was left out of the catalog

	code   Code // why it could not be read last; "" where it could
	reason string

	sub    subscription
	known  map[string]knownTool // by local name
	before int                  // bytes of definitions in known
}

// forever is the freshness of a list that only a notice makes stale.
const forever = math.MaxInt64

// contexts are those that a peer is asked in.
func (c PeerConfig) contexts() []string {
	if len(c.Contexts) == 0 {
		return []string{DefaultContext}
	}
	return c.Contexts
}

// asked names the context that a peer is asked in for a host of this one; "" where
// it cannot be. A peer without credentials answers everybody alike.
func (p *Peer) asked(context string) string {
	switch {
	case slices.Contains(p.Config.Contexts, context):
		return context
	case len(p.Config.Contexts) == 0:
		return DefaultContext
	}
	return ""
}

// line returns the peer's list of a context; nil where it has none.
func (p *Peer) line(context string) *line {
	if p == nil {
		return nil
	}
	return p.lines[contextKey(context)]
}

// each calls f for every list of the peer, in the order of contexts.
func (p *Peer) each(f func(*line)) {
	for _, c := range p.Config.contexts() {
		if l := p.lines[c]; l != nil {
			f(l)
		}
	}
}

// reading returns the list that is read by a request of this incarnation.
func (s *State) reading(at At, request int64) *line {
	p := s.current(at)
	if p == nil || request == 0 {
		return nil
	}
	var found *line
	p.each(func(l *line) {
		if l.fetch != nil && l.fetch.id == request {
			found = l
		}
	})
	return found
}

// equip gives the peer a list for each of its contexts. One that the peer has no
// more is forgotten, with everything in it.
func (p *Peer) equip() {
	lines := map[string]*line{}
	for _, c := range p.Config.contexts() {
		l := p.lines[c]
		if l == nil {
			l = &line{peer: p, context: c, known: map[string]knownTool{}}
		}
		l.settled = false
		lines[c] = l
	}
	p.lines = lines
}

// restart forgets what belonged to an incarnation that is gone.
func (l *line) restart() {
	l.listed, l.fetch, l.dirty = false, nil, false
	l.begun, l.freshUntil, l.failedAt, l.dueAt, l.failures, l.unchanged = 0, 0, 0, 0, 0, 0
	l.sub, l.code, l.reason = subscription{}, "", ""
}

// rules returns how the lists of the peer are kept; nil where they are read once.
func (p *Peer) rules() *ListRules { return p.Config.Lists }

// isSettled reports whether a peer has listed, failed or been refused once for a
// context, since the configuration was loaded.
func (p *Peer) isSettled(context string) bool {
	l := p.line(p.asked(context))
	return p.settled || l == nil || l.settled
}

// anyListed reports whether some list of this incarnation stands.
func (p *Peer) anyListed() (any bool) {
	p.each(func(l *line) { any = any || l.listed && l.catalog != nil })
	return any
}

// catalogFor returns the list that a context is served, and the context it was
// read for. A private list is seen from no other context. A public one may be,
// where the peer's configuration does not distrust it, if the context has none of
// its own or an older public one (specification, server/utilities/caching, "Cache
// Scope Field"; seed 2.1.0, hard rejects).
func (p *Peer) catalogFor(context string) (*Catalog, *line) {
	own := p.line(p.asked(context))
	if own == nil {
		return nil, nil
	}
	best := own
	if own.catalog == nil || own.catalog.CacheScope == ScopePublic {
		p.each(func(l *line) {
			if l != own && p.shares(l.catalog) && (best.catalog == nil || l.catalog.Seq > best.catalog.Seq) {
				best = l
			}
		})
	}
	return best.catalog, best
}

// shares reports whether other contexts may be served a list. Where changed tools
// are held they may not: what one context has approved, or sees for the first time,
// another has not approved.
// usable is catalogFor at a moment: a context's own list takes the place of another's
// that cannot be used just now, so that another's failure costs nobody.
func (p *Peer) usable(context string, mono int64) (*Catalog, *line) {
	c, l := p.catalogFor(context)
	own := p.line(p.asked(context))
	if c != nil && l != own && !l.serves(mono) && own.catalog != nil && own.serves(mono) {
		return own.catalog, own
	}
	return c, l
}

// serves reports whether the list may be used in this incarnation.
func (l *line) serves(mono int64) bool { return l.listed && !l.overdue(mono) }

func (p *Peer) shares(c *Catalog) bool {
	r := p.rules()
	return c != nil && c.CacheScope == ScopePublic && r != nil && !r.Distrust && !r.Hold
}

// overdue reports whether the list has been served for longer than it may without
// being read again.
func (l *line) overdue(mono int64) bool {
	r := l.peer.rules()
	return r != nil && l.failedAt != 0 && mono-l.failedAt > r.Stale*1_000_000
}

// verdict judges the list that a context is served.
func (p *Peer) verdict(context string, mono int64) (string, *line) {
	c, l := p.usable(context, mono)
	own := l != nil && l.context == p.asked(context)
	switch {
	case c == nil, l.overdue(mono):
		return CacheNone, l
	case mono >= l.freshUntil || !l.listed:
		return CacheStale, l
	case !own:
		return CacheShared, l
	}
	return CacheFresh, l
}
