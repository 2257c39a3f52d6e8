package domain

import (
	"fmt"
	"strings"
	"testing"
)

// rivals are two peers of two contexts that both have the tool search for bob;
// alice sees it of one of them.
func rivalsOf(t testing.TB, change ...func(*PeerConfig)) (*keeper, Config, func() []Event) {
	k := newKeeper(t)
	c := ruled(testConfig(RejectOnCollision, "calendar", "notes"), append([]func(*PeerConfig){unsubscribed, inContexts("alice", "bob")}, change...)...)
	private := cached(0, ScopePrivate)
	up := func() []Event {
		k.rises("calendar", discoverQuiet)
		k.answered("calendar", "alice", listPage(private, "search"))
		k.answered("calendar", "bob", listPage(private, "search"))
		k.rises("notes", discoverQuiet)
		k.answered("notes", "alice", listPage(private, "note"))
		return k.answered("notes", "bob", listPage(private, "search", "note"))
	}
	return k, c, up
}

// TestACollisionIsRejectedAtTheFirstStart is exercise 4 of the seed lesson (design,
// "Namespace"): the start fails and names both peers and the tool, in whichever
// context it is, until something is changed.
func TestACollisionIsRejectedAtTheFirstStart(t *testing.T) {
	k, c, up := rivalsOf(t)
	for range 2 {
		k.start(c)
		out := up()
		d := must[ConfigRejected](t, out)
		for _, part := range []string{`"search"`, `"calendar"`, `"notes"`, "reject-on-collision"} {
			if !strings.Contains(d.Reason, part) {
				t.Errorf("the reason does not name %s: %s", part, d.Reason)
			}
		}
		if e := Effects(out[len(out)-1]); d.Code != CodeCollisionReject || len(e) != 1 || e[0] != Halt(d) {
			t.Errorf("%+v, %+v", d, e)
		}
		if x := must[CollisionDecided](t, out); x.Context != "bob" || x.Winner != nil || len(x.Candidates) != 2 {
			t.Errorf("%+v", x)
		}
		for _, who := range []string{"alice", "bob"} {
			if got := k.refusal(who, "search"); got != CodeCollisionReject {
				t.Errorf("a call of %s: %q", who, got)
			}
		}
	}
	k.refolds()
}

// TestACollisionAtRunTimeLeavesTheSecondOut is the rest of exercise 4: the tool of
// the peer that sorts second is left out and recorded, and the service goes on, in
// that context and in the other.
func TestACollisionAtRunTimeLeavesTheSecondOut(t *testing.T) {
	k, c, _ := rivalsOf(t)
	private := cached(0, ScopePrivate)
	k.start(c)
	for _, peer := range []string{"calendar", "notes"} {
		k.rises(peer, discoverQuiet)
		k.answered(peer, "alice", listPage(private, peer))
		k.answered(peer, "bob", listPage(private, peer))
	}
	listed := func(peer string, tools ...string) []Event {
		k.pass(5_000)
		k.reads("bob")
		return k.answered(peer, "bob", listPage(private, tools...))
	}
	sameKinds(t, listed("notes", "notes", "search"), "catalog.accepted", "namespace.merged")
	out := listed("calendar", "calendar", "search") // it sorts first
	sameKinds(t, out, "catalog.accepted", "collision.decided", "name.moved", "namespace.merged")
	d := must[CollisionDecided](t, out)
	if d.Context != "bob" || d.Name != "search" || d.Winner == nil || d.Winner.Peer != "calendar" || len(d.Candidates) != 2 {
		t.Errorf("%+v", d)
	}
	if got := k.names("bob"); got != "calendar=calendar:calendar notes=notes:notes search=calendar:search" {
		t.Errorf("bob sees %s", got)
	}
	if got := k.names("alice"); got != "calendar=calendar:calendar notes=notes:notes" || k.refusal("alice", "notes") != "" {
		t.Errorf("alice sees %s", got)
	}
	if r := k.s.Report("log"); len(r.Collisions) != 1 || r.Collisions[0].Context != "bob" || r.Collisions[0].Name != "search" {
		t.Errorf("reported as %+v", r.Collisions)
	}
	if e := k.entry("bob", "search"); len(e.Collided) != 1 || e.Collided[0] != (Owner{Peer: "notes", Local: "search"}) || e.SinceGen != 3 {
		t.Errorf("%+v", e)
	}
	k.start(c) // the names of this configuration were merged before
	_, again := find[ConfigRejected](k.again(private))
	if got := k.names("bob"); again || !strings.Contains(got, "search=calendar:search") {
		t.Errorf("after a restart %s, rejected %t", got, again)
	}
	k.refolds()
}

// again brings both rivals up once more, with the tool they both have for bob.
func (k *keeper) again(hints string) []Event {
	from := len(k.log)
	for _, peer := range []string{"calendar", "notes"} {
		k.rises(peer, discoverQuiet)
		k.answered(peer, "alice", listPage(hints, peer))
		k.answered(peer, "bob", listPage(hints, peer, "search"))
	}
	return k.log[from:]
}

