package domain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"waybill/domain/names"
)

// A warden looks at everything that each authorization context is shown, and keeps
// a record of its own of who was told what: by the marks that the servers put into
// what they list, never by what events say of contexts.
type warden struct {
	s      *sim
	config map[string]PeerConfig
	told   map[string]map[string]telling // by peer and context: the last list that was accepted
	seqs   map[int64]telling             // of catalog.accepted
	past   map[string]bool               // names that were public once
	leaks  []string
	shown  int // tools
	shared int // lists of another context
}

// A telling is one list as a server told it.
type telling struct {
	mark  marking
	seq   int64
	tools []string
}

// A marking is what a tool says of where it was listed.
type marking struct{ peer, context, scope string }

func readMark(text string) (marking, bool) {
	parts := strings.Split(text, ".")
	if len(parts) < 5 || !strings.HasPrefix(parts[3], "v") {
		return marking{}, false
	}
	peer := parts[0][strings.LastIndex(parts[0], "/")+1:] // of a name that is prefixed
	return marking{peer, parts[1], parts[2]}, true
}

func watchContexts(s *sim) *warden {
	w := &warden{s: s, config: map[string]PeerConfig{}, told: map[string]map[string]telling{}, seqs: map[int64]telling{}, past: map[string]bool{}}
	s.watch = w.step
	return w
}

func (w *warden) leak(format string, args ...any) {
	w.leaks = append(w.leaks, fmt.Sprintf("event %d: ", w.s.s.Head)+fmt.Sprintf(format, args...))
}

func (w *warden) step(events []Event) {
	for _, e := range events {
		switch d := e.Data.(type) {
		case ConfigLoaded:
			w.loaded(e)
		case CatalogAccepted:
			w.accepted(e, d)
		case CacheDecided:
			for _, u := range d.Uses {
				w.used(d.Context, u.Peer, u.List)
			}
		case CallRouted:
			w.used(w.contextOf(d.CallKey()), d.Peer, d.Catalog)
			w.seen(w.contextOf(d.CallKey()), d.Local, "a call")
		case CollisionDecided:
			for _, o := range d.Candidates {
				w.seen(d.Context, o.Local, "a collision")
			}
		case NameFlagged:
			w.seen(d.Context, d.Name, "a warning")
		case NamespaceMerged:
			w.merged(d)
		}
	}
	if len(events) > 2 || w.s.r.IntN(4) == 0 { // much happens that shows nobody anything new
		for _, context := range append(slices.Clone(w.s.s.contexts), "mallory") {
			w.look(context)
		}
	}
}

func (w *warden) loaded(e Event) {
	c, err := DecodeConfig(e.Evidence)
	if err != nil {
		w.s.t.Fatal(err)
	}
	clear(w.config)
	for _, p := range c.Peers {
		w.config[p.Name] = p
		for context := range w.told[p.Name] { // order-free: each alone
			if !slices.Contains(p.contexts(), context) {
				delete(w.told[p.Name], context)
			}
		}
	}
	for peer := range w.told { // order-free: each alone
		if _, ok := w.config[peer]; !ok {
			delete(w.told, peer)
		}
	}
}

// accepted records a list under the context that its server told it to.
func (w *warden) accepted(e Event, d CatalogAccepted) {
	t := telling{seq: e.Seq}
	for _, l := range w.s.s.Peer(d.Peer).lines { // order-free: the one that was just accepted
		if l.catalog != nil && l.catalog.Seq == e.Seq {
			t.tools = l.catalog.Locals()
		}
	}
	if len(t.tools) > 0 {
		t.mark, _ = readMark(t.tools[0])
	}
	w.seqs[e.Seq] = t
	if w.told[d.Peer] == nil {
		w.told[d.Peer] = map[string]telling{}
	}
	w.told[d.Peer][t.mark.context] = t
	for _, name := range t.tools {
		w.past[name] = w.past[name] || t.mark.scope == ScopePublic
	}
}

func (w *warden) contextOf(call string) string {
	for _, e := range slices.Backward(w.s.log) {
		if d, ok := e.Data.(CallReceived); ok && d.CallKey() == call {
			return contextKey(d.Context)
		}
	}
	return ""
}

// may reports whether a context may be shown what was told to another.
func (w *warden) may(context string, m marking) bool {
	p, ok := w.config[m.peer]
	switch {
	case !ok:
		return false
	case m.context == context, m.context == DefaultContext && len(p.Contexts) == 0:
		return true
	}
	return m.scope == ScopePublic && !p.Lists.Distrust && slices.Contains(p.Contexts, context)
}

