package domain

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestAListIsAsFreshAsItsEarliestExpiringPage (server/utilities/caching,
// "Freshness Calculation" and "Interaction with Pagination"): the clock of each
// page starts when that page was received, and the first to run out decides.
func TestAListIsAsFreshAsItsEarliestExpiringPage(t *testing.T) {
	type page struct{ after, ttl int64 } // after the page before, milliseconds
	for _, c := range []struct {
		name  string
		pages []page
		fresh int64 // from the last page on, milliseconds
	}{
		{"one page", []page{{0, 5_000}}, 5_000},
		{"one page that came late", []page{{900, 5_000}}, 5_000},
		{"the second runs out first", []page{{0, 10_000}, {4_000, 3_000}}, 3_000},
		{"the first runs out first", []page{{0, 5_000}, {4_000, 60_000}}, 1_000},
		{"the first ran out before the second came", []page{{0, 2_000}, {3_000, 60_000}}, 0},
		{"the one between", []page{{0, 9_000}, {1_000, 2_000}, {1_500, 9_000}}, 500},
		{"a smaller ttl that runs out later", []page{{0, 6_000}, {5_000, 4_000}}, 1_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKeeper(t)
			k.start(ruled(testConfig(PrefixOnCollision, "p")))
			k.rises("p", discoverQuiet)
			for i, p := range c.pages {
				k.pass(p.after)
				more := cached(p.ttl, ScopePublic)
				if i < len(c.pages)-1 {
					more = before(fmt.Sprint("after", i), more)
				}
				k.answered("p", "", listPage(more, fmt.Sprint("t", i)))
			}
			k.wall = -3_600_000 * ms // the wall clock has no part in it
			if c.fresh > 0 {
				k.now += c.fresh*ms - 1
				if got := k.verdict("p", ""); got != CacheFresh {
					t.Errorf("a nanosecond before its time it is %s", got)
				}
				k.now++
			}
			if got := k.verdict("p", ""); got != CacheStale {
				t.Errorf("when its time is over it is %s", got)
			}
			k.refolds()
		})
	}
}

// TestATTLThatSaysNothingIsZero (server/utilities/caching, "Time-to-Live (TTL)
// Field"; design, "Lists").
func TestATTLThatSaysNothingIsZero(t *testing.T) {
	for _, c := range []struct {
		ttl   string // the member; "" for none
		fresh int64  // milliseconds
	}{
		{"", 0}, {`null`, 0}, {`"5000"`, 0}, {`"NaN"`, 0}, {`true`, 0}, {`[5000]`, 0}, {`{}`, 0}, {`-1`, 0}, {`-0`, 0}, {`0`, 0},
		{`-1e300`, 0}, {`1e400`, 0}, {`9223372036854775807`, 0}, {`9223372036855`, 0}, {`0.9`, 0},
		{`5000`, 5_000}, {`5e3`, 5_000}, {`5000.9`, 5_000}, {`2147483647000`, 2147483647000},
	} {
		t.Run("ttlMs "+c.ttl, func(t *testing.T) {
			k := newKeeper(t)
			k.start(ruled(testConfig(PrefixOnCollision, "p")))
			k.rises("p", discoverQuiet)
			more := `,"resultType":"complete","cacheScope":"public"`
			if c.ttl != "" {
				more += `,"ttlMs":` + c.ttl
			}
			must[CatalogAccepted](t, k.answered("p", "", listPage(more, "x")))
			if got, want := k.verdict("p", ""), map[bool]string{true: CacheFresh, false: CacheStale}[c.fresh > 0]; got != want {
				t.Errorf("on arrival it is %s, want %s", got, want)
			}
			k.now += c.fresh*ms - 1
			if got := k.verdict("p", ""); c.fresh > 0 && got != CacheFresh {
				t.Errorf("after %d ms it is %s", c.fresh, got)
			}
			k.now++
			if got := k.verdict("p", ""); got != CacheStale {
				t.Errorf("at its end it is %s", got)
			}
		})
	}
}

