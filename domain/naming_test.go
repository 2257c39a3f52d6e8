package domain

import (
	"math/rand"
	"slices"
	"strings"
	"testing"

	"waybill/domain/names"
)

// names renders the table in force: "name=peer:local".
func (w *world) names() string {
	var out []string
	tools := listTools(w.s).Tools
	for _, e := range tools {
		out = append(out, e.Canonical+"="+e.Peer+":"+e.Local)
	}
	return strings.Join(out, " ")
}

func (w *world) refusal(tool string, generation int64) Code {
	w.t.Helper()
	out := w.see(CallReceived{CallID: CallID{"local", "n" + itoa(len(w.log))}, Tool: tool, Generation: generation})
	d, ok := find[CallRefused](out)
	if !ok {
		must[CallRouted](w.t, out)
		return ""
	}
	return d.Code
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

func TestNamesWaitForEveryPeer(t *testing.T) {
	w := newWorld(t)
	w.start(testConfig(PrefixOnCollision, "a", "b"))
	sameKinds(t, w.ready("b", "x"), "catalog.accepted")
	if got := w.refusal("x", 0); got != CodeNotReady {
		t.Errorf("before the merge: %q, want not_ready", got)
	}
	sameKinds(t, w.ready("a", "x"), "catalog.accepted", "collision.decided", "namespace.merged")
	if got := w.names(); got != "b/x=b:x x=a:x" {
		t.Errorf("names are %s", got)
	}
}

// TestArrivalHasNoPart brings three peers up in every order and merges the same.
func TestArrivalHasNoPart(t *testing.T) {
	want := ""
	for _, order := range [][]string{{"a", "b", "c"}, {"a", "c", "b"}, {"b", "a", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"c", "b", "a"}} {
		w := newWorld(t)
		w.start(testConfig(PrefixOnCollision, "a", "b", "c"))
		for _, p := range order {
			w.ready(p, "x", p+"-only")
		}
		digest := listTools(w.s).Digest
		if got := w.names() + digest; want != "" && got != want {
			t.Errorf("%v: %s, want %s", order, got, want)
		} else {
			want = got
		}
	}
}

// TestRandomArrivalsMergeTheSame mixes the steps of many peers with each other.
func TestRandomArrivalsMergeTheSame(t *testing.T) {
	r := rand.New(rand.NewSource(4))
	peers := []string{"a", "b", "c", "a__b"}
	for range 50 {
		in := randomLists(r)
		want := ""
		for range 4 {
			w := newWorld(t)
			c := testConfig(PrefixOnCollision, peers...)
			c.Separator = "__"
			slices.SortFunc(c.Peers, func(a, b PeerConfig) int { return strings.Compare(a.Name, b.Name) })
			w.start(c)
			mixed(w, r, peers, in)
			digest := listTools(w.s).Digest
			if got := w.names() + digest; want != "" && got != want {
				t.Fatalf("%s, in another order %s", want, got)
			} else {
				want = got
			}
		}
	}
}

func mixed(w *world, r *rand.Rand, peers []string, in []names.PeerTools) {
	left := []string{}
	for _, p := range peers {
		left = append(left, p, p, p)
	}
	r.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	done := map[string]int{}
	for _, p := range left {
		switch done[p]++; done[p] {
		case 1:
			w.spawned(p)
		case 2:
			w.probed(p, discoverResult)
		default:
			i := slices.IndexFunc(in, func(l names.PeerTools) bool { return l.Peer == p })
			w.listed(p, toolList(in[i].Tools...))
		}
	}
}

func TestOutageFreesNoName(t *testing.T) {
	w := newWorld(t)
	c := testConfig(PrefixOnCollision, "a", "b")
	w.start(c)
	w.ready("a", "x")
	w.ready("b", "x")
	before := w.names()
	sameKinds(t, w.exited("a"), "peer.restarted")
	if got := w.refusal("x", 0); got != CodePeerUnavailable || w.names() != before {
		t.Errorf("after the exit: %q under %s", got, w.names())
	}
	w.start(c) // a second life, in which a does not come up
	w.ready("b", "x")
	w.see(SpawnFailed{At: w.at("a"), Code: CodeSpawnFailed, Reason: "no"})
	if got := w.refusal("x", 0); got != CodePeerUnavailable || w.names() != before {
		t.Errorf("in the second life: %q under %s", got, w.names())
	}
	if got := w.refusal("b/x", 0); got != "" {
		t.Errorf("the other peer's tool is refused: %s", got)
	}
}

// TestPeerThatLeavesGivesUpItsNames: only a configured peer keeps them through an
// outage, and coming back it has no list until it gives one.
func TestPeerThatLeavesGivesUpItsNames(t *testing.T) {
	w := newWorld(t)
	w.start(testConfig(PrefixOnCollision, "a", "b"))
	w.ready("a", "y")
	w.ready("b", "x")
	w.start(testConfig(PrefixOnCollision, "a"))
	w.ready("a", "y")
	if got := w.names(); got != "y=a:y" {
		t.Errorf("without b the names are %s", got)
	}
	w.start(testConfig(PrefixOnCollision, "a", "b"))
	w.ready("a", "y")
	w.see(SpawnFailed{At: w.at("b"), Code: CodeSpawnFailed, Reason: "no"})
	if got := w.names(); got != "y=a:y" || w.at("b").Incarnation != 2 {
		t.Errorf("b is back as incarnation %d, and the names are %s", w.at("b").Incarnation, got)
	}
}

func TestSecondRunOfTheSameConfigurationKeepsItsGeneration(t *testing.T) {
	w := newWorld(t)
	c := testConfig(PrefixOnCollision, "a", "b")
	w.start(c)
	w.ready("a", "x")
	w.ready("b", "x")
	list := listTools(w.s)
	generation, digest := list.Generation, list.Digest
	w.start(c)
	w.ready("b", "x")
	out := w.ready("a", "x")
	sameKinds(t, out, "catalog.accepted", "namespace.merged")
	d := must[NamespaceMerged](t, out)
	if d.Generation != generation || d.Digest != digest || generation != 1 {
		t.Errorf("merged to %d %s, was %d %s", d.Generation, d.Digest, generation, digest)
	}
	if r := w.s.Report("log"); len(r.Collisions) != 1 || r.Collisions[0].Name != "x" {
		t.Errorf("the collision is reported as %+v", r.Collisions)
	}
}

// moved is a world in which the bare name x went from b to a one second ago.
func moved(t testing.TB) *world {
	w := newWorld(t)
	c := testConfig(PrefixOnCollision, "a", "b")
	w.start(c)
	w.ready("a", "y")
	w.ready("b", "x", "z")
	w.start(c)
	w.ready("b", "x", "z")
	out := w.ready("a", "x", "y")
	sameKinds(t, out, "catalog.accepted", "collision.decided", "name.moved", "namespace.merged")
	d := must[NameMoved](t, out)
	if d.Name != "x" || d.From != (Owner{Peer: "b", Local: "x"}) || d.To != (Owner{Peer: "a", Local: "x"}) {
		t.Errorf("moved: %+v", d)
	}
	w.now += 1_000_000_000
	return w
}

func TestMovedNames(t *testing.T) {
	for _, c := range []struct {
		name, tool string
		generation int64
		later      int64
		want       Code
	}{
		{"the old generation, moved name", "x", 1, 0, CodeStaleRoute},
		{"the old generation long after", "x", 1, 2 * MovedWindow, CodeStaleRoute},
		{"the old generation, name that stayed", "z", 1, 0, ""},
		{"the new generation", "x", 2, 0, ""},
		{"a generation that is still to come", "x", 3, 0, CodeUnknownGen},
		{"no generation, inside the window", "x", 0, 0, CodeNameMoved},
		{"no generation, one nanosecond before its end", "x", 0, MovedWindow - 1_000_000_001, CodeNameMoved},
		{"no generation, at its end", "x", 0, MovedWindow - 1_000_000_000, ""},
		{"no generation, name that stayed", "z", 0, 0, ""},
		{"no generation, a name that is new", "b/x", 0, 0, ""},
		{"the old generation, a name that was not there", "b/x", 1, 0, CodeStaleRoute},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := moved(t)
			w.now += c.later
			if got := w.refusal(c.tool, c.generation); got != c.want {
				t.Errorf("refused as %q, want %q", got, c.want)
			}
		})
	}
}

