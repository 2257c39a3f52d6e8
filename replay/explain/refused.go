package explain

import (
	"fmt"
	"slices"
	"strings"

	"waybill/domain"
)

// query is what was asked for, as far as a refusal may turn on it.
type query struct {
	host, context, tool, form string
	generation                int64
	prior                     callBook // of the id that a submission names
	key                       callBook // of the call that has its idempotency key
}

func (n *narrator) tellRefused(x note, d domain.CallRefused) {
	n.waiting = false
	n.outcome = Outcome{Kind: Refused, Seq: x.seq, Status: domain.StatusRefused, Code: d.Code, Ran: d.Ran(), Reason: d.Reason}
	n.told.section = sectionRefusal
	n.told.say("refused", []note{x}, Facts{"code": d.Code, "reason": d.Reason, "time": when(x.time)},
		"At %s the service refused the call, because %s (%s). It said: %s", when(x.time), codeText(d.Code), word(string(d.Code)), stop(d.Reason))
	n.look(&n.told, query{host: n.asked.Host, context: n.asked.Context, tool: n.asked.Tool, form: n.asked.Form, generation: n.asked.Generation, prior: n.prior, key: n.keyOf(n.asked)}, d.Code)
	n.told.section = sectionEnd
	if d.Ran() != domain.RanNo {
		n.told.say("not_sent", []note{x}, Facts{"ran": d.Ran()}, "Nothing was sent to any peer for it. Whether the tool ran is said by the end of the call that has the key.")
		return
	}
	n.told.say("not_sent", []note{x}, Facts{"ran": domain.RanNo}, "Nothing was sent to any peer for it, so the tool did not run.")
}

// look says of a refusal what was there to be seen at its moment.
func (b *book) look(t *telling, q query, code domain.Code) {
	owner, bound := b.lookUp(q.context, q.tool)
	switch code {
	case domain.CodeUnknownTool:
		b.lookUnknown(t, q)
	case domain.CodeAmbiguousOwner:
		tellCollision(t, b.name(q.context, q.tool).collision)
	case domain.CodePeerUnavailable, domain.CodeEraUnknown:
		if bound {
			b.lookOwner(t, q, owner)
			b.tellDown(t, owner.Peer, q.context)
		}
		b.lookPrior(t, q)
	case domain.CodeNotAllowed:
		b.lookHosts(t, q)
	case domain.CodeNameMoved, domain.CodeStaleRoute:
		b.tellMoved(t, q.context, q.tool)
		b.tellTenure(t, q.context, q.tool, domain.Owner{Peer: owner.Peer, Local: owner.Local})
	case domain.CodeUnknownGen:
		b.lookGeneration(t, q)
	case domain.CodeToolQuarantined:
		b.lookOwner(t, q, owner)
		b.tellTool(t, q.context, domain.Owner{Peer: owner.Peer, Local: owner.Local})
	case domain.CodeNotReady:
		b.lookUnready(t, q)
	default:
		b.lookElsewhere(t, q, code)
	}
}

func (b *book) lookElsewhere(t *telling, q query, code domain.Code) {
	switch code {
	case domain.CodeOverloaded:
		b.lookRoom(t, q)
	case domain.CodeShuttingDown:
		if d, ok := b.stopped.data.(domain.ServiceStopped); ok {
			t.say("service_stopped", []note{b.stopped}, Facts{"reason": d.Reason, "time": when(b.stopped.time)}, "The service had been stopped at %s (%s).", when(b.stopped.time), word(d.Reason))
		}
	case domain.CodeCollisionReject:
		if d, ok := b.refused.data.(domain.ConfigRejected); ok {
			t.say("config_rejected", []note{b.refused, b.config}, Facts{"code": d.Code, "reason": d.Reason}, "The configuration had been rejected: %s", stop(d.Reason))
		}
		if n := b.name(q.context, q.tool).collision; n.seq != 0 {
			tellCollision(t, n)
		}
	case domain.CodeIdempotencyConflict, domain.CodeOutcomeExpired:
		b.tellHolder(t, q.key)
	case domain.CodeDuplicateCall, domain.CodeNotWaiting, domain.CodeInputMismatch, domain.CodeInputExpired:
		b.lookPrior(t, q)
	}
}

