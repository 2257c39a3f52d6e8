package domain

import (
	"fmt"
	"strings"
	"testing"
)

// calling is a ready modern peer "notes" and a ready legacy peer "archive", each
// with a tool of the other's name too.
func calling(t testing.TB) *world {
	w := newWorld(t)
	c := testConfig(PrefixOnCollision, "archive", "notes")
	c.Peers[0].AllowLegacy = true
	c.Peers[1].CallTimeout = 1234
	w.start(c)
	w.ready("notes", "search", "write")
	w.spawned("archive")
	w.probed("archive", notFound)
	w.probed("archive", legacyResult)
	w.listed("archive", listPage("", "search"))
	return w
}

func TestCallGoesToItsOwnerUnderItsLocalName(t *testing.T) {
	w := calling(t)
	d := must[CallRouted](t, w.call("c1", "notes/search"))
	if d.Peer != "notes" || d.Local != "search" || d.Era != EraModern || d.Version != "2026-07-28" || d.Deadline != 1234 || d.Generation != 1 {
		t.Errorf("routed as %+v", d)
	}
	x := w.last("notes")
	if x.Method != "tools/call" || x.Tool != "search" || x.Call != "local/c1" || x.RequestID != d.RequestID || x.Era != EraModern {
		t.Errorf("sent as %+v", x)
	}
	d = must[CallRouted](t, w.call("c2", "search"))
	if d.Peer != "archive" || d.Local != "search" || d.Era != EraLegacy || d.Version != "2025-11-25" || d.Deadline != 60_000 {
		t.Errorf("routed as %+v", d)
	}
	for _, seq := range []int64{d.Namespace, d.Catalog} {
		if k := w.log[seq-1].Data.Kind(); k != "namespace.merged" && k != "catalog.accepted" {
			t.Errorf("the route cites event %d, which is %s", seq, k)
		}
	}
	if d := must[CallRouted](t, w.see(CallReceived{CallID: CallID{"local", "c3"}, Tool: "write", Timeout: 50})); d.Deadline != 50 {
		t.Errorf("a timeout of 50 ms became %d", d.Deadline)
	}
}

// TestRefusedCalls: each code of a call that goes nowhere. Nothing is sent.
func TestRefusedCalls(t *testing.T) {
	id := CallID{Host: "local", ID: "c9"}
	plain := CallReceived{CallID: id, Tool: "search"}
	for _, c := range []struct {
		name  string
		setup func(w *world)
		call  CallReceived
		want  Code
	}{
		{"what is no request", func(*world) {}, CallReceived{CallID: id, Problem: "no tool"}, CodeBadRequest},
		{"a tool nobody has", func(*world) {}, CallReceived{CallID: id, Tool: "nothing"}, CodeUnknownTool},
		{"a local name that is no canonical one", func(*world) {}, CallReceived{CallID: id, Tool: "archive/search"}, CodeUnknownTool},
		{"an id under way", func(w *world) { w.call("c9", "write") }, plain, CodeDuplicateCall},
		{"an id used before", func(w *world) { w.call("c9", "write"); w.silent("notes") }, plain, CodeDuplicateCall},
		{"an id that the harness replaced", func(*world) {}, CallReceived{CallID: CallID{"local", "wb-1"}, DuplicateOf: "c9", Tool: "search"}, CodeDuplicateCall},
		{"too many under way", func(w *world) {
			for i := range 8 {
				w.call(fmt.Sprint("x", i), "write")
			}
		}, plain, CodeOverloaded},
		{"a peer that has gone", func(w *world) { w.exited("archive") }, plain, CodePeerUnavailable},
		{"a service that stops", func(w *world) { w.see(ServiceStopped{Reason: "signal"}) }, plain, CodeShuttingDown},
		{"a peer that is not configured any more", func(w *world) { w.start(testConfig(PrefixOnCollision, "notes")) }, plain, CodePeerUnavailable},
		{"a peer that is being probed again", func(w *world) { w.start(w.s.Config); w.spawned("archive") }, plain, CodeEraUnknown},
		{"a peer that is being listed again", func(w *world) {
			w.start(w.s.Config)
			w.spawned("archive")
			w.probed("archive", discoverResult)
		}, plain, CodePeerUnavailable},
		{"a service that has just started again", func(w *world) { w.see(ServiceStarted{}) }, plain, CodePeerUnavailable},
		{"a generation to come", func(*world) {}, CallReceived{CallID: id, Tool: "search", Generation: 7}, CodeUnknownGen},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := calling(t)
			c.setup(w)
			sent := len(w.sends)
			out := w.see(c.call)
			sameKinds(t, out, "call.refused")
			d := must[CallRefused](t, out)
			if d.Code != c.want || d.Reason == "" || len(w.sends) != sent {
				t.Errorf("refused as %+v with %d requests, want %s", d, len(w.sends)-sent, c.want)
			}
			if effects := Effects(out[0]); len(effects) != 1 || effects[0] != (Answer{c.call.CallKey()}) {
				t.Errorf("the host is answered by %v", effects)
			}
		})
	}
}

