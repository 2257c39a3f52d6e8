package domain

import (
	"fmt"
	"testing"
)

// notThere are the ways in which a peer may not take a call yet, and what a host
// that does not wait is told. Each world has the peer "a" so, and can bring it up.
func notThere() []struct {
	name  string
	world func(testing.TB) *world
	code  Code
	up    func(*world)
} {
	up := func(w *world) { w.ready("a", "x", "y") }
	listed := func(w *world) { w.listed("a", toolList("x", "y")) }
	return []struct {
		name  string
		world func(testing.TB) *world
		code  Code
		up    func(*world)
	}{
		{"down", func(t testing.TB) *world { w := fire(t); w.exited("a"); return w }, CodePeerUnavailable, up},
		{"given up", func(t testing.TB) *world {
			w := fire(t, func(p *PeerConfig) { p.HungAfter = 1 })
			w.submit("h", "x")
			w.passes("h", true)
			return w
		}, CodePeerUnavailable, func(w *world) { w.exited("a"); up(w) }},
		{"era unknown", func(t testing.TB) *world { w := fire(t); w.exited("a"); w.spawned("a"); return w }, CodeEraUnknown,
			func(w *world) { w.probed("a", discoverResult); listed(w) }},
		{"not listed", func(t testing.TB) *world {
			w := fire(t)
			w.exited("a")
			w.spawned("a")
			w.probed("a", discoverResult)
			return w
		}, CodePeerUnavailable, listed},
		{"not ready", func(t testing.TB) *world {
			w := newWorld(t)
			w.start(fireConfig())
			w.ready("b", "z")
			return w
		}, CodeNotReady, up},
		{"quarantined", func(t testing.TB) *world {
			w := fire(t, func(p *PeerConfig) { p.Attempts = 1 })
			w.exited("a")
			w.see(SpawnFailed{At: w.at("a"), Code: CodeSpawnFailed, Reason: "no"})
			return w
		}, CodePeerUnavailable, func(w *world) { w.revives("a"); up(w) }},
		{"closed by a rule", func(t testing.TB) *world {
			w := fire(t)
			w.exited("a")
			w.spawned("a")
			w.probed("a", `{"jsonrpc":"2.0","id":$ID,"result":[]}`)
			w.exited("a")
			return w
		}, CodePeerUnavailable, func(w *world) { w.revives("a"); up(w) }},
	}
}

// TestACallWaitsIfItSaidSo: for its peer, and for as long as it said.
func TestACallWaitsIfItSaidSo(t *testing.T) {
	for _, c := range notThere() {
		t.Run(c.name, func(t *testing.T) {
			w := c.world(t)
			ends(t, w.submit("now", "x"), "refused "+string(c.code))
			out := w.submit("c", "x", waits(7_000))
			sameKinds(t, out, "call.held")
			d := must[CallHeld](t, out)
			if d.Code != c.code || d.Wait != 7_000 || d.Ran != RanNo || d.Rule != "" || w.s.InFlight() != 1 || w.s.Peer("a").calls != 0 {
				t.Fatalf("%+v", d)
			}
			if effects := Effects(out[0]); len(effects) != 1 || effects[0] != (Wake{"local/c", 7_000}) {
				t.Fatalf("%v", effects)
			}
			before := len(w.log)
			w.ms(6_000)
			c.up(w)
			r := must[CallRouted](t, w.log[before:])
			if r.At != w.at("a") || r.Deadline != 60_000 || w.s.Peer("a").calls != 1 || w.attempts("c") != 1 {
				t.Fatalf("%+v", r)
			}
			sameKinds(t, w.waited("c")) // the alarm of its first hold
			ends(t, w.submit("c", "x"), "refused duplicate_call")
			ends(t, w.answers("c", complete), "complete  yes")
			w.idle()
		})
	}
}