// seen holds for a name: one that was public once may be remembered.
func (w *warden) seen(context, name, where string) {
	local := name[strings.LastIndex(name, "/")+1:]
	if m, ok := readMark(name); ok && !w.may(context, m) && !w.past[local] {
		w.leak("%s sees the name %q in %s", context, name, where)
	}
}

// used holds for a list that served a context.
func (w *warden) used(context, peer string, seq int64) {
	t, ok := w.seqs[seq]
	if !ok || len(t.tools) == 0 {
		return
	}
	if t.mark.context != context && t.mark.context != DefaultContext {
		w.shared++
	}
	if !w.may(context, t.mark) {
		w.leak("%s is served list %d of %s, which was told to %s as %s", context, seq, peer, t.mark.context, t.mark.scope)
	}
}

// look is what a host of a context would see now.
func (w *warden) look(context string) {
	state := w.s.s
	for _, e := range state.Tools(context, "", 0, w.s.mono()).Tools {
		w.shown++
		w.seen(context, e.Canonical, "the list of tools")
		if m, ok := readMark(string(object(e.Definition)["description"])); ok {
			m.peer = strings.TrimPrefix(m.peer, `"`)
			if !w.may(context, m) {
				w.leak("%s is given the definition of %q, which was told to %s as %s", context, e.Canonical, m.context, m.scope)
			}
		}
	}
	ns := state.space(context)
	if ns == nil {
		return
	}
	for _, b := range ns.table.Bindings() {
		if m, ok := readMark(b.Owner.Local); ok && !w.may(context, m) {
			w.leak("the names of %s are made from %q", context, b.Owner.Local)
		}
	}
}

// merged holds for the digest of a namespace: it is that of the lists that the
// context may be served, and of no others.
func (w *warden) merged(d NamespaceMerged) {
	table := names.NewTable(w.s.s.Config.Collision, w.s.s.Config.Separator)
	for _, peer := range slices.Sorted(maps.Keys(w.config)) {
		table.Set(peer, w.serves(peer, d.Context).tools)
	}
	if got := table.Digest(); got != d.Digest {
		w.leak("the names of %s are digested to %.8s, of what it may see to %.8s", d.Context, d.Digest, got)
	}
}

// serves is the list that a context is to be served: its own, unless that is public
// or missing and a public one of another context is newer.
func (w *warden) serves(peer, context string) telling {
	p := w.config[peer]
	if len(p.Contexts) == 0 {
		return w.told[peer][DefaultContext]
	}
	best := w.told[peer][context]
	if !slices.Contains(p.Contexts, context) || best.seq != 0 && best.mark.scope != ScopePublic {
		return best
	}
	for _, t := range w.told[peer] { // order-free: the newest
		if t.seq > best.seq && w.may(context, t.mark) {
			best = t
		}
	}
	return best
}

// contextSim is a sim of a peer of several contexts and two that have none, which
// list names that meet.
func contextSim(t testing.TB, seed uint64, contexts ...string) *sim {
	s := newSim(t, seed)
	s.server("p", "alice", "bob", "carol")
	s.server("q", DefaultContext)
	s.server("a", contexts...)
	for _, x := range s.servers { // order-free: each alike
		for _, l := range x.lists { // order-free: each alike
			l.tools, l.pages = []string{"search", "p/search"}, 1+int(seed%2)
		}
	}
	return s
}

// contextConfig varies what the peers are asked in, and whether public lists are
// shared.
func contextConfig(n int, contexts ...string) Config {
	c := ruled(testConfig(policies[n%3], "a", "p", "q"), onlyPeer("p", inContexts(contexts...)), onlyPeer("a", inContexts(contexts[0], contexts[1])))
	if n%3 == 1 { // a first start would end the service
		c.Collision = PrefixOnCollision
	}
	c.Peers[1].Lists.Distrust = n%4 == 3
	for i := range c.Peers {
		c.Peers[i].Lists.Interval = 100
	}
	return c
}