// TestAfterARestartEverythingIsStale (design, "Lists"): nothing is known of what
// changed meanwhile, and the monotonic clock of another life says nothing.
func TestAfterARestartEverythingIsStale(t *testing.T) {
	lastGood := func(k *keeper) CacheUse { return k.reads("")["p"] }
	t.Run("of the peer", func(t *testing.T) {
		k := kept(t)
		k.pass(1_000)
		k.exited("p")
		if got := lastGood(k).met(); got != "stale down" {
			t.Errorf("while it is down: %s", got)
		}
		k.rises("p", discoverQuiet)
		if got := lastGood(k).met(); got != "stale joined" {
			t.Errorf("while it is read: %s", got)
		}
		k.answered("p", "", notFound)
		if u := lastGood(k); u.met() != "stale deferred" || u.List == 0 {
			t.Errorf("after the first list of this incarnation failed: %+v", u)
		}
		if got := k.refusal("", "x"); got != "" {
			t.Errorf("the last good list is not served: %s", got)
		}
		k.refolds()
	})
	t.Run("of the service", func(t *testing.T) {
		k := kept(t)
		k.answeredAgain(600_000)
		k.start(ruled(testConfig(PrefixOnCollision, "p")))
		if got := lastGood(k).met(); got != "stale down" {
			t.Errorf("before it is up: %s", got)
		}
		k.rises("p", discoverQuiet)
		k.answered("p", "", notFound)
		if u := lastGood(k); u.met() != "stale deferred" {
			t.Errorf("after the first list of this life failed: %+v", u)
		}
		k.pass(2_000)
		k.isDue("p", "", DueList)
		k.answered("p", "", listPage(cached(10_000, ScopePublic), "x"))
		if u := lastGood(k); u.met() != "fresh served" {
			t.Errorf("after it was read: %+v", u)
		}
		k.refolds()
	})
}

// answeredAgain lets the list of "p" run out and be read again.
func (k *keeper) answeredAgain(ttl int64) {
	k.t.Helper()
	k.pass(3_600_000)
	k.reads("")
	must[CatalogAccepted](k.t, k.answered("p", "", listPage(cached(ttl, ScopePublic), "x")))
}

// TestTheAgeOfAListOfAnotherLifeIsNotKnown: the clock that it was received by is
// gone (CacheUse.Age; design, "Lists").
func TestTheAgeOfAListOfAnotherLifeIsNotKnown(t *testing.T) {
	k := kept(t)
	if u := k.reads("")["p"]; u.Age != 0 {
		t.Errorf("on arrival it is %d ms old", u.Age)
	}
	k.pass(4_321)
	if u := k.reads("")["p"]; u.Age != 4_321 {
		t.Errorf("it is %d ms old, want 4321", u.Age)
	}
	k.start(ruled(testConfig(PrefixOnCollision, "p")))
	k.rises("p", discoverQuiet)
	k.answered("p", "", notFound)
	k.pass(60_000)
	if u := k.reads("")["p"]; u.Age != 0 {
		t.Errorf("a list of another life is said to be %d ms old", u.Age)
	}
}

// TestWhatIsNotPublicIsPrivate (server/utilities/caching, "Cache Scope Field" and
// "Interaction with Pagination").
func TestWhatIsNotPublicIsPrivate(t *testing.T) {
	scope := func(s string) string {
		if s == "" {
			return `,"resultType":"complete","ttlMs":10000`
		}
		return `,"resultType":"complete","ttlMs":10000,"cacheScope":` + s
	}
	for _, c := range []struct {
		name   string
		pages  []string
		shared bool
	}{
		{"public", []string{`"public"`}, true},
		{"public on every page", []string{`"public"`, `"public"`, `"public"`}, true},
		{"private", []string{`"private"`}, false},
		{"absent", []string{""}, false},
		{"unknown", []string{`"shared"`}, false},
		{"in other letters", []string{`"Public"`}, false},
		{"null", []string{`null`}, false},
		{"a number", []string{`1`}, false},
		{"a list", []string{`["public"]`}, false},
		{"private after public", []string{`"public"`, `"private"`}, false},
		{"public after private", []string{`"private"`, `"public"`}, false},
		{"absent on the last page", []string{`"public"`, `"public"`, ""}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKeeper(t)
			k.start(ruled(testConfig(PrefixOnCollision, "p"), inContexts("alice", "bob")))
			k.rises("p", discoverQuiet)
			k.answered("p", "bob", notFound)
			var out []Event
			for i, s := range c.pages {
				more := scope(s)
				if i < len(c.pages)-1 {
					more = before(fmt.Sprint(i), more)
				}
				out = k.answered("p", "alice", listPage(more, fmt.Sprint("secret", i)))
			}
			want := map[bool]string{true: ScopePublic, false: ScopePrivate}[c.shared]
			if d := must[CatalogAccepted](t, out); d.CacheScope != want {
				t.Errorf("accepted as %s, want %s", d.CacheScope, want)
			}
			if got := strings.Contains(k.names("bob"), "secret0"); got != c.shared {
				t.Errorf("bob sees %q", k.names("bob"))
			}
			if u := k.reads("bob")["p"]; (u.Owner == "alice") != c.shared || (u.Verdict == CacheShared) != c.shared {
				t.Errorf("bob is met with %+v", u)
			}
		})
	}
}

