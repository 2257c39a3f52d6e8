package domain

import (
	"strings"
	"testing"
)

// TestPeerThatEndsIsStartedAgain: on transport loss the peer is restarted,
// discovery and lists are repeated (seed 2.1.0, rule 8), and the names stay.
func TestPeerThatEndsIsStartedAgain(t *testing.T) {
	w := newWorld(t)
	w.start(testConfig(PrefixOnCollision, "a", "b"))
	w.ready("a", "x")
	w.ready("b", "x")
	names := w.names()
	d := must[PeerRestarted](t, w.exited("a"))
	if d.Incarnation != 2 || d.Attempt != 1 || d.Delay < firstDelay || d.Delay > firstDelay*3/2 || d.After != CodePeerExited {
		t.Fatalf("%+v", d)
	}
	if got := w.refusal("x", 0); got != CodePeerUnavailable {
		t.Errorf("while it waits a call is answered %q", got)
	}
	if r := w.s.Peer("a").Reason; !strings.Contains(r, "attempt 1") {
		t.Errorf("the reason does not say what comes next: %s", r)
	}
	w.spawned("a")
	if x := w.last("a"); x.Method != MethodDiscover || x.Incarnation != 2 {
		t.Fatalf("the second life begins with %s of incarnation %d", x.Method, x.Incarnation)
	}
	if got := w.refusal("x", 0); got != CodeEraUnknown {
		t.Errorf("while it is probed a call is answered %q", got)
	}
	w.probed("a", discoverResult)
	w.listed("a", toolList("x"))
	if got := w.refusal("x", 0); got != "" || w.names() != names || w.s.Peer("a").Code != "" {
		t.Errorf("back again: %q, %s", got, w.names())
	}
}

// TestRecoveryGivesUpSlowly: each failed start makes the next one later, and
// after eight in a row the peer is quarantined.
func TestRecoveryGivesUpSlowly(t *testing.T) {
	w := newWorld(t)
	w.start(testConfig(PrefixOnCollision, "a"))
	w.ready("a", "x")
	last := must[PeerRestarted](t, w.exited("a"))
	for i := 2; i <= mostAttempts; i++ {
		d := must[PeerRestarted](t, w.see(SpawnFailed{At: w.at("a"), Code: CodeSpawnFailed, Reason: "no"}))
		if d.Attempt != i || d.Delay <= last.Delay*5/4 && last.Delay < longestDelay || d.Delay > longestDelay*3/2 {
			t.Fatalf("attempt %d after %+v: %+v", i, last, d)
		}
		last = d
	}
	w.spawned("a")
	events := w.exited("a") // during the probe this time
	q := must[PeerQuarantined](t, events)
	if d := must[PeerRestarted](t, events); d.Delay != quarantineDelay || q.Attempts != mostAttempts || !strings.Contains(q.Reason, "status") {
		t.Fatalf("%+v %+v", q, d)
	}
	if got := w.refusal("x", 0); got != CodePeerUnavailable {
		t.Errorf("in quarantine a call is answered %q", got)
	}
}

// TestSteadyPeerBeginsAnew: an incarnation that lasted a minute ends the row.
func TestSteadyPeerBeginsAnew(t *testing.T) {
	w := newWorld(t)
	w.start(testConfig(PrefixOnCollision, "a"))
	w.ready("a", "x")
	w.exited("a")
	w.ready("a", "x")
	if d := must[PeerRestarted](t, w.exited("a")); d.Attempt != 2 {
		t.Fatalf("an early end is attempt %d", d.Attempt)
	}
	w.ready("a", "x")
	w.now += steadyAfter
	if d := must[PeerRestarted](t, w.exited("a")); d.Attempt != 1 {
		t.Fatalf("after a steady minute it is attempt %d", d.Attempt)
	}
}

