package domain

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestInputGoesToTheSamePeerAndTool: an input_required ends the exchange, and the
// host's answer is the next one of the same call, whatever was restarted since
// (specification, basic/patterns/mrtr: requests are independent).
func TestInputGoesToTheSamePeerAndTool(t *testing.T) {
	for name, meanwhile := range map[string]func(w *world){
		"at once":            func(*world) {},
		"the peer restarted": func(w *world) { w.exited("a"); w.ready("a", "x", "y") },
		"the service restarted": func(w *world) {
			w.start(fireConfig(asking))
			w.now += 1 // the monotonic clock begins anew; no time of the first life counts
			w.ready("a", "x", "y")
			w.ready("b", "z")
		},
		"the service stopped first": func(w *world) {
			w.see(ServiceStopped{Reason: "signal"})
			w.start(fireConfig(asking))
			w.ready("a", "x", "y")
			w.ready("b", "z")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := fire(t, asking)
			w.submit("c", "x", can(everything))
			ends(t, w.answers("c", asks("elicitation.form"), "s1"), "input_required input_required maybe")
			w.idle()
			meanwhile(w)
			out := w.goesOn("c", "x", "s1")
			sameKinds(t, out, "call.resent")
			d := must[CallResent](t, out)
			if d.Rule != RuleInput || d.By != "local" || d.At != w.at("a") || d.Local != "x" || d.Attempt != 2 || d.RequestID <= d.After ||
				d.Deadline != 60_000 || string(d.Capabilities) != everything || !w.s.UnderWay("local/c") {
				t.Errorf("%+v", d)
			}
			ends(t, w.answers("c", complete), "complete  yes")
			ends(t, w.goesOn("c", "x", "s1"), "refused not_waiting")
			w.idle()
		})
	}
}

// TestInputThatDoesNotMatch: the submission is refused, nothing is sent, and the
// call goes on waiting for the right one.
func TestInputThatDoesNotMatch(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*CallReceived)
		want   Code
	}{
		"another tool":         {func(d *CallReceived) { d.Tool = "y" }, CodeInputMismatch},
		"other arguments":      {func(d *CallReceived) { d.Arguments.HMAC = "other" }, CodeInputMismatch},
		"longer arguments":     {func(d *CallReceived) { d.Arguments.Size++ }, CodeInputMismatch},
		"no inputResponses":    {func(d *CallReceived) { d.Input = nil }, CodeInputMismatch},
		"no requestState":      {func(d *CallReceived) { d.RequestState = nil }, CodeInputMismatch},
		"another requestState": {func(d *CallReceived) { d.RequestState = &Payload{Size: 2, HMAC: "s2"} }, CodeInputMismatch},
		"another host":         {func(d *CallReceived) { d.Host = "other" }, CodeNotWaiting},
		"another call":         {func(d *CallReceived) { d.ID = "d" }, CodeNotWaiting},
		"under an id of its own": {func(d *CallReceived) { d.ID, d.DuplicateOf = "wb-1", "c" },
			CodeInputMismatch},
		"under an id of its own, and other arguments": {func(d *CallReceived) { d.ID, d.DuplicateOf, d.Arguments = "wb-1", "c", Payload{} }, CodeInputMismatch},
		"no request at all":                           {func(d *CallReceived) { d.Problem = "no tool" }, CodeBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			w := fire(t, asking)
			w.submit("c", "x", can(everything))
			w.answers("c", asks("roots"), "s1")
			ends(t, w.goesOn("c", "x", "s1", c.change), "refused "+string(c.want))
			if w.attempts("c") != 1 {
				t.Errorf("sent %d times", w.attempts("c"))
			}
			must[CallResent](t, w.goesOn("c", "x", "s1"))
		})
	}
}

// TestInputWithoutState: where none came, none may come back.
func TestInputWithoutState(t *testing.T) {
	w := fire(t, asking)
	w.submit("c", "x", can(everything))
	w.answers("c", asks("sampling"))
	ends(t, w.goesOn("c", "x", "s1"), "refused input_mismatch")
	must[CallResent](t, w.goesOn("c", "x", ""))
	w.answers("c", asks("sampling"), "s2") // the state of the last answer counts
	ends(t, w.goesOn("c", "x", ""), "refused input_mismatch")
	must[CallResent](t, w.goesOn("c", "x", "s2"))
}