// lookRoom says how many calls may be under way, and how many were.
func (b *book) lookRoom(t *telling, q query) {
	t.say("room", []note{b.config}, Facts{"inflight": b.state.Config.Inflight, "under_way": b.state.InFlight()},
		"The configuration allows %d calls under way at once (limits.inflight); %d were under way.", b.state.Config.Inflight, b.state.InFlight())
	o, ok := b.lookUp(q.context, q.tool)
	if c := b.configOf(o.Peer); ok && c.Inflight != 0 {
		t.say("room_at_peer", []note{b.config, b.spaces[contextOf(q.context)]}, Facts{"peer": o.Peer, "inflight": c.Inflight},
			"The name %s belonged to the tool %s of peer %s, at which it allows %d at once (inflight).", word(q.tool), word(o.Local), o.Peer, c.Inflight)
	}
}

// lookPrior tells of the call whose id a submission names.
func (b *book) lookPrior(t *telling, q query) {
	if q.prior.received.seq == 0 {
		return
	}
	d, _ := q.prior.received.data.(domain.CallReceived)
	end := "it had not ended"
	switch x := q.prior.ended.data.(type) {
	case domain.CallSettled:
		end = "it had ended as " + string(x.Status)
	case domain.CallRefused:
		end = "it had been refused with " + string(x.Code)
	}
	t.say("earlier_call", []note{q.prior.received, q.prior.ended}, Facts{"call": d.CallKey(), "tool": d.Tool, "time": when(q.prior.received.time)},
		"The host had used the id %s at %s for a call of %s; %s.", word(d.ID), when(q.prior.received.time), word(d.Tool), end)
}

func (b *book) lookOwner(t *telling, q query, o domain.ToolEntry) {
	t.say("owner", []note{b.spaces[contextOf(q.context)]}, Facts{"name": q.tool, "peer": o.Peer, "local": o.Local}, "The name %s belonged to the tool %s of peer %s.", word(q.tool), word(o.Local), o.Peer)
}

func (b *book) lookGeneration(t *telling, q query) {
	m := b.spaces[contextOf(q.context)]
	d, _ := m.data.(domain.NamespaceMerged)
	t.say("generation", []note{m}, Facts{"generation": d.Generation, "asked": q.generation}, "The names of the context were at generation %d, and the host named %d.", d.Generation, q.generation)
}

// lookHosts says what the configuration lets a host use.
func (b *book) lookHosts(t *telling, q query) {
	for _, h := range b.state.Config.Hosts {
		if h.Name != q.host {
			continue
		}
		peers, tools := "every peer", "every tool"
		if h.Peers != nil {
			peers = "the peers " + orWord(some(words(h.Peers), 20), "(none)")
		}
		if h.Tools != nil {
			tools = "the tools " + orWord(some(words(h.Tools), 20), "(none)")
		}
		t.say("host", []note{b.config}, Facts{"host": h.Name, "context": h.Context, "peers": h.Peers, "tools": h.Tools},
			"By the configuration in force host %s may use %s and %s, in the authorization context %s; the call came in %s.", h.Name, peers, tools, h.Context, contextOf(q.context))
		if o, ok := b.lookUp(q.context, q.tool); ok {
			b.lookOwner(t, q, o)
		}
		return
	}
	t.say("host", []note{b.config}, Facts{"host": q.host, "known": false}, "The configuration in force names %s, and %s is none of them.",
		counted(len(b.state.Config.Hosts), "host", "hosts"), word(q.host))
}

// lookUnready says which peers had neither listed nor been refused.
func (b *book) lookUnready(t *telling, q query) {
	if !slices.Contains(b.contexts(), contextOf(q.context)) {
		t.say("no_context", []note{b.config}, Facts{"context": contextOf(q.context)}, "The configuration in force has no authorization context %s.", word(contextOf(q.context)))
		return
	}
	for _, r := range b.state.Report("").Peers {
		if r.State != "ready" && r.Code == nil {
			b.tellDown(t, r.Name, q.context)
		}
	}
	if m := b.spaces[contextOf(q.context)]; m.seq == 0 {
		t.say("no_names", []note{b.config, b.life}, Facts{"context": contextOf(q.context)}, "The names of context %s had never been merged.", contextOf(q.context))
	}
}

