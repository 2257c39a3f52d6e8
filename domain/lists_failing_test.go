package domain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// waysToFail are the ways in which a list that was asked for again is not had.
var waysToFail = []struct {
	name string
	code Code
	fail func(*keeper) []Event
}{
	{"an error", CodeListError, func(k *keeper) []Event { return k.answered("p", "", notFound) }},
	{"no list", CodeListInvalid, func(k *keeper) []Event {
		return k.answered("p", "", `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete"}}`)
	}},
	{"a bad cursor on the second page", CodeListCursor, func(k *keeper) []Event {
		k.answered("p", "", listPage(before("2", cached(60_000, ScopePublic)), "other"))
		return k.answered("p", "", listPage(cached(60_000, ScopePublic)+`,"nextCursor":7`, "more"))
	}},
	{"its deadline", CodeListTimeout, func(k *keeper) []Event {
		x := k.last("p", "", MethodList)
		return k.see(DeadlinePassed{At: x.At, RequestID: x.RequestID})
	}},
	{"an answer that is too long", CodeFrameTooLarge, func(k *keeper) []Event {
		x := k.last("p", "", MethodList)
		return k.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Written: "maybe", Code: CodeFrameTooLarge})
	}},
}

// TestAListThatCannotBeReadAgainIsServed (server/utilities/caching, "Freshness
// Calculation"; design, "Lists"): marked stale, with the reason, and it is tried
// again.
func TestAListThatCannotBeReadAgainIsServed(t *testing.T) {
	for _, c := range waysToFail {
		t.Run(c.name, func(t *testing.T) {
			k := kept(t)
			was := k.names("")
			k.pass(10_000)
			if u := k.reads("")["p"]; u.met() != "stale read" {
				t.Fatalf("%+v", u)
			}
			out := c.fail(k)
			sameKinds(t, out, "catalog.refused", "list.deferred")
			if d := must[CatalogRefused](t, out); d.Code != c.code || d.Reason == "" {
				t.Errorf("refused as %+v, want %s", d, c.code)
			}
			if d := must[ListDeferred](t, out); d.Why != WhyAgain || d.Delay != 2_000 {
				t.Errorf("tried again: %+v", d)
			}
			if u := k.reads("")["p"]; u.met() != "stale deferred" || u.List == 0 || k.names("") != was {
				t.Errorf("%+v with %s", u, k.names(""))
			}
			if list := k.s.Tools("", "", 0, k.mono()); !slices.Equal(list.Stale, []string{"p"}) || len(list.Missing) != 0 {
				t.Errorf("stale %q, missing %q", list.Stale, list.Missing)
			}
			if got := k.refusal("", "x"); got != "" {
				t.Errorf("a call is refused: %s", got)
			}
			r := k.s.Report("log").Peers[0]
			if r.State != "ready" || len(r.Warnings) == 0 || !strings.Contains(strings.Join(r.Warnings, " "), "the last good list is served") {
				t.Errorf("reported as %+v", r)
			}
			k.pass(2_000)
			sameKinds(t, k.isDue("p", "", DueList), "list.requested")
			sameKinds(t, k.answered("p", "", listPage(cached(10_000, ScopePublic), "x")), "catalog.accepted")
			if u := k.reads("")["p"]; u.met() != "fresh served" || k.s.Peer("p").line("").failures != 0 {
				t.Errorf("%+v", u)
			}
			k.refolds()
		})
	}
}

// TestAFailedReadingMarksTheListStale (design, "Lists": a failed refresh keeps
// serving the last list, marked stale): also one whose time was not over, and one
// of the legacy era, which has no time.
func TestAFailedReadingMarksTheListStale(t *testing.T) {
	refreshing := func(p *PeerConfig) { p.AllowLegacy, p.Lists.Refresh = true, 5_000 }
	t.Run("modern", func(t *testing.T) {
		k := kept(t, refreshing)
		k.pass(6_000)
		must[ListRequested](t, k.isDue("p", "", DueList))
		if got := k.verdict("p", ""); got != CacheFresh {
			t.Fatalf("while it is refreshed: %s", got)
		}
		k.answered("p", "", notFound)
		if got := k.verdict("p", ""); got != CacheStale {
			t.Errorf("it cannot be read, and is %s", got)
		}
	})
	t.Run("legacy", func(t *testing.T) {
		k := newKeeper(t)
		k.start(ruled(testConfig(PrefixOnCollision, "p"), refreshing))
		k.risesLegacy("p")
		k.answered("p", "", listPage("", "x"))
		k.pass(6_000)
		must[ListRequested](t, k.isDue("p", "", DueList))
		k.answered("p", "", notFound)
		if got := k.verdict("p", ""); got != CacheStale {
			t.Errorf("it cannot be read, and is %s", got)
		}
	})
}