// TestAHeldCallEnds: each way, once, and certainly without having run.
func TestAHeldCallEnds(t *testing.T) {
	for _, end := range []struct {
		name string
		then func(*world) []Event
		want string
	}{
		{"too late", func(w *world) []Event { return w.waited("c") }, "refused "},
		{"cancelled", func(w *world) []Event { return w.see(CallCancelled{CallID{"local", "c"}, "host"}) }, "cancelled cancelled no"},
		{"stop", func(w *world) []Event { return w.see(ServiceStopped{Reason: "signal"}) }, "cancelled shutting_down no"},
		{"restart", func(w *world) []Event { return w.see(ServiceStarted{}) }, "lost service_restarted no"},
	} {
		for _, c := range notThere() {
			t.Run(end.name+", "+c.name, func(t *testing.T) {
				w := c.world(t)
				w.submit("c", "x", waits(7_000))
				want := end.want
				if want == "refused " {
					want += string(c.code)
				}
				out := end.then(w)
				ends(t, out, want)
				if _, told := find[CallAbandoned](out); told {
					t.Error("a request is withdrawn that was never sent")
				}
				w.idle()
				w.waited("c")
				w.see(CallCancelled{CallID{"local", "c"}, "host"})
				if n := len(all[CallSettled](w.log)) + len(all[CallRefused](w.log)); n != 1 && c.name != "given up" {
					t.Errorf("ended %d times", n)
				}
				if end.name == "too late" || end.name == "cancelled" {
					c.up(w)
				}
				if w.count(MethodCall) > 1 || w.count(MethodCall) == 1 && c.name != "given up" {
					t.Error("it was sent afterwards")
				}
				if d, again := find[CallResent](w.resends("c")); again {
					t.Errorf("what was never sent is sent again: %+v", d)
				}
			})
		}
	}
}

// TestAHeldCallWhoseNameChanges: what is refused at once is refused as soon as it
// is known.
func TestAHeldCallWhoseNameChanges(t *testing.T) {
	for _, c := range []struct {
		name  string
		tools []string
		call  func(*CallReceived)
		want  string
	}{
		{"the tool is gone", []string{"y"}, waits(9_000), "refused unknown_tool"},
		{"the name moved", []string{"z"}, func(d *CallReceived) { d.Tool, d.Wait = "z", 9_000 }, "refused name_moved"},
		{"the route is stale", []string{"z"}, func(d *CallReceived) { d.Tool, d.Wait, d.Generation = "z", 9_000, 1 }, "refused stale_route"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := fire(t)
			w.exited("a")
			w.exited("b")
			must[CallHeld](t, w.submit("c", "x", c.call))
			before := len(w.log)
			w.ready("a", c.tools...)
			ends(t, w.log[before:], c.want)
			if w.attempts("c") != 0 {
				t.Error("it was sent")
			}
			w.idle()
		})
	}
}

// TestManyHeldCallsGoInTheOrderOfTheirArrival: under ids of their own, also where
// the names are merged anew first, and those to be sent again among them.
func TestManyHeldCallsGoInTheOrderOfTheirArrival(t *testing.T) {
	for _, tools := range [][]string{{"x", "y"}, {"x", "y", "new"}} {
		w := fire(t, resends(1), func(p *PeerConfig) { p.Repeatable = []string{"x"} })
		w.submit("s1", "x")
		w.submit("s2", "x")
		w.loses("s2", "maybe")
		w.loses("s1", "maybe")
		w.exited("a")
		for i := range 4 {
			must[CallHeld](t, w.submit(fmt.Sprint("h", i), []string{"x", "y"}[i%2], waits(9_000)))
		}
		before := len(w.log)
		w.ready("a", tools...)
		order, last := "", int64(0)
		for _, e := range w.log[before:] {
			var id int64
			switch d := e.Data.(type) {
			case CallRouted:
				id = d.RequestID
			case CallResent:
				id = d.RequestID
			default:
				continue
			}
			order += " " + e.Call()
			if id <= last {
				t.Errorf("request %d follows %d", id, last)
			}
			last = id
		}
		if order != " local/s1 local/s2 local/h0 local/h1 local/h2 local/h3" {
			t.Errorf("with %v in the order%s", tools, order)
		}
		if _, merged := find[NamespaceMerged](w.log[before:]); merged != (len(tools) == 3) {
			t.Errorf("merged: %t", merged)
		}
		if w.s.Peer("a").calls != 6 || w.s.InFlight() != 6 {
			t.Errorf("%d calls at the peer", w.s.Peer("a").calls)
		}
		w.exited("a") // the loss of each is reported after it
		for _, id := range []string{"s1", "s2", "h0", "h1", "h2", "h3"} {
			w.loses(id, "maybe")
		}
		if d := all[CallHeld](w.log[before:]); len(d) != 2 || d[0].ID != "h0" || d[1].ID != "h2" {
			t.Errorf("held again: %+v", d) // s1 and s2 had their turn, y is not repeatable
		}
	}
}

