package domain

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// resendWait bounds how long a call that is to be sent again by itself waits for
// its peer, in milliseconds.
const resendWait = 5_000

// decideAnswered ends the exchange whose request was answered: the call is
// settled, or goes on with another exchange where a rule says so. An answer whose
// exchange has ended changes nothing.
func (s *State) decideAnswered(e Event, d CallAnswered) []Data {
	c := s.waiting(d.At, d.RequestID)
	if c == nil || c.id != d.CallID {
		return []Data{AnswerDropped{At: d.At, RequestID: d.RequestID, Reason: "the call has ended"}}
	}
	if rule := c.rejected(s.Peer(c.at.Peer), d.Facts); rule != "" {
		if p := s.Peer(c.at.Peer); rule == RuleHeader && p.http() {
			if held := s.decideReread(e.Mono, c, p); held != nil {
				return held
			}
		}
		if again, ok := s.resend(e.Mono, c, rule, "", 0); ok {
			return []Data{again}
		}
	}
	if c.continues(d) {
		return s.decideContinue(e.Mono, c)
	}
	status, code, ran := c.settle(s.Peer(c.at.Peer), d.Facts)
	out := []Data{CallSettled{CallID: c.id, Status: status, Code: code, Ran: ran}}
	return append(out, s.decideUnknown(e.Mono, c, d.Facts)...)
}

// rejected names the rule by which a call is sent again that the peer rejected
// before running it; "" for none. Each rule holds once.
func (c *call) rejected(p *Peer, f Facts) string {
	if p == nil || c.era != EraModern || f.Kind != FactError || c.resends >= p.Config.Resends {
		return ""
	}
	rule := ""
	switch f.ErrorCode {
	case rpcHeaderMismatch:
		rule = RuleHeader
	case rpcCapabilityMissing:
		if allowed := p.declared(c.received); Covers(allowed, f.Required) && !Covers(c.declared, f.Required) {
			rule = RuleCapability
		}
	case rpcVersionRefused:
		if f.Supported != "" {
			rule = RuleVersion
		}
	}
	if slices.Contains(c.used, rule) {
		return ""
	}
	return rule
}

// continues reports whether an answer asks for nothing but to be asked again
// (specification, basic/patterns/mrtr, "Client Requirements").
func (c *call) continues(d CallAnswered) bool {
	f := d.Facts
	return c.era == EraModern && f.Kind == FactResult && f.ResultType == resultInput && len(f.Asks) == 0 &&
		d.RequestState != nil && c.mostRounds > 0
}

// decideContinue asks again with the requestState, inside the time of the
// exchange it goes on with.
func (s *State) decideContinue(mono int64, c *call) []Data {
	if c.rounds >= c.mostRounds {
		return []Data{CallSettled{CallID: c.id, Status: StatusProtocolError, Code: CodeTooManyRounds, Ran: RanMaybe}}
	}
	if again, ok := s.resend(mono, c, RuleContinue, "", 0); ok {
		return []Data{again}
	}
	if c.left(mono) < 1 {
		return []Data{CallSettled{CallID: c.id, Status: StatusTimedOut, Code: CodeTimedOut, Ran: RanMaybe}}
	}
	return []Data{CallSettled{CallID: c.id, Status: StatusLost, Code: CodePeerUnavailable, Ran: RanMaybe}}
}

// settle decides how an answered call ends.
func (c *call) settle(p *Peer, f Facts) (Status, Code, Ran) {
	status, code, ran := f.settle(c.era)
	if ran == RanNo && c.mayHaveRun {
		ran = RanMaybe
	}
	switch {
	case status == StatusInputRequired && !Covers(c.declared, f.Asks):
		return StatusProtocolError, CodeUndeclaredInput, RanMaybe
	case status == StatusInputRequired && c.mostRounds > 0 && len(f.Asks) == 0 && c.requestState == nil:
		return StatusProtocolError, CodeBadResult, RanMaybe // it asks for nothing
	case status == StatusInputRequired && c.mostRounds > 0 && c.rounds >= c.mostRounds:
		return StatusProtocolError, CodeTooManyRounds, RanMaybe
	case status == StatusComplete && f.Schema == SchemaInvalid && p != nil && p.Config.RefuseOutput:
		return StatusProtocolError, CodeOutputInvalid, RanYes
	}
	return status, code, ran
}

// left is what is left of the time of the call's exchange, in milliseconds.
func (c *call) left(mono int64) int64 { return (c.deadlineAt - mono) / 1_000_000 }

