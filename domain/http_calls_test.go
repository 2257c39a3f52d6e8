package domain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// webFire is fire with endpoints in the place of processes, whose lists are kept by
// rules: read again a second after the last time at the earliest.
func webFire(t testing.TB, change ...func(*PeerConfig)) *world {
	w := newWorld(t)
	w.start(webConfig(change...))
	w.ready("a", "x", "y")
	w.ready("b", "z")
	w.ms(5_000)
	return w
}

func webConfig(change ...func(*PeerConfig)) Config {
	rules := func(p *PeerConfig) {
		httpPeer(p)
		p.AllowLegacy, p.Resends = true, 1
		p.Lists = &ListRules{Interval: 1_000, Stale: 3_600_000}
	}
	c := fireConfig(append([]func(*PeerConfig){rules}, change...)...)
	c.Partial = true
	return c
}

// legacyAgain brings the endpoint "a" up in the legacy era, after an incarnation of
// another.
func (w *world) legacyUp(tools ...string) []Event {
	before := len(w.log)
	w.spawned("a")
	w.failed("a", ClassAmbiguous, 400)
	w.probed("a", legacyResult)
	w.listed("a", listPage("", tools...))
	return w.log[before:]
}

// inSession is a world whose endpoint "a" is of the legacy era.
func inSession(t testing.TB, change ...func(*PeerConfig)) *world {
	w := newWorld(t)
	w.start(webConfig(change...))
	w.legacyUp("x", "y")
	w.ready("b", "z")
	w.ms(5_000)
	return w
}

// unanswered feeds an answer of HTTP to a call that has no message in it.
func (w *world) unanswered(id, written string, code Code, status int) []Event {
	w.t.Helper()
	x := w.exchange(id)
	return w.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Call: x.Call, Written: written, Code: code, Status: status, Reason: "no message in it"})
}

// TestCallsThatHTTPAnswersWithoutAMessage: each ends at once, once, with what is
// known of whether it ran; nothing is sent again, whatever the tool may do twice.
func TestCallsThatHTTPAnswersWithoutAMessage(t *testing.T) {
	for _, c := range []struct {
		code    Code
		status  int
		written string
		end     string
	}{
		{CodeUnauthorized, 401, "maybe", "protocol_error unauthorized no"},
		{CodeUnauthorized, 0, "no", "refused unauthorized no"}, // no credential could be had
		{CodeForbidden, 403, "maybe", "protocol_error forbidden maybe"},
		{CodeHTTPStatus, 404, "maybe", "protocol_error http_status maybe"},
		{CodeHTTPStatus, 400, "maybe", "protocol_error http_status maybe"},
		{CodeHTTPStatus, 500, "maybe", "protocol_error http_status maybe"},
		{CodeHTTPStatus, 503, "maybe", "protocol_error http_status maybe"},
		{CodeBadResult, 200, "maybe", "protocol_error bad_result maybe"},
		{CodeBadResult, 202, "maybe", "protocol_error bad_result maybe"},
		{CodeRedirect, 302, "maybe", "protocol_error redirect_refused maybe"},
		{CodeRedirect, 0, "maybe", "lost redirect_refused maybe"},
		{CodeFrameTooLarge, 0, "maybe", "lost frame_too_large maybe"},
		{CodeHeaderUnfit, 0, "no", "refused header_unfit no"},
		{CodeToolHeader, 0, "no", "refused tool_header_invalid no"},
	} {
		for name, up := range map[string]func(testing.TB, ...func(*PeerConfig)) *world{"modern": webFire, "legacy": inSession} {
			t.Run(fmt.Sprintf("%s, %s %d", name, c.code, c.status), func(t *testing.T) {
				w := up(t, func(p *PeerConfig) { p.Repeatable, p.Resends = []string{"x"}, 2 })
				w.submit("c", "x")
				out := w.unanswered("c", c.written, c.code, c.status)
				sameKinds(t, out, "call.settled")
				ends(t, out, c.end)
				sameKinds(t, w.unanswered("c", c.written, c.code, c.status))
				sameKinds(t, w.answers("c", complete), "answer.dropped")
				w.idle()
				if w.attempts("c") != 1 {
					t.Errorf("sent %d times", w.attempts("c"))
				}
			})
		}
	}
}

