package domain

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"waybill/domain/names"
)

// mergeWalk is a keeper of five peers whose names meet in every way, beside a plain
// record of what each listed last.
type mergeWalk struct {
	*keeper
	r      *rand.Rand
	config Config
	last   map[string][]string
	was    NamespaceMerged
	seen   map[string]int
}

var (
	mergePeers = []string{"a", "a__b", "b", "b__c", "c"}
	mergeTools = []string{"x", "y", "X", "b/x", "b__x", "a/b/x", "c/b/x", "b__c", "c", "x__y", "b__c__x", "a-x"}
)

func (m *mergeWalk) load(partial bool) {
	c := ruled(testConfig(policies[m.r.IntN(3)]), unsubscribed)
	for _, p := range mergePeers {
		if m.r.IntN(8) > 0 {
			c.Peers = append(c.Peers, testPeer(p))
		}
	}
	c = ruled(c, unsubscribed)
	c.Separator, c.Partial = []string{"/", "__"}[m.r.IntN(2)], partial
	m.config = c
	for p := range m.last { // order-free: what is not configured any more is forgotten
		if !slices.ContainsFunc(c.Peers, func(pc PeerConfig) bool { return pc.Name == p }) {
			delete(m.last, p)
		}
	}
	m.merged(m.start(c))
	for _, p := range c.Peers {
		m.merged(m.rises(p.Name, discoverQuiet))
		m.lists(p.Name)
	}
}

// lists answers the list of a peer at random: another one, the same, or none.
func (m *mergeWalk) lists(peer string) {
	switch m.r.IntN(10) {
	case 0:
		m.merged(m.answered(peer, "", notFound))
		return
	case 1:
	default:
		var tools []string
		for _, t := range mergeTools {
			if m.r.IntN(3) == 0 {
				tools = append(tools, t)
			}
		}
		m.r.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
		m.last[peer] = tools
	}
	out := m.answered(peer, "", listPage(cached(0, ScopePublic), m.last[peer]...))
	must[CatalogAccepted](m.t, out)
	m.merged(out)
}

// merged compares the names in force with those of a whole merge of all lists.
func (m *mergeWalk) merged(out []Event) {
	m.t.Helper()
	for _, e := range out {
		m.seen[e.Data.Kind()]++
	}
	ns := m.s.space("")
	if !ns.merged || m.s.Rejected != nil {
		return
	}
	var lists []names.PeerTools
	for _, p := range mergePeers {
		if m.last[p] != nil {
			lists = append(lists, names.PeerTools{Peer: p, Tools: m.last[p]})
		}
	}
	want := names.Merge(m.config.Collision, m.config.Separator, lists)
	var bindings []names.Binding
	for _, name := range ns.order {
		bindings = append(bindings, names.Binding{Canonical: name, Owner: ns.bindings[name].owner})
	}
	var collisions []Collision
	for _, name := range ns.contested {
		collisions = append(collisions, ns.collisions[name].Collision)
	}
	if !reflect.DeepEqual(bindings, want.Bindings) || len(ns.bindings) != len(bindings) {
		m.t.Fatalf("%s %q: the names are %v, want %v", m.config.Collision, m.config.Separator, bindings, want.Bindings)
	}
	if !reflect.DeepEqual(collisions, want.Collisions) || len(ns.collisions) != len(collisions) {
		m.t.Fatalf("%s %q: the collisions are %v, want %v", m.config.Collision, m.config.Separator, collisions, want.Collisions)
	}
	digest := want.Digest
	if m.config.Partial {
		fresh := names.NewTable(m.config.Collision, m.config.Separator)
		for _, l := range lists {
			fresh.Set(l.Peer, l.Tools)
		}
		digest = fresh.Digest()
	}
	if ns.digest != digest || ns.tools != len(bindings) {
		m.t.Fatalf("digest %.8s of %d tools, want %.8s of %d", ns.digest, ns.tools, digest, len(bindings))
	}
	for _, d := range all[NamespaceMerged](out) {
		m.generation(d)
	}
}

// generation: one is spent where the content differs, and the inputs are named.
func (m *mergeWalk) generation(d NamespaceMerged) {
	if step := d.Generation - m.was.Generation; step < 0 || step > 1 || (step == 1) != (d.Digest != m.was.Digest) {
		m.t.Fatalf("%+v after %+v", d, m.was)
	}
	if !slices.IsSortedFunc(d.Inputs, func(a, b Input) int { return strings.Compare(a.Peer, b.Peer) }) {
		m.t.Fatalf("inputs are not sorted: %+v", d.Inputs)
	}
	if first := m.was.Generation == 0; (first || !m.config.Partial) && len(d.Inputs) != len(m.s.space("").sources) {
		m.t.Fatalf("%d inputs of %d lists", len(d.Inputs), len(m.s.space("").sources))
	}
	m.was = d
}