func TestAmbiguousNameHasNoRoute(t *testing.T) {
	w := newWorld(t)
	w.start(testConfig(PrefixOnCollision, "a", "b"))
	w.ready("a", "x", "b/x")
	w.ready("b", "x")
	if got := w.refusal("b/x", 0); got != CodeAmbiguousOwner {
		t.Errorf("refused as %q, want ambiguous_owner", got)
	}
	if got := w.refusal("nobody", 0); got != CodeUnknownTool {
		t.Errorf("refused as %q, want unknown_tool", got)
	}
	r := w.s.Report("log")
	if len(r.Collisions) != 2 || r.Collisions[0].Name != "b/x" || r.Collisions[0].Winner != nil || r.Namespaces[0].Tools != 1 {
		t.Errorf("reported as %+v", r)
	}
}

func TestRejectOnCollisionFailsTheFirstStartOnly(t *testing.T) {
	w := newWorld(t)
	c := testConfig(RejectOnCollision, "a", "b")
	for range 2 { // it fails until something is changed
		w.start(c)
		w.ready("a", "x")
		out := w.ready("b", "x")
		sameKinds(t, out, "catalog.accepted", "collision.decided", "config.rejected")
		d := must[ConfigRejected](t, out)
		for _, part := range []string{`"x"`, `"a"`, `"b"`, "reject-on-collision"} {
			if !strings.Contains(d.Reason, part) {
				t.Errorf("the reason does not name %s: %s", part, d.Reason)
			}
		}
		if d.Code != CodeCollisionReject || len(Effects(w.log[len(w.log)-1])) != 1 || w.refusal("x", 0) != CodeCollisionReject {
			t.Errorf("a rejected configuration is in force: %+v", d)
		}
	}
	w.start(c) // now b has no such tool
	w.ready("a", "x")
	sameKinds(t, w.ready("b", "y"), "catalog.accepted", "namespace.merged")
	w.start(c) // and later it has it again
	w.ready("a", "x")
	out := w.ready("b", "x", "y")
	sameKinds(t, out, "catalog.accepted", "collision.decided", "namespace.merged")
	if got := w.names(); got != "x=a:x y=b:y" {
		t.Errorf("names are %s", got)
	}
	if r := w.s.Report("log"); len(r.Collisions) != 1 || r.Collisions[0].Winner == nil || r.Collisions[0].Winner.Peer != "a" {
		t.Errorf("what was left out is reported as %+v", r.Collisions)
	}
}

