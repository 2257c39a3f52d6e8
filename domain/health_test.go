package domain

import (
	"testing"
)

func hungAfter(n int) func(*PeerConfig) { return func(p *PeerConfig) { p.HungAfter = n } }

// TestAPeerThatIsHungIsGivenUp: when as many calls in a row as configured reached
// their deadline in silence; it is killed, its calls end, and it comes back.
func TestAPeerThatIsHungIsGivenUp(t *testing.T) {
	w := fire(t, hungAfter(2), resends(1))
	for _, id := range []string{"c1", "c2", "c3"} {
		w.submit(id, "x")
	}
	sameKinds(t, w.passes("c1", true), "call.abandoned", "call.settled")
	out := w.passes("c2", true)
	sameKinds(t, out, "call.abandoned", "call.settled", "peer.abandoned")
	d := must[PeerAbandoned](t, out)
	if effects := Effects(out[2]); d.Code != CodePeerHung || d.Reason == "" || len(effects) != 1 || effects[0] != (Stop{At: d.At, Kill: true}) {
		t.Errorf("%+v releases %v", d, effects)
	}
	ends(t, w.submit("meanwhile", "x"), "refused peer_unavailable")
	must[CommandRefused](t, w.revives("a"))
	sameKinds(t, w.see(HealthDue{At: d.At}))
	sameKinds(t, w.see(DeadlinePassed{At: d.At, RequestID: 99, Silent: true}))
	ends(t, w.loses("c3", "maybe"), "lost transport_lost maybe")
	w.idle()
	r := must[PeerRestarted](t, w.see(PeerExited{At: d.At, Status: -1, Signal: "killed", Cause: "stopped"}))
	if r.After != CodePeerHung || r.Attempt != 1 || r.Incarnation != 2 {
		t.Errorf("%+v", r)
	}
	w.ready("a", "x", "y")
	must[CallRouted](t, w.submit("after", "x"))
	sameKinds(t, w.passes("after", true), "call.abandoned", "call.settled") // the count begins anew
}

// TestWhatCountsAsSilence: only deadlines in a row, of calls that had the time
// the configuration gives, at one incarnation.
func TestWhatCountsAsSilence(t *testing.T) {
	pass := func(silent bool, written string) func(*world, string) []Event {
		return func(w *world, id string) []Event {
			x := w.exchange(id)
			return w.see(DeadlinePassed{At: x.At, RequestID: x.RequestID, Call: x.Call, Written: written, Silent: silent})
		}
	}
	silence := pass(true, "maybe")
	for _, c := range []struct {
		name   string
		call   func(*CallReceived)
		first  func(*world, string) []Event
		hungIn int // further silent deadlines of two until it is given up
	}{
		{"silence", func(*CallReceived) {}, silence, 1},
		{"a sign of life", func(*CallReceived) {}, pass(false, "maybe"), 2},
		{"a sign of life after silence", func(*CallReceived) {}, func(w *world, id string) []Event {
			silence(w, id)
			w.submit("then", "x")
			return pass(false, "maybe")(w, "then")
		}, 2},
		{"never written", func(*CallReceived) {}, pass(true, "no"), 2},
		{"never written after silence", func(*CallReceived) {}, func(w *world, id string) []Event {
			silence(w, id)
			w.submit("then", "x")
			return pass(false, "no")(w, "then")
		}, 1},
		{"a host in a hurry", func(d *CallReceived) { d.Timeout = 59_999 }, silence, 2},
		{"a host's limit", func(d *CallReceived) { d.Limit = 59_999 }, silence, 2},
		{"a patient host", func(d *CallReceived) { d.Timeout = 60_001 }, silence, 1},
		{"an answer", func(*CallReceived) {}, func(w *world, id string) []Event { return w.answers(id, complete) }, 2},
		{"an answer nobody waits for", func(*CallReceived) {}, func(w *world, id string) []Event {
			silence(w, id)
			return w.answers(id, complete)
		}, 2},
		{"a sign of life that was asked for", func(*CallReceived) {}, func(w *world, id string) []Event {
			out := silence(w, id)
			h := must[HealthRequested](w.t, w.see(HealthDue{At: w.at("a")}))
			w.see(HealthAnswered{At: h.At, RequestID: h.RequestID})
			return out
		}, 2},
		{"a sign of life under another id", func(*CallReceived) {}, func(w *world, id string) []Event {
			out := silence(w, id)
			h := must[HealthRequested](w.t, w.see(HealthDue{At: w.at("a")}))
			w.see(HealthAnswered{At: h.At, RequestID: h.RequestID + 1})
			return out
		}, 1},
		{"the incarnation before", func(*CallReceived) {}, func(w *world, id string) []Event {
			out := silence(w, id)
			w.exited("a")
			w.ready("a", "x", "y")
			return out
		}, 2},
		{"cancelled", func(*CallReceived) {}, func(w *world, id string) []Event {
			return w.see(CallCancelled{CallID{"local", id}, "host"})
		}, 2},
		{"another peer's", func(d *CallReceived) { d.Tool = "z" }, silence, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := fire(t, hungAfter(2), func(p *PeerConfig) { p.HealthEvery = 30_000 })
			w.submit("c", "x", c.call)
			if _, early := find[PeerAbandoned](c.first(w, "c")); early {
				t.Fatal("given up at once")
			}
			for i, id := range []string{"d1", "d2"} {
				w.submit(id, "x")
				if _, hung := find[PeerAbandoned](silence(w, id)); hung != (i+1 == c.hungIn) {
					t.Fatalf("after %d more it is given up: %t", i+1, hung)
				}
				if i+1 == c.hungIn {
					return
				}
			}
		})
	}
}