// TestACallGoesOutInItsContext (design, "Words"): also where the list that it was
// found in was read for another, and to a peer without credentials in none.
func TestACallGoesOutInItsContext(t *testing.T) {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "p", "q"), onlyPeer("p", inContexts("alice", "bob"))))
	k.rises("p", discoverQuiet)
	k.answered("p", "alice", listPage(cached(60_000, ScopePublic), "x"))
	k.answered("p", "bob", notFound)
	k.rises("q", discoverQuiet)
	k.answered("q", "", listPage(cached(60_000, ScopePrivate), "y"))
	for _, c := range []struct{ context, tool, sent, cache string }{
		{"alice", "x", "alice", CacheFresh}, {"bob", "x", "bob", CacheShared}, {"bob", "y", "", CacheFresh}, {"", "y", "", CacheFresh}, {DefaultContext, "y", "", CacheFresh},
	} {
		d := must[CallRouted](t, k.submit(c.context, c.tool))
		if d.Context != c.sent || d.Cache != c.cache || k.sends[len(k.sends)-1].Context != c.sent {
			t.Errorf("%+v: routed as %+v", c, d)
		}
	}
	if got := k.refusal("", "x"); got != CodeUnknownTool {
		t.Errorf("who has no credentials for it: %q", got)
	}
	if got := k.refusal("mallory", "y"); got != CodeNotReady {
		t.Errorf("a context that is not configured: %q", got)
	}
}

// TestAnotherContextsFailureCostsNobody: a context whose own list is good is not
// refused because a newer public one of another cannot be read any more.
func TestAnotherContextsFailureCostsNobody(t *testing.T) {
	for name, fail := range map[string]func(*keeper){
		"it cannot be read again": func(k *keeper) {
			k.pass(5_000)
			k.reads("alice")
			k.answered("p", "alice", notFound)
			k.pass(61_000)
		},
		"the peer came back, and has not listed it yet": func(k *keeper) {
			k.exited("p")
			k.rises("p", discoverQuiet)
			k.answered("p", "bob", notFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t)
			k.start(ruled(testConfig(PrefixOnCollision, "p"), inContexts("alice", "bob"), unsubscribed, func(p *PeerConfig) { p.Lists.Stale = 60_000 }))
			k.rises("p", discoverQuiet)
			k.answered("p", "bob", listPage(cached(3_600_000, ScopePublic), "x"))
			k.answered("p", "alice", listPage(cached(1_000, ScopePublic), "x"))
			fail(k)
			if got := k.refusal("bob", "x"); got != "" {
				t.Errorf("a call of bob's is refused as %q; his list is %s", got, k.verdict("p", "bob"))
			}
		})
	}
}

// TestAScopeThatTurnsPrivate takes a list from everybody else in the same step, and
// the names that were made from it.
func TestAScopeThatTurnsPrivate(t *testing.T) {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "p"), inContexts("alice", "bob")))
	k.rises("p", discoverQuiet)
	k.answered("p", "bob", notFound)
	k.answered("p", "alice", listPage(cached(0, ScopePublic), "x"))
	if got := k.names("bob"); got != "x=p:x" {
		t.Fatalf("bob sees %q", got)
	}
	digest := k.s.Tools("bob", "", 0, 0).Digest
	k.pass(5_000)
	k.reads("alice")
	out := k.answered("p", "alice", listPage(cached(0, ScopePrivate), "x"))
	sameKinds(t, out, "catalog.accepted", "namespace.merged")
	if d := must[NamespaceMerged](t, out); d.Context != "bob" || d.Digest == digest || d.Tools != 0 || len(d.Inputs) != 0 {
		t.Errorf("%+v", d)
	}
	if got := k.names("bob") + "," + k.names("alice"); got != ",x=p:x" {
		t.Errorf("bob and alice see %q", got)
	}
	if got := k.refusal("bob", "x"); got != CodeUnknownTool {
		t.Errorf("a call of bob's: %q", got)
	}
	k.refolds()
}

// TestAContextThatIsTakenAwayIsForgotten: its lists are nobody's any more, also when
// the name comes back.
func TestAContextThatIsTakenAwayIsForgotten(t *testing.T) {
	k := newKeeper(t)
	load := func(contexts ...string) {
		k.start(ruled(testConfig(PrefixOnCollision, "p"), inContexts(contexts...)))
		k.rises("p", discoverQuiet)
		for _, c := range contexts {
			if c != "bob" {
				k.answered("p", c, listPage(cached(60_000, ScopePrivate), "for-"+c))
			}
		}
		if contexts[len(contexts)-1] == "bob" {
			k.answered("p", "bob", notFound)
		}
	}
	load("alice", "bob")
	load("bob")
	if got := k.names("bob") + k.names("alice"); got != "" || k.s.space("alice") != nil {
		t.Errorf("without alice: %q", got)
	}
	k.start(ruled(testConfig(PrefixOnCollision, "p"), inContexts("alice", "bob")))
	k.rises("p", discoverQuiet)
	k.answered("p", "alice", notFound)
	k.answered("p", "bob", notFound)
	if got := k.names("alice"); got != "" || k.verdict("p", "alice") != CacheNone {
		t.Errorf("alice is back and sees %q, %s", got, k.verdict("p", "alice"))
	}
	k.refolds()
}

// TestManyContextsKeepApart: each of a hundred has its list, subscription and names.
func TestManyContextsKeepApart(t *testing.T) {
	var contexts []string
	for i := range 100 {
		contexts = append(contexts, fmt.Sprintf("c%02d", i))
	}
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "p"), inContexts(contexts...)))
	k.rises("p", discoverNotices)
	for _, c := range contexts {
		k.acknowledges("p", c, true)
		k.answered("p", c, listPage(cached(60_000, ScopePrivate), "of-"+c))
	}
	k.onceEach()
	for _, c := range contexts {
		if got := k.names(c); got != "of-"+c+"=p:of-"+c {
			t.Fatalf("%s sees %q", c, got)
		}
	}
	k.refolds()
}