// TestHeldCallsKeepToInflight: each peer has its own room, and a call that finds
// none waits for a place.
func TestHeldCallsKeepToInflight(t *testing.T) {
	w := newWorld(t)
	w.start(fireConfig(func(p *PeerConfig) { p.Inflight = 1 }))
	w.submit("a1", "x", waits(9_000))
	w.submit("b1", "z", waits(9_000))
	w.submit("a2", "x", waits(9_000))
	w.submit("b2", "z", waits(9_000))
	w.ready("a", "x", "y")
	before := len(w.log)
	w.ready("b", "z")
	routed := all[CallRouted](w.log[before:])
	if len(routed) != 2 || routed[0].ID != "a1" || routed[1].ID != "b1" || routed[1].RequestID != routed[0].RequestID+1 {
		t.Fatalf("routed: %+v", routed)
	}
	if w.s.InFlight() != 4 || w.s.Peer("a").calls != 1 || w.s.Peer("b").calls != 1 {
		t.Errorf("%d calls, %d and %d at the peers", w.s.InFlight(), w.s.Peer("a").calls, w.s.Peer("b").calls)
	}
	if got := must[CallRouted](t, w.answers("a1", complete)).ID; got != "a2" {
		t.Errorf("the place was given to %s", got)
	}
	if got := must[CallRouted](t, w.see(CallCancelled{CallID{"local", "b1"}, "host"})).ID; got != "b2" {
		t.Errorf("the place was given to %s", got)
	}
	w.answers("a2", complete)
	w.answers("b2", complete)
	w.idle()
}

// TestAPlaceAtAPeerThatIsGivenUpIsNone: what waits for a place is not sent to a
// process that is being killed, but to the next.
func TestAPlaceAtAPeerThatIsGivenUpIsNone(t *testing.T) {
	w := newWorld(t)
	w.start(fireConfig(hungAfter(1), func(p *PeerConfig) { p.Inflight = 1 }))
	w.ready("b", "z")
	w.submit("c1", "x", waits(90_000))
	w.submit("c2", "x", waits(90_000))
	w.ready("a", "x", "y")
	sameKinds(t, w.passes("c1", true), "call.abandoned", "call.settled", "peer.abandoned")
	if n := w.attempts("c2"); n != 0 {
		t.Fatalf("sent %d times", n)
	}
	w.exited("a")
	w.ready("a", "x", "y")
	if x := w.exchange("c2"); x.Incarnation != 2 {
		t.Errorf("sent to %+v", x.At)
	}
}

// TestHeldCallsCountAmongThoseUnderWay: limits.inflight bounds what waits, too.
func TestHeldCallsCountAmongThoseUnderWay(t *testing.T) {
	w := fire(t)
	w.exited("a")
	for i := range 8 {
		must[CallHeld](t, w.submit(fmt.Sprint("h", i), "x", waits(9_000)))
	}
	ends(t, w.submit("more", "x", waits(9_000)), "refused overloaded")
	ends(t, w.submit("other", "z"), "refused overloaded")
	ends(t, w.waited("h3"), "refused peer_unavailable")
	must[CallRouted](t, w.submit("other", "z"))
}

// TestOnlyWhatMayPassIsWaitedFor: no call waits for a name to appear, or for room.
func TestOnlyWhatMayPassIsWaitedFor(t *testing.T) {
	w := fire(t, func(p *PeerConfig) { p.Inflight = 1 })
	w.submit("one", "x")
	for id, c := range map[string]struct {
		tool string
		want Code
	}{"two": {"x", CodeOverloaded}, "none": {"none", CodeUnknownTool}, "one": {"x", CodeDuplicateCall}} {
		ends(t, w.submit(id, c.tool, waits(9_000)), "refused "+string(c.want))
	}
	w.see(ServiceStopped{})
	ends(t, w.submit("late", "x", waits(9_000)), "refused shutting_down")
}