// contexts are those of the configuration in force.
func (b *book) contexts() []string {
	out := []string{domain.DefaultContext}
	for _, p := range b.state.Config.Peers {
		out = append(out, p.Contexts...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

const mostPeers = 20 // that are told of one by one

// lookUnknown says what each peer listed when nobody had a tool of a name.
func (b *book) lookUnknown(t *telling, q query) {
	b.lookGone(t, q)
	b.lookLeftOut(t, q)
	b.lookNear(t, q)
	b.lookContexts(t, q)
	for i, p := range b.state.Config.Peers {
		if i == mostPeers {
			t.say("more_peers", []note{b.config}, Facts{"peers": len(b.state.Config.Peers)}, "The configuration names %d peers; the others are not told of.", len(b.state.Config.Peers))
			return
		}
		b.lookList(t, q, p.Name)
	}
}

// lookGone says to whom the name belonged before it was nobody's.
func (b *book) lookGone(t *telling, q query) {
	owners := b.name(q.context, q.tool).owners
	if len(owners) < 2 || owners[len(owners)-1].owner != (domain.Owner{}) {
		return
	}
	was, gone := owners[len(owners)-2], owners[len(owners)-1]
	t.say("name_gone", []note{was.merged, gone.merged}, Facts{"peer": was.owner.Peer, "local": was.owner.Local, "until_generation": gone.generation},
		"Until generation %d, of %s, it had belonged to %s.", gone.generation, when(gone.merged.time), ownerWords(was.owner))
}

// lookLeftOut says which peers list a tool of the name that was left out.
func (b *book) lookLeftOut(t *telling, q query) {
	for _, p := range b.state.Config.Peers {
		for _, c := range contextsOf(p) {
			for _, local := range b.locals(q.tool, p.Name) {
				d, ok := b.tool(p.Name, c, shown(local)).rejected.data.(domain.ToolRejected)
				if !ok {
					continue
				}
				t.say("left_out", []note{b.tool(p.Name, c, shown(local)).rejected}, Facts{"peer": p.Name, "context": c, "name": d.Name, "code": d.Code, "reason": d.Reason},
					"Peer %s lists a tool %s in context %s, which was left out of its list (%s). %s", p.Name, word(d.Name), c, word(string(d.Code)), reasonText(d.Reason))
			}
		}
	}
}

func reasonText(s string) string {
	if s == "" {
		return ""
	}
	return stop(s)
}

func contextsOf(p domain.PeerConfig) []string {
	if len(p.Contexts) == 0 {
		return []string{domain.DefaultContext}
	}
	return p.Contexts
}

// locals are the local names that a name may mean at a peer.
func (b *book) locals(name, peer string) []string {
	if local, ok := strings.CutPrefix(name, peer+b.state.Config.Separator); ok && local != "" {
		return []string{name, local}
	}
	return []string{name}
}

// lookNear names what could have been meant: names that differ by case or separator,
// or end as this one does.
func (b *book) lookNear(t *telling, q query) {
	var near []string
	end := strings.ToLower(bare(q.tool))
	for _, e := range b.state.Tools(q.context, "", 0, b.now.mono).Tools {
		x := strings.ToLower(bare(e.Canonical))
		if e.Canonical != q.tool && (strings.HasSuffix(x, end) || strings.HasSuffix(end, "_"+strings.ToLower(bare(e.Local))) || e.Model == q.tool) {
			near = append(near, e.Canonical)
		}
	}
	if len(near) > 0 {
		t.say("near", []note{b.spaces[contextOf(q.context)]}, Facts{"names": near}, "Names of that context that are near to it: %s.", some(words(near), 10))
	}
}

// lookContexts says where else the name was somebody's.
func (b *book) lookContexts(t *telling, q query) {
	for _, c := range b.contexts() {
		o, ok := b.lookUp(c, q.tool)
		if !ok || c == contextOf(q.context) {
			continue
		}
		t.say("other_context", []note{b.spaces[c]}, Facts{"context": c, "peer": o.Peer, "local": o.Local}, "In the authorization context %s the name belonged to the tool %s of peer %s.", c, word(o.Local), o.Peer)
	}
}

// lookList says what a peer listed, or why it listed nothing.
func (b *book) lookList(t *telling, q query, peer string) {
	l, at := b.listOf(peer, q.context)
	a, ok := l.accepted.data.(domain.CatalogAccepted)
	if !ok {
		t.say("no_list", []note{b.config}, Facts{"peer": peer}, "Of peer %s there was no list for that context.", peer)
		b.tellDown(t, peer, q.context)
		return
	}
	t.say("listed", []note{l.accepted}, Facts{"peer": peer, "context": at, "tools": a.Tools, "digest": a.Digest},
		"The last list of peer %s, of %s, had %s.", peer, when(l.accepted.time), fmt.Sprintf("%s under the digest %s", counted(a.Tools, "tool", "tools"), brief(a.Digest)))
	if l.refused.seq > l.accepted.seq {
		b.tellDown(t, peer, q.context)
	}
}
