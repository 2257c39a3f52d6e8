package domain

import (
	"slices"
	"strings"
	"testing"
)

// ended feeds the end of the subscription that was asked for last.
func (k *keeper) ended(peer, context, how string, code int64) []Event {
	k.t.Helper()
	x := k.last(peer, context, MethodListen)
	return k.see(SubscriptionEnded{At: x.At, Context: x.Context, RequestID: x.RequestID, How: how, ErrorCode: code})
}

// lostListen feeds that the transport of the subscription is gone.
func (k *keeper) lostListen(peer, context string, code Code) []Event {
	k.t.Helper()
	x := k.last(peer, context, MethodListen)
	return k.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Written: "maybe", Code: code})
}

// state says how a list's subscription stands.
func (k *keeper) subscription(peer, context string) string {
	return k.s.Peer(peer).line(context).sub.state()
}

// TestWhoIsSubscribedTo (basic/patterns/subscriptions, "Opening a Stream"; design,
// "Subscriptions"): only a modern peer that advertises notices, where the
// configuration wants them; before its list is asked for, and outside the deadline
// of calls.
func TestWhoIsSubscribedTo(t *testing.T) {
	says := func(listChanged string) string {
		return strings.Replace(discoverQuiet, `"tools":{}`, `"tools":{"listChanged":`+listChanged+`}`, 1)
	}
	subscribed, not := "era.determined subscription.requested list.requested", "era.determined list.requested"
	for _, c := range []struct {
		name, discover, want string
		change               func(*PeerConfig)
	}{
		{"it advertises them", discoverNotices, subscribed, nil},
		{"it does not", discoverQuiet, not, nil},
		{"it says that it has none", says("false"), not, nil},
		{"it says so in a string", says(`"true"`), not, nil},
		{"it says so in a number", says(`1`), not, nil},
		{"null", says(`null`), not, nil},
		{"the configuration does not want them", discoverNotices, not, unsubscribed},
		{"lists are read once", discoverNotices, not, func(p *PeerConfig) { p.Lists = nil }},
		{"it has no tools", strings.Replace(noToolsResult, `"capabilities":{}`, `"capabilities":{"prompts":{"listChanged":true}}`, 1),
			"era.determined catalog.accepted namespace.merged", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKeeper(t)
			change := func(p *PeerConfig) {
				if c.change != nil {
					c.change(p)
				}
			}
			k.start(ruled(testConfig(PrefixOnCollision, "p"), change))
			out := k.rises("p", c.discover)
			sameKinds(t, out, strings.Fields(c.want)...)
			d, ok := find[SubscriptionRequested](out)
			if !ok {
				return
			}
			if !slices.Equal(d.Types, []string{TypeToolsChanged}) || d.Attempt != 1 || d.Deadline != 10_000 || d.Version != "2026-07-28" {
				t.Errorf("%+v", d)
			}
			x := k.last("p", "", MethodListen)
			if x.Deadline != 10_000 || x.Limit != 0 || x.Idle != 0 || x.Call != "" || x.Era != EraModern || !slices.Equal(x.Types, d.Types) ||
				string(x.Capabilities) != string(k.last("p", "", MethodList).Capabilities) {
				t.Errorf("%+v", x)
			}
			k.onceEach()
		})
	}
}

// TestOneSubscriptionForEachContext (design, "Subscriptions": per authorization
// context), each before its list.
func TestOneSubscriptionForEachContext(t *testing.T) {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "p"), inContexts("alice", "bob")))
	sameKinds(t, k.rises("p", discoverNotices), "era.determined", "subscription.requested", "list.requested", "subscription.requested", "list.requested")
	k.onceEach()
	k.acknowledges("p", "alice", true)
	k.answered("p", "alice", listPage(cached(60_000, ScopePrivate), "a"))
	k.answered("p", "bob", listPage(cached(60_000, ScopePrivate), "b"))
	if a, b := k.subscription("p", "alice"), k.subscription("p", "bob"); a != "active" || b != "asked" {
		t.Errorf("alice %s, bob %s", a, b)
	}
	k.pass(2_000)
	k.see(ListChanged{At: k.at("p"), Context: "bob", Subscription: k.last("p", "alice", MethodListen).RequestID, Count: 1})
	if a, b := k.verdict("p", "alice"), k.verdict("p", "bob"); a != CacheFresh || b != CacheFresh {
		t.Errorf("a notice on the subscription of another context: alice %s, bob %s", a, b)
	}
	k.changes("p", "alice")
	if a, b := k.verdict("p", "alice"), k.verdict("p", "bob"); a != CacheStale || b != CacheFresh {
		t.Errorf("a notice for alice: alice %s, bob %s", a, b)
	}
	k.ended("p", "bob", EndedAnswered, 0)
	if a, b := k.subscription("p", "alice"), k.subscription("p", "bob"); a != "active" || b != "ended" {
		t.Errorf("alice %s, bob %s", a, b)
	}
}