// resend makes the next exchange of a call with the peer it went to; false where
// the peer cannot take it now or no time is left. skip is how many request ids
// were taken by decisions that are not applied yet.
func (s *State) resend(mono int64, c *call, rule, by string, skip int64) (CallResent, bool) {
	p := s.Peer(c.owner.Peer)
	if code, _ := p.closedFor(c.owner, c.received.Context, mono); code != "" || c.needsModern(rule) && p.Era != EraModern {
		return CallResent{}, false
	}
	t := p.timing(c.received)
	if rule != RuleInput && rule != RuleOperator {
		left := c.left(mono)
		if left < 1 {
			return CallResent{}, false
		}
		t = t.within(left)
	}
	return CallResent{CallID: c.id, At: p.at(), RequestID: s.nextRequest + 1 + skip, After: c.reqID, Attempt: c.attempts + 1,
		Rule: rule, By: by, Local: c.owner.Local, Era: p.Era, Version: p.Version, Capabilities: p.declared(c.received),
		Deadline: t.deadline, Idle: t.idle, Limit: t.limit, Progress: t.progress, Context: contextWord(p.asked(contextKey(c.received.Context)))}, true
}

// needsModern reports whether an exchange carries what only the modern era has: a
// host's input, or a requestState.
func (c *call) needsModern(rule string) bool {
	return c.rounds > 0 && rule != RuleOperator || rule == RuleInput || rule == RuleContinue
}

// lost names the rule by which a call is sent again whose transport was lost; ""
// for none. Sent again by itself is only what certainly never reached the peer,
// or may run twice on the operator's word (protocol: Calls).
func (c *call) lost(p *Peer, written string, code Code) string {
	switch {
	case p == nil || c.resends >= p.Config.Resends:
		return ""
	case written == "no" && code == CodeTransportLost:
		return RuleNeverWritten
	case code == CodeSessionGone && !slices.Contains(c.used, RuleSession):
		return RuleSession
	case code != CodeTransportLost:
		return ""
	case slices.Contains(p.Config.Repeatable, c.owner.Local):
		return RuleRepeatable
	case c.received.CarriesKey && p.Config.Idempotency[c.owner.Local] != "":
		return RuleKey
	case p.Config.TrustHints && p.harmless(c):
		return RuleHints
	}
	return ""
}

// harmless reports whether a tool's own hints say that it may run twice.
func (p *Peer) harmless(c *call) bool {
	list, _ := p.catalogFor(contextKey(c.received.Context))
	if list == nil {
		return false
	}
	hints := object(object(list.Definition(c.owner.Local))["annotations"])
	return hints["readOnlyHint"].Kind() == 't' || hints["idempotentHint"].Kind() == 't'
}

// decideLost ends the exchange of a call whose transport is gone: at once, unless
// a rule lets it be sent again.
func (s *State) decideLost(mono int64, c *call, d ExchangeFailed) []Data {
	p := s.Peer(c.at.Peer)
	ran := c.ranIf(d.Written)
	if (d.Code == CodeSessionGone || d.Code == CodeUnauthorized) && !c.mayHaveRun { // it was turned away
		ran = RanNo
	}
	if rule := c.lost(p, d.Written, d.Code); rule != "" {
		if p.at() != c.at || p.http() && rule != RuleSession {
			if again, ok := s.resend(mono, c, rule, "", 0); ok {
				return []Data{again}
			}
		}
		if wait := min(resendWait, c.left(mono)); wait > 0 {
			return []Data{CallHeld{CallID: c.id, Peer: c.at.Peer, Code: d.Code, Rule: rule, Ran: ran, Wait: wait}}
		}
	}
	status := StatusLost
	switch {
	case d.Status != 0: // it was answered, with no message
		status = StatusProtocolError
	case d.unsent() && ran == RanNo:
		status = StatusRefused
	}
	return []Data{CallSettled{CallID: c.id, Status: status, Code: d.Code, Ran: ran}}
}

// unsent reports whether we kept a request from being sent: no credential could be had,
// or no header can carry an argument.
func (d ExchangeFailed) unsent() bool {
	return d.Written == "no" && (d.Code == CodeUnauthorized || d.Code == CodeHeaderUnfit || d.Code == CodeToolHeader)
}

// hold returns the decision to keep a call until its peer is ready, where the
// host said that it waits; else the refusal.
func (d CallReceived) hold(peer string, code Code, reason string) []Data {
	switch code {
	case CodePeerUnavailable, CodeEraUnknown, CodeNotReady:
		if d.Wait > 0 && !d.goesOn() {
			return []Data{CallHeld{CallID: d.CallID, Peer: peer, Code: code, Ran: RanNo, Wait: d.Wait}}
		}
	}
	return []Data{CallRefused{CallID: d.CallID, Code: code, Reason: reason}}
}

// decideHeld looks at the calls that are held, in the order of their arrival:
// names and peers have changed. Names that were merged for one context are no
// occasion to look up a call of another, whose own may be merged next.
func (s *State) decideHeld(e Event) []Data {
	var out []Data
	merged, named := e.Data.(NamespaceMerged)
	claimed := taken{calls: map[string]int{}}
	for _, c := range s.unended() {
		if c.held == nil || named && c.held.rule == "" && contextKey(merged.Context) != contextKey(c.received.Context) {
			continue
		}
		var d Data
		if c.held.rule != "" {
			d = s.release(e.Mono, c, claimed.ids)
		} else {
			d = s.routeHeld(e, c, claimed)
		}
		switch x := d.(type) {
		case nil:
			continue
		case CallRouted:
			claimed.add(x.Peer)
		case CallResent:
			claimed.add(x.Peer)
		}
		out = append(out, d)
	}
	return out
}