// TestALegacyListIsFreshUntilANotice (design, "Lists"): the legacy era knows no
// ttl, whatever a page says of one, and its notices come unasked.
func TestALegacyListIsFreshUntilANotice(t *testing.T) {
	for _, more := range []string{"", `,"ttlMs":1`, `,"ttlMs":1,"cacheScope":"public","resultType":"complete"`} {
		k := newKeeper(t)
		k.start(ruled(testConfig(PrefixOnCollision, "p"), func(p *PeerConfig) { p.AllowLegacy = true }))
		k.risesLegacy("p")
		if n := k.count(MethodListen); n != 0 {
			t.Fatalf("%d subscriptions in the legacy era", n)
		}
		if d := must[CatalogAccepted](t, k.answered("p", "", listPage(more, "x"))); d.CacheScope != ScopePrivate {
			t.Errorf("accepted as %s", d.CacheScope)
		}
		k.now = math.MaxInt64 / 4
		if u := k.reads("")["p"]; u.met() != "fresh served" {
			t.Errorf("after a lifetime: %+v", u)
		}
		sameKinds(t, k.see(ListChanged{At: k.at("p"), Subscription: 7, Count: 1}))
		if got := k.verdict("p", ""); got != CacheFresh {
			t.Errorf("a subscription there cannot be made it %s", got)
		}
		sameKinds(t, k.see(ListChanged{At: k.at("p"), Count: 1}), "list.requested")
		if got := k.verdict("p", ""); got != CacheStale {
			t.Errorf("after a notice it is %s", got)
		}
		k.answered("p", "", listPage(more, "y"))
		if got := k.verdict("p", "") + " " + k.names(""); got != "fresh y=p:y" {
			t.Errorf("after it was read again it is %s", got)
		}
		k.refolds()
	}
}

// TestANoticeMakesStaleAtOnce (server/utilities/caching, "Interaction with
// Notifications"): however long the ttl has to go.
func TestANoticeMakesStaleAtOnce(t *testing.T) {
	k := noticed(t)
	k.pass(5_000)
	if u := k.reads("")["p"]; u.met() != "fresh served" {
		t.Fatalf("%+v", u)
	}
	out := k.changes("p", "")
	sameKinds(t, out, "list.requested")
	if d := must[ListRequested](t, out); d.Why != WhyChanged || d.Page != 1 || d.Cursor != nil {
		t.Errorf("%+v", d)
	}
	if u := k.reads("")["p"]; u.met() != "stale joined" {
		t.Errorf("%+v", u)
	}
	if got := k.refusal("", "x"); got != "" {
		t.Errorf("routing waits for a list: %s", got)
	}
}

// TestANoticeSoonAfterAReadingWaits: for what is left of the interval, once for
// however many notices, and the list is stale meanwhile (design, "Lists").
func TestANoticeSoonAfterAReadingWaits(t *testing.T) {
	k := noticed(t)
	k.now += 300*ms + 1 // what is left is no whole number of milliseconds
	out := k.changes("p", "")
	sameKinds(t, out, "list.deferred")
	if d := must[ListDeferred](t, out); d.Delay != 700 || d.Why != WhyChanged {
		t.Errorf("%+v", d)
	}
	if e := Effects(out[0]); len(e) != 1 || e[0] != (Due{At: k.at("p"), What: DueList, After: 700}) {
		t.Errorf("%+v", e)
	}
	for range 100 {
		k.pass(3)
		sameKinds(t, k.changes("p", ""))
		if u := k.reads("")["p"]; u.met() != "stale deferred" {
			t.Fatalf("%+v", u)
		}
	}
	k.pass(400)
	sameKinds(t, k.isDue("p", "", DueList), "list.requested")
	k.refolds()
}

// TestANoticeDuringAReadingMakesItStaleOnArrival (design, "Lists"): it is read
// again when the interval has passed, at whatever page the notice came, and as
// often as it takes.
func TestANoticeDuringAReadingMakesItStaleOnArrival(t *testing.T) {
	first, second := before("2", cached(60_000, ScopePublic)), cached(60_000, ScopePublic)
	for _, at := range []int{0, 1} {
		t.Run(fmt.Sprintf("after %d pages", at), func(t *testing.T) {
			k := noticed(t)
			k.pass(2_000)
			k.changes("p", "")
			for i, more := range []string{first, second} {
				if i == at {
					sameKinds(t, k.changes("p", ""))
				}
				k.pass(100)
				k.answered("p", "", listPage(more, fmt.Sprint("t", i)))
			}
			if got := k.verdict("p", ""); got != CacheStale {
				t.Fatalf("it came in as %s", got)
			}
			d := must[ListDeferred](t, k.log)
			if d.Why != WhyChanged || d.Delay != 800 {
				t.Fatalf("%+v", d)
			}
			k.pass(800)
			sameKinds(t, k.isDue("p", "", DueList), "list.requested")
			k.pass(3_000) // longer than the interval
			k.changes("p", "")
			sameKinds(t, k.answered("p", "", listPage(second, "t0", "t1")), "catalog.accepted", "list.requested")
			k.answered("p", "", listPage(second, "t0", "t1"))
			if got := k.verdict("p", ""); got != CacheFresh {
				t.Errorf("nothing more has changed, and it is %s", got)
			}
			k.refolds()
		})
	}
}