// TestSignsOfLife: asked for when due, one at a time, in the era's own words, and
// a peer that does not answer is given up.
func TestSignsOfLife(t *testing.T) {
	every := func(p *PeerConfig) { p.HealthEvery, p.HealthWithin, p.AllowLegacy = 30_000, 5_000, true }
	for _, c := range []struct {
		name   string
		change func(*PeerConfig)
		era    Era
		method string
		within int64
	}{
		{"modern", every, EraModern, MethodDiscover, 5_000},
		{"legacy", every, EraLegacy, MethodPing, 5_000},
		{"within probe_timeout", func(p *PeerConfig) { p.HealthEvery = 30_000 }, EraModern, MethodDiscover, 10_000},
		{"over before the next is due", func(p *PeerConfig) { p.HealthEvery, p.HealthWithin = 3_000, 5_000 }, EraModern, MethodDiscover, 1_500},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.start(fireConfig(c.change))
			w.ready("b", "z")
			w.up(c.era, `{}`)
			era := all[EraDetermined](w.log)[1]
			if era.HealthEvery != w.s.Peer("a").Config.HealthEvery || Effects(Event{Data: era})[1] != (Remind{era.At, era.HealthEvery}) {
				t.Errorf("the first is not due: %+v", era)
			}
			out := w.see(HealthDue{At: w.at("a")})
			sameKinds(t, out, "health.requested")
			h := must[HealthRequested](t, out)
			x := w.last("a")
			if h.Method != c.method || h.Era != c.era || h.Deadline != c.within || x.RequestID != h.RequestID ||
				x.Method != c.method || x.Era != c.era || x.Deadline != c.within || x.Version != w.s.Peer("a").Version ||
				Effects(out[0])[1] != (Remind{h.At, h.Every}) {
				t.Errorf("%+v, sent as %+v", h, x)
			}
			sameKinds(t, w.see(HealthDue{At: h.At})) // never two at once
			sameKinds(t, w.see(HealthAnswered{At: h.At, RequestID: h.RequestID}))
			sameKinds(t, w.see(DeadlinePassed{At: h.At, RequestID: h.RequestID}))
			h2 := must[HealthRequested](t, w.see(HealthDue{At: h.At}))
			if h2.RequestID <= h.RequestID {
				t.Errorf("request %d follows %d", h2.RequestID, h.RequestID)
			}
			out = w.see(DeadlinePassed{At: h.At, RequestID: h2.RequestID, Silent: true})
			sameKinds(t, out, "peer.abandoned")
			sameKinds(t, w.see(DeadlinePassed{At: h.At, RequestID: h2.RequestID, Silent: true}))
			sameKinds(t, w.see(HealthDue{At: h.At}))
			if d := must[PeerRestarted](t, w.exited("a")); d.After != CodePeerHung {
				t.Errorf("%+v", d)
			}
			if n := w.count(MethodInitialize); n > 1 || n == 1 && c.era != EraLegacy {
				t.Errorf("initialize was sent %d times", n)
			}
		})
	}
}

// TestNoSignOfLifeIsAskedFor where there is nobody to ask.
func TestNoSignOfLifeIsAskedFor(t *testing.T) {
	every := func(p *PeerConfig) { p.HealthEvery = 30_000 }
	for name, world := range map[string]func() *world{
		"not configured": func() *world { return fire(t) },
		"era unknown":    func() *world { w := fire(t, every); w.exited("a"); w.spawned("a"); return w },
		"down":           func() *world { w := fire(t, every); w.exited("a"); return w },
		"closed by a rule": func() *world {
			w := fire(t, every)
			w.exited("a")
			w.spawned("a")
			w.probed("a", `{"jsonrpc":"2.0","id":$ID,"result":[]}`)
			return w
		},
		"stopped": func() *world { w := fire(t, every); w.see(ServiceStopped{}); return w },
	} {
		w := world()
		sent := len(w.sends)
		sameKinds(t, w.see(HealthDue{At: w.at("a")}))
		if len(w.sends) != sent {
			t.Errorf("%s: sent %+v", name, w.last("a"))
		}
	}
	w := fire(t, every)
	w.exited("a")
	w.ready("a", "x", "y")
	sameKinds(t, w.see(HealthDue{At: At{"a", 1}})) // the reminder of the process before
	sameKinds(t, w.see(HealthDue{At: At{"nobody", 1}}))
}
