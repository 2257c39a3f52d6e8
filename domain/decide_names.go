package domain

import (
	"fmt"
	"slices"
	"strings"
)

// decideListing asks for the lists of a peer whose era is known. tools/list is
// sent only if capabilities.tools is an object; else the list is empty. Notices are
// subscribed to first, so that no change falls between.
func (s *State) decideListing(_ int64, d EraDetermined) []Data {
	p := s.current(d.At)
	if p == nil {
		return nil
	}
	var out []Data
	p.each(func(l *line) {
		if !d.HasTools {
			out = append(out, CatalogAccepted{At: p.at(), Context: contextWord(l.context), Digest: emptyCatalog().Digest, CacheScope: ScopePrivate, Pages: []string{}})
			return
		}
		if p.subscribes() {
			out = append(out, s.subscribe(l, claimed(out)))
		}
		out = append(out, s.requestPage(l, 1, nil, "", claimed(out)))
	})
	return out
}

func (s *State) requestPage(l *line, page int, cursor *string, why string, skip int64) ListRequested {
	p := l.peer
	return ListRequested{At: p.at(), Context: contextWord(l.context), RequestID: s.nextRequest + 1 + skip, Page: page, Cursor: cursor, Era: p.Era,
		Version: p.Version, Capabilities: p.capabilities, Deadline: p.Config.listTimeout(), Why: why}
}

func (c PeerConfig) listTimeout() int64 {
	if c.ListTimeout > 0 {
		return c.ListTimeout
	}
	return c.ProbeTimeout
}

// listKey names the key of the configuration that listTimeout comes from.
func (c PeerConfig) listKey() string {
	if c.ListTimeout > 0 {
		return "list_timeout"
	}
	return "probe_timeout"
}

// decideListed follows a page: the next one, or the whole list.
func (s *State) decideListed(d CatalogListed) []Data {
	l := s.reading(d.At, d.RequestID)
	if l == nil {
		return []Data{AnswerDropped{At: d.At, RequestID: d.RequestID, Reason: "no list is being read under this id"}}
	}
	f, at, context := l.fetch, l.peer.at(), contextWord(l.context)
	if f.code != "" {
		return []Data{CatalogRefused{At: at, Context: context, Code: f.code, Reason: f.reason}}
	}
	if f.next != nil {
		return []Data{s.requestPage(l, len(f.pages)+1, f.next, f.why, 0)}
	}
	c, bad, warnings := l.build()
	var out []Data
	if len(bad) > 0 {
		warnings = append(warnings, fmt.Sprintf("left out: %d of the tools it lists; see waybill events --type tool.rejected", len(bad)))
	}
	for _, b := range l.news(bad) {
		out = append(out, ToolRejected{At: at, Context: context, Position: b.Position, Name: b.Name, Code: Code(b.Problem), Reason: b.Reason})
	}
	out = append(out, l.decideTools(c)...)
	return append(out, CatalogAccepted{At: at, Context: context, Digest: c.Digest, Tools: len(c.Tools), CacheScope: c.CacheScope,
		TTL: c.TTL, Pages: f.frames, Warnings: warnings})
}

// decideMerge puts new namespaces in force once every peer has listed, failed or
// been refused for their context, and again whenever that changes the names.
func (s *State) decideMerge() []Data {
	if s.Rejected != nil {
		return nil
	}
	var out []Data
	for _, ns := range s.spaces() {
		if !s.allSettled(ns.context) {
			continue
		}
		more, rejected := s.mergeOne(ns)
		if out = append(out, more...); rejected {
			break
		}
	}
	return out
}

func (s *State) mergeOne(ns *namespace) (out []Data, rejected bool) {
	touched := ns.touched()
	if ns.merged && len(touched) == 0 {
		return nil, false
	}
	if s.firstStart(ns) && s.Config.Collision == RejectOnCollision {
		if c := ns.table.Collisions(); len(c) > 0 {
			return s.rejectConfig(ns, c), true
		}
	}
	out = append(s.newCollisions(ns, touched), ns.moves(touched)...)
	digest := s.digestOf(ns)
	if ns.merged && ns.digest == digest && !ns.collisionGone(touched) {
		return out, false
	}
	generation := ns.generation
	if generation == 0 || ns.digest != digest {
		generation++
	}
	if s.Config.Partial {
		out = append(out, ns.flagNames(touched)...)
	}
	return append(out, NamespaceMerged{Context: ns.context, Generation: generation, Digest: digest,
		Policy: s.Config.Collision, Tools: ns.table.Len(), Inputs: ns.lists(!s.Config.Partial || !ns.merged)}), false
}

