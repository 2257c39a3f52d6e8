package domain

import (
	"strings"
	"testing"
)

// TestReviveStartsWhatIsDown: from wherever, at once, from the beginning.
func TestReviveStartsWhatIsDown(t *testing.T) {
	for name, down := range map[string]func(*world){
		"waiting":         func(w *world) { w.exited("a") },
		"the start fails": func(w *world) { w.exited("a"); w.see(SpawnFailed{At: w.at("a"), Code: CodeSpawnFailed, Reason: "no"}) },
		"quarantined": func(w *world) {
			w.exited("a")
			for range 2 {
				w.spawned("a")
				w.exited("a")
			}
		},
		"closed by a rule": func(w *world) {
			w.exited("a")
			w.spawned("a")
			w.probed("a", `{"jsonrpc":"2.0","id":$ID,"result":[]}`)
			w.exited("a")
		},
		"the watchdog gone": func(w *world) { w.see(PeerExited{At: w.at("a"), Status: -1, Cause: causeWatchdogLost}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := fire(t, func(p *PeerConfig) { p.Attempts, p.Quarantine = 2, 77_000 })
			down(w)
			before := w.at("a").Incarnation
			out := w.revives("a")
			sameKinds(t, out, "peer.restarted")
			d := must[PeerRestarted](t, out)
			if d.Incarnation != before+1 || d.Attempt != 1 || d.Delay != 0 || d.By != "oncall" || Effects(out[0])[0] != (Launch{At: d.At}) {
				t.Errorf("%+v", d)
			}
			sameKinds(t, w.see(PeerSpawned{At: At{"a", before}, PID: 1})) // the start that was to come is none any more
			if d := must[PeerRestarted](t, w.revives("a")); d.Incarnation != before+2 {
				t.Errorf("twice: %+v", d)
			}
			w.spawned("a")
			if d := must[CommandRefused](t, w.revives("a")); d.Code != CodeNotDown {
				t.Errorf("while it is probed: %+v", d)
			}
			first := must[PeerRestarted](t, w.exited("a")) // it fails again, and backs off again
			if first.Attempt != 2 || first.Delay < 2*firstDelay {
				t.Errorf("the first failure after it: %+v", first)
			}
			w.spawned("a")
			q := must[PeerQuarantined](t, w.exited("a"))
			w.revives("a")
			w.ready("a", "x", "y")
			if _, ok := find[CallRouted](w.submit("c", "x")); !ok || q.Attempts != 2 {
				t.Errorf("%+v; and then no call is routed", q)
			}
		})
	}
}

// TestReviveRefused: with the reason, and nothing is started.
func TestReviveRefused(t *testing.T) {
	pinned := func(c *Config) { c.Peers[0].Refusal, c.Peers[0].RefusalReason = CodeNotPinned, "no entry" }
	for _, c := range []struct {
		name  string
		setup func(*world)
		verb  string
		peer  string
		want  Code
	}{
		{"up", func(*world) {}, VerbRevive, "a", CodeNotDown},
		{"on its way", func(w *world) { w.exited("a"); w.spawned("a") }, VerbRevive, "a", CodeNotDown},
		{"closed and still there", func(w *world) {
			w.exited("a")
			w.spawned("a")
			w.probed("a", `{"jsonrpc":"2.0","id":$ID,"result":[]}`)
		}, VerbRevive, "a", CodeNotDown},
		{"given up and still there", func(w *world) { w.submit("c", "x"); w.passes("c", true) }, VerbRevive, "a", CodeNotDown},
		{"unknown", func(*world) {}, VerbRevive, "nobody", CodeUnknownPeer},
		{"no name", func(*world) {}, VerbRevive, "", CodeUnknownPeer},
		{"not pinned", func(w *world) { c := fireConfig(); pinned(&c); w.start(c) }, VerbRevive, "a", CodeNotPinned},
		{"a configuration that was rejected", func(w *world) {
			c := testConfig(RejectOnCollision, "a", "c")
			w.start(c)
			w.ready("a", "x")
			w.ready("c", "x")
		}, VerbRevive, "a", CodeCollisionReject},
		{"another verb", func(w *world) { w.exited("a") }, "dance", "a", CodeUnknownCommand},
		{"no verb", func(w *world) { w.exited("a") }, "", "a", CodeUnknownCommand},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := fire(t, hungAfter(1))
			c.setup(w)
			out := w.see(OperatorCommanded{By: "oncall", Verb: c.verb, Peer: c.peer})
			sameKinds(t, out, "command.refused")
			if d := must[CommandRefused](t, out); d.Code != c.want || d.Reason == "" || d.By != "oncall" || d.Verb != c.verb || d.Peer != c.peer {
				t.Errorf("%+v, want %s", d, c.want)
			}
		})
	}
	w := fire(t)
	w.exited("a")
	w.see(ServiceStopped{})
	sameKinds(t, w.revives("a"))
}