// TestALostListIsTriedAgainMoreSlowly (server/utilities/caching: polling must
// back off): each time twice as late, from the interval up to five minutes.
func TestALostListIsTriedAgainMoreSlowly(t *testing.T) {
	k := kept(t, func(p *PeerConfig) { p.Lists.Stale = 3_600_000 })
	k.pass(10_000)
	k.reads("")
	var got []int64
	for range 12 {
		out := k.answered("p", "", notFound)
		d := must[ListDeferred](t, out)
		got = append(got, d.Delay)
		k.pass(d.Delay - 1)
		if u := k.reads("")["p"]; u.met() != "stale deferred" {
			t.Fatalf("after %d failures, before its time: %+v", len(got), u)
		}
		k.pass(1)
		sameKinds(t, k.isDue("p", "", DueList), "list.requested")
	}
	want := []int64{2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000, 300_000, 300_000}
	if !slices.Equal(got, want) {
		t.Errorf("tried again after %v ms, want %v", got, want)
	}
	k.answered("p", "", listPage(cached(0, ScopePublic), "x"))
	k.pass(1_000)
	if u := k.reads("")["p"]; u.met() != "stale read" {
		t.Errorf("after it was read the delay is not the interval again: %+v", u)
	}
	if d := must[ListDeferred](t, k.answered("p", "", notFound)); d.Delay != 2_000 {
		t.Errorf("the first failure of another row: %+v", d)
	}
}

// TestAListIsServedForSoLong (design, "Lists": for as long as configured): then
// its calls are refused with the reason, and its names stay.
func TestAListIsServedForSoLong(t *testing.T) {
	k := kept(t, func(p *PeerConfig) { p.Lists.Stale = 60_000 })
	was := k.names("")
	k.pass(10_000)
	k.reads("")
	k.answered("p", "", notFound)
	failed := k.now
	k.now = failed + 60_000*ms
	if got := k.refusal("", "x"); got != "" || k.verdict("p", "") != CacheStale {
		t.Fatalf("at the end of its time it is %s, refused as %q", k.verdict("p", ""), got)
	}
	k.now++
	out := k.submit("", "x")
	d := must[CallRefused](t, out)
	if d.Code != CodePeerUnavailable || !strings.Contains(d.Reason, "stale_lists") || !strings.Contains(d.Reason, "p") {
		t.Errorf("refused as %+v", d)
	}
	if u := k.reads("")["p"]; u.Verdict != CacheNone || k.names("") != was {
		t.Errorf("%+v with %q", u, k.names(""))
	}
	if list := k.s.Tools("", "", 0, k.mono()); !slices.Equal(list.Missing, []string{"p"}) || len(list.Stale) != 0 {
		t.Errorf("stale %q, missing %q", list.Stale, list.Missing)
	}
	k.answered("p", "", notFound) // it is not the last failure that counts
	if got := k.verdict("p", ""); got != CacheNone {
		t.Errorf("after another failure it is %s", got)
	}
	k.pass(600_000)
	k.isDue("p", "", DueList)
	must[CatalogAccepted](t, k.answered("p", "", listPage(cached(10_000, ScopePublic), "x")))
	if got := k.refusal("", "x"); got != "" {
		t.Errorf("after it was read: %s", got)
	}
	k.refolds()
}