// TestOtherPolicyIsAnotherConfiguration: a policy that was never in force fails
// its first start, whatever ran before it.
func TestOtherPolicyIsAnotherConfiguration(t *testing.T) {
	w := newWorld(t)
	w.start(testConfig(PrefixOnCollision, "a", "b"))
	w.ready("a", "x")
	w.ready("b", "x")
	w.start(testConfig(RejectOnCollision, "a", "b"))
	w.ready("a", "x")
	must[ConfigRejected](t, w.ready("b", "x"))
	w.start(testConfig(PrefixAlways, "a", "b"))
	w.ready("a", "x")
	out := w.ready("b", "x")
	sameKinds(t, out, "catalog.accepted", "namespace.merged")
	if got := w.names(); got != "a/x=a:x b/x=b:x" || len(w.s.Report("log").Collisions) != 0 {
		t.Errorf("names are %s, collisions %+v", got, w.s.Report("log").Collisions)
	}
}

// TestConfigurationLoadedAgainWaitsAgain: peers settle anew under it, and the
// names are merged once.
func TestConfigurationLoadedAgainWaitsAgain(t *testing.T) {
	w := newWorld(t)
	w.start(testConfig(PrefixOnCollision, "a", "b"))
	w.ready("a", "x")
	w.ready("b", "x")
	c := testConfig(PrefixOnCollision, "a", "b", "c")
	c.Peers[0].Refusal, c.Peers[0].RefusalReason = CodePinMismatch, "differs"
	c.Peers[2].Refusal, c.Peers[2].RefusalReason = CodeNotPinned, "no pin"
	sameKinds(t, w.load(c), "peer.refused", "peer.admitted", "peer.launched", "peer.refused")
	if got := w.refusal("b/x", 0); got != CodeEraUnknown {
		t.Errorf("a call to a process that was just ordered: %q, want era_unknown", got)
	}
	out := w.ready("b", "x")
	if n := len(all[NamespaceMerged](out)); n != 1 {
		t.Errorf("merged %d times", n)
	}
}

// TestCollisionThatGrowsIsDecidedAgain, one that stays is not.
func TestCollisionThatGrowsIsDecidedAgain(t *testing.T) {
	w := newWorld(t)
	c := testConfig(PrefixOnCollision, "a", "b", "c")
	want := [][]string{{"a", "b"}, nil, {"a", "b", "c"}}
	for life, third := range []string{"z", "z", "x"} {
		w.start(c)
		w.ready("a", "x")
		w.ready("b", "x")
		var got []string
		for _, d := range all[CollisionDecided](w.ready("c", third)) {
			for _, o := range d.Candidates {
				got = append(got, o.Peer)
			}
		}
		if !slices.Equal(got, want[life]) {
			t.Errorf("life %d: decided between %v, want %v", life+1, got, want[life])
		}
	}
}

// relist gives a peer another incarnation while the service runs, and a list.
func (w *world) relist(peer string, tools ...string) []Event {
	at := w.at(peer)
	e := Event{Seq: w.s.Head + 1, Time: w.now, Cause: w.s.Head, Data: PeerLaunched{At: At{peer, at.Incarnation + 1}, First: MethodDiscover}}
	w.s.Apply(e)
	w.log = append(w.log, e)
	return w.ready(peer, tools...)
}

