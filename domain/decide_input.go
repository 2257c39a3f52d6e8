package domain

// sameBytes reports whether two payloads stand for the same bytes, or are both
// absent. Keyed digests under one key can be compared.
func sameBytes(a, b *Payload) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// goesOn reports whether a submission goes on with a call that asked for input.
func (d CallReceived) goesOn() bool { return d.Input != nil || d.RequestState != nil }

// Continues reports whether a submission goes on with its call, so that it
// becomes part of that call's story. Any other is one of its own, and is refused:
// the call goes on waiting.
func (s *State) Continues(now, mono int64, d CallReceived) bool {
	if code, _ := s.admitCall(d); code != "" {
		return false
	}
	for _, next := range s.decideContinuation(Event{Time: now, Mono: mono}, d) {
		if _, ok := next.(CallResent); ok {
			return true
		}
	}
	return false
}

// continuation finds the call that a submission goes on with, and what is wrong
// with the submission: it must name the call, repeat tool and arguments byte for
// byte, and bring inputResponses and the exact requestState, to the same peer and
// tool (specification, basic/patterns/mrtr, "Client Requirements").
func (s *State) continuation(e Event, d CallReceived) (*call, Code, string) {
	id := d.CallID
	if d.DuplicateOf != "" {
		id.ID = d.DuplicateOf
	}
	c := s.paused.get(id.CallKey())
	switch {
	case c == nil:
		return nil, CodeNotWaiting, "this call asks for no input: it has ended, is under way, or never was; see waybill calls outcome"
	case e.Time > c.until:
		return nil, CodeInputExpired, "the call asked for input too long ago (input_window); start a new one"
	case c.erased:
		return nil, CodeInputMismatch, "what was kept of the call was erased, and with it what the submission would be compared with; start a new one"
	case d.Tool != c.received.Tool || d.Form != c.received.Form || d.Context != c.received.Context || d.Arguments != c.received.Arguments:
		return nil, CodeInputMismatch, "tool and arguments must be those of the call, byte for byte"
	case d.Input == nil:
		return nil, CodeInputMismatch, "inputResponses are missing: one for each of the inputRequests"
	case !sameBytes(d.RequestState, c.requestState):
		return nil, CodeInputMismatch, "requestState must be the exact string that came with the input_required, and absent if none came"
	}
	if code, reason := s.Config.allows(d.Host, c.tool, c.owner.Peer); code != "" {
		return nil, code, reason
	}
	if code, reason := s.Peer(c.owner.Peer).closedFor(c.owner, c.received.Context, e.Mono); code != "" {
		return nil, code, reason
	}
	return c, "", ""
}

// decideContinuation sends the host's input on, or refuses the submission: the
// call goes on waiting then.
func (s *State) decideContinuation(e Event, d CallReceived) []Data {
	c, code, reason := s.continuation(e, d)
	if code == "" && d.DuplicateOf != "" {
		code, reason = CodeInputMismatch, "the submission came under an id of its own"
	}
	if code == "" {
		code, reason = s.Peer(c.owner.Peer).crowded(taken{})
	}
	if code == "" {
		if again, ok := s.resend(e.Mono, c, RuleInput, d.Host, 0); ok {
			return []Data{again}
		}
		code, reason = CodePeerUnavailable, "the peer cannot take the call now"
	}
	return []Data{CallRefused{CallID: d.CallID, Code: code, Reason: reason}}
}
