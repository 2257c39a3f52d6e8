package explain

import (
	"slices"
	"strings"

	"waybill/domain"
)

// note is an event that may matter later, without its evidence.
type note struct {
	seq, time, mono, cause int64
	data                   domain.Data
	says                   string // what the evidence is, in words that are none of a peer's
}

func noteOf(e domain.Event) note {
	return note{seq: e.Seq, time: e.Time, mono: e.Mono, cause: e.Cause, data: e.Data}
}

// book is the state at a moment, and for each thing that may matter the last event
// that spoke of it. Its size does not grow with the log.
type book struct {
	state   *domain.State
	pages   domain.Pages
	asked   []string // the names that matter
	now     note     // the last event
	life    note     // service.started
	stopped note
	config  note
	refused note // config.rejected
	peers   map[string]*peerBook
	spaces  map[string]note // namespace.merged, by context
	lists   map[place]*listBook
	caches  map[place]note
	names   map[place]*nameBook
	tools   map[place]*toolBook
	calls   map[string]*callBook // of the keys that matter
	key     string               // digest of the idempotency key that matters; "" for none
}

// place is a name within an authorization context, or a tool or list of a peer in one.
type place struct{ context, peer, name string }

// peerBook is the story of a peer's present incarnation.
type peerBook struct {
	admitted note
	launched note // or restarted
	spawned  note
	probes   []note // issued, answered, failed, and legacy.excluded
	before   []note // those of the process before, in whose place this one was started
	era      note
	ended    note // peer.exited or spawn.failed, of this incarnation or the one before it
	closed   note // peer.refused, era.refused, peer.abandoned
	isolated note // peer.quarantined
	restart  note // peer.restarted
}

// listBook is a list of a peer in one context.
type listBook struct {
	reading  []note // list.requested and catalog.listed of the reading under way
	pages    []note // those of the list that was accepted
	accepted note
	refused  note // since
	changed  note // list.changed, since
}

// nameBook is a canonical name in one context.
type nameBook struct {
	collision, moved, flagged note
	owners                    []tenure // the last ones, oldest first
}

// tenure is since when a name has belonged to a tool; to nobody where that is zero.
type tenure struct {
	owner      domain.Owner
	generation int64
	merged     note
}

// toolBook is a tool of a peer in one context.
type toolBook struct{ changed, approved, flagged, rejected note }

// callBook is another call that matters to the one in question.
type callBook struct{ received, ended note }

const (
	mostTenures = 8
	mostProbes  = 32 // of one incarnation
)

func newBook(asked ...string) *book {
	return &book{state: domain.NewState(), asked: asked, peers: map[string]*peerBook{}, spaces: map[string]note{}, lists: map[place]*listBook{},
		caches: map[place]note{}, names: map[place]*nameBook{}, tools: map[place]*toolBook{}, calls: map[string]*callBook{}}
}

// contextOf is the name of an authorization context; events leave out the default one.
func contextOf(context string) string {
	if context == "" {
		return domain.DefaultContext
	}
	return context
}

// entry returns what m has under a key, and puts an empty one there first.
func entry[K comparable, V any](m map[K]*V, key K) *V {
	if m[key] == nil {
		m[key] = new(V)
	}
	return m[key]
}

// matters reports whether a name is one of those in question, or the end of one, or
// has one as its end, whatever stands for a separator.
func (b *book) matters(name string) bool {
	return slices.ContainsFunc(b.asked, func(asked string) bool {
		x, y := bare(asked), bare(name)
		return strings.HasSuffix(x, y) || strings.HasSuffix(y, x)
	})
}