// TestWarningsOfAListDoNotPileUp: one that is read all the time gives cause for
// warnings for ever, and what it was warned of an hour ago is over.
func TestWarningsOfAListDoNotPileUp(t *testing.T) {
	k := kept(t)
	for i := range 200 {
		k.pass(400_000)
		k.reads("")
		if i%2 == 0 {
			k.answered("p", "", strings.Replace(notFound, "-32601", fmt.Sprint(-33_000-i), 1))
		} else {
			k.answered("p", "", listPage(cached(10_000, ScopePublic), "x"))
		}
	}
	if n := len(k.s.Report("log").Peers[0].Warnings); n > 10 {
		t.Errorf("%d warnings of a peer that failed 100 times and listed its tools each time after", n)
	}
}

// TestWhatReadersAreMetWith: the verdict and the act on each list, by the state
// that it is in (CacheUse).
func TestWhatReadersAreMetWith(t *testing.T) {
	public, private := cached(10_000, ScopePublic), cached(10_000, ScopePrivate)
	for _, c := range []struct {
		name  string
		world func(*keeper)
		want  string
		owner string
	}{
		{"fresh", func(k *keeper) { k.answered("p", "alice", listPage(private, "x")) }, "fresh served", ""},
		{"not read yet", func(*keeper) {}, "none joined", ""},
		{"it has run out", func(k *keeper) { k.answered("p", "alice", listPage(private, "x")); k.pass(10_000) }, "stale read", ""},
		{"it ran out at once", func(k *keeper) { k.answered("p", "alice", listPage(cached(0, ScopePrivate), "x")); k.pass(999) }, "stale deferred", ""},
		{"it is being read", func(k *keeper) {
			k.answered("p", "alice", listPage(private, "x"))
			k.pass(10_000)
			k.reads("alice")
		}, "stale joined", ""},
		{"it is being read, page by page", func(k *keeper) {
			k.answered("p", "alice", listPage(private, "x"))
			k.pass(10_000)
			k.reads("alice")
			k.answered("p", "alice", listPage(before("2", private), "x"))
		}, "stale joined", ""},
		{"the peer is gone", func(k *keeper) { k.answered("p", "alice", listPage(private, "x")); k.exited("p") }, "stale down", ""},
		{"the peer is gone for good", func(k *keeper) {
			k.answered("p", "alice", listPage(private, "x"))
			k.see(PeerExited{At: k.at("p"), Status: 1, Cause: causeWatchdogLost})
		}, "stale down", ""},
		{"the peer went before it listed", func(k *keeper) { k.exited("p") }, "none down", ""},
		{"the first reading failed", func(k *keeper) { k.answered("p", "alice", notFound) }, "none deferred", ""},
		{"it failed and the delay has passed", func(k *keeper) { k.answered("p", "alice", notFound); k.pass(2_000) }, "none read", ""},
		{"another context's is public", func(k *keeper) { k.answered("p", "bob", listPage(public, "x")) }, "shared served", "bob"},
		{"another context's is public and has run out", func(k *keeper) {
			k.answered("p", "bob", listPage(public, "x"))
			k.answered("p", "alice", notFound)
			k.pass(10_000)
		}, "stale read", "bob"},
		{"another context's is private", func(k *keeper) { k.answered("p", "bob", listPage(private, "x")) }, "none joined", ""},
		{"its own is private, another's is public and newer", func(k *keeper) {
			k.answered("p", "alice", listPage(private, "x"))
			k.answered("p", "bob", listPage(public, "y"))
		}, "fresh served", ""},
		{"both are public, its own is newer", func(k *keeper) {
			k.answered("p", "bob", listPage(public, "y"))
			k.answered("p", "alice", listPage(public, "x"))
		}, "fresh served", ""},
		{"both are public, the other is newer", func(k *keeper) {
			k.answered("p", "alice", listPage(public, "x"))
			k.answered("p", "bob", listPage(public, "y"))
		}, "shared served", "bob"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKeeper(t)
			k.start(ruled(testConfig(PrefixOnCollision, "p"), inContexts("alice", "bob")))
			k.rises("p", discoverQuiet)
			c.world(k)
			u := k.reads("alice")["p"]
			if u.met() != c.want || u.Owner != c.owner || (u.List == 0) != (u.Verdict == CacheNone) {
				t.Errorf("met with %+v, want %s of %q", u, c.want, c.owner)
			}
			if n := len(k.reads("alice")); n != 1 {
				t.Errorf("%d lists of one peer", n)
			}
			k.refolds()
		})
	}
}