// TestNamesInPartsAreThoseOfAWholeMerge (design, "Namespace": a pure function of
// the last good lists): whatever the history of lists, failures, policies and
// separators, names, collisions and digests are those of names.Merge.
func TestNamesInPartsAreThoseOfAWholeMerge(t *testing.T) {
	seen := map[string]int{}
	for seed := range walks(uint64(50)) {
		m := &mergeWalk{keeper: newKeeper(t), r: rand.New(rand.NewPCG(seed, 6)), last: map[string][]string{}, seen: seen}
		for range 3 {
			m.load(seed%2 == 0)
			for range 25 {
				m.pass(10_000)
				if m.s.Rejected != nil {
					break
				}
				m.merged(m.see(ToolsRead{Reads: 1}))
				for _, p := range m.config.Peers {
					if m.s.Peer(p.Name).line("").fetch != nil && m.r.IntN(3) > 0 {
						m.lists(p.Name)
					}
				}
			}
		}
		if seed%20 == 0 {
			m.refolds()
		}
	}
	for _, kind := range []string{"namespace.merged", "collision.decided", "name.moved", "name.flagged", "config.rejected", "catalog.refused"} {
		if seen[kind] < walks(20) {
			t.Errorf("%s came %d times: the walks do not go where they should", kind, seen[kind])
		}
	}
}

// TestInputsNameWhatChanged (Config.Partial): the first merge names every list, a
// later one those that are others than were named last.
func TestInputsNameWhatChanged(t *testing.T) {
	k := newKeeper(t)
	c := ruled(testConfig(PrefixOnCollision, "a", "b"), unsubscribed)
	up := func() []Event {
		k.start(c)
		k.rises("a", discoverQuiet)
		k.answered("a", "", listPage(cached(0, ScopePublic), "x"))
		k.rises("b", discoverQuiet)
		return k.answered("b", "", listPage(cached(0, ScopePublic), "y"))
	}
	for range 2 {
		if d := must[NamespaceMerged](t, up()); len(d.Inputs) != 2 || d.Inputs[0].Peer != "a" || d.Inputs[1].Peer != "b" {
			t.Errorf("%+v", d)
		}
	}
	k.pass(5_000)
	k.reads("")
	sameKinds(t, k.answered("a", "", listPage(cached(0, ScopePublic), "x")), "catalog.accepted")
	out := k.answered("b", "", listPage(cached(0, ScopePublic), "z"))
	d := must[NamespaceMerged](t, out)
	if accepted := out[0].Seq; len(d.Inputs) != 1 || d.Inputs[0].Peer != "b" || d.Inputs[0].Seq != accepted {
		t.Errorf("%+v, the list is event %d", d, accepted)
	}
}

// TestAnOutageFreesNoNameOfAContext (design, "Namespace").
func TestAnOutageFreesNoNameOfAContext(t *testing.T) {
	k := newKeeper(t)
	c := ruled(testConfig(PrefixOnCollision, "p", "q"), inContexts("alice", "bob"), unsubscribed)
	up := func(peer string) {
		k.rises(peer, discoverQuiet)
		for _, who := range []string{"alice", "bob"} {
			k.answered(peer, who, listPage(cached(0, ScopePrivate), "search", peer+"-"+who))
		}
	}
	k.start(c)
	up("p")
	up("q")
	was := k.names("alice") + k.names("bob")
	for _, x := range []struct {
		name string
		gone func()
	}{
		{"its process ends", func() { k.exited("p") }},
		{"it does not come back", func() { k.see(SpawnFailed{At: k.at("p"), Code: CodeSpawnFailed, Reason: "no"}) }},
		{"in another life", func() {
			k.start(c)
			up("q")
			k.see(SpawnFailed{At: k.at("p"), Code: CodeSpawnFailed, Reason: "no"})
		}},
	} {
		x.gone()
		if got := k.names("alice") + k.names("bob"); got != was {
			t.Errorf("%s: the names are %s, were %s", x.name, got, was)
		}
		if a, b := k.refusal("alice", "search"), k.refusal("bob", "q/search"); a != CodePeerUnavailable || b != "" {
			t.Errorf("%s: %q, %q", x.name, a, b)
		}
	}
	k.refolds()
}

// TestManyPeersMergeAsOne: names of peers that come up in any order, with whole
// lists of tools that all meet, are those of a whole merge (a check of the walk's
// own measure on something larger).
func TestManyPeersMergeAsOne(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var peers []string
	for i := range 30 {
		peers = append(peers, fmt.Sprintf("peer%02d", i))
	}
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, peers...), unsubscribed))
	var lists []names.PeerTools
	for _, i := range r.Perm(len(peers)) {
		var tools []string
		for j := range 40 {
			tools = append(tools, fmt.Sprintf("tool%02d", (i*7+j)%60))
		}
		lists = append(lists, names.PeerTools{Peer: peers[i], Tools: tools})
		k.rises(peers[i], discoverQuiet)
		k.answered(peers[i], "", listPage(cached(0, ScopePublic), tools...))
	}
	want := names.Merge(PrefixOnCollision, "/", lists)
	if got := k.s.space("").table.FlatDigest(); got != want.Digest || k.s.space("").tools != len(want.Bindings) {
		t.Errorf("%d tools in %.8s, want %d in %.8s", k.s.space("").tools, got, len(want.Bindings), want.Digest)
	}
}