func TestNoPeerHasListedYet(t *testing.T) {
	w := newWorld(t)
	w.start(testConfig(PrefixOnCollision, "notes"))
	if d := must[CallRefused](t, w.call("c", "x")); d.Code != CodeNotReady {
		t.Errorf("refused as %+v", d)
	}
}

// TestSettle: what an answer makes of a call, in each era.
func TestSettle(t *testing.T) {
	type end struct {
		status Status
		code   Code
		ran    Ran
	}
	done, tool := end{StatusComplete, "", RanYes}, end{StatusToolError, CodeToolError, RanYes}
	protocol := func(c Code) end { return end{StatusProtocolError, c, RanMaybe} }
	for _, c := range []struct {
		name, source, answer string
		modern, legacy       end
	}{
		{"complete", "basic, ResultType", `"result":{"resultType":"complete","content":[]}`, done, done},
		{"no resultType", "seed 2.1.0 hard reject 7 and rule 5", `"result":{"content":[]}`, protocol(CodeNoResultType), done},
		{"a tool error", "server/tools, Error Handling", `"result":{"resultType":"complete","isError":true}`, tool, tool},
		{"a tool error without resultType", "seed 2.1.0 hard reject 7", `"result":{"isError":true}`, protocol(CodeNoResultType), tool},
		{"isError false", "server/tools, Error Handling", `"result":{"resultType":"complete","isError":false}`, done, done},
		{"isError null", "server/tools, Error Handling", `"result":{"resultType":"complete","isError":null}`, done, done},
		{"isError that is no boolean", "server/tools, Error Handling", `"result":{"resultType":"complete","isError":"true"}`, protocol(CodeBadResult), protocol(CodeBadResult)},
		{"input_required", "server/tools, Input Required Tool Results", `"result":{"resultType":"input_required"}`,
			end{StatusInputRequired, CodeInputRequired, RanMaybe}, protocol(CodeBadResultType)},
		{"an unknown resultType", "basic, ResultType", `"result":{"resultType":"partial"}`, protocol(CodeBadResultType), protocol(CodeBadResultType)},
		{"a resultType that is no string", "basic, ResultType", `"result":{"resultType":1}`, protocol(CodeBadResultType), protocol(CodeBadResultType)},
		{"ResultType in capitals", "basic, ResultType", `"result":{"ResultType":"complete"}`, protocol(CodeNoResultType), done},
		{"an error", "basic, Error Responses", `"error":{"code":-32602,"message":"no"}`, protocol(CodePeerError), protocol(CodePeerError)},
		{"-32020", "basic, Error Codes", `"error":{"code":-32020,"message":"no"}`, end{StatusProtocolError, CodePeerError, RanNo}, protocol(CodePeerError)},
		{"-32021", "basic, Error Codes", `"error":{"code":-32021,"message":"no"}`, end{StatusProtocolError, CodePeerError, RanNo}, protocol(CodePeerError)},
		{"-32022", "basic, Error Codes", `"error":{"code":-32022,"message":"no"}`, end{StatusProtocolError, CodePeerError, RanNo}, protocol(CodePeerError)},
		{"an error without a code", "basic, Error Responses", `"error":{"message":"no"}`, protocol(CodeBadResult), protocol(CodeBadResult)},
		{"both", "basic, Responses", `"result":{"resultType":"complete"},"error":{"code":1}`, protocol(CodeBadResult), protocol(CodeBadResult)},
		{"neither", "basic, Responses", `"x":1`, protocol(CodeBadResult), protocol(CodeBadResult)},
		{"null", "basic, Result Responses", `"result":null`, protocol(CodeBadResult), protocol(CodeBadResult)},
		{"a list", "basic, Result Responses", `"result":[]`, protocol(CodeBadResult), protocol(CodeBadResult)},
	} {
		for tool, want := range map[string]end{"write": c.modern, "search": c.legacy} {
			w := calling(t)
			r := must[CallRouted](t, w.call("c1", tool))
			m, err := ParseMessage([]byte(`{"jsonrpc":"2.0","id":1,` + c.answer + `}`))
			if err != nil {
				t.Fatal(err)
			}
			answered := ReadAnswer(m).Facts
			out := w.see(CallAnswered{CallID: r.CallID, At: r.At, RequestID: r.RequestID, Facts: answered})
			sameKinds(t, out, "call.settled")
			if d := must[CallSettled](t, out); (end{d.Status, d.Code, d.Ran}) != want {
				t.Errorf("%s (%s) in the %s era: %+v, want %+v", c.name, c.source, r.Era, d, want)
			}
			if w.s.InFlight() != 0 || w.count(MethodInitialize) != 1 {
				t.Errorf("%s: %d calls under way and %d initialize afterwards", c.name, w.s.InFlight(), w.count(MethodInitialize))
			}
		}
	}
}