// TestRefusedAfterItMayHaveRun: 401 to the second exchange says nothing of the first.
func TestRefusedAfterItMayHaveRun(t *testing.T) {
	w := webFire(t, func(p *PeerConfig) { p.Repeatable = []string{"x"} })
	w.submit("c", "x")
	out := w.loses("c", "maybe") // its stream ended early: the endpoint is there all the same
	sentAgain(t, w, out, RuleRepeatable)
	ends(t, w.unanswered("c", "maybe", CodeUnauthorized, 401), "protocol_error unauthorized maybe")
}

// TestAStreamThatEndsEarlyLosesItsRequest, and is sent again by the same rules as
// over a pipe; the incarnation goes on.
func TestAStreamThatEndsEarlyLosesItsRequest(t *testing.T) {
	for _, g := range grounds() {
		w := newWorld(t)
		w.start(webConfig(g.set))
		w.up(EraModern, g.hints)
		w.ready("b", "z")
		w.submit("c", "x", func(d *CallReceived) { d.CarriesKey = g.key })
		at := w.at("a")
		out := w.loses("c", "maybe")
		if g.rule == "" {
			ends(t, out, "lost transport_lost maybe")
		} else {
			sentAgain(t, w, out, g.rule)
			ends(t, w.loses("c", "maybe"), "lost transport_lost maybe")
		}
		if w.at("a") != at || w.count(MethodDiscover) != 2 {
			t.Errorf("%s: the peer is probed again", g.name)
		}
		w.idle()
	}
}

// TestAConnectionThatIsRefused: the incarnation is over first, and the request that
// certainly was not sent is sent once when the peer is back, within five seconds.
func TestAConnectionThatIsRefused(t *testing.T) {
	refused := func(t *testing.T, change ...func(*PeerConfig)) *world {
		w := webFire(t, change...)
		w.submit("c", "x")
		sameKinds(t, w.leaves("a", causeUnreachable), "peer.restarted")
		out := w.loses("c", "no")
		sameKinds(t, out, "call.held")
		if d := must[CallHeld](t, out); d.Rule != RuleNeverWritten || d.Ran != RanNo || d.Wait != resendWait || d.Code != CodeTransportLost {
			t.Fatalf("%+v", d)
		}
		return w
	}
	w := refused(t)
	before := len(w.log)
	w.ms(4_000)
	w.ready("a", "x", "y")
	sentAgain(t, w, w.log[before:], RuleNeverWritten)
	ends(t, w.loses("c", "no"), "lost transport_lost no") // once
	w.idle()

	w = refused(t)
	ends(t, w.waited("c"), "lost transport_lost no")
	w.ready("a", "x", "y")
	if w.attempts("c") != 1 {
		t.Error("it is sent after it has ended")
	}

	w = refused(t) // it is tried again, and again; the call waits for as long as it may
	before = len(w.log)
	for range 3 {
		w.spawned("a")
		ends(t, append(w.failed("a", ClassUnavailable, 0), w.leaves("a", "stopped")...), "")
	}
	w.spawned("a")
	ends(t, w.leaves("a", causeUnreachable), "")
	w.ready("a", "x", "y")
	sentAgain(t, w, w.log[before:], RuleNeverWritten)

	w = refused(t)
	w.spawned("a")
	ends(t, w.failed("a", ClassUnauthorized, 401), "lost transport_lost no")

	w = refused(t, func(p *PeerConfig) { p.Attempts = 1 })
	w.spawned("a")
	ends(t, append(w.failed("a", ClassUnavailable, 503), w.leaves("a", "stopped")...), "lost transport_lost no")

	w = webFire(t, resends(0))
	w.submit("c", "x")
	w.leaves("a", causeUnreachable)
	ends(t, w.loses("c", "no"), "lost transport_lost no")
}