// TestTheAcknowledgementIsJudged (basic/patterns/subscriptions, "Acknowledgment"):
// what it leaves out is recorded, only the first counts, and without notices of
// tools there is nothing to listen to.
func TestTheAcknowledgementIsJudged(t *testing.T) {
	ack := func(notifications string) string {
		return `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}` + notifications + `}}`
	}
	for _, c := range []struct {
		name, frame string
		granted     bool
	}{
		{"all", ack(`,"notifications":{"toolsListChanged":true}`), true},
		{"more than was asked for", ack(`,"notifications":{"promptsListChanged":true,"toolsListChanged":true}`), true},
		{"nothing", ack(`,"notifications":{}`), false},
		{"something else", ack(`,"notifications":{"promptsListChanged":true}`), false},
		{"not agreed to", ack(`,"notifications":{"toolsListChanged":false}`), false},
		{"no word of it", ack(``), false},
		{"null", ack(`,"notifications":null`), false},
		{"a list", ack(`,"notifications":["toolsListChanged"]`), false},
		{"a string", ack(`,"notifications":{"toolsListChanged":"true"}`), false},
		{"params that are a list", `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":[]}`, false},
		{"nothing is left of it", `"[redacted]"`, false},
		{"no bytes", ``, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKeeper(t)
			k.start(ruled(testConfig(PrefixOnCollision, "p")))
			k.rises("p", discoverNotices)
			x := k.last("p", "", MethodListen)
			seen := SubscriptionAcknowledged{At: x.At, RequestID: x.RequestID, Frame: RefTo([]byte(c.frame))}
			out := k.see(seen, c.frame)
			d := must[SubscriptionOpened](t, out)
			if c.granted {
				sameKinds(t, out, "subscription.opened")
				if !slices.Equal(d.Granted, []string{TypeToolsChanged}) || d.Missing != nil || k.subscription("p", "") != "active" {
					t.Errorf("%+v, %s", d, k.subscription("p", ""))
				}
				sameKinds(t, k.see(seen, ack(`,"notifications":{}`)), "answer.dropped") // a second one changes nothing
				if got := k.subscription("p", ""); got != "active" {
					t.Errorf("after a second acknowledgement it is %s", got)
				}
				return
			}
			sameKinds(t, out, "subscription.opened", "subscription.closed")
			closed := must[SubscriptionClosed](t, out)
			if len(d.Granted) != 0 || !slices.Equal(d.Missing, []string{TypeToolsChanged}) || closed.Code != CodeNotSubscribed ||
				!closed.Withdrawn || closed.Reopen != 0 || k.subscription("p", "") != "none" {
				t.Errorf("%+v, %+v, %s", d, closed, k.subscription("p", ""))
			}
			if e := Effects(out[1]); len(e) != 1 || e[0] != (Withdraw{At: x.At, RequestID: x.RequestID, Reason: string(CodeNotSubscribed)}) {
				t.Errorf("%+v", e)
			}
			sameKinds(t, k.see(seen, ack(`,"notifications":{"toolsListChanged":true}`)), "answer.dropped")
			sameKinds(t, k.see(SubscriptionDue{At: x.At}))
			k.refolds()
		})
	}
}

// TestWithoutAnAcknowledgementInTime (design, "Subscriptions"): it is withdrawn
// and not active, calls go on, and the ttl is honoured all the same.
func TestWithoutAnAcknowledgementInTime(t *testing.T) {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "p")))
	k.rises("p", discoverNotices)
	k.answered("p", "", listPage(cached(20_000, ScopePublic), "x"))
	x := k.last("p", "", MethodListen)
	k.pass(10_000)
	out := k.see(DeadlinePassed{At: x.At, RequestID: x.RequestID})
	sameKinds(t, out, "subscription.closed")
	d := must[SubscriptionClosed](t, out)
	if d.Code != CodeNotAcknowledged || !d.Withdrawn || d.Reopen != 0 || !strings.Contains(d.Reason, "listen_timeout") || k.subscription("p", "") != "none" {
		t.Errorf("%+v, %s", d, k.subscription("p", ""))
	}
	if r := k.s.Report("log").Peers[0]; r.State != "ready" || !strings.Contains(strings.Join(r.Warnings, " "), "not acknowledged") {
		t.Errorf("reported as %+v", r)
	}
	if got := k.refusal("", "x"); got != "" || k.verdict("p", "") != CacheFresh {
		t.Errorf("calls are refused as %q, the list is %s", got, k.verdict("p", ""))
	}
	sameKinds(t, k.see(DeadlinePassed{At: x.At, RequestID: x.RequestID}))
	sameKinds(t, k.acknowledges("p", "", true), "answer.dropped") // too late
	sameKinds(t, k.changes("p", ""))
	if got := k.subscription("p", "") + " " + k.verdict("p", ""); got != "none fresh" {
		t.Errorf("what comes after makes it %s", got)
	}
	k.pass(10_000)
	if u := k.reads("")["p"]; u.met() != "stale read" {
		t.Errorf("at the end of its ttl: %+v", u)
	}
	k.refolds()
}