// TestAnswerUnderAnotherIdCompletesNothing (seed 2.1.0 rule 7).
func TestAnswerUnderAnotherIdCompletesNothing(t *testing.T) {
	w := calling(t)
	r := must[CallRouted](t, w.call("c1", "write"))
	good := CallAnswered{CallID: r.CallID, At: r.At, RequestID: r.RequestID, Facts: Facts{Kind: FactResult, ResultType: "complete"}}
	for _, change := range []func(*CallAnswered){
		func(d *CallAnswered) { d.RequestID++ },
		func(d *CallAnswered) { d.Incarnation++ },
		func(d *CallAnswered) { d.Peer = "archive" },
		func(d *CallAnswered) { d.ID = "c2" },
		func(d *CallAnswered) { d.Host = "other" },
	} {
		d := good
		change(&d)
		sameKinds(t, w.see(d), "answer.dropped")
	}
	sameKinds(t, w.see(DeadlinePassed{At: At{"archive", 1}, RequestID: r.RequestID}))
	sameKinds(t, w.see(ExchangeFailed{At: At{"notes", 2}, RequestID: r.RequestID, Code: CodeTransportLost}))
	sameKinds(t, w.see(good), "call.settled")
	sameKinds(t, w.see(good), "answer.dropped")
}

// TestCallEndsOnce: after each end, every other end changes nothing.
func TestCallEndsOnce(t *testing.T) {
	ends := []struct {
		name string
		end  func(w *world, r CallRouted) []Event
		want CallSettled
	}{
		{"answer", func(w *world, r CallRouted) []Event {
			return w.see(CallAnswered{CallID: r.CallID, At: r.At, RequestID: r.RequestID, Facts: Facts{Kind: FactResult, ResultType: "complete"}})
		}, CallSettled{Status: StatusComplete, Ran: RanYes}},
		{"deadline", func(w *world, r CallRouted) []Event { return w.see(DeadlinePassed{At: r.At, RequestID: r.RequestID}) },
			CallSettled{Status: StatusTimedOut, Code: CodeTimedOut, Ran: RanMaybe}},
		{"lost, never written", func(w *world, r CallRouted) []Event {
			return w.see(ExchangeFailed{At: r.At, RequestID: r.RequestID, Written: "no", Code: CodeTransportLost})
		}, CallSettled{Status: StatusLost, Code: CodeTransportLost, Ran: RanNo}},
		{"lost, perhaps written", func(w *world, r CallRouted) []Event {
			return w.see(ExchangeFailed{At: r.At, RequestID: r.RequestID, Written: "maybe", Code: CodeTransportLost})
		}, CallSettled{Status: StatusLost, Code: CodeTransportLost, Ran: RanMaybe}},
		{"too large to be written", func(w *world, r CallRouted) []Event {
			return w.see(ExchangeFailed{At: r.At, RequestID: r.RequestID, Written: "no", Code: CodeRequestTooLarge})
		}, CallSettled{Status: StatusLost, Code: CodeRequestTooLarge, Ran: RanNo}},
		{"service.stopped", func(w *world, _ CallRouted) []Event { return w.see(ServiceStopped{Reason: "signal"}) },
			CallSettled{Status: StatusCancelled, Code: CodeShuttingDown, Ran: RanMaybe}},
		{"service.started", func(w *world, _ CallRouted) []Event { return w.see(ServiceStarted{}) },
			CallSettled{Status: StatusLost, Code: CodeServiceRestarted, Ran: RanMaybe}},
	}
	for _, first := range ends {
		w := calling(t)
		r := must[CallRouted](t, w.call("c1", "write"))
		out := first.end(w, r)
		first.want.CallID = r.CallID
		if d := must[CallSettled](t, out); d != first.want {
			t.Errorf("%s: settled as %+v, want %+v", first.name, d, first.want)
		}
		if withdrawn := len(all[CallAbandoned](out)); (withdrawn == 1) != (first.name == "deadline") {
			t.Errorf("%s: %d requests withdrawn", first.name, withdrawn)
		}
		for _, then := range ends {
			if d, again := find[CallSettled](then.end(w, r)); again {
				t.Errorf("%s, then %s: settled again as %+v", first.name, then.name, d)
			}
		}
		if w.s.InFlight() != 0 {
			t.Errorf("%s: %d calls under way afterwards", first.name, w.s.InFlight())
		}
	}
}

