package domain

import (
	"fmt"
	"strings"
)

// mix spreads an argument, so that what is chosen by it does not depend on which
// request it is about.
func (d *driver) mix(arg byte, n int) int { return (int(arg) + len(d.w.log)) % n }

// stepCall feeds what concerns calls, or any request that was ever sent.
func (d *driver) stepCall(op, arg byte) {
	if op == opCall {
		d.submit(arg)
		return
	}
	if len(d.w.sends) == 0 {
		return
	}
	x := d.w.sends[max(0, len(d.w.sends)-1-int(255-arg)%16)]
	if open := d.ref.book.find(sent); len(open) > 0 && d.mix(arg, 4) > 0 {
		s := open[int(arg)%len(open)]
		x = Send{At: s.at, RequestID: s.request, Call: s.key}
	}
	switch op {
	case opAnswered:
		d.answer(x, arg)
	case opFailed:
		d.w.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Written: []string{"no", "maybe"}[d.mix(arg, 2)],
			Code: []Code{CodeTransportLost, CodeTransportLost, CodeRequestTooLarge, CodeFrameTooLarge}[d.mix(arg/2, 4)]})
	case opDeadline:
		d.w.see(DeadlinePassed{At: x.At, RequestID: x.RequestID, Silent: d.mix(arg, 4) > 0, Written: []string{"", "no", "maybe"}[d.mix(arg, 3)]})
	}
}

// submit feeds a call. The high bits of the argument choose what it says besides
// its tool.
func (d *driver) submit(arg byte) {
	id := CallID{"local", fmt.Sprint("c", arg%8)}
	c := CallReceived{CallID: id, Tool: []string{"x", "y", "a/x", "b/x", "b__x", "none"}[int(arg/8)%6], Arguments: Payload{Size: int64(arg)}}
	c.CarriesKey = d.mix(arg, 2) == 0
	switch arg / 64 {
	case 1:
		c.Generation = int64(1 + d.mix(arg, 3))
	case 2:
		c.Wait = 1_000 + int64(arg)*100
	case 3:
		c.Timeout, c.Limit, c.Progress = 500, 90_000, true
	}
	if d.mix(arg/8, 3) > 0 {
		c.Capabilities = []byte(`{"elicitation":{"form":{}},"sampling":{}}`)
	}
	if d.mix(arg/4, 3) == 0 {
		c.Key, c.Same = fmt.Sprint("k", d.mix(arg, 4)), fmt.Sprint("s", d.mix(arg/16, 8)/7)
	}
	d.see(c)
}

// see feeds a submission under the id that the harness gives it.
func (d *driver) see(c CallReceived) {
	taken := d.w.s.CallTaken(c.CallKey())
	if first, ok := d.w.s.KeyTaken(d.w.now, c); ok && first == c.CallID {
		taken = true
	}
	if c.goesOn() {
		taken = !d.w.s.Continues(d.w.now, d.w.now, c)
	}
	if taken {
		c.DuplicateOf, c.ID = c.ID, fmt.Sprint(GeneratedPrefix, len(d.w.log))
	}
	d.w.see(c)
}

// driveAnswers are what a peer may answer to a call.
func driveAnswers() []Facts {
	asks := func(names ...string) Facts {
		return Facts{Kind: FactResult, ResultType: "input_required", Asks: names}
	}
	return []Facts{
		{Kind: FactResult, ResultType: "complete"}, {Kind: FactResult}, {Kind: FactBroken}, {Kind: FactError, ErrorCode: -32602},
		{Kind: FactError, ErrorCode: -32022}, {Kind: FactError, ErrorCode: -32022, Supported: "2026-07-28"}, {Kind: FactError, ErrorCode: -32020},
		{Kind: FactError, ErrorCode: -32021, Required: []string{"elicitation.form"}}, {Kind: FactError, ErrorCode: -32021, Required: []string{"?"}},
		asks("elicitation.form"), asks("elicitation.form"), asks("roots"), asks(), asks(),
		{Kind: FactResult, ResultType: "complete", Schema: SchemaInvalid}, {Kind: FactResult, ResultType: "complete", IsError: true},
	}
}

func (d *driver) answer(x Send, arg byte) {
	host, id, _ := strings.Cut(x.Call, "/")
	all := driveAnswers()
	a := CallAnswered{CallID: CallID{host, id}, At: x.At, RequestID: x.RequestID, Facts: all[d.mix(arg, len(all))]}
	if a.Facts.ResultType == "input_required" && d.mix(arg, 3) > 0 {
		a.RequestState = &Payload{Size: 1, HMAC: fmt.Sprint(x.RequestID)}
	}
	d.w.see(a)
}

// crash ends a process as the harness reports it: first what was under way, then
// the process.
func (d *driver) crash(at At, arg byte) {
	for _, s := range d.ref.book.find(sent) {
		if s.at == at {
			d.w.see(ExchangeFailed{At: at, RequestID: s.request, Call: s.key, Written: []string{"maybe", "maybe", "no"}[d.mix(arg, 3)], Code: CodeTransportLost})
		}
	}
	d.w.see(PeerExited{At: at, Status: 1, Cause: "exited"})
}

// stepStory feeds what concerns calls by their name: of those that are as the
// observation expects them, or of one that never was.
func (d *driver) stepStory(op, arg byte, peer string) {
	s := d.pick(map[byte]string{opContinue: paused, opWaited: held, opCancelled: sent, opCommand: lostCall}[op], arg)
	id := CallID{Host: s.first.Host, ID: s.first.ID}
	switch op {
	case opContinue:
		d.goOn(s, arg/8)
	case opWaited:
		d.w.see(WaitPassed{CallID: id})
	case opCancelled:
		d.w.see(CallCancelled{CallID: id, By: "host"})
	case opCommand:
		d.command(s, arg/8, peer)
	}
}

func (d *driver) pick(phase string, arg byte) *story {
	list := d.ref.book.find(phase)
	if len(list) == 0 {
		return &story{key: "local/none", first: CallReceived{CallID: CallID{"local", "none"}, Tool: "x"}}
	}
	return list[int(arg)%len(list)]
}

// goOn submits the input that a call asked for, or something like it.
func (d *driver) goOn(s *story, how byte) {
	c := CallReceived{CallID: CallID{s.first.Host, s.first.ID}, Tool: s.first.Tool, Arguments: s.first.Arguments,
		Input: &Payload{Size: 3}, RequestState: s.state}
	switch how {
	case 1:
		c.Tool = "y"
	case 2:
		c.Arguments.Size++
	case 3:
		c.RequestState = &Payload{Size: 9}
	case 4:
		c.Input = nil
	case 5:
		c.Host = "other"
	case 6:
		c.Wait = 5_000
	}
	if !c.goesOn() {
		c.Input = &Payload{}
	}
	d.see(c)
}

func (d *driver) command(s *story, how byte, peer string) {
	c := OperatorCommanded{By: "oncall", Verb: VerbResend, Call: s.key, Arguments: &s.first.Arguments}
	switch how {
	case 1:
		c.Arguments = nil
	case 2:
		c.Arguments = &Payload{Size: 999}
	case 3:
		c.Verb = "explode"
	}
	if how > 3 {
		c = OperatorCommanded{By: "oncall", Verb: VerbRevive, Peer: peer}
	}
	d.w.see(c)
}
