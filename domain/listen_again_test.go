package domain

import (
	"slices"
	"strings"
	"testing"
)

// endAndOpen lets the subscription of "p" end and be opened again, and returns the
// time between, less the part that only spreads it.
func (k *keeper) endAndOpen(ack bool, lasted int64) int64 {
	k.t.Helper()
	k.pass(lasted)
	d := must[SubscriptionClosed](k.t, k.ended("p", "", EndedAnswered, 0))
	if d.Reopen == 0 {
		k.t.Fatalf("it is never opened again: %+v", d)
	}
	k.pass(d.Reopen)
	must[SubscriptionRequested](k.t, k.isDue("p", "", DueSubscription))
	if ack {
		k.acknowledges("p", "", true)
	}
	for base := int64(firstReopen); base < longestReopen; base *= 2 {
		if d.Reopen >= base && d.Reopen <= base+base/10 {
			return base
		}
	}
	if d.Reopen >= longestReopen && d.Reopen <= longestReopen+longestReopen/10 {
		return longestReopen
	}
	k.t.Fatalf("it is opened again after %d ms", d.Reopen)
	return 0
}

// TestASubscriptionThatKeepsEndingIsOpenedMoreSlowly (design, "Subscriptions"):
// each time twice as late, up to five minutes, whether it was acknowledged or not.
func TestASubscriptionThatKeepsEndingIsOpenedMoreSlowly(t *testing.T) {
	want := []int64{1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000}
	for name, ack := range map[string]bool{"acknowledged each time": true, "never acknowledged": false} {
		t.Run(name, func(t *testing.T) {
			k := noticed(t)
			if !ack {
				k.endAndOpen(false, 0)
			}
			var got []int64
			for range want {
				got = append(got, k.endAndOpen(ack, 5))
			}
			if !ack {
				got = append([]int64{1_000}, got[:len(got)-1]...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("opened again after %v, want %v", got, want)
			}
			k.refolds()
		})
	}
}

// TestASubscriptionThatLastedAMinuteStartsAnew: the delay is the first one again,
// and so is the count of attempts.
func TestASubscriptionThatLastedAMinuteStartsAnew(t *testing.T) {
	k := noticed(t)
	for range 5 {
		k.endAndOpen(true, 5)
	}
	if got := k.endAndOpen(true, 59_999); got != 32_000 {
		t.Errorf("one that lasted less than a minute is opened after %d ms", got)
	}
	if got := k.endAndOpen(true, 60_000); got != 1_000 {
		t.Errorf("one that lasted a minute is opened after %d ms", got)
	}
	if d := all[SubscriptionRequested](k.log); d[len(d)-1].Attempt != 1 {
		t.Errorf("that is attempt %d", d[len(d)-1].Attempt)
	}
	if got := k.endAndOpen(true, 5); got != 1_000 {
		t.Errorf("the next is opened after %d ms", got)
	}
	if got := k.endAndOpen(true, 5); got != 2_000 {
		t.Errorf("the one after it is opened after %d ms", got)
	}
}

// TestAChangeBeforeTheAcknowledgement (basic/patterns/subscriptions,
// "Acknowledgment": a server must not): it acts, and warns.
func TestAChangeBeforeTheAcknowledgement(t *testing.T) {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "p")))
	k.rises("p", discoverNotices)
	k.answered("p", "", listPage(cached(600_000, ScopePublic), "x"))
	k.pass(2_000)
	sameKinds(t, k.changes("p", ""), "list.requested")
	warned := strings.Join(k.s.Report("log").Peers[0].Warnings, " ")
	if k.verdict("p", "") != CacheStale || !strings.Contains(warned, "before the subscription was acknowledged") {
		t.Errorf("%s, warned of %q", k.verdict("p", ""), warned)
	}
	sameKinds(t, k.acknowledges("p", "", true), "subscription.opened")
	if got := k.subscription("p", ""); got != "active" {
		t.Errorf("it is %s", got)
	}
}

// TestANoticeThatIsNotOurs (basic/patterns/subscriptions, "Receiving
// Notifications"): on a subscription of another incarnation, of nobody, or on none
// it changes nothing.
func TestANoticeThatIsNotOurs(t *testing.T) {
	k := noticed(t)
	k.pass(5_000)
	none := kept(t)
	none.pass(5_000)
	sameKinds(t, none.see(ListChanged{At: none.at("p"), Count: 1}))
	if got := none.verdict("p", ""); got != CacheFresh {
		t.Errorf("unasked, of a modern peer that is not listened to: %s", got)
	}
	x := k.last("p", "", MethodListen)
	old := x.At
	old.Incarnation--
	for _, d := range []ListChanged{
		{At: x.At, Subscription: x.RequestID + 1, Count: 1}, {At: x.At, Subscription: 0, Count: 1}, {At: x.At, Subscription: -x.RequestID, Count: 1},
		{At: old, Subscription: x.RequestID, Count: 1}, {At: At{"q", 1}, Subscription: x.RequestID, Count: 1},
		{At: x.At, Context: "nobody", Subscription: x.RequestID, Count: 1}, {At: x.At, Subscription: k.last("p", "", MethodList).RequestID, Count: 1},
	} {
		sameKinds(t, k.see(d))
		if got := k.verdict("p", ""); got != CacheFresh {
			t.Errorf("%+v: the list is %s", d, got)
		}
	}
}