// release sends a held call again if its peer is ready; nil if it waits on. The
// configuration in force has the last word on whether it may.
func (s *State) release(mono int64, c *call, ids int64) Data {
	p := s.Peer(c.owner.Peer)
	if s.rereading(c) {
		return nil
	}
	if code, _ := s.Config.permits(c.received, c.tool, c.owner.Peer); code != "" || s.unreread(c) {
		return c.notSent()
	}
	rule := c.heldRule(p)
	if again, ok := s.resend(mono, c, rule, "", ids); ok && rule != "" {
		return again
	}
	if code, _ := p.closedFor(c.owner, c.received.Context, mono); code == CodeUnknownTool || rule == "" {
		return c.notSent()
	}
	return nil
}

// notSent ends a call that was held to be sent again, and is not. One that its peer
// had answered is not lost.
func (c *call) notSent() CallSettled {
	status := StatusLost
	if c.held.rule == RuleHeader {
		status = StatusProtocolError
	}
	return CallSettled{CallID: c.id, Status: status, Code: c.held.code, Ran: c.held.ran}
}

// heldRule names the rule by which a held call is sent again; "" where the
// configuration in force does not let it.
func (c *call) heldRule(p *Peer) string {
	if c.held.rule == RuleHeader && p != nil && c.resends < p.Config.Resends {
		return RuleHeader
	}
	return c.lost(p, c.held.written(), c.held.code)
}

// written says whether the request that was lost may have reached the peer.
func (h *hold) written() string {
	if h.ran == RanNo {
		return "no"
	}
	return "maybe"
}

// decideRoom gives the place of a call that has ended to the first that waits for
// one. A peer whose transport is lost, or that is about to be given up, has none.
func (s *State) decideRoom(e Event, d CallSettled) []Data {
	if s.holding == 0 || d.Code == CodeTransportLost {
		return nil
	}
	for _, c := range s.unended() {
		if c.held == nil || c.held.rule != "" {
			continue
		}
		r, ok := s.routeHeld(e, c, taken{}).(CallRouted)
		if ok && len(s.Peer(r.Peer).decideHung()) == 0 {
			return []Data{r}
		}
	}
	return nil
}

// routeHeld routes a held call if it can go now; nil if it waits on.
func (s *State) routeHeld(e Event, c *call, claimed taken) Data {
	for _, d := range s.route(e, c.received, claimed) {
		switch x := d.(type) {
		case CallRouted:
			return d
		case CallRefused:
			if x.Code != CodeOverloaded { // it waits for a place, see decideRoom
				return d
			}
		}
	}
	return nil
}

// decideWaited ends a call whose peer did not become ready in time.
func (s *State) decideWaited(d WaitPassed) []Data {
	c := s.calls[d.CallKey()]
	switch {
	case c == nil || c.held == nil:
		return nil
	case c.held.rule == "":
		return []Data{CallRefused{CallID: c.id, Code: c.held.code,
			Reason: fmt.Sprintf("the peer was not ready within %d ms (wait_ms)", c.received.Wait)}}
	}
	return []Data{c.notSent()}
}

// decideGivenUp ends the calls that wait to be sent again to a peer that will not
// be back in time.
func (s *State) decideGivenUp(peer string) []Data {
	var out []Data
	for _, c := range s.unended() {
		if c.held != nil && c.held.rule != "" && c.owner.Peer == peer {
			out = append(out, c.notSent())
		}
	}
	return out
}

// OutputSchema is what the result of a routed call is checked against: that of
// the tool as its peer last listed it; nil where it names none. It aliases the
// state.
func (s *State) OutputSchema(key string) jsontext.Value {
	c := s.calls[key]
	if c == nil {
		return nil
	}
	p := s.Peer(c.owner.Peer)
	if p == nil {
		return nil
	}
	list, _ := p.catalogFor(contextKey(c.received.Context))
	if list == nil {
		return nil
	}
	return object(list.Definition(c.owner.Local))["outputSchema"]
}

// CarriesKey reports whether arguments hold a non-empty string under the name
// that the tool is configured to honour as an idempotency key.
func (s *State) CarriesKey(d CallReceived, arguments jsontext.Value) bool {
	b, ok := s.bound(d)
	if !ok {
		return false
	}
	p := s.Peer(b.owner.Peer)
	if p == nil || p.Config.Idempotency[b.owner.Local] == "" {
		return false
	}
	key, ok := text(object(arguments)[p.Config.Idempotency[b.owner.Local]])
	return ok && key != ""
}
