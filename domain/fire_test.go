package domain

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// fire is a world of two modern peers, "a" with the tools x and y and "b" with
// the tool z, whose configuration is changed first.
func fire(t testing.TB, change ...func(*PeerConfig)) *world {
	w := newWorld(t)
	w.start(fireConfig(change...))
	w.ready("a", "x", "y")
	w.ready("b", "z")
	return w
}

func fireConfig(change ...func(*PeerConfig)) Config {
	c := testConfig(PrefixOnCollision, "a", "b")
	for i := range c.Peers {
		for _, f := range change {
			f(&c.Peers[i])
		}
	}
	return c
}

func resends(n int) func(*PeerConfig) { return func(p *PeerConfig) { p.Resends = n } }

// asking allows input, in two rounds and ten minutes.
func asking(p *PeerConfig) {
	p.InputRounds, p.InputWindow = 2, 600_000
	p.Capabilities = jsontext.Value(`{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}`)
}

const everything = `{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}`

// submit feeds a call of the host "local" that says more than its tool.
func (w *world) submit(id, tool string, change ...func(*CallReceived)) []Event {
	d := CallReceived{CallID: CallID{Host: "local", ID: id}, Tool: tool, Arguments: Payload{Size: 2, HMAC: "of " + id}}
	for _, f := range change {
		f(&d)
	}
	return w.see(d)
}

func waits(ms int64) func(*CallReceived) { return func(d *CallReceived) { d.Wait = ms } }

func can(capabilities string) func(*CallReceived) {
	return func(d *CallReceived) { d.Capabilities = jsontext.Value(capabilities) }
}

// exchange is the last request that was sent for a call.
func (w *world) exchange(id string) Send {
	w.t.Helper()
	for i := len(w.sends) - 1; i >= 0; i-- {
		if w.sends[i].Call == "local/"+id {
			return w.sends[i]
		}
	}
	w.t.Fatalf("nothing was sent for %s", id)
	return Send{}
}

// attempts counts the requests that were sent for a call.
func (w *world) attempts(id string) int {
	n := 0
	for _, x := range w.sends {
		if x.Call == "local/"+id {
			n++
		}
	}
	return n
}

var complete = Facts{Kind: FactResult, ResultType: "complete"}

func asks(names ...string) Facts {
	return Facts{Kind: FactResult, ResultType: "input_required", Asks: names}
}

func rejects(code int64) Facts { return Facts{Kind: FactError, ErrorCode: code} }

func (w *world) answers(id string, f Facts, state ...string) []Event {
	w.t.Helper()
	x := w.exchange(id)
	d := CallAnswered{CallID: CallID{Host: "local", ID: id}, At: x.At, RequestID: x.RequestID, Facts: f}
	if len(state) > 0 {
		d.RequestState = &Payload{Size: int64(len(state[0])), HMAC: state[0]}
	}
	return w.see(d)
}

func (w *world) loses(id, written string) []Event {
	w.t.Helper()
	x := w.exchange(id)
	return w.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Call: x.Call, Written: written, Code: CodeTransportLost})
}

// passes lets the deadline of a call pass.
func (w *world) passes(id string, silent bool) []Event {
	w.t.Helper()
	x := w.exchange(id)
	return w.see(DeadlinePassed{At: x.At, RequestID: x.RequestID, Call: x.Call, Written: "maybe", Silent: silent})
}

func (w *world) waited(id string) []Event { return w.see(WaitPassed{CallID{"local", id}}) }

func (w *world) ms(n int64) { w.now += n * 1_000_000 }

func (w *world) revives(peer string) []Event {
	return w.see(OperatorCommanded{By: "oncall", Verb: VerbRevive, Peer: peer})
}

func (w *world) resends(id string) []Event {
	return w.see(OperatorCommanded{By: "oncall", Verb: VerbResend, Call: "local/" + id, Arguments: &Payload{Size: 2, HMAC: "of " + id}})
}

// goesOn submits the input that a call asked for.
func (w *world) goesOn(id, tool, state string, change ...func(*CallReceived)) []Event {
	return w.submit(id, tool, append([]func(*CallReceived){func(d *CallReceived) {
		d.Input = &Payload{Size: 4}
		if state != "" {
			d.RequestState = &Payload{Size: int64(len(state)), HMAC: state}
		}
	}}, change...)...)
}

// end says how decisions ended a call: its status, code and whether it ran;
// "refused CODE" for a refusal, "" for no end.
func end(events []Event) string {
	if d, ok := find[CallRefused](events); ok {
		return "refused " + string(d.Code)
	}
	d, ok := find[CallSettled](events)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s %s %s", d.Status, d.Code, d.Ran)
}

// ends checks how decisions ended a call.
func ends(t testing.TB, events []Event, want string) {
	t.Helper()
	if got := end(events); got != want {
		t.Fatalf("ended as %q, want %q: %v", got, want, kinds(events))
	}
}

// idle checks that nothing is under way, at any peer.
func (w *world) idle() {
	w.t.Helper()
	if w.s.InFlight() != 0 || len(w.s.byRequest) != 0 {
		w.t.Errorf("%d calls and %d requests are under way", w.s.InFlight(), len(w.s.byRequest))
	}
	for name, p := range w.s.peers { // order-free: each is looked at alone
		if p.calls != 0 {
			w.t.Errorf("%d calls are counted at %s", p.calls, name)
		}
	}
}