// TestAListReadBeforeTheAcknowledgementIsReadAgain: a change may have fallen
// between. That goes for a page too.
func TestAListReadBeforeTheAcknowledgementIsReadAgain(t *testing.T) {
	long := cached(600_000, ScopePublic)
	begin := func() *keeper {
		k := newKeeper(t)
		k.start(ruled(testConfig(PrefixOnCollision, "p")))
		k.rises("p", discoverNotices)
		k.pass(1_000)
		return k
	}
	t.Run("the whole list", func(t *testing.T) {
		k := begin()
		k.answered("p", "", listPage(long, "x"))
		out := k.acknowledges("p", "", true)
		sameKinds(t, out, "subscription.opened", "list.requested")
		if d := must[ListRequested](t, out); d.Why != WhyListen {
			t.Errorf("%+v", d)
		}
	})
	t.Run("a page of it", func(t *testing.T) {
		k := begin()
		k.answered("p", "", listPage(before("2", long), "x"))
		k.acknowledges("p", "", true)
		k.pass(1_000)
		must[ListRequested](t, k.answered("p", "", listPage(long, "y")))
	})
	t.Run("nothing of it", func(t *testing.T) {
		k := begin()
		sameKinds(t, k.acknowledges("p", "", true), "subscription.opened")
		sameKinds(t, k.answered("p", "", listPage(long, "y")), "catalog.accepted", "namespace.merged")
		if got := k.verdict("p", ""); got != CacheFresh {
			t.Errorf("it is %s", got)
		}
	})
}

// TestAnotherIncarnationIsSubscribedToAnew (design, "Calls": subscriptions are
// re-opened with new ids and the lists they cover fetched again).
func TestAnotherIncarnationIsSubscribedToAnew(t *testing.T) {
	k := noticed(t)
	first := k.last("p", "", MethodListen)
	k.lostListen("p", "", CodeTransportLost)
	k.exited("p")
	sameKinds(t, k.see(SubscriptionDue{At: first.At}))
	k.rises("p", discoverNotices)
	x := k.last("p", "", MethodListen)
	if x.RequestID <= first.RequestID || x.Incarnation != 2 || len(x.Types) != 1 {
		t.Errorf("%+v after %+v", x, first)
	}
	for _, d := range []Data{ListChanged{At: first.At, Subscription: first.RequestID, Count: 1},
		ListChanged{At: x.At, Subscription: first.RequestID, Count: 1}} {
		sameKinds(t, k.see(d))
	}
	k.rejoins()
	k.onceEach()
}

// rejoins brings "p" to a list that is fresh and listened for.
func (k *keeper) rejoins() {
	k.t.Helper()
	k.acknowledges("p", "", true)
	k.answered("p", "", listPage(cached(600_000, ScopePublic), "x"))
	if got := k.subscription("p", "") + " " + k.verdict("p", ""); got != "active fresh" {
		k.t.Errorf("it is %s", got)
	}
}

// TestASubscriptionOutlivesItsRules: a configuration that was loaded meanwhile,
// and refuses the peer or keeps no lists, costs nothing that is under way.
func TestASubscriptionOutlivesItsRules(t *testing.T) {
	for name, change := range map[string]func(*PeerConfig){
		"no rules":      func(p *PeerConfig) { p.Lists = nil },
		"no listening":  unsubscribed,
		"another rules": func(p *PeerConfig) { p.Lists.Interval = 5 },
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t)
			k.start(ruled(testConfig(PrefixOnCollision, "p")))
			k.rises("p", discoverNotices)
			x := k.last("p", "", MethodListen)
			k.load(ruled(testConfig(PrefixOnCollision, "p"), func(p *PeerConfig) {
				p.Refusal, p.RefusalReason = CodePinMismatch, "differs"
			}, change))
			k.see(DeadlinePassed{At: x.At, RequestID: x.RequestID})
			k.changes("p", "")
			k.reads("")
			k.acknowledges("p", "", true)
			k.ended("p", "", EndedAnswered, 0)
			k.refolds()
		})
	}
}

// TestASubscriptionIsOfTheContextOfItsRequest: an observation that names another
// one neither closes nor opens anything there.
func TestASubscriptionIsOfTheContextOfItsRequest(t *testing.T) {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "p"), inContexts("alice", "bob")))
	k.rises("p", discoverNotices)
	k.acknowledges("p", "bob", true)
	x := k.last("p", "alice", MethodListen)
	ack := `{"jsonrpc":"2.0","method":"m","params":{"notifications":{"toolsListChanged":true}}}`
	if d := must[SubscriptionOpened](t, k.see(SubscriptionAcknowledged{At: x.At, Context: "bob", RequestID: x.RequestID, Frame: RefTo([]byte(ack))}, ack)); d.Context != "alice" {
		t.Errorf("%+v", d)
	}
	out := k.see(SubscriptionEnded{At: x.At, Context: "bob", RequestID: x.RequestID, How: EndedAnswered})
	if d := must[SubscriptionClosed](t, out); d.Context != "alice" || Effects(out[0])[0] != (Due{At: x.At, Context: "alice", What: DueSubscription, After: d.Reopen}) {
		t.Errorf("%+v, %+v", d, Effects(out[0]))
	}
	if a, b := k.subscription("p", "alice"), k.subscription("p", "bob"); a != "ended" || b != "active" {
		t.Errorf("alice %s, bob %s", a, b)
	}
}
