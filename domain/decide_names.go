package domain

import (
	"fmt"
	"slices"
)

// decideListing asks for the list of a peer whose era is known. tools/list is
// sent only if capabilities.tools is an object; else the list is empty.
func (s *State) decideListing(d EraDetermined) []Data {
	p := s.current(d.At)
	if p == nil {
		return nil
	}
	if !d.HasTools {
		return []Data{CatalogAccepted{At: p.at(), Digest: catalogDigest(nil), CacheScope: ScopePrivate, Pages: []string{}}}
	}
	return []Data{s.requestPage(p, 1, nil)}
}

func (s *State) requestPage(p *Peer, page int, cursor *string) ListRequested {
	return ListRequested{At: p.at(), RequestID: s.nextRequest + 1, Page: page, Cursor: cursor, Era: p.Era,
		Version: p.Version, Capabilities: p.capabilities, Deadline: p.Config.listTimeout()}
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

// mostRejected bounds the tools of one list that are left out each with an
// event of its own; the warning counts them all.
const mostRejected = 200

// decideListed follows a page: the next one, or the whole list.
func (s *State) decideListed(d CatalogListed) []Data {
	p := s.current(d.At)
	if p == nil || p.fetch == nil || p.fetch.id != d.RequestID {
		return []Data{AnswerDropped{At: d.At, RequestID: d.RequestID, Reason: "no list is being read under this id"}}
	}
	f := p.fetch
	if f.code != "" {
		return []Data{CatalogRefused{At: p.at(), Code: f.code, Reason: f.reason}}
	}
	if f.next != nil {
		return []Data{s.requestPage(p, len(f.pages)+1, f.next)}
	}
	c, bad, warnings := buildCatalog(f.pages)
	var out []Data
	if len(bad) > 0 {
		warnings = append(warnings, fmt.Sprintf("left out: %d of the tools it lists; see waybill events --type tool.rejected", len(bad)))
	}
	for _, b := range bad[:min(len(bad), mostRejected)] {
		out = append(out, ToolRejected{At: p.at(), Position: b.Position, Name: b.Name, Code: b.Code})
	}
	return append(out, CatalogAccepted{At: p.at(), Digest: c.Digest, Tools: len(c.Tools), CacheScope: c.CacheScope,
		TTL: c.TTL, Pages: f.frames, Warnings: warnings})
}

// merge computes the namespace of the configured peers' last good lists.
func (s *State) merge() (Merged, []Input) {
	var lists []PeerTools
	inputs := []Input{}
	for _, name := range s.names {
		c := s.peers[name].Catalog
		if c == nil {
			continue
		}
		l := PeerTools{Peer: name}
		for _, t := range c.Tools {
			l.Tools = append(l.Tools, t.Local)
		}
		lists = append(lists, l)
		inputs = append(inputs, Input{Peer: name, Seq: c.Seq, Digest: c.Digest})
	}
	return Merge(s.Config.Collision, s.Config.Separator, lists), inputs
}

// decideMerge puts a new namespace in force once every peer has listed, failed
// or been refused, and again whenever that changes the names.
func (s *State) decideMerge() []Data {
	if !s.allSettled() || s.Rejected != nil {
		return nil
	}
	m, inputs := s.merge()
	if s.firstStart() && s.Config.Collision == RejectOnCollision && len(m.Collisions) > 0 {
		return s.rejectConfig(m)
	}
	out := s.newCollisions(m)
	out = append(out, s.moves(m)...)
	ns := s.namespace
	if ns.merged && ns.digest == m.Digest && !s.collisionGone(m) {
		return out
	}
	generation := ns.generation
	if generation == 0 || ns.digest != m.Digest {
		generation++
	}
	return append(out, NamespaceMerged{Context: DefaultContext, Generation: generation, Digest: m.Digest,
		Policy: s.Config.Collision, Tools: len(m.Bindings), Inputs: inputs})
}

// firstStart reports whether the configuration in force never had its names
// merged, in any life of the service.
func (s *State) firstStart() bool {
	return !s.namespace.merged && !s.knownNaming[namingDigest(s.Config)]
}

func (s *State) rejectConfig(m Merged) []Data {
	var out []Data
	for _, c := range m.Collisions {
		out = append(out, CollisionDecided{Context: DefaultContext, Name: c.Name, Policy: s.Config.Collision, Candidates: c.Candidates})
	}
	c := m.Collisions[0]
	reason := fmt.Sprintf("collision: reject-on-collision, and %d names are contested; the first is tool %q of peers %q and %q: rename one, remove one, or choose prefix-on-collision",
		len(m.Collisions), c.Name, c.Candidates[0].Peer, c.Candidates[1].Peer)
	return append(out, ConfigRejected{Code: CodeCollisionReject, Reason: reason})
}

func (s *State) newCollisions(m Merged) []Data {
	var out []Data
	for _, c := range m.Collisions {
		old, ok := s.namespace.collisions[c.Name]
		if ok && old.policy == s.Config.Collision && slices.Equal(old.Candidates, c.Candidates) && sameOwner(old.Winner, c.Winner) {
			continue
		}
		out = append(out, CollisionDecided{Context: DefaultContext, Name: c.Name, Policy: s.Config.Collision,
			Candidates: c.Candidates, Winner: c.Winner})
	}
	return out
}

func sameOwner(a, b *Owner) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func (s *State) moves(m Merged) []Data {
	var out []Data
	for _, b := range m.Bindings {
		if last, ok := s.namespace.lastOwner[b.Canonical]; ok && last != b.Owner {
			out = append(out, NameMoved{Context: DefaultContext, Name: b.Canonical, From: last, To: b.Owner})
		}
	}
	return out
}

// collisionGone reports whether a recorded collision is none any more.
func (s *State) collisionGone(m Merged) bool {
	for _, name := range s.namespace.contested {
		if !slices.ContainsFunc(m.Collisions, func(c Collision) bool { return c.Name == name }) {
			return true
		}
	}
	return false
}

// applyMerged makes the table again from the lists: the event holds only its
// digest.
func (s *State) applyMerged(seq int64, d NamespaceMerged) {
	m, _ := s.merge()
	ns := &s.namespace
	next := make(map[string]binding, len(m.Bindings))
	ns.order = ns.order[:0]
	for _, b := range m.Bindings {
		since := d.Generation
		if old, ok := ns.bindings[b.Canonical]; ok && old.owner == b.Owner {
			since = old.since
		}
		next[b.Canonical] = binding{owner: b.Owner, since: since}
		ns.lastOwner[b.Canonical] = b.Owner
		ns.order = append(ns.order, b.Canonical)
	}
	ns.bindings = next
	ns.generation, ns.seq, ns.digest, ns.policy, ns.tools, ns.merged = d.Generation, seq, d.Digest, d.Policy, d.Tools, true
	s.keepCollisions(m)
	s.knownNaming[namingDigest(s.Config)] = true
}

func (s *State) keepCollisions(m Merged) {
	kept := map[string]collisionRecord{}
	s.namespace.contested = nil
	for _, c := range m.Collisions {
		if r, ok := s.namespace.collisions[c.Name]; ok {
			kept[c.Name] = r
			s.namespace.contested = append(s.namespace.contested, c.Name)
		}
	}
	s.namespace.collisions = kept
}