// TestAnswersOfARetiredIncarnation: what was under way when another request could
// not connect has its own outcome, and nothing is sent in what is over.
func TestAnswersOfARetiredIncarnation(t *testing.T) {
	w := webFire(t, func(p *PeerConfig) { p.Inflight = 3 })
	w.submit("c", "x")
	w.submit("d", "x")
	w.submit("e", "x")
	old := w.at("a")
	w.leaves("a", causeUnreachable)
	w.loses("e", "no")
	ends(t, w.answers("c", complete), "complete  yes")
	w.ready("a", "x", "y")
	if w.exchange("e").At == old || w.exchange("d").At != old || w.s.Peer("a").calls != 2 {
		t.Errorf("%+v, %+v", w.exchange("e"), w.exchange("d"))
	}
	ends(t, w.answers("d", Facts{Kind: FactResult, ResultType: "complete", IsError: true}), "tool_error tool_error yes")
	ends(t, w.passes("e", false), "timed_out timed_out maybe")
	w.idle()
}

// TestASessionThatIsGone (specification 2025-11-25, basic/transports, "Session
// Management"): negotiated again, and the call that was turned away is sent again
// once, in the new one; a second time it ends.
func TestASessionThatIsGone(t *testing.T) {
	for _, order := range []string{"exit first", "call first", "back first"} {
		t.Run(order, func(t *testing.T) {
			w := inSession(t, resends(3))
			w.submit("c", "x")
			old := w.at("a")
			gone := func() []Event { return w.unanswered("c", "maybe", CodeSessionGone, 404) }
			before := len(w.log)
			switch order {
			case "call first":
				sameKinds(t, gone(), "call.held")
				sameKinds(t, w.leaves("a", causeSessionGone), "peer.restarted")
				w.legacyUp("x", "y")
			case "back first":
				w.leaves("a", causeSessionGone)
				w.legacyUp("x", "y")
				sameKinds(t, gone(), "call.resent")
			default:
				w.leaves("a", causeSessionGone)
				out := gone()
				sameKinds(t, out, "call.held")
				if d := must[CallHeld](t, out); d.Code != CodeSessionGone || d.Rule != RuleSession || d.Ran != RanNo || d.Wait != resendWait {
					t.Fatalf("%+v", d)
				}
				w.legacyUp("x", "y")
			}
			sentAgain(t, w, w.log[before:], RuleSession)
			if x := w.exchange("c"); x.At == old || x.At != w.at("a") || x.Era != EraLegacy {
				t.Errorf("sent again as %+v", x)
			}
			w.leaves("a", causeSessionGone)
			ends(t, gone(), "protocol_error session_gone no")
			w.idle()
			if w.legacyUp("x", "y"); w.attempts("c") != 2 {
				t.Errorf("sent %d times", w.attempts("c"))
			}
		})
	}
}

// TestASessionThatDoesNotComeBack: the call ends with what is known, that it did not
// run; where the endpoint closes, at once.
func TestASessionThatDoesNotComeBack(t *testing.T) {
	for name, then := range map[string]func(*world) []Event{
		"too late":     func(w *world) []Event { return w.waited("c") },
		"unauthorized": func(w *world) []Event { w.spawned("a"); return w.failed("a", ClassUnauthorized, 401) },
		"no legacy": func(w *world) []Event {
			w.spawned("a")
			w.failed("a", ClassAmbiguous, 400)
			return w.failed("a", ClassAmbiguous, 404)
		},
		"the tool is gone": func(w *world) []Event { return w.legacyUp("y") },
	} {
		w := inSession(t)
		w.submit("c", "x")
		w.leaves("a", causeSessionGone)
		w.unanswered("c", "maybe", CodeSessionGone, 404)
		if got := end(then(w)); got != "lost session_gone no" || w.attempts("c") != 1 {
			t.Errorf("%s: %q, sent %d times", name, got, w.attempts("c"))
		}
		w.idle()
	}
}

