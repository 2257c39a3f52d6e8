package domain

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// key gives a submission an idempotency key, and says what it is the same as.
func key(k, same string) func(*CallReceived) {
	return func(d *CallReceived) { d.Key, d.Same = k, same }
}

var completeFacts = Facts{Kind: FactResult, ResultType: "complete"}

// wantJoined checks that a submission gets the outcome of another call, and that
// nothing else comes of it.
func (w *world) wantJoined(events []Event, first string) {
	w.t.Helper()
	sameKinds(w.t, events, "call.joined")
	d := must[CallJoined](w.t, events)
	received, ok := w.log[d.Received-1].Data.(CallReceived)
	if d.First != "local/"+first || !ok || received.CallKey() != d.First {
		w.t.Errorf("joined to %s of event %d, want %s", d.First, d.Received, first)
	}
	effects := Effects(events[0])
	if want := (Join{Call: d.CallKey(), First: d.First, Received: d.Received, Seq: events[0].Seq}); len(effects) != 1 || effects[0] != want {
		w.t.Errorf("effects are %+v, want %+v", effects, want)
	}
}

// wantRefused checks that a submission is refused, and for no other reason.
func (w *world) wantRefused(events []Event, code Code, words string) {
	w.t.Helper()
	sameKinds(w.t, events, "call.refused")
	if d := must[CallRefused](w.t, events); d.Code != code || !strings.Contains(d.Reason, words) {
		w.t.Errorf("refused with %s: %s; want %s: ...%s...", d.Code, d.Reason, code, words)
	}
}

// TestAKeyLeadsToOneCall: each row is what a second submission with the key of the
// call "first" meets, in a world of one peer.
func TestAKeyLeadsToOneCall(t *testing.T) {
	same := func(w *world, change ...func(*CallReceived)) []Event {
		return w.submit("again", "x", append([]func(*CallReceived){key("k", "s")}, change...)...)
	}
	first := func(w *world) { w.submit("first", "x", key("k", "s")) }
	for _, c := range []struct {
		name string
		then func(w *world)
		want string // the call it joins, a code, or routed
	}{
		{"under way", func(w *world) {}, "joins"},
		{"ended", func(w *world) { w.answers("first", completeFacts) }, "joins"},
		{"asks for input", func(w *world) {
			w.answers("first", Facts{Kind: FactResult, ResultType: "input_required", Asks: []string{"elicitation.form"}}, "s")
		}, "joins"},
		{"timed out", func(w *world) { w.passes("first", false) }, "joins"},
		{"lost by a restart, and the peers not listed", func(w *world) { w.start(fireConfig()) }, "joins"},
		{"cancelled", func(w *world) { w.see(CallCancelled{CallID: CallID{"local", "first"}, By: "host"}) }, "joins"},
		{"the peer is gone", func(w *world) { w.exited("a") }, "joins"},
		{"no room", func(w *world) { w.s.Config.Inflight = 1 }, "joins"},
		{"a nanosecond before the window is over", func(w *world) { w.now += IdempotencyWindow - 1 }, "joins"},
		{"the window is over", func(w *world) { w.now += IdempotencyWindow }, "outcome_expired"},
		{"eight windows later", func(w *world) { w.now += 8 * IdempotencyWindow }, "outcome_expired"},
		{"forgotten", func(w *world) { w.now += 8*IdempotencyWindow + 1 }, "routed"},
		{"a shorter window", func(w *world) { w.s.Config.Idempotency = 5; w.ms(5) }, "outcome_expired"},
		{"the clock went back", func(w *world) { w.now -= 1_000 }, "joins"},
		{"sent again by an operator", func(w *world) { w.passes("first", false); w.resends("first") }, "joins"},
		{"the service stops", func(w *world) { w.see(ServiceStopped{Reason: "test"}) }, "shutting_down"},
		{"a host that nobody knows", func(w *world) { w.s.Config.Hosts = []HostConfig{{Name: "ann", Context: DefaultContext}} }, "not_allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := fire(t)
			first(w)
			c.then(w)
			calls, sends := w.s.InFlight(), len(w.sends)
			events := same(w)
			switch c.want {
			case "joins":
				w.wantJoined(events, "first")
			case "routed":
				sameKinds(t, events, "call.routed")
				return
			default:
				w.wantRefused(events, Code(c.want), "")
			}
			if w.s.InFlight() != calls || len(w.sends) != sends {
				t.Errorf("something was sent, or is under way")
			}
		})
	}
}