// TestInputOutOfTurn: only a call that waits for input takes any.
func TestInputOutOfTurn(t *testing.T) {
	w := fire(t, asking)
	w.submit("c", "x", can(everything))
	ends(t, w.goesOn("c", "x", "s1"), "refused not_waiting")
	if !w.s.UnderWay("local/c") {
		t.Fatal("the call under way is gone")
	}
	w.answers("c", asks("roots"), "s1")
	w.goesOn("c", "x", "s1")
	ends(t, w.goesOn("c", "x", "s1"), "refused not_waiting") // the second of two
	ends(t, w.loses("c", "maybe"), "lost transport_lost maybe")
	ends(t, w.goesOn("c", "x", "s1"), "refused not_waiting")
	if d := must[CommandRefused](t, w.resends("c")); d.Code != CodeNotResendable {
		t.Errorf("rounds of input are not kept, and an operator's command is answered %+v", d)
	}
	w.idle()
}

// TestInputWindow: from the first routing to the last submission, on the wall
// clock; who comes late is told that, for a day.
func TestInputWindow(t *testing.T) {
	for _, c := range []struct {
		later int64 // nanoseconds
		want  string
	}{
		{0, ""}, {600_000_000_000 - 1, ""}, {600_000_000_000, ""},
		{600_000_000_000 + 1, "refused input_expired"}, {3_600_000_000_000, "refused input_expired"},
		{endedWindow + 600_000_000_001, "refused not_waiting"},
	} {
		w := fire(t, asking)
		w.submit("c", "x", can(everything))
		w.now += c.later / 2
		w.answers("c", asks("roots"), "s1")
		w.now += c.later - c.later/2
		out := w.goesOn("c", "x", "s1")
		if got := end(out); got != c.want || (w.attempts("c") == 2) != (c.want == "") {
			t.Errorf("%d ns after it was routed: %q, want %q", c.later, got, c.want)
		}
	}
}

// TestInputRoundsAreBounded: those that a host answers and those that we answer
// count together.
func TestInputRoundsAreBounded(t *testing.T) {
	const tooMany = "protocol_error too_many_rounds maybe"
	for name, turns := range map[string]string{"host": "hh", "us": "uu", "host first": "hu", "us first": "uh"} {
		t.Run(name, func(t *testing.T) {
			for _, last := range []Facts{asks("roots"), asks()} {
				w := fire(t, asking)
				w.submit("c", "x", can(everything))
				for _, who := range turns {
					if who == 'u' {
						d := must[CallResent](t, w.answers("c", asks(), "s"))
						if d.Rule != RuleContinue || d.By != "" {
							t.Errorf("%+v", d)
						}
						continue
					}
					w.answers("c", asks("roots"), "s")
					must[CallResent](t, w.goesOn("c", "x", "s"))
				}
				ends(t, w.answers("c", last, "s"), tooMany)
				if w.attempts("c") != 3 {
					t.Errorf("sent %d times", w.attempts("c"))
				}
				w.idle()
			}
		})
	}
}

// TestContinueIsInsideTheTimeOfItsExchange: a peer that asks to be asked again
// gets no more time by it.
func TestContinueIsInsideTheTimeOfItsExchange(t *testing.T) {
	w := fire(t, asking)
	w.submit("c", "x")
	w.ms(50_000)
	if d := must[CallResent](t, w.answers("c", asks(), "s")); d.Deadline != 10_000 {
		t.Errorf("%+v", d)
	}
	w.ms(10_000)
	ends(t, w.answers("c", asks(), "s"), "timed_out timed_out maybe")
	w.idle()
}

// TestContinueWithAPeerThatIsGone: the answer came, the next exchange cannot
// start; it is not held, because its requestState may not outlive the process.
func TestContinueWithAPeerThatIsGone(t *testing.T) {
	w := fire(t, asking, resends(1))
	w.submit("c", "x")
	w.exited("a")
	ends(t, w.answers("c", asks(), "s"), "lost peer_unavailable maybe")
	w.idle()
}

// TestWhatAPeerMayAskFor: only by what the call declared, which is what the host
// can do and the configuration allows.
func TestWhatAPeerMayAskFor(t *testing.T) {
	const asked, undeclared = "input_required input_required maybe", "protocol_error undeclared_input maybe"
	for _, c := range []struct {
		host, allowed, asks, want string
	}{
		{everything, everything, "elicitation.form", asked},
		{everything, everything, "elicitation.url", asked},
		{everything, everything, "roots", asked},
		{everything, everything, "sampling", asked},
		{everything, everything, "?", undeclared},
		{`{}`, everything, "roots", undeclared},
		{everything, `{}`, "roots", undeclared},
		{`{"elicitation":{}}`, everything, "elicitation.form", asked},
		{`{"elicitation":{}}`, everything, "elicitation.url", undeclared},
		{`{"elicitation":{"url":{}}}`, everything, "elicitation.form", undeclared},
		{`{"elicitation":{"url":{}}}`, everything, "elicitation.url", asked},
		{`{"elicitation":{"url":{}}}`, `{"elicitation":{}}`, "elicitation.url", undeclared},
		{`{"sampling":{}}`, everything, "elicitation.form", undeclared},
	} {
		w := fire(t, asking, func(p *PeerConfig) { p.Capabilities = jsontext.Value(c.allowed) })
		w.submit("c", "x", can(c.host))
		if got := end(w.answers("c", asks(c.asks), "s")); got != c.want {
			t.Errorf("host %s, allowed %s, asks %s: %q, want %q", c.host, c.allowed, c.asks, got, c.want)
		}
	}
	w := fire(t, asking)
	w.submit("silent", "x") // a host that says nothing can do what the probe declared: nothing
	ends(t, w.answers("silent", asks("elicitation.form"), "s"), undeclared)
	w.submit("two", "x", can(`{"roots":{}}`))
	ends(t, w.answers("two", asks("roots", "sampling"), "s"), undeclared)
	w.submit("none", "x", can(everything))
	ends(t, w.answers("none", asks()), "protocol_error bad_result maybe") // neither requests nor state
	w.idle()
}

