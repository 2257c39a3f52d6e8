package domain

import "testing"

// TestRanIsWhatAllExchangesSay: no is certain. What one exchange of a call may have
// run may have run, however the last one ends (protocol: Calls).
func TestRanIsWhatAllExchangesSay(t *testing.T) {
	again := func(w *world) { w.exited("a"); w.ready("a", "x", "y") }
	firsts := []struct {
		name string
		end  func(w *world)
		want Ran
	}{
		{"written and lost", func(w *world) { w.loses("c", "maybe"); again(w) }, RanMaybe},
		{"never written", func(w *world) { w.loses("c", "no"); again(w) }, RanNo},
		{"rejected", func(w *world) { w.answers("c", Facts{Kind: FactError, ErrorCode: -32020}) }, RanNo},
		{"asked to be asked again", func(w *world) {
			w.answers("c", Facts{Kind: FactResult, ResultType: "input_required"}, "state")
		}, RanMaybe},
		{"asked for input", func(w *world) {
			w.answers("c", Facts{Kind: FactResult, ResultType: "input_required", Asks: []string{"roots"}}, "state")
			w.goesOn("c", "x", "state")
		}, RanMaybe},
		{"timed out, sent again by an operator", func(w *world) { w.passes("c", false); w.resends("c") }, RanMaybe},
		{"never written in time, sent again by an operator", func(w *world) {
			x := w.exchange("c")
			w.see(DeadlinePassed{At: x.At, RequestID: x.RequestID, Call: x.Call, Written: "no"})
			w.resends("c")
		}, RanNo},
	}
	lasts := map[string]func(w *world) []Event{
		"never written, lost": func(w *world) []Event {
			out := w.loses("c", "no")
			if h, ok := find[CallHeld](out); ok {
				return append(out, w.see(WaitPassed{h.CallID})...)
			}
			return out
		},
		"never written, timed out": func(w *world) []Event {
			x := w.exchange("c")
			return w.see(DeadlinePassed{At: x.At, RequestID: x.RequestID, Call: x.Call, Written: "no"})
		},
		"rejected, twice": func(w *world) []Event {
			f := Facts{Kind: FactError, ErrorCode: -32021, Required: []string{"?"}}
			return w.answers("c", f)
		},
	}
	for _, first := range firsts {
		for name, last := range lasts { // order-free: each has a world of its own
			w := fire(t, resends(1), asking, func(p *PeerConfig) { p.Repeatable = []string{"x"} })
			w.submit("c", "x", can(everything))
			first.end(w)
			if w.attempts("c") != 2 {
				t.Fatalf("%s: %d exchanges", first.name, w.attempts("c"))
			}
			out := last(w)
			if d, ok := find[CallSettled](out); !ok || d.Ran != first.want {
				t.Errorf("%s, then %s: %s, want ran %s", first.name, name, end(out), first.want)
			}
		}
	}
}

// TestAPlaceThatATimeoutLeavesIsTaken: a call that waits for a place has it as soon
// as the one before it has ended, however that ended.
func TestAPlaceThatATimeoutLeavesIsTaken(t *testing.T) {
	w := fire(t, func(p *PeerConfig) { p.Inflight = 1 })
	w.exited("a")
	w.submit("c1", "x", waits(60_000))
	w.submit("c2", "x", waits(60_000))
	w.submit("c3", "x", waits(60_000))
	w.ready("a", "x", "y")
	if w.attempts("c1") != 1 || w.attempts("c2") != 0 {
		t.Fatal("the first is not under way alone")
	}
	w.passes("c1", false)
	if w.attempts("c2") != 1 || w.attempts("c3") != 0 {
		t.Error("the place of a call that timed out is not taken")
	}
	x := w.exchange("c2")
	w.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Call: x.Call, Written: "maybe", Code: CodeFrameTooLarge})
	if w.attempts("c3") != 1 {
		t.Error("the place of a call whose answer was too long is not taken")
	}
}