// TestARefusalForAKeySaysWhatToDo, and of a call that may have run that it may have.
func TestARefusalForAKeySaysWhatToDo(t *testing.T) {
	w := fire(t)
	w.submit("first", "x", key("k", "s"))
	events := w.submit("other", "x", key("k", "t"))
	w.wantRefused(events, CodeIdempotencyConflict, "local/first has this idempotency_key (event ")
	if must[CallRefused](t, events).Ran() != RanNo {
		t.Errorf("another call did not run")
	}
	w.now += IdempotencyWindow
	w.wantRefused(w.submit("other", "x", key("k", "t")), CodeIdempotencyConflict, "choose another key")
	events = w.submit("again", "x", key("k", "s"))
	w.wantRefused(events, CodeOutcomeExpired, "local/first was made under this idempotency_key longer ago")
	if must[CallRefused](t, events).Ran() != RanMaybe {
		t.Errorf("the call before it may have run")
	}
}

// TestAKeyBelongsToItsHost: what another host made under it is no matter.
func TestAKeyBelongsToItsHost(t *testing.T) {
	w := fire(t)
	w.submit("first", "x", key("k", "s"))
	sameKinds(t, w.submit("first", "x", key("k", "s"), func(d *CallReceived) { d.Host = "ann" }), "call.routed")
	w.wantJoined(w.submit("again", "x", key("k", "s")), "first")
}

// TestACallThatWasNeverSentTakesNoKey: refused at once, or held and given up in any
// way; while it is held it has the key.
func TestACallThatWasNeverSentTakesNoKey(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *world)
	}{
		{"waited too long", func(w *world) { w.waited("held") }},
		{"cancelled", func(w *world) { w.see(CallCancelled{CallID: CallID{"local", "held"}, By: "host"}) }},
		{"the service stopped", func(w *world) { w.see(ServiceStopped{Reason: "test"}); w.start(fireConfig()) }},
		{"the service crashed", func(w *world) { w.start(fireConfig()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := fire(t)
			w.wantRefused(w.submit("none", "nosuch", key("k", "t")), CodeUnknownTool, "")
			w.exited("a")
			sameKinds(t, w.submit("held", "x", key("k", "s"), waits(60_000)), "call.held")
			w.wantJoined(w.submit("again", "x", key("k", "s")), "held")
			c.end(w)
			if _, taken := w.s.KeyTaken(w.now, CallReceived{CallID: CallID{"local", "b"}, Key: "k"}); taken {
				t.Errorf("the key is still taken")
			}
			w.ready("a", "x", "y")
			sameKinds(t, w.submit("late", "x", key("k", "other")), "call.routed")
			w.wantJoined(w.submit("later", "x", key("k", "other")), "late")
		})
	}
}

// TestACallThatWasHeldAndSentKeepsItsKey, from when it was received.
func TestACallThatWasHeldAndSentKeepsItsKey(t *testing.T) {
	w := fire(t)
	w.exited("a")
	w.submit("held", "x", key("k", "s"), waits(60_000))
	w.ms(50_000)
	w.ready("a", "x", "y")
	w.exchange("held")
	w.now += IdempotencyWindow - 50_000_000_000 - 1
	w.wantJoined(w.submit("again", "x", key("k", "s")), "held")
	w.now++
	w.wantRefused(w.submit("again", "x", key("k", "s")), CodeOutcomeExpired, "")
}

// TestSubmissionsThatWaitForOneCallAreBounded: those that wait for its end, each time
// that it is under way.
func TestSubmissionsThatWaitForOneCallAreBounded(t *testing.T) {
	w := fire(t)
	w.submit("first", "x", key("k", "s"))
	full := func() {
		t.Helper()
		for i := range mostJoined {
			w.wantJoined(w.submit(fmt.Sprint("again-", i), "x", key("k", "s")), "first")
		}
		w.wantRefused(w.submit("more", "x", key("k", "s")), CodeOverloaded, "64 submissions wait for call local/first")
	}
	full()
	w.passes("first", false)
	for range 2 * mostJoined {
		w.wantJoined(w.submit("again", "x", key("k", "s")), "first")
	}
	w.resends("first")
	full()
}