// TestInputIsRefusedWhileThePeerIsNotThere: the call waits on, for as long as its
// window is open.
func TestInputIsRefusedWhileThePeerIsNotThere(t *testing.T) {
	w := fire(t, asking, func(p *PeerConfig) { p.Inflight = 1 })
	w.submit("c", "x", can(everything))
	w.answers("c", asks("roots"), "s1")
	w.exited("a")
	ends(t, w.goesOn("c", "x", "s1", waits(9_000)), "refused peer_unavailable")
	w.ready("a", "x", "y")
	w.submit("other", "x")
	ends(t, w.goesOn("c", "x", "s1"), "refused overloaded")
	w.answers("other", complete)
	for i, id := range []string{"z1", "z2", "z3", "z4", "z5", "z6", "z7", "z8"} {
		w.s.Peer("b").Config.Inflight = 8
		if _, ok := find[CallRouted](w.submit(id, "z")); !ok {
			t.Fatalf("call %d is not routed", i)
		}
	}
	ends(t, w.goesOn("c", "x", "s1"), "refused overloaded") // limits.inflight
	w.answers("z1", complete)
	must[CallResent](t, w.goesOn("c", "x", "s1"))
}

// TestInputIsNeverHeldAsACallOfItsOwn: what goes on with a call that never was
// waits for nothing, whatever its host says.
func TestInputIsNeverHeldAsACallOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.start(fireConfig(asking))
	if got := end(w.goesOn("c", "x", "s1", waits(9_000))); got == "" {
		t.Fatal("it is held")
	}
	w.ready("a", "x", "y")
	w.ready("b", "z")
	if n := w.count(MethodCall); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
	w.idle()
}

// TestInputNeverTravelsInTheLegacyEra: rounds of input are of the modern era; a
// peer that comes back as another gets none.
func TestInputNeverTravelsInTheLegacyEra(t *testing.T) {
	legacy := func(w *world) {
		w.exited("a")
		w.spawned("a")
		w.probed("a", notFound)
		w.probed("a", legacyResult)
		w.listed("a", listPage("", "x", "y"))
	}
	change := []func(*PeerConfig){asking, resends(1), func(p *PeerConfig) { p.AllowLegacy, p.Repeatable = true, []string{"x"} }}
	w := fire(t, change...)
	w.submit("c", "x", can(everything))
	w.answers("c", asks("roots"), "s1")
	legacy(w)
	ends(t, w.goesOn("c", "x", "s1"), "refused peer_unavailable")
	w = fire(t, change...)
	w.submit("c", "x", can(everything))
	w.answers("c", asks("roots"), "s1")
	w.goesOn("c", "x", "s1")
	must[CallHeld](t, w.loses("c", "maybe"))
	legacy(w)
	if n := w.attempts("c"); n != 2 {
		t.Errorf("sent %d times, the last in the %s era", n, w.exchange("c").Era)
	}
}

// TestAnIdUsedAgainIsAnotherCall: what waited under it for input, or for an
// operator, is forgotten.
func TestAnIdUsedAgainIsAnotherCall(t *testing.T) {
	w := fire(t)
	w.submit("c", "x", func(d *CallReceived) { d.Timeout = 3_600_000 })
	w.ms(3_000_000)
	ends(t, w.passes("c", false), "timed_out timed_out maybe")
	w.now += idWindow - 2_000_000_000_000
	if must[CallRouted](t, w.submit("c", "y")).Local != "y" {
		t.Fatal("not another call")
	}
	if d := must[CommandRefused](t, w.resends("c")); d.Code != CodeNotResendable {
		t.Errorf("%+v", d)
	}
	ends(t, w.answers("c", complete), "complete  yes")
	if d := must[CommandRefused](t, w.resends("c")); d.Code != CodeNotResendable {
		t.Errorf("%+v", d)
	}
	w.idle()
}