func TestCallsAreEndedInTheOrderOfTheirRouting(t *testing.T) {
	w := calling(t)
	for _, id := range []string{"z", "a", "m"} {
		w.call(id, "write")
	}
	got := ""
	for _, d := range all[CallSettled](w.see(ServiceStarted{})) {
		got += d.ID
	}
	if got != "zam" {
		t.Errorf("ended as %s, want zam", got)
	}
}

// TestEventsSayWhomTheyConcern: whatever names a peer or a call in its facts is
// found under it.
func TestEventsSayWhomTheyConcern(t *testing.T) {
	w := calling(t)
	r := must[CallRouted](t, w.call("c1", "write"))
	w.see(CallAnswered{CallID: r.CallID, At: r.At, RequestID: r.RequestID, Facts: Facts{Kind: FactBroken}})
	w.silent("notes")
	w.exited("notes")
	w.see(NoiseCounted{At: r.At})
	w.see(IntakeShed{Count: 1, Code: CodeOverloaded})
	w.see(StreamForked{Stream: "WAYBILL_local-0a1b2c3d", Seq: 3})
	for _, e := range w.log {
		said := facts(t, e.Data)
		if named := strings.Contains(said, `"peer":"`+e.Peer()+`"`); (e.Peer() != "") != named {
			if k := e.Data.Kind(); k != "namespace.merged" && k != "collision.decided" {
				t.Errorf("%s concerns the peer %q", said, e.Peer())
			}
		}
		if named := strings.Contains(said, `"host":"local","call_id":"c1"`); (e.Call() == "local/c1") != named {
			t.Errorf("%s concerns the call %q", said, e.Call())
		}
	}
}

// TestStepNumbersItsEvents: dense, and each decision cites its observation.
func TestStepNumbersItsEvents(t *testing.T) {
	w := calling(t)
	out := w.s.Step(Event{Seq: 7, Cause: 9, Time: 5, Mono: 6, Data: CallReceived{CallID: CallID{"local", "c"}, Tool: "write"}})
	if len(out) != 2 || out[0].Seq != int64(len(w.log))+1 || out[0].Cause != 0 || out[1].Seq != out[0].Seq+1 || out[1].Cause != out[0].Seq ||
		out[1].Time != 5 || out[1].Mono != 6 || !out[1].IsDecision() || out[0].IsDecision() || w.s.Head != out[1].Seq {
		t.Errorf("numbered as %+v", out)
	}
	for i, e := range w.log {
		if e.Seq != int64(i)+1 {
			t.Fatalf("event %d has number %d", i+1, e.Seq)
		}
	}
}

func TestCallIDIsTakenForADay(t *testing.T) {
	const day = 24 * 60 * 60 * 1_000_000_000
	for _, c := range []struct {
		later int64
		taken bool
	}{{1, true}, {day, true}, {day + 1, false}} {
		w := calling(t)
		w.call("c1", "write")
		w.silent("notes")
		w.now += c.later
		_, taken := find[CallRefused](w.call("c1", "write"))
		if taken != c.taken {
			t.Errorf("%d ns later the id is taken: %t", c.later, taken)
		}
	}
	w := calling(t)
	w.see(CallReceived{CallID: CallID{"local", "wb-1"}, Tool: "write"})
	w.silent("notes")
	if w.s.CallTaken("local/wb-1") || len(w.s.ids.seen) != 0 {
		t.Errorf("ids that no host chose are kept")
	}
	if _, refused := find[CallRefused](w.see(CallReceived{CallID: CallID{"other", "c1"}, Tool: "write"})); refused {
		t.Errorf("another host's id is in the way")
	}
}

// TestIdsAreForgotten: what is remembered of calls that have ended does not grow
// with the age of the service.
func TestIdsAreForgotten(t *testing.T) {
	w := calling(t)
	for i := range 2000 {
		w.now += 60 * 1_000_000_000
		w.call(fmt.Sprint("c", i), "write")
		w.silent("notes")
	}
	if n := len(w.s.ids.seen); n > 24*60+1 || len(w.s.calls) != 0 || len(w.s.byRequest) != 0 {
		t.Errorf("%d ids, %d calls and %d requests are kept", n, len(w.s.calls), len(w.s.byRequest))
	}
}
