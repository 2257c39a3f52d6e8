package replaytest

import (
	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

// Answers that lead to another exchange.
var (
	asks      = domain.Facts{Kind: domain.FactResult, ResultType: "input_required", Asks: []string{"elicitation.form"}}
	states    = domain.Facts{Kind: domain.FactResult, ResultType: "input_required"}
	unversion = domain.Facts{Kind: domain.FactError, ErrorCode: -32022, Supported: "2026-07-28"}
)

// fireConfig follows every rule about exchanges that a configuration can ask for.
func fireConfig() domain.Config {
	c := Config(domain.PrefixOnCollision, "notes", "wiki")
	for i := range c.Peers {
		p := &c.Peers[i]
		p.Capabilities = jsontext.Value(`{"elicitation":{}}`)
		p.ListTimeout, p.CallLimit, p.IdleTimeout = 7_000, 120_000, 20_000
		p.Inflight, p.Resends, p.InputRounds, p.InputWindow = 2, 1, 2, 600_000
		p.HungAfter, p.HealthEvery, p.HealthWithin = 1, 30_000, 5_000
		p.Attempts, p.Quarantine = 1, 120_000
		p.Repeatable = []string{"page"}
	}
	return c
}

// Fire is a log of calls and peers under fire: every decision that sends a call
// again, holds it, gives up a peer or follows an operator.
func Fire() *Log {
	w := NewWorld()
	w.Start(fireConfig(), map[string]*Peer{
		"notes": {Modern: true, Pages: [][]string{{"search", "add"}}},
		"wiki":  {Modern: true, Pages: [][]string{{"page"}}},
	})
	w.exchanges()
	w.losses()
	w.signsOfLife()
	w.operators()
	w.Call("last", "add", 0)
	w.Observe(domain.ServiceStopped{Reason: "interrupt"}, nil)
	return Make(w.Events)
}

// submit is a call with what its host says besides.
func (w *World) submit(id, tool string, change func(*domain.CallReceived)) {
	d := domain.CallReceived{CallID: callID(id), Tool: tool, Arguments: payload(id)}
	change(&d)
	w.Observe(d, nil)
}

func (w *World) exchanges() {
	w.submit("asks", "search", func(d *domain.CallReceived) {
		d.Capabilities, d.Progress = jsontext.Value(`{"elicitation":{"form":{},"url":{}},"sampling":{}}`), true
	})
	state, input := payload("state"), payload("input")
	w.answerState("asks", asks, &state)
	w.submit("wb-wrong", "search", func(d *domain.CallReceived) {
		d.DuplicateOf, d.Input, d.RequestState, d.Arguments = "asks", &input, &input, payload("asks")
	})
	w.submit("asks", "search", func(d *domain.CallReceived) { d.Input, d.RequestState = &input, &state })
	w.Answer("asks", Complete)
	w.Call("states", "add", 0)
	w.answerState("states", states, &state)
	w.answerState("states", states, &state)
	w.answerState("states", states, &state) // once more than it may
	w.Call("version", "add", 0)
	w.Answer("version", unversion)
	w.Answer("version", unversion)
	w.Call("one", "add", 0)
	w.Call("two", "add", 0)
	w.Call("three", "add", 0) // than a peer takes at once
	w.Answer("one", ToolError)
	w.Observe(domain.CallCancelled{CallID: callID("two"), By: "host"}, nil)
}

func (w *World) answerState(id string, facts domain.Facts, state *domain.Payload) {
	s := w.request(id)
	w.Observe(domain.CallAnswered{CallID: callID(id), At: s.At, RequestID: s.RequestID, Result: payload("of " + id),
		RequestState: state, Facts: facts}, nil)
}

func (w *World) losses() {
	w.Call("unwritten", "add", 0)
	s := w.request("unwritten")
	w.Observe(domain.ExchangeFailed{At: s.At, RequestID: s.RequestID, Call: s.Call, Written: "no", Code: domain.CodeTransportLost}, nil)
	w.Observe(domain.PeerExited{At: s.At, Status: 3, Cause: "exited", StderrSize: 42}, nil)
	w.Answer("unwritten", Complete)
	w.Call("repeat", "page", 0)
	w.Lose("repeat")
	w.Answer("repeat", Complete)
}

func (w *World) signsOfLife() {
	w.Observe(domain.HealthDue{At: w.at("notes")}, nil)
	w.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbRevive, Peer: "notes"}, nil) // it is up
	w.peers["wiki"].Mute = true
	w.Observe(domain.HealthDue{At: w.at("wiki")}, nil)
	w.Call("hung", "search", 0)
	s := w.request("hung")
	w.Observe(domain.DeadlinePassed{At: s.At, RequestID: s.RequestID, Call: s.Call, Silent: true}, nil)
}

func (w *World) operators() {
	w.submit("waits", "add", func(d *domain.CallReceived) { d.Wait = 1_000 })
	w.Observe(domain.WaitPassed{CallID: callID("waits")}, nil)
	w.submit("later", "add", func(d *domain.CallReceived) { d.Wait = 60_000 })
	w.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbRevive, Peer: "notes"}, nil)
	w.Answer("later", Complete)
	right, wrong := payload("hung"), payload("other")
	w.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbResend, Call: "local/hung", Arguments: &wrong}, nil)
	w.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbResend, Call: "local/hung", Arguments: &right}, nil)
	w.Answer("hung", Complete)
}

func (w *World) at(peer string) domain.At {
	return domain.At{Peer: peer, Incarnation: w.State.Peer(peer).Incarnation}
}