// digestOf names the content of the table.
func (s *State) digestOf(ns *namespace) string {
	if s.Config.Partial {
		return ns.table.Digest()
	}
	return ns.table.FlatDigest()
}

// firstStart reports whether the configuration in force never had its names
// merged, in any life of the service.
func (s *State) firstStart(ns *namespace) bool {
	return !ns.merged && !s.knownNaming[s.namingKey(ns)]
}

func (s *State) namingKey(ns *namespace) string {
	key := namingDigest(s.Config)
	if ns.context != DefaultContext {
		key += "/" + ns.context
	}
	return key
}

func (s *State) rejectConfig(ns *namespace, collisions []Collision) []Data {
	var out []Data
	for _, c := range collisions {
		out = append(out, CollisionDecided{Context: ns.context, Name: c.Name, Policy: s.Config.Collision, Candidates: c.Candidates})
	}
	c := collisions[0]
	reason := fmt.Sprintf("collision: reject-on-collision, and %d names are contested; the first is tool %q of peers %q and %q: rename one, remove one, or choose prefix-on-collision",
		len(collisions), c.Name, c.Candidates[0].Peer, c.Candidates[1].Peer)
	return append(out, ConfigRejected{Code: CodeCollisionReject, Reason: reason})
}

func (s *State) newCollisions(ns *namespace, touched []string) []Data {
	var out []Data
	for _, name := range touched {
		c, ok := ns.table.Collision(name)
		if !ok {
			continue
		}
		old, known := ns.collisions[name]
		if known && old.policy == s.Config.Collision && slices.Equal(old.Candidates, c.Candidates) && sameOwner(old.Winner, c.Winner) {
			continue
		}
		out = append(out, CollisionDecided{Context: ns.context, Name: name, Policy: s.Config.Collision, Candidates: c.Candidates, Winner: c.Winner})
	}
	return out
}

func sameOwner(a, b *Owner) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func (ns *namespace) moves(touched []string) []Data {
	var out []Data
	for _, name := range touched {
		owner, bound := ns.table.Lookup(name)
		if last, ok := ns.lastOwner[name]; ok && bound && last != owner {
			out = append(out, NameMoved{Context: ns.context, Name: name, From: last, To: owner})
		}
	}
	return out
}

// collisionGone reports whether a recorded collision is none any more.
func (ns *namespace) collisionGone(touched []string) bool {
	for _, name := range touched {
		if _, recorded := ns.collisions[name]; recorded {
			if _, still := ns.table.Collision(name); !still {
				return true
			}
		}
	}
	return false
}

// applyMerged puts in force what the lists give: the event holds only its digest.
func (s *State) applyMerged(e Event, d NamespaceMerged) {
	ns := s.space(d.Context)
	if ns == nil {
		return
	}
	var gone, come []string
	for _, name := range ns.touched() {
		owner, bound := ns.table.Lookup(name)
		old, was := ns.bindings[name]
		switch {
		case !bound && was:
			delete(ns.bindings, name)
			gone = append(gone, name)
		case bound && (!was || old.owner != owner):
			ns.bindings[name] = binding{owner: owner, since: d.Generation, seq: e.Seq, time: e.Time}
			ns.lastOwner[name] = owner
			if !was {
				come = append(come, name)
			}
		}
		ns.keepCollision(name)
	}
	ns.order = reorder(ns.order, gone, come)
	for _, in := range ns.lists(true) {
		ns.inputs[in.Peer] = in
	}
	ns.table.Settle()
	ns.generation, ns.seq, ns.digest, ns.policy, ns.tools, ns.merged, ns.rebuilt = d.Generation, e.Seq, d.Digest, d.Policy, d.Tools, true, false
	s.knownNaming[s.namingKey(ns)] = true
}

// keepCollision forgets a recorded collision that is none any more.
func (ns *namespace) keepCollision(name string) {
	if _, still := ns.table.Collision(name); still {
		return
	}
	if _, recorded := ns.collisions[name]; recorded {
		delete(ns.collisions, name)
		if i, ok := slices.BinarySearch(ns.contested, name); ok {
			ns.contested = slices.Delete(ns.contested, i, i+1)
		}
	}
}

// reorder takes sorted names out of a sorted list and puts others in.
func reorder(order, gone, come []string) []string {
	if len(gone) == 0 && len(come) == 0 {
		return order
	}
	out := make([]string, 0, len(order)+len(come)-len(gone))
	for _, name := range order {
		for len(gone) > 0 && gone[0] < name {
			gone = gone[1:]
		}
		if len(gone) > 0 && gone[0] == name {
			continue
		}
		for len(come) > 0 && strings.Compare(come[0], name) < 0 {
			out, come = append(out, come[0]), come[1:]
		}
		out = append(out, name)
	}
	return append(out, come...)
}
