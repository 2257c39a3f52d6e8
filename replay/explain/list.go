package explain

import (
	"fmt"
	"strings"

	"waybill/domain"
)

// tellList says which list a call was looked up in, how it was read, and how old it
// was.
func (n *narrator) tellList(x note, d domain.CallRouted) {
	n.told.section = sectionList
	l, at := n.listAt(d.Peer, d.Context, d.Catalog)
	a, ok := l.accepted.data.(domain.CatalogAccepted)
	if !ok {
		return
	}
	n.told.say("list", []note{l.accepted, x}, Facts{"peer": d.Peer, "context": at, "digest": a.Digest, "tools": a.Tools, "time": when(l.accepted.time), "incarnation": a.Incarnation},
		"The tool was looked up in the list of peer %s that was accepted at %s: %s, digest %s.", d.Peer, when(l.accepted.time), counted(a.Tools, "tool", "tools"), brief(a.Digest))
	if a.Incarnation != d.Incarnation {
		c, _ := l.refused.data.(domain.CatalogRefused)
		n.told.say("list_older", []note{l.accepted, l.refused}, Facts{"incarnation": a.Incarnation, "code": c.Code, "reason": c.Reason},
			"It is the last good list, of incarnation %d of the peer: the one that the present incarnation gave could not be taken (%s).", a.Incarnation, orWord(string(c.Code), "no reason is on record"))
	}
	n.tellPages(l, at)
	n.tellAge(x, d, l, a)
	n.tellScope(d, l, a, at)
	if c, ok := n.caches[place{context: contextOf(n.asked.Context), peer: d.Peer}]; ok {
		n.told.cache(c, d.Peer)
	}
	if l.changed.seq != 0 {
		n.told.say("list_changed", []note{l.changed}, Facts{"time": when(l.changed.time)}, "At %s the peer had announced that its tools had changed since.", when(l.changed.time))
	}
}

// tellPages says with which requests a list was read.
func (n *narrator) tellPages(l *listBook, context string) {
	if len(l.pages) == 0 {
		return
	}
	why := ""
	var requests, digests, briefs []string
	var ids []int64
	for _, p := range l.pages {
		switch d := p.data.(type) {
		case domain.ListRequested:
			requests, ids, why = append(requests, fmt.Sprint(d.RequestID)), append(ids, d.RequestID), d.Why
		case domain.CatalogListed:
			digests, briefs = append(digests, d.Frame.Digest), append(briefs, brief(d.Frame.Digest))
		}
	}
	n.told.say("list_read", l.pages, Facts{"why": why, "context": context, "requests": ids, "evidence": digests},
		"That list was read in context %s because %s: tools/list, %s %s, %s as the evidence %s.", context, listWords[why],
		one(len(requests), "request", "requests"), some(requests, 10), one(len(briefs), "whose answer is kept", "whose answers are kept"), some(briefs, 10))
}

func one(n int, single, more string) string {
	if n == 1 {
		return single
	}
	return more
}

// received is the first page of a list, or its acceptance where it has none.
func (l *listBook) received() note {
	for _, p := range l.pages {
		if _, ok := p.data.(domain.CatalogListed); ok {
			return p
		}
	}
	return l.accepted
}

func (n *narrator) tellAge(x note, d domain.CallRouted, l *listBook, a domain.CatalogAccepted) {
	first := l.received()
	age := (x.time - first.time) / 1_000_000
	if first.seq > n.life.seq {
		age = (x.mono - first.mono) / 1_000_000
	}
	facts := Facts{"age_ms": age, "ttl_ms": a.TTL, "verdict": d.Cache}
	if d.Cache == "" {
		n.told.say("list_age", []note{first, x, n.config}, facts,
			"It was %d ms old when the call was routed. The configuration has no rules for the lists of this peer: they are read when it comes up, and no verdict is made on their age.", age)
		return
	}
	if d.Era == domain.EraLegacy {
		n.told.say("list_age", []note{first, x}, facts, "It was %d ms old when the call was routed; the legacy era knows no time for which a list is good. The verdict on it was %s: %s.",
			age, word(d.Cache), cacheWords[d.Cache])
		return
	}
	n.told.say("list_age", []note{first, x}, facts, "It was %d ms old when the call was routed, and good for %d ms by the peer's own word. The verdict on it was %s: %s.",
		age, a.TTL, word(d.Cache), cacheWords[d.Cache])
}

func (n *narrator) tellScope(d domain.CallRouted, l *listBook, a domain.CatalogAccepted, at string) {
	shared := at != contextOf(d.Context)
	use := "it was read for the context that the peer was called in"
	if shared {
		use = fmt.Sprintf("it was read for context %s, and is shared with context %s", at, contextOf(d.Context))
	}
	n.told.say("list_scope", []note{l.accepted}, Facts{"cache_scope": a.CacheScope, "context": at, "shared": shared}, "The peer calls the list %s; %s.", orWord(a.CacheScope, "nothing"), use)
	if len(a.Warnings) > 0 {
		n.told.say("list_warnings", []note{l.accepted}, Facts{"warnings": a.Warnings}, "Of that list the service had warned: %s", stop(strings.Join(a.Warnings, "; ")))
	}
}

func orWord(s, none string) string {
	if s == "" {
		return none
	}
	return word(s)
}

// cache tells of the last decision on a peer's list in this context.
func (t *telling) cache(n note, peer string) {
	d, ok := n.data.(domain.CacheDecided)
	if !ok {
		return
	}
	for _, u := range d.Uses {
		if u.Peer == peer {
			t.say("cache", []note{n}, Facts{"why": d.Why, "verdict": u.Verdict, "act": u.Act, "list": u.List, "age_ms": u.Age},
				"The last time that somebody needed the lists of this context, because %s, the list of peer %s was %s: %s.", listWords[d.Why], peer, word(u.Verdict), actWords[u.Act])
		}
	}
}