// TestRecoveryAsConfigured: how many starts in a row, and how long after it.
func TestRecoveryAsConfigured(t *testing.T) {
	w := fire(t, func(p *PeerConfig) { p.Attempts, p.Quarantine = 2, 77_000 })
	w.exited("a")
	w.spawned("a")
	must[PeerRestarted](t, w.exited("a"))
	w.spawned("a")
	out := w.exited("a")
	q, r := must[PeerQuarantined](t, out), must[PeerRestarted](t, out)
	if q.Attempts != 2 || !strings.Contains(q.Reason, "2 starts") || r.Delay != 77_000 || r.Attempt != 3 {
		t.Errorf("%+v %+v", q, r)
	}
	if p := w.s.Report("l").Peers[0]; p.NextTry == nil || *p.NextTry != "1970-01-01T00:01:18Z" || *p.Attempt != 3 || p.LastExit == nil || p.LastExit.Status != 1 {
		t.Errorf("%+v", p)
	}
	if _, ok := find[CallRouted](w.submit("c", "z")); !ok {
		t.Error("a healthy peer notices")
	}
}

// TestAPeerThatIsRefusedMeanwhileIsNotStartedAgain: the configuration in force
// has the last word.
func TestAPeerThatIsRefusedMeanwhileIsNotStartedAgain(t *testing.T) {
	w := fire(t)
	c := fireConfig()
	c.Peers[0].Refusal, c.Peers[0].RefusalReason = CodePinMismatch, "it differs"
	w.load(c)
	if d, again := find[PeerRestarted](w.exited("a")); again {
		t.Errorf("%+v", d)
	}
}

// TestOperatorSendsACallAgain: what was lost or timed out, with the same
// arguments, once for each command.
func TestOperatorSendsACallAgain(t *testing.T) {
	for name, ended := range map[string]func(*world) string{
		"lost":              func(w *world) string { return end(w.loses("c", "maybe")) },
		"lost, not written": func(w *world) string { return end(w.loses("c", "no")) },
		"timed out":         func(w *world) string { return end(w.passes("c", false)) },
		"the service ended": func(w *world) string {
			out := w.start(fireConfig())
			w.ready("a", "x")
			w.ready("b", "z")
			return end(out)
		},
		"the peer restarted": func(w *world) string { out := w.loses("c", "maybe"); w.exited("a"); w.ready("a", "x"); return end(out) },
	} {
		t.Run(name, func(t *testing.T) {
			w := fire(t)
			w.submit("c", "x")
			if got := ended(w); got == "" {
				t.Fatal("it has not ended")
			}
			for attempt := 2; attempt < 4; attempt++ {
				out := w.resends("c")
				sameKinds(t, out, "call.resent")
				d := must[CallResent](t, out)
				if d.Rule != RuleOperator || d.By != "oncall" || d.Attempt != attempt || d.At != w.at("a") || d.RequestID <= d.After || !w.s.UnderWay("local/c") {
					t.Fatalf("%+v", d)
				}
				if d := must[CommandRefused](t, w.resends("c")); d.Code != CodeNotResendable || d.Call != "local/c" {
					t.Fatalf("while it is under way: %+v", d)
				}
				ends(t, w.submit("c", "x"), "refused duplicate_call")
				w.passes("c", false)
			}
			w.resends("c")
			ends(t, w.answers("c", complete), "complete  yes")
			if d := must[CommandRefused](t, w.resends("c")); d.Code != CodeNotResendable {
				t.Errorf("after it was complete: %+v", d)
			}
			w.idle()
		})
	}
}