// TestADeadlineAfterTheAcknowledgementIsNone: the stream is outside deadlines from
// there on.
func TestADeadlineAfterTheAcknowledgementIsNone(t *testing.T) {
	k := noticed(t)
	x := k.last("p", "", MethodListen)
	k.pass(10_000)
	sameKinds(t, k.see(DeadlinePassed{At: x.At, RequestID: x.RequestID}))
	if got := k.subscription("p", ""); got != "active" {
		t.Errorf("it is %s", got)
	}
}

// TestHowSubscriptionsEnd (basic/patterns/subscriptions, "Cancellation" and
// "Graceful Closure"): what follows from each way, before and after the
// acknowledgement.
func TestHowSubscriptionsEnd(t *testing.T) {
	ways := []struct {
		name   string
		end    func(*keeper) []Event
		code   Code
		reopen bool
		words  string
	}{
		{"in good order", func(k *keeper) []Event { return k.ended("p", "", EndedAnswered, 0) }, CodeSubscriptionEnded, true, "in good order"},
		{"by an error", func(k *keeper) []Event { return k.ended("p", "", EndedError, -32603) }, CodeSubscriptionError, true, "-32603"},
		{"by an error without a code", func(k *keeper) []Event { return k.ended("p", "", EndedError, 0) }, CodeSubscriptionError, true, "error 0"},
		{"method not found", func(k *keeper) []Event { return k.ended("p", "", EndedError, -32601) }, CodeSubscriptionError, false, "does not have"},
		{"cancelled by the peer", func(k *keeper) []Event { return k.ended("p", "", EndedCancelled, 0) }, CodeSubscriptionEnded, true, "cancelled"},
		{"broken", func(k *keeper) []Event { return k.ended("p", "", EndedBroken, 0) }, CodeSubscriptionError, true, "no result and no error"},
		{"an answer that is too long", func(k *keeper) []Event { return k.lostListen("p", "", CodeFrameTooLarge) }, CodeFrameTooLarge, true, "limits.frame"},
		{"it could not be written", func(k *keeper) []Event { return k.lostListen("p", "", CodeRequestTooLarge) }, CodeRequestTooLarge, false, "could not be written"},
		{"the transport is lost", func(k *keeper) []Event { return k.lostListen("p", "", CodeTransportLost) }, CodeTransportLost, false, "transport"},
	}
	for _, c := range ways {
		for _, acked := range []bool{false, true} {
			t.Run(c.name+map[bool]string{true: ", acknowledged"}[acked], func(t *testing.T) {
				k := newKeeper(t)
				k.start(ruled(testConfig(PrefixOnCollision, "p")))
				k.rises("p", discoverNotices)
				if acked {
					k.acknowledges("p", "", true)
				}
				k.answered("p", "", listPage(cached(600_000, ScopePublic), "x"))
				k.pass(500)
				out := c.end(k)
				sameKinds(t, out, "subscription.closed")
				d := must[SubscriptionClosed](t, out)
				x := k.last("p", "", MethodListen)
				if d.Code != c.code || d.RequestID != x.RequestID || d.Withdrawn || (d.Reopen > 0) != c.reopen || !strings.Contains(d.Reason, c.words) {
					t.Errorf("%+v", d)
				}
				if c.reopen && (d.Reopen < 1_000 || d.Reopen > 1_100) {
					t.Errorf("opened again after %d ms, want a second and a little", d.Reopen)
				}
				if got := k.subscription("p", ""); got != map[bool]string{true: "ended", false: "none"}[c.reopen] {
					t.Errorf("it is %s", got)
				}
				closedForGood(t, k)
				if got := k.refusal("", "x"); got != "" {
					t.Errorf("calls are refused: %s", got)
				}
				k.pass(d.Reopen + 1_000)
				if !c.reopen {
					sameKinds(t, k.see(SubscriptionDue{At: x.At}))
					return
				}
				sameKinds(t, k.isDue("p", "", DueSubscription), "subscription.requested", "list.requested")
				if again := k.last("p", "", MethodListen); again.RequestID <= x.RequestID || must[ListRequested](t, k.log[len(k.log)-1:]).Why != WhyListen {
					t.Errorf("%+v", again)
				}
				sameKinds(t, k.see(SubscriptionDue{At: x.At})) // only once
				k.onceEach()
				k.refolds()
			})
		}
	}
}

// closedForGood: nothing that comes on the subscription any more changes anything.
func closedForGood(t *testing.T, k *keeper) {
	t.Helper()
	was := k.subscription("p", "") + k.verdict("p", "")
	sameKinds(t, k.changes("p", ""))
	sameKinds(t, k.acknowledges("p", "", true), "answer.dropped")
	for _, how := range []string{EndedAnswered, EndedError, EndedCancelled, EndedBroken} {
		sameKinds(t, k.ended("p", "", how, -32601))
	}
	sameKinds(t, k.lostListen("p", "", CodeTransportLost))
	if got := k.subscription("p", "") + k.verdict("p", ""); got != was {
		t.Errorf("what came on a subscription that had ended made %s of %s", got, was)
	}
}
