package domain

import "testing"

func TestWhatIsKeptByPolicyAndForAKeyIsErasedByItsOwnTime(t *testing.T) {
	at := func(outcome bool) Event {
		return Event{Time: 5_000_000, Data: CallReceived{CallID: CallID{"local", "a"}, Kept: true, OutcomeOnly: outcome}}
	}
	for _, c := range []struct {
		name           string
		d              PayloadsErased
		whole, outcome bool
		only           Kept
	}{
		{"payload_retention", PayloadsErased{Before: 6}, true, false, KeptPayloads},
		{"idempotency_window", PayloadsErased{Before: 6, Outcomes: true}, false, true, KeptOutcome},
		{"both too early", PayloadsErased{Before: 5, Outcomes: true}, false, false, KeptOutcome},
		{"an operator, by age", PayloadsErased{Before: 6, By: "oncall"}, true, true, ""},
		{"an operator, by call", PayloadsErased{Call: "local/a", By: "oncall"}, true, true, ""},
		{"an operator, by host", PayloadsErased{Host: "local", By: "oncall"}, true, true, ""},
	} {
		if c.d.Covers(at(false)) != c.whole || c.d.Covers(at(true)) != c.outcome {
			t.Errorf("%s covers %t and %t", c.name, c.d.Covers(at(false)), c.d.Covers(at(true)))
		}
		x := Effects(Event{Seq: 9, Data: c.d})[0].(Erase)
		if x != (Erase{Seq: 9, Call: c.d.Call, Host: c.d.Host, Before: c.d.Before, Only: c.only}) {
			t.Errorf("%s erases %+v", c.name, x)
		}
	}
}

func TestOutcomesAreKeptForTheWindow(t *testing.T) {
	w := fire(t)
	w.now = 100 * IdempotencyWindow
	events := w.see(RetentionPassed{Calls: 3, Outcomes: true})
	if d := must[PayloadsErased](t, events); d != (PayloadsErased{Before: 99 * IdempotencyWindow / 1_000_000, Calls: 3, Outcomes: true}) {
		t.Errorf("erased: %+v", d)
	}
	sameKinds(t, w.see(RetentionPassed{Calls: 3})) // nothing is kept by the policy for a time
	w.s.Config.Idempotency = 1_000
	if d := must[PayloadsErased](t, w.see(RetentionPassed{Outcomes: true})); d.Before != w.now/1_000_000-1_000 {
		t.Errorf("erased: %+v", d)
	}
}

// TestWhatAKeyHasKept: the outcome alone, where the peer keeps nothing or for too
// short a time; where it keeps everything for long enough that is what is kept.
func TestWhatAKeyHasKept(t *testing.T) {
	const day = 24 * 3_600_000
	for _, c := range []struct {
		name      string
		keep      bool
		retention int64
		change    func(*CallReceived)
		want      bool
	}{
		{"no key", false, 0, func(d *CallReceived) { d.Key = "" }, false},
		{"nothing is kept", false, 0, func(*CallReceived) {}, true},
		{"everything, for ever", true, 0, func(*CallReceived) {}, false},
		{"everything, for as long", true, day, func(*CallReceived) {}, false},
		{"everything, for less", true, day - 1, func(*CallReceived) {}, true},
		{"everything, no key", true, day - 1, func(d *CallReceived) { d.Key = "" }, false},
		{"nobody's name", true, 0, func(d *CallReceived) { d.Tool = "nosuch" }, false},
		{"nobody's name yet", true, 0, func(d *CallReceived) { d.Tool, d.Wait = "nosuch", 1 }, true},
	} {
		w := fire(t, func(p *PeerConfig) { p.Keep = c.keep })
		w.s.Config.Retention = c.retention
		d := CallReceived{CallID: CallID{"local", "a"}, Tool: "x", Key: "k"}
		c.change(&d)
		if got := w.s.KeepsOutcome(d); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestAnAnswerIsKeptForItsKey(t *testing.T) {
	w := fire(t)
	kept := func(d *CallReceived) { d.Kept, d.OutcomeOnly = true, true }
	w.submit("first", "x", key("k", "s"), kept)
	x := w.exchange("first")
	d := CallAnswered{CallID: CallID{"local", "first"}, At: x.At, RequestID: x.RequestID, Facts: completeFacts}
	if !w.s.KeepsAnswer(d) || !w.s.OutcomeOnly("local/first") || w.s.OutcomeOnly("local/none") {
		t.Errorf("an answer to a call under way is not kept")
	}
	w.see(PayloadsErased{Host: "local", By: "oncall"})
	w.see(OperatorCommanded{By: "oncall", Verb: VerbErase, Host: "local"})
	if _, ok := w.s.Kept("local/first"); ok {
		t.Errorf("it is kept after it was erased")
	}
	w.see(d)
	if w.s.KeepsAnswer(d) {
		t.Errorf("an answer to a call that has ended is kept")
	}
}