// TestNamesChangeWhileTheServiceRuns: what is merged again is what a start would
// have merged, and a generation is spent only where a name is gained, lost or
// moved.
func TestNamesChangeWhileTheServiceRuns(t *testing.T) {
	w := newWorld(t)
	w.start(testConfig(RejectOnCollision, "a", "b", "c"))
	for _, p := range []string{"a", "b", "c"} {
		w.ready(p, p)
	}
	for _, c := range []struct {
		peer, tools, want, names, contested string
	}{
		{"b", "b", "catalog.accepted", "a=a:a b=b:b c=c:c", ""},
		{"b", "b x", "catalog.accepted namespace.merged", "a=a:a b=b:b c=c:c x=b:x", ""},
		{"c", "c x", "catalog.accepted collision.decided", "a=a:a b=b:b c=c:c x=b:x", "x!*b:x,c:x"},
		{"c", "c x", "catalog.accepted", "a=a:a b=b:b c=c:c x=b:x", "x!*b:x,c:x"},
		{"a", "a x", "catalog.accepted collision.decided name.moved namespace.merged", "a=a:a b=b:b c=c:c x=a:x", "x!*a:x,b:x,c:x"},
		{"b", "b", "catalog.accepted collision.decided", "a=a:a b=b:b c=c:c x=a:x", "x!*a:x,c:x"},
		{"c", "c", "catalog.accepted namespace.merged", "a=a:a b=b:b c=c:c x=a:x", ""},
		{"a", "a", "catalog.accepted namespace.merged", "a=a:a b=b:b c=c:c", ""},
		{"c", "c x", "catalog.accepted name.moved namespace.merged", "a=a:a b=b:b c=c:c x=c:x", ""},
	} {
		before := listTools(w.s).Generation
		was := w.names()
		out := w.relist(c.peer, strings.Fields(c.tools)...)
		sameKinds(t, out, strings.Fields(c.want)...)
		var m merged
		for _, r := range w.s.Report("log").Collisions {
			m.Collisions = append(m.Collisions, Collision{Name: r.Name, Candidates: r.Candidates, Winner: r.Winner})
		}
		if w.names() != c.names || m.words() != c.contested {
			t.Errorf("%s lists %s: %s and %s, want %s and %s", c.peer, c.tools, w.names(), m.words(), c.names, c.contested)
		}
		after := listTools(w.s).Generation
		if (after != before) != (was != c.names) || after > before+1 {
			t.Errorf("%s lists %s: generation %d became %d", c.peer, c.tools, before, after)
		}
	}
}

// TestWarningsAreThoseOfTheIncarnation: they do not pile up.
func TestWarningsAreThoseOfTheIncarnation(t *testing.T) {
	w := newWorld(t)
	c := testConfig(PrefixOnCollision, "a")
	c.Peers[0].Warnings = []string{"of the configuration"}
	w.start(c)
	for range 3 {
		w.spawned("a")
		w.probed("a", strings.Replace(discoverResult, `,"ttlMs":1000`, "", 1))
		w.listed("a", listPage(`,"resultType":"complete","cacheScope":"public"`, "x"))
		r := w.s.Report("log").Peers[0]
		if len(r.Warnings) != 3 || r.Warnings[0] != "of the configuration" || r.Code != nil {
			t.Errorf("incarnation %d is reported with %q", *r.Incarnation, r.Warnings)
		}
		w.exited("a")
		if r := w.s.Report("log").Peers[0]; r.Code == nil || *r.Code != CodePeerExited {
			t.Errorf("incarnation %d ended, and is reported as %+v", *r.Incarnation, r)
		}
		w.s.Apply(Event{Seq: w.s.Head + 1, Cause: w.s.Head, Data: PeerLaunched{At: At{"a", *r.Incarnation + 1}, First: MethodDiscover}})
	}
}

func TestConfigurationThatCannotBeReadOrdersNothing(t *testing.T) {
	w := newWorld(t)
	w.start(testConfig(PrefixOnCollision, "a"))
	bad := `{"node":"local","unheard":1}`
	sameKinds(t, w.see(ConfigLoaded{Config: RefTo([]byte(bad))}, bad))
}

func TestNoPeersIsAnEmptyNamespace(t *testing.T) {
	w := newWorld(t)
	sameKinds(t, w.start(testConfig(PrefixOnCollision)), "namespace.merged")
	if !w.s.Settled() || !w.s.Report("log").AllReady() || w.refusal("x", 0) != CodeUnknownTool {
		t.Errorf("an empty configuration is not settled")
	}
}
