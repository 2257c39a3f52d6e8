package domain

// decideCommand follows an operator's command, or says why it changes nothing.
func (s *State) decideCommand(e Event, d OperatorCommanded) []Data {
	code, reason := CodeUnknownCommand, "this version knows no such command"
	switch d.Verb {
	case VerbRevive:
		out, c, r := s.decideRevive(d)
		if c == "" {
			return out
		}
		code, reason = c, r
	case VerbResend:
		out, c, r := s.decideResend(e.Mono, d)
		if c == "" {
			return out
		}
		code, reason = c, r
	case VerbApprove:
		out, c, r := s.decideApprove(e.Mono, d)
		if c == "" {
			return out
		}
		code, reason = c, r
	case VerbErase:
		out, c, r := s.decideErase(e.Time, d)
		if c == "" {
			return out
		}
		code, reason = c, r
	}
	return []Data{CommandRefused{By: d.By, Verb: d.Verb, Peer: d.Peer, Call: d.Call, Tool: d.Tool, Code: code, Reason: reason}}
}

// decideRevive starts a peer that is down, from the beginning: a fresh process, a
// fresh probe.
func (s *State) decideRevive(d OperatorCommanded) ([]Data, Code, string) {
	p := s.Peer(d.Peer)
	switch {
	case p == nil:
		return nil, CodeUnknownPeer, "no peer of this name is configured"
	case s.Rejected != nil:
		return nil, s.Rejected.Code, s.Rejected.Reason
	case p.Config.Refusal != "":
		return nil, p.Config.Refusal, p.Config.RefusalReason
	case p.live && !p.waiting:
		return nil, CodeNotDown, "the peer is up, or on its way"
	}
	at := At{Peer: p.Name, Incarnation: p.Incarnation + 1}
	return []Data{PeerRestarted{At: at, Attempt: 1, After: p.Code, By: d.By}}, "", ""
}

// decideResend sends a call again that was lost or timed out, with the arguments
// it was made with.
func (s *State) decideResend(mono int64, d OperatorCommanded) ([]Data, Code, string) {
	c := s.ended.get(d.Call)
	switch {
	case c == nil:
		return nil, CodeNotResendable, "only a call that was lost or timed out within 24 hours can be sent again; see waybill calls outcome"
	case c.rounds > 0:
		return nil, CodeNotResendable, "the call went through rounds of input, which are not kept; start a new one"
	case c.erased:
		return nil, CodePayloadNotKept, "what was kept of the call was erased, so that no arguments can be known to be its own; start a new one"
	case d.Arguments == nil:
		return nil, CodePayloadNotKept, "arguments are not kept: give those that the call was made with"
	case *d.Arguments != c.received.Arguments:
		return nil, CodePayloadNotKept, "these are not the arguments that the call was made with, byte for byte"
	}
	if code, reason := s.Peer(c.owner.Peer).closedFor(c.owner, c.received.Context, mono); code != "" {
		return nil, code, reason
	}
	if code, reason := s.crowded(); code != "" {
		return nil, code, reason
	}
	if code, reason := s.Peer(c.owner.Peer).crowded(taken{}); code != "" {
		return nil, code, reason
	}
	again, ok := s.resend(mono, c, RuleOperator, d.By, 0)
	if !ok {
		return nil, CodePeerUnavailable, "the peer cannot take the call now"
	}
	return []Data{again}, "", ""
}