// TestOperatorsResendRefused: with the reason, and nothing is sent.
func TestOperatorsResendRefused(t *testing.T) {
	right := &Payload{Size: 2, HMAC: "of c"}
	lose := func(w *world) { w.loses("c", "maybe") }
	for _, c := range []struct {
		name      string
		then      func(*world)
		arguments *Payload
		want      Code
	}{
		{"under way", func(*world) {}, right, CodeNotResendable},
		{"complete", func(w *world) { w.answers("c", complete) }, right, CodeNotResendable},
		{"a tool error", func(w *world) { w.answers("c", Facts{Kind: FactResult, ResultType: "complete", IsError: true}) }, right, CodeNotResendable},
		{"cancelled", func(w *world) { w.see(CallCancelled{CallID{"local", "c"}, "host"}) }, right, CodeNotResendable},
		{"waiting for input", func(w *world) { w.answers("c", asks("roots"), "s") }, right, CodeNotResendable},
		{"without arguments", lose, nil, CodePayloadNotKept},
		{"with others", lose, &Payload{Size: 2, HMAC: "other"}, CodePayloadNotKept},
		{"with longer ones", lose, &Payload{Size: 3, HMAC: "of c"}, CodePayloadNotKept},
		{"the peer is down", func(w *world) { lose(w); w.exited("a") }, right, CodePeerUnavailable},
		{"the peer is probed", func(w *world) { lose(w); w.exited("a"); w.spawned("a") }, right, CodeEraUnknown},
		{"the tool is gone", func(w *world) { lose(w); w.exited("a"); w.ready("a", "y") }, right, CodeUnknownTool},
		{"the peer is not configured any more", func(w *world) { lose(w); w.start(testConfig(PrefixOnCollision, "b")) }, right, CodePeerUnavailable},
		{"too much under way at the peer", func(w *world) { lose(w); w.s.Peer("a").Config.Inflight = 1; w.submit("d", "x") }, right, CodeOverloaded},
		{"too much under way", func(w *world) { lose(w); w.s.Config.Inflight = 1; w.submit("d", "x") }, right, CodeOverloaded},
		{"a day and more ago", func(w *world) { lose(w); w.now += endedWindow + 1 }, right, CodeNotResendable},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := fire(t, asking)
			w.submit("c", "x", can(everything))
			c.then(w)
			out := w.see(OperatorCommanded{By: "oncall", Verb: VerbResend, Call: "local/c", Arguments: c.arguments})
			sameKinds(t, out, "command.refused")
			if d := must[CommandRefused](t, out); d.Code != c.want || d.Reason == "" || w.attempts("c") != 1 {
				t.Errorf("%+v, want %s", d, c.want)
			}
		})
	}
	w := fire(t)
	w.submit("c", "x")
	lose(w)
	w.now += endedWindow
	must[CallResent](t, w.resends("c")) // a day ago to the nanosecond
	if d := must[CommandRefused](t, w.see(OperatorCommanded{By: "oncall", Verb: VerbResend, Call: "local/none", Arguments: right})); d.Code != CodeNotResendable {
		t.Errorf("%+v", d)
	}
}

// TestShelfIsBounded: by number and by time, and what was taken from it is gone.
func TestShelfIsBounded(t *testing.T) {
	key := func(i int) string { return CallID{"h", string(rune('a' + i))}.CallKey() }
	s := newShelf()
	for i := range 4 {
		s.put(&call{id: CallID{"h", string(rune('a' + i))}, attempts: i}, int64(10+i))
	}
	if s.take(key(1)).attempts != 1 || s.take(key(1)) != nil || s.get(key(1)) != nil {
		t.Error("taken twice")
	}
	s.put(&call{id: CallID{"h", "b"}, attempts: 9}, 40) // again under its key, behind the others
	s.expire(12)
	if s.get(key(0)) != nil || s.get(key(1)).attempts != 9 || s.get(key(2)) == nil {
		t.Errorf("at 12: %v", s.calls)
	}
	s.expire(13)
	if s.get(key(2)) != nil || s.get(key(3)) == nil {
		t.Error("the time of each is over one after it")
	}
	s.expire(40)
	if s.get(key(1)) == nil {
		t.Error("it went with the entry that was taken")
	}
	if s.expire(41); len(s.calls) != 0 || len(s.queue) != 0 {
		t.Errorf("%d calls and %d entries are kept", len(s.calls), len(s.queue))
	}
	for i := range shelfSize + 3 {
		s.put(&call{id: CallID{"h", strings.Repeat("x", i%50) + string(rune(0x4e00+i))}, attempts: i}, 50)
	}
	if len(s.queue) != shelfSize || len(s.calls) != shelfSize || s.queue[0].call.attempts != 3 {
		t.Errorf("%d calls and %d entries are kept, the first is %d", len(s.calls), len(s.queue), s.queue[0].call.attempts)
	}
}

// TestShelvesDoNotGrowWithTheService: calls that were lost, or wait for input that
// never comes, are forgotten.
func TestShelvesDoNotGrowWithTheService(t *testing.T) {
	w := fire(t, asking)
	for i := range 2_000 {
		w.now += 60_000_000_000
		id := string(rune(0x4e00 + i))
		w.submit(id, "x", can(everything))
		if i%2 == 0 {
			w.answers(id, asks("roots"), "s")
		} else {
			w.passes(id, false)
		}
	}
	if a, b := len(w.s.paused.queue), len(w.s.ended.queue); a > 24*30+10 || b > 24*30+10 || a < 100 || b < 100 {
		t.Errorf("%d calls wait for input and %d for an operator", a, b)
	}
	w.idle()
}
