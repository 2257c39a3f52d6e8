package explain

import (
	"strings"

	"waybill/domain"
)

// tellName says how a name got its owner.
func (b *book) tellName(t *telling, context, name string, o domain.Owner, x note) {
	t.section = sectionName
	merged := b.spaces[contextOf(context)]
	d, _ := merged.data.(domain.NamespaceMerged)
	t.say("name", []note{merged, x}, Facts{"name": name, "peer": o.Peer, "local": o.Local, "context": contextOf(context), "generation": d.Generation,
		"digest": d.Digest, "policy": d.Policy, "tools": d.Tools},
		"The name %s belonged to %s in generation %d of the names of context %s: %s, digest %s, policy %s.",
		word(name), ownerWords(o), d.Generation, contextOf(context), counted(d.Tools, "name", "names"), brief(d.Digest), word(d.Policy))
	b.tellTenure(t, context, name, o)
	b.tellCollisions(t, context, name, o.Local)
	b.tellMoved(t, context, name)
	b.tellFormer(t, context, name, o)
	b.tellTool(t, context, o)
	if f := b.name(context, name).flagged; f.seq != 0 {
		if d, ok := f.data.(domain.NameFlagged); ok {
			t.say("name_flagged", []note{f}, Facts{"alike": d.Alike}, "A person could take the name for %s: the service had warned of that.", some(words(d.Alike), 8))
		}
	}
}

func words(list []string) (out []string) {
	for _, s := range list {
		out = append(out, word(s))
	}
	return out
}

// tellTenure says since when a name had its owner, and who had it before.
func (b *book) tellTenure(t *telling, context, name string, o domain.Owner) {
	owners := b.name(context, name).owners
	for i := len(owners) - 1; i >= 0; i-- {
		if owners[i].owner != o {
			continue
		}
		own := owners[i]
		t.say("owner_since", []note{own.merged}, Facts{"generation": own.generation, "time": when(own.merged.time)},
			"It had belonged to that tool since generation %d, of %s.", own.generation, when(own.merged.time))
		if i > 0 {
			was := owners[i-1]
			t.say("owner_before", []note{was.merged, own.merged}, Facts{"peer": was.owner.Peer, "local": was.owner.Local, "generation": was.generation},
				"Before that, from generation %d on, it had belonged to %s.", was.generation, ownerWords(was.owner))
		}
		return
	}
}

// inForce reports whether a recorded collision is one at this moment.
func (b *book) inForce(context, name string) bool {
	for _, c := range b.state.Report("").Collisions {
		if contextOf(c.Context) == contextOf(context) && c.Name == name {
			return true
		}
	}
	return false
}

func (b *book) tellCollisions(t *telling, context, name, local string) {
	for i, contested := range []string{name, local} {
		n := b.name(context, contested).collision
		if n.seq == 0 || i == 1 && contested == name || !b.inForce(context, contested) {
			continue
		}
		tellCollision(t, n)
	}
}

func tellCollision(t *telling, n note) {
	d, ok := n.data.(domain.CollisionDecided)
	if !ok {
		return
	}
	var all []string
	for _, o := range d.Candidates {
		all = append(all, ownerWords(o))
	}
	winner := domain.Owner{}
	if d.Winner != nil {
		winner = *d.Winner
	}
	t.say("collision", []note{n}, Facts{"name": d.Name, "policy": d.Policy, "candidates": d.Candidates, "winner": d.Winner},
		"%s claimed the name %s: %s. The policy is %s: %s. So the name went to %s.", counted(len(d.Candidates), "tool", "tools"), word(d.Name), some(all, 10),
		word(d.Policy), policyWords[d.Policy], ownerWords(winner))
}

func (b *book) tellMoved(t *telling, context, name string) {
	n := b.name(context, name).moved
	if d, ok := n.data.(domain.NameMoved); ok {
		t.say("moved", []note{n}, Facts{"from": d.From, "to": d.To, "time": when(n.time)},
			"At %s the name had moved from %s to %s.", when(n.time), ownerWords(d.From), ownerWords(d.To))
	}
}

// tellFormer says what the same tool was called before.
func (b *book) tellFormer(t *telling, context, name string, o domain.Owner) {
	for _, other := range b.candidates() {
		owners := b.name(context, other).owners
		for i := range owners {
			if other == name || owners[i].owner != o || i+1 == len(owners) {
				continue
			}
			until := owners[i+1]
			t.say("called_before", []note{owners[i].merged, until.merged}, Facts{"name": other, "generation": owners[i].generation, "until_generation": until.generation},
				"From generation %d to generation %d the same tool was called %s.", owners[i].generation, until.generation, word(other))
		}
	}
}

// tellTool says what is on record of a tool's definition.
func (b *book) tellTool(t *telling, context string, o domain.Owner) {
	_, at := b.listOf(o.Peer, context)
	x := b.tool(o.Peer, at, o.Local)
	if d, ok := x.changed.data.(domain.ToolChanged); ok {
		held := "It stayed routable"
		if d.Held {
			held = "It was put in quarantine until somebody approves it"
		}
		t.say("tool_changed", []note{x.changed}, Facts{"from": d.From, "to": d.To, "diff": d.Diff, "held": d.Held, "time": when(x.changed.time)},
			"At %s the tool's definition was found changed, from digest %s to digest %s. %s.", when(x.changed.time), brief(d.From), brief(d.To), held)
	}
	if d, ok := x.approved.data.(domain.ToolApproved); ok {
		t.say("tool_approved", []note{x.approved}, Facts{"by": d.By, "digest": d.Digest, "time": when(x.approved.time)},
			"At %s operator %s approved the definition with digest %s.", when(x.approved.time), word(d.By), brief(d.Digest))
	}
	if d, ok := x.flagged.data.(domain.ToolFlagged); ok {
		var marks []string
		for _, m := range d.Marks {
			marks = append(marks, word(m.What)+" at "+word(m.Where))
		}
		t.say("tool_flagged", []note{x.flagged}, Facts{"marks": d.Marks},
			"The tool's definition holds characters that nobody sees: %s.", strings.TrimSuffix(some(marks, 5), "."))
	}
}

// listOf finds the list of a peer that a context is served: its own, or the latest of
// another where it has none.
func (b *book) listOf(peer, context string) (*listBook, string) {
	own := contextOf(context)
	var names []string
	for _, p := range b.state.Config.Peers {
		if p.Name == peer {
			names = p.Contexts
		}
	}
	if len(names) == 0 {
		own = domain.DefaultContext
	}
	best, at := b.list(peer, own), own
	for _, c := range names {
		if l := b.list(peer, c); best.accepted.seq == 0 && l.accepted.seq > best.accepted.seq {
			best, at = l, c
		}
	}
	return best, at
}

// listAt finds the list that was accepted by an event.
func (b *book) listAt(peer, context string, seq int64) (*listBook, string) {
	for at, l := range b.lists { // order-free: one list at most was accepted by one event
		if at.peer == peer && l.accepted.seq == seq && seq != 0 {
			return l, at.context
		}
	}
	return b.listOf(peer, context)
}