// TestNoHealthOverHTTP: what gives no sign of life is given up and probed again;
// what could not be asked for want of a credential says nothing.
func TestNoHealthOverHTTP(t *testing.T) {
	health := func(p *PeerConfig) { p.HealthEvery, p.HealthWithin = 30_000, 5_000 }
	for name, fail := range map[string]func(*world, HealthRequested) []Event{
		"silence": func(w *world, d HealthRequested) []Event {
			return w.see(DeadlinePassed{At: d.At, RequestID: d.RequestID})
		},
		"its loss": func(w *world, d HealthRequested) []Event {
			return w.see(ExchangeFailed{At: d.At, RequestID: d.RequestID, Written: "maybe", Code: CodeTransportLost})
		},
	} {
		w := webFire(t, health)
		d := must[HealthRequested](t, w.see(HealthDue{At: w.at("a")}))
		out := fail(w, d)
		sameKinds(t, out, "peer.abandoned")
		if x := must[PeerAbandoned](t, out); x.Code != CodePeerHung || !strings.Contains(x.Reason, "probed again") || Effects(out[0])[0] != (Stop{At: d.At, Kill: true}) {
			t.Errorf("%s: %+v", name, x)
		}
		ends(t, w.submit("c", "x"), "refused peer_unavailable")
		must[PeerRestarted](t, w.leaves("a", "stopped"))
	}
	w := webFire(t, health, inContexts("alice", "bob"))
	d := must[HealthRequested](t, w.see(HealthDue{At: w.at("a")}))
	if x := w.last("a"); d.Context != "alice" || x.Context != "alice" || x.Method != MethodDiscover {
		t.Errorf("asked without its credential: %+v, %+v", d, x)
	}
	sameKinds(t, w.see(ExchangeFailed{At: d.At, RequestID: d.RequestID, Written: "no", Code: CodeUnauthorized, Reason: "no token"}))
	w.ms(30_000)
	again := must[HealthRequested](t, w.see(HealthDue{At: w.at("a")}))
	sameKinds(t, w.see(HealthAnswered{At: again.At, RequestID: again.RequestID}))
}

// TestAHungEndpoint: as a hung process, but that nothing is killed.
func TestAHungEndpoint(t *testing.T) {
	w := webFire(t, func(p *PeerConfig) { p.HungAfter = 2 })
	w.submit("c", "x")
	sameKinds(t, w.passes("c", true), "call.abandoned", "call.settled")
	w.submit("d", "x")
	out := w.passes("d", true)
	sameKinds(t, out, "call.abandoned", "call.settled", "peer.abandoned")
	if d := must[PeerAbandoned](t, out); strings.Contains(d.Reason, "killed") {
		t.Error(d.Reason)
	}
}

// TestASubscriptionThatIsLostOverHTTP is opened again, later each time, in the same
// incarnation, and the list is read then: a change may have been missed.
func TestASubscriptionThatIsLostOverHTTP(t *testing.T) {
	for _, f := range []ExchangeFailed{
		{Written: "maybe", Code: CodeTransportLost, Reason: "the stream ended without the answer"},
		{Written: "maybe", Code: CodeFrameTooLarge},
		{Written: "maybe", Code: CodeUnauthorized, Status: 401, Reason: "no message in it"},
		{Written: "maybe", Code: CodeHTTPStatus, Status: 500, Reason: "no message in it"},
	} {
		k := noticed(t, httpPeer)
		last := int64(0)
		for n := range 4 {
			x := k.last("p", "", MethodListen)
			f.At, f.RequestID = x.At, x.RequestID
			out := k.see(f)
			sameKinds(t, out, "subscription.closed")
			d := must[SubscriptionClosed](t, out)
			if d.Code != f.Code || d.Withdrawn || d.Reopen <= last || d.Reason == "" {
				t.Fatalf("%s, %d: %+v", f.Code, n, d)
			}
			last = d.Reopen * 5 / 4
			k.pass(d.Reopen)
			out = k.isDue("p", "", DueSubscription)
			if got := kinds(out); !slices.Equal(got, []string{"subscription.requested", "list.requested"}) {
				t.Fatalf("%s, %d: %v", f.Code, n, got)
			}
			k.answered("p", "", listPage(cached(600_000, ScopePublic), "x"))
		}
		sameKinds(t, k.see(ExchangeFailed{At: f.At, RequestID: f.RequestID, Written: "maybe", Code: CodeTransportLost}))
	}
	k := noticed(t) // over a pipe the next incarnation opens another
	x := k.last("p", "", MethodListen)
	if d := must[SubscriptionClosed](t, k.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Written: "maybe", Code: CodeTransportLost})); d.Reopen != 0 {
		t.Errorf("%+v", d)
	}
}