// stir does one thing at random.
func (s *sim) stir(contexts []string, config func() Config) {
	x := s.servers[[]string{"p", "p", "a", "q"}[s.r.IntN(4)]]
	context := x.contexts()[s.r.IntN(len(x.lists))]
	l := x.lists[context]
	switch n := s.r.IntN(30); {
	case n < 5:
		x.changes(context)
	case n < 10:
		l.scope = map[string]string{ScopePrivate: ScopePublic, ScopePublic: ScopePrivate}[l.scope]
		x.changes(context)
	case n < 15:
		s.feed(ToolsRead{Context: append(contexts, "", "mallory")[s.r.IntN(len(contexts)+2)], Reads: 1})
	case n < 20:
		who := contexts[s.r.IntN(len(contexts))]
		name := "search"
		if list := s.s.Tools(contexts[s.r.IntN(len(contexts))], "", 0, s.mono()).Tools; len(list) > 0 {
			name = list[s.r.IntN(len(list))].Canonical // perhaps one that another context sees
		}
		s.calls(who, name)
	case n < 22:
		l.ttl = []int64{0, 500, 3_600_000}[s.r.IntN(3)]
	case n < 24:
		x.fails++
	case n < 26:
		s.crash(x.up)
	case n < 27 && s.r.IntN(3) == 0:
		s.begin(config())
	case n < 28 && s.r.IntN(3) == 0:
		s.reload(config())
	}
}

// contextWalk drives a sim for a while, and returns what its warden found. broken
// is done after every configuration that is loaded.
func contextWalk(t testing.TB, seed uint64, contexts []string, broken func(*sim)) *warden {
	s := contextSim(t, seed, contexts...)
	w := watchContexts(s)
	look := s.watch
	s.watch = func(events []Event) {
		if len(all[ConfigLoaded](events)) > 0 {
			broken(s)
		}
		look(events)
	}
	config := func() Config {
		n := s.r.IntN(12)
		if n < 3 && len(contexts) > 2 { // one context comes and goes
			return contextConfig(n, contexts[:2]...)
		}
		return contextConfig(n, contexts...)
	}
	s.begin(contextConfig(int(seed), contexts...))
	for range 80 {
		s.run(s.r.Int64N([]int64{30, 400, 3_000}[s.r.IntN(3)]))
		s.stir(contexts, config)
		s.feed(ToolsRead{Context: contexts[s.r.IntN(len(contexts))], Reads: 1})
	}
	return w
}

// TestPrivateListsOfTwoAuthorizationContexts is exercise 3 of the seed lesson
// (server/utilities/caching, "Cache Scope Field"; seed 2.1.0, hard reject "sharing a
// private cached list across authorization contexts"): whatever happens in whatever
// order, nothing of a list that is private to one is seen by another. A public one
// is shared, unless the configuration distrusts it.
func TestPrivateListsOfTwoAuthorizationContexts(t *testing.T) {
	for name, contexts := range map[string][]string{"two": {"alice", "bob"}, "three": {"alice", "bob", "carol"}} {
		t.Run(name, func(t *testing.T) {
			shown, shared := 0, 0
			for seed := range walks(uint64(20)) {
				w := contextWalk(t, seed, contexts, func(*sim) {})
				if len(w.leaks) > 0 {
					t.Fatalf("seed %d: %d leaks, the first: %s", seed, len(w.leaks), w.leaks[0])
				}
				shown, shared = shown+w.shown, shared+w.shared
				if seed%10 == 0 {
					w.s.refolds()
				}
			}
			t.Logf("%d tools shown, %d uses of a list of another context", shown, shared)
			if shown < walks(10_000) || shared < walks(100) {
				t.Error("the walks do not go where they should")
			}
		})
	}
}

// TestTheWardenFindsAMissingContext: the same walks, with the context taken out of
// the key of the cache, are found to leak in nearly every case.
func TestTheWardenFindsAMissingContext(t *testing.T) {
	oneForAll := func(s *sim) {
		for _, p := range s.s.peers { // order-free: each alone
			for context := range p.lines { // order-free: all become the first
				p.lines[context] = p.lines[p.Config.contexts()[0]]
			}
		}
	}
	found := 0
	for seed := range walks(uint64(10)) {
		if w := contextWalk(t, seed, []string{"alice", "bob"}, oneForAll); len(w.leaks) > 0 {
			found++
			if seed == 0 {
				t.Logf("%d leaks, the first: %s", len(w.leaks), w.leaks[0])
			}
		}
	}
	if found < walks(10)-1 {
		t.Errorf("%d walks of %d were found to leak", found, walks(10))
	}
}