// bare is a name with everything that a form of it may replace made alike.
func bare(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

// take folds an event and notes it.
func (b *book) take(e domain.Event) {
	var config domain.Config
	if d, ok := e.Data.(domain.ProbeAnswered); ok {
		config = b.state.Config
		defer func() { b.judge(d, e.Evidence, config) }()
	}
	n := noteOf(e) // a page is not kept
	b.pages.Judge(b.state, &e)
	b.state.Apply(e)
	b.now = n
	switch e.Data.(type) {
	case domain.ServiceStarted:
		b.life, b.stopped, b.refused = n, note{}, note{}
		b.forgetPeers()
	case domain.ServiceStopped:
		b.stopped = n
	case domain.ConfigLoaded:
		b.config, b.refused = n, note{}
	case domain.ConfigRejected:
		b.refused = n
	default:
		b.takePeer(n)
		b.takeList(n)
		b.takeName(n)
		b.takeCall(n)
	}
}

// forgetPeers ends what belonged to processes that are gone with the service.
func (b *book) forgetPeers() {
	for name := range b.peers { // order-free: each is replaced alone
		b.peers[name] = &peerBook{}
	}
	for _, l := range b.lists { // order-free: each is changed alone
		l.reading = nil
	}
}

// judge says of a probe's answer, or whatever else came, what it is.
func (b *book) judge(d domain.ProbeAnswered, evidence []byte, c domain.Config) {
	p := entry(b.peers, d.Peer)
	for i := range p.probes {
		if p.probes[i].seq == b.now.seq {
			p.probes[i].says = signal(p, d, evidence, c)
		}
	}
}

func signal(p *peerBook, d domain.ProbeAnswered, evidence []byte, c domain.Config) string {
	says := domain.ClassifyDiscover(evidence).Signal
	for _, n := range p.probes { // order-free: a list, in its order
		if issued, ok := n.data.(domain.ProbeIssued); ok && issued.Method == domain.MethodInitialize {
			var revisions []string
			for _, x := range c.Peers {
				if x.Name == d.Peer {
					revisions = x.LegacyRevisions
				}
			}
			says = domain.ClassifyInitialize(evidence, revisions).Signal
		}
	}
	if d.Modern || domain.ModernEvidence(evidence) {
		says += ", which is modern behaviour"
	}
	return says
}

func (b *book) takePeer(n note) {
	switch d := n.data.(type) {
	case domain.PeerAdmitted:
		entry(b.peers, d.Peer).admitted = n
	case domain.PeerLaunched:
		p := entry(b.peers, d.Peer)
		before := p.probes
		if d.First != domain.MethodInitialize {
			before = nil
		}
		b.peers[d.Peer] = &peerBook{admitted: p.admitted, launched: n, before: before, ended: p.ended}
	case domain.PeerRestarted:
		p := entry(b.peers, d.Peer)
		b.peers[d.Peer] = &peerBook{admitted: p.admitted, launched: n, restart: n, ended: p.ended, closed: p.closed, isolated: p.isolated}
	case domain.PeerSpawned:
		p := entry(b.peers, d.Peer)
		p.spawned, p.closed, p.isolated = n, note{}, note{}
	case domain.PeerExited, domain.SpawnFailed:
		entry(b.peers, d.(domain.OfPeer).PeerName()).ended = n
	case domain.PeerRefused, domain.EraRefused, domain.PeerAbandoned:
		entry(b.peers, d.(domain.OfPeer).PeerName()).closed = n
	case domain.PeerQuarantined:
		entry(b.peers, d.Peer).isolated = n
	case domain.EraDetermined:
		entry(b.peers, d.Peer).era = n
	case domain.ProbeIssued, domain.ProbeAnswered, domain.ProbeFailed, domain.LegacyExcluded:
		p := entry(b.peers, d.(domain.OfPeer).PeerName())
		if len(p.probes) < mostProbes && p.era.seq == 0 {
			p.probes = append(p.probes, n)
		}
	}
}

func (b *book) list(peer, context string) *listBook {
	return entry(b.lists, place{context: contextOf(context), peer: peer})
}

func (b *book) takeList(n note) {
	switch d := n.data.(type) {
	case domain.ListRequested:
		l := b.list(d.Peer, d.Context)
		if d.Page == 1 {
			l.reading = nil
		}
		l.reading = append(l.reading, n)
	case domain.CatalogListed:
		l := b.list(d.Peer, d.Context)
		if len(l.reading) > 0 && requested(l.reading[len(l.reading)-1]) == d.RequestID {
			l.reading = append(l.reading, n)
		}
	case domain.CatalogAccepted:
		*b.list(d.Peer, d.Context) = listBook{accepted: n, pages: b.list(d.Peer, d.Context).reading}
	case domain.CatalogRefused:
		l := b.list(d.Peer, d.Context)
		l.refused, l.reading = n, nil
	case domain.ListChanged:
		b.list(d.Peer, d.Context).changed = n
	case domain.CacheDecided:
		for _, u := range d.Uses {
			b.caches[place{context: contextOf(d.Context), peer: u.Peer}] = n
		}
	}
}

func requested(n note) int64 {
	d, _ := n.data.(domain.ListRequested)
	return d.RequestID
}

func (b *book) name(context, name string) *nameBook {
	return entry(b.names, place{context: contextOf(context), name: name})
}

func (b *book) tool(peer, context, local string) *toolBook {
	return entry(b.tools, place{context: contextOf(context), peer: peer, name: local})
}

func (b *book) takeName(n note) {
	switch d := n.data.(type) {
	case domain.NamespaceMerged:
		b.spaces[contextOf(d.Context)] = n
		b.tenures(n, d)
	case domain.CollisionDecided:
		if b.matters(d.Name) {
			b.name(d.Context, d.Name).collision = n
		}
	case domain.NameMoved:
		if b.matters(d.Name) {
			b.name(d.Context, d.Name).moved = n
		}
	case domain.NameFlagged:
		if b.matters(d.Name) {
			b.name(d.Context, d.Name).flagged = n
		}
	default:
		b.takeTool(n)
	}
}

func (b *book) takeTool(n note) {
	switch d := n.data.(type) {
	case domain.ToolChanged:
		if b.matters(d.Local) {
			t := b.tool(d.Peer, d.Context, d.Local)
			t.changed, t.approved = n, note{}
		}
	case domain.ToolApproved:
		if b.matters(d.Local) {
			b.tool(d.Peer, d.Context, d.Local).approved = n
		}
	case domain.ToolFlagged:
		if b.matters(d.Local) {
			b.tool(d.Peer, d.Context, d.Local).flagged = n
		}
	case domain.ToolRejected:
		if d.Name != "" && b.matters(d.Name) {
			b.tool(d.Peer, d.Context, d.Name).rejected = n
		}
	}
}

// takeCall notes the other calls whose keys matter.
func (b *book) takeCall(n note) {
	if d, ok := n.data.(domain.CallReceived); ok && d.Key != "" && d.Key == b.key {
		entry(b.calls, d.CallKey())
	}
	d, ok := n.data.(domain.OfCall)
	if !ok || b.calls[d.CallKey()] == nil {
		return
	}
	c := b.calls[d.CallKey()]
	switch n.data.(type) {
	case domain.CallReceived:
		if c.received.seq == 0 || c.ended.seq != 0 {
			*c = callBook{received: n}
		}
	case domain.CallSettled, domain.CallRefused:
		c.ended = n
	}
}

// tenures notes to whom the names in question belong since a merge.
func (b *book) tenures(n note, d domain.NamespaceMerged) {
	for _, name := range b.candidates() {
		now := tenure{generation: d.Generation, merged: n}
		if t, ok := b.lookUp(d.Context, name); ok {
			now.owner = domain.Owner{Peer: t.Peer, Local: t.Local}
		}
		l := b.name(d.Context, name)
		last := tenure{}
		if len(l.owners) > 0 {
			last = l.owners[len(l.owners)-1]
		}
		if last.owner == now.owner {
			continue
		}
		if l.owners = append(l.owners, now); len(l.owners) > mostTenures {
			l.owners = slices.Delete(l.owners, 0, 1)
		}
	}
}

// candidates are the names that a name in question may go by.
func (b *book) candidates() (out []string) {
	sep := b.state.Config.Separator
	for _, name := range b.asked {
		out = append(out, name)
		if _, local, ok := strings.Cut(name, sep); ok && sep != "" {
			out = append(out, local)
		}
		for _, p := range b.state.Config.Peers {
			out = append(out, p.Name+sep+name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// lookUp finds who owns a canonical name in a context.
func (b *book) lookUp(context, name string) (domain.ToolEntry, bool) {
	if name == "" {
		return domain.ToolEntry{}, false
	}
	before := name[:len(name)-1] + string([]byte{name[len(name)-1] - 1, 0xff})
	if name[len(name)-1] == 0 {
		before = name[:len(name)-1]
	}
	for _, t := range b.state.Tools(context, before, 1, b.now.mono).Tools {
		return t, t.Canonical == name
	}
	return domain.ToolEntry{}, false
}