// TestALostWatchdogIsNoSignOfThePeer: with another in its place a peer that has
// worked is started again, wherever it was; without one nothing is, as logs from
// before say.
func TestALostWatchdogIsNoSignOfThePeer(t *testing.T) {
	back := func(w *world) { w.exited("a"); w.spawned("a") }
	excluded := func(w *world) {
		back(w)
		must[LegacyExcluded](t, w.probed("a", `{"jsonrpc":"2.0","id":77,`+modernError+`}`))
	}
	initializing := func(w *world) { back(w); w.probed("a", notFound) }
	for _, c := range []struct {
		name     string
		before   func(*world)
		attempt  int
		replaced string // decided where another watchdog took its place
		lost     string // and where none did
		code     Code   // of the refusal then
	}{
		{"ready", func(*world) {}, 1, "peer.restarted", "", ""},
		{"listing", func(w *world) { back(w); w.probed("a", discoverResult) }, 2, "peer.restarted", "", ""},
		{"probed again", back, 2, "era.refused peer.restarted", "era.refused", CodeWatchdogLost},
		{"probed again, modern", excluded, 2, "era.refused peer.restarted", "era.refused", CodeModernEvidence},
		{"initializing again", initializing, 2, "era.refused peer.restarted", "era.refused peer.restarted", CodeLegacyExit},
	} {
		for _, replaced := range []bool{true, false} {
			w := newWorld(t)
			config := testConfig(PrefixOnCollision, "a")
			config.Peers[0].AllowLegacy = true
			w.start(config)
			w.ready("a", "x")
			c.before(w)
			at := w.at("a")
			out := w.see(PeerExited{At: at, Status: -1, Signal: "SIGKILL", Cause: causeWatchdogLost, Replaced: replaced})
			want, code := c.lost, c.code
			if replaced {
				want, code = c.replaced, CodeWatchdogLost
			}
			if got := strings.Join(kinds(out), " "); got != want {
				t.Errorf("%s, replaced %t: decided [%s], want [%s]", c.name, replaced, got, want)
			}
			if d, refused := find[EraRefused](out); refused && d.Code != code {
				t.Errorf("%s, replaced %t: %+v", c.name, replaced, d)
			}
			if d, again := find[PeerRestarted](out); again && (d.Incarnation != at.Incarnation+1 || d.Attempt != c.attempt || d.By != "") {
				t.Errorf("%s, replaced %t: %+v", c.name, replaced, d)
			}
			if first := w.count(MethodInitialize); first > 0 && c.name != "initializing again" {
				t.Errorf("%s, replaced %t: initialize was sent", c.name, replaced)
			}
		}
	}
}

// TestThePlaceOfALostWatchdogIsTakenForEachLoss: the word of one loss does not
// stand for the next.
func TestThePlaceOfALostWatchdogIsTakenForEachLoss(t *testing.T) {
	w := newWorld(t)
	w.start(testConfig(PrefixOnCollision, "a"))
	w.ready("a", "x")
	lose := func(replaced bool) []Event {
		return w.see(PeerExited{At: w.at("a"), Status: -1, Cause: causeWatchdogLost, Replaced: replaced})
	}
	must[PeerRestarted](t, lose(true))
	if got := w.refusal("x", 0); got != CodePeerUnavailable {
		t.Errorf("meanwhile a call is answered %q", got)
	}
	w.ready("a", "x")
	if got := w.refusal("x", 0); got != "" {
		t.Errorf("back again a call is answered %q", got)
	}
	must[PeerRestarted](t, lose(true))
	w.spawned("a")
	if d := must[EraRefused](t, lose(false)); d.Code != CodeWatchdogLost || w.s.Peer("a").waiting {
		t.Errorf("%+v", d)
	}
}

// TestWhatARuleClosedIsNotStartedAgain: neither at the first start nor in a
// recovery, and nothing is after service.stopped.
func TestWhatARuleClosedIsNotStartedAgain(t *testing.T) {
	w := newWorld(t)
	w.start(testConfig(PrefixOnCollision, "a"))
	w.spawned("a")
	if _, again := find[PeerRestarted](w.exited("a")); again {
		t.Error("a peer that never worked is started again")
	}
	w = newWorld(t)
	w.start(testConfig(PrefixOnCollision, "a"))
	w.ready("a", "x")
	w.exited("a")
	w.spawned("a")
	must[EraRefused](t, w.probed("a", `{"jsonrpc":"2.0","id":$ID,"result":{"ok":true}}`))
	if _, again := find[PeerRestarted](w.exited("a")); again {
		t.Error("a broken answer was followed by another start")
	}
	w = newWorld(t)
	w.start(testConfig(PrefixOnCollision, "a"))
	w.ready("a", "x")
	w.see(ServiceStopped{Reason: "test"})
	sameKinds(t, w.exited("a"))
}

// TestAHostGivesUpACall: the peer is told, the call ends once, and what comes
// later changes nothing. A call that is not under way is left as it is.
func TestAHostGivesUpACall(t *testing.T) {
	w := newWorld(t)
	w.start(testConfig(PrefixOnCollision, "a"))
	w.ready("a", "x")
	w.call("c", "x")
	routed := w.last("a")
	id := CallID{Host: "local", ID: "c"}
	events := w.see(CallCancelled{CallID: id, By: "host"})
	sameKinds(t, events, "call.abandoned", "call.settled")
	if d := must[CallSettled](t, events); d.Status != StatusCancelled || d.Code != CodeCancelled || d.Ran != RanMaybe {
		t.Errorf("%+v", d)
	}
	sameKinds(t, w.see(CallCancelled{CallID: id, By: "host"}))
	sameKinds(t, w.see(DeadlinePassed{At: routed.At, RequestID: routed.RequestID, Call: id.CallKey()}))
	sameKinds(t, w.see(CallAnswered{CallID: id, At: routed.At, RequestID: routed.RequestID, Facts: Facts{Kind: FactResult, ResultType: "complete"}}), "answer.dropped")
	if w.s.InFlight() != 0 || !w.s.CallTaken(id.CallKey()) {
		t.Error("the call is still under way, or its id is free again")
	}
}