// fill has a host take so many keys, a nanosecond apart.
func (w *world) fill(host string, n int) {
	for i := range n {
		w.s.keys.take(&keyed{slot: fmt.Sprint(host, "/", i), call: CallID{host, fmt.Sprint(i)}, received: 1, since: w.now}, w.now, IdempotencyWindow)
		w.now++
	}
}

// wantKeys holds what is kept of keys together.
func (w *world) wantKeys(host string, ofHost, all int) {
	w.t.Helper()
	k, counted := w.s.keys, map[string]int{}
	for _, x := range k.queue {
		counted[x.call.Host]++
		if k.known[x.slot] != x {
			w.t.Fatalf("%+v is queued and not known", x)
		}
	}
	if !reflect.DeepEqual(counted, k.of) || len(k.queue) != len(k.known) || len(k.queue) != all || k.of[host] != ofHost {
		w.t.Errorf("%d keys of %s and %d of all are known, want %d and %d", k.of[host], host, len(k.queue), ofHost, all)
	}
}

// TestKeysOfOneHostAreBounded: its oldest makes room once it has expired; until then a
// call under a further key is refused, and one without a key, or of another host, is not.
func TestKeysOfOneHostAreBounded(t *testing.T) {
	w := fire(t, func(p *PeerConfig) { p.Inflight = 8 })
	w.fill("ann", 3)
	w.fill("local", mostKeysOfOne)
	w.wantRefused(w.submit("first", "x", key("k", "s")), CodeOverloaded, "50000 idempotency keys of this host and 50003 of all hosts are known")
	sameKinds(t, w.submit("plain", "x"), "call.routed")
	sameKinds(t, w.submit("hers", "x", key("k", "s"), func(d *CallReceived) { d.Host = "ann" }), "call.routed")
	w.now += IdempotencyWindow - mostKeysOfOne
	sameKinds(t, w.submit("first", "x", key("k", "s")), "call.routed")
	w.wantRefused(w.submit("second", "x", key("l", "s")), CodeOverloaded, "none has expired")
	w.wantJoined(w.submit("again", "x", key("k", "s")), "first")
	w.wantKeys("local", mostKeysOfOne, mostKeysOfOne+4)
	if w.s.keys.known["local/0"] != nil || w.s.keys.known["local/1"] == nil || w.s.keys.known["ann/0"] == nil {
		t.Errorf("another key made room than the oldest of the host")
	}
}

func TestKeysOfAllHostsAreBounded(t *testing.T) {
	w := fire(t, func(p *PeerConfig) { p.Inflight = 8 })
	w.fill("ann", mostKeysOfOne)
	w.fill("bob", mostKeysOfOne)
	w.wantRefused(w.submit("first", "x", key("k", "s")), CodeOverloaded, "0 idempotency keys of this host and 100000 of all hosts are known")
	w.now += IdempotencyWindow - mostKeys
	sameKinds(t, w.submit("first", "x", key("k", "s")), "call.routed")
	w.wantRefused(w.submit("second", "x", key("l", "s")), CodeOverloaded, "none has expired")
	w.wantKeys("ann", mostKeysOfOne-1, mostKeys)
	w.now += 7*IdempotencyWindow + mostKeysOfOne
	w.see(IntakeShed{Count: 1, Code: CodeOverloaded})
	w.wantKeys("ann", 0, mostKeysOfOne+1)
}

// TestKeysThatWereGivenBackLeaveNothingBehind, wherever they stand.
func TestKeysThatWereGivenBackLeaveNothingBehind(t *testing.T) {
	w := fire(t, func(p *PeerConfig) { p.Inflight = 8 })
	w.exited("a")
	for _, id := range []string{"h1", "h2", "h3"} {
		sameKinds(t, w.submit(id, "x", key(id, "s"), waits(1_000)), "call.held")
	}
	for i, id := range []string{"h2", "h3", "h1"} {
		w.waited(id)
		w.wantKeys("local", 2-i, 2-i)
	}
}

func TestATakenIDIsNotTheCallThatHasTheKey(t *testing.T) {
	w := fire(t)
	w.submit("first", "x", key("k", "s"))
	d := CallReceived{CallID: CallID{"local", "wb-1"}, DuplicateOf: "first", Tool: "x", Key: "k", Same: "s"}
	w.wantJoined(w.see(d), "first")
	d.Key = "another"
	w.wantRefused(w.see(d), CodeDuplicateCall, "")
}
