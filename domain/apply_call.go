package domain

import "strings"

// endedWindow is how long an operator may send a call again that was lost or
// timed out: 24 hours, in nanoseconds.
const endedWindow = 24 * 60 * 60 * 1_000_000_000

func (s *State) applyCall(e Event) {
	switch d := e.Data.(type) {
	case CallRouted:
		s.applyRouted(e, d)
	case CallResent:
		s.applyResent(e, d)
	case CallHeld:
		s.applyHeld(e, d)
	case CallRefused:
		s.applyCallRefused(e, d)
	case CallSettled:
		s.applySettled(e.Time, d)
	case CallJoined:
		s.applyJoined(d)
	}
}

// applyCallRefused ends a call that is held. What is refused as it is submitted
// never was a call: the one under its id, if there is one, is another.
func (s *State) applyCallRefused(e Event, d CallRefused) {
	if c := s.calls[d.CallKey()]; c != nil && e.Cause != s.receivedSeq {
		s.detach(c)
		s.keys.giveBack(c)
	}
}

// attach puts a request of a call under way.
func (s *State) attach(c *call, at At, request int64) {
	s.detach(c)
	s.nextRequest = max(s.nextRequest, request)
	c.at, c.reqID, c.held = at, request, nil
	s.calls[c.id.CallKey()], s.byRequest[request] = c, c
	if p := s.peers[at.Peer]; p != nil {
		p.calls++
	}
}

// detach ends what is under way of a call.
func (s *State) detach(c *call) {
	if s.byRequest[c.reqID] == c {
		delete(s.byRequest, c.reqID)
		if p := s.peers[c.at.Peer]; p != nil {
			p.calls--
		}
	}
	if c.held != nil {
		s.holding--
	}
	delete(s.calls, c.id.CallKey())
}

// submitted returns the record of a call that is decided on for the first time,
// or is held. One that had its id before and might have gone on is forgotten.
func (s *State) submitted(id CallID, seq int64) *call {
	if c := s.calls[id.CallKey()]; c != nil {
		return c
	}
	s.paused.take(id.CallKey())
	s.ended.take(id.CallKey())
	c := &call{id: id, seq: seq}
	if s.received.CallID == id {
		c.received, c.story, c.receivedAt = s.received, s.receivedSeq, s.receivedAt
		s.takeKey(c)
	}
	return c
}

func (s *State) applyRouted(e Event, d CallRouted) {
	c := s.submitted(d.CallID, e.Seq)
	c.owner, c.tool = Owner{Peer: d.Peer, Local: d.Local}, d.Tool
	c.era, c.declared, c.timeout, c.attempts = d.Era, d.Capabilities, d.Deadline, 1
	c.deadlineAt = e.Mono + max(d.Deadline, d.Limit)*1_000_000
	if p := s.peers[d.Peer]; p != nil {
		c.mostRounds, c.until = p.Config.InputRounds, e.Time+p.Config.InputWindow*1_000_000
	}
	s.attach(c, d.At, d.RequestID)
	if !strings.HasPrefix(d.ID, GeneratedPrefix) {
		s.ids.add(d.CallKey(), e.Time)
	}
}

func (s *State) applyResent(e Event, d CallResent) {
	key := d.CallKey()
	c := s.calls[key]
	if c == nil {
		c = s.paused.take(key)
	}
	if c == nil {
		c = s.ended.take(key)
	}
	if c == nil {
		return
	}
	c.era, c.declared, c.timeout, c.attempts = d.Era, d.Capabilities, d.Deadline, d.Attempt
	switch d.Rule {
	case RuleNeverWritten, RuleHeader, RuleCapability, RuleVersion, RuleSession: // it did not run
	case RuleOperator:
		c.mayHaveRun = c.mayHaveRun || c.ran != RanNo
	default:
		c.mayHaveRun = true
	}
	switch d.Rule {
	case RuleContinue:
		c.rounds++
	case RuleInput:
		c.rounds++
		c.deadlineAt = e.Mono + max(d.Deadline, d.Limit)*1_000_000
	case RuleOperator:
		c.deadlineAt = e.Mono + max(d.Deadline, d.Limit)*1_000_000
	default:
		c.resends++
		c.used = append(c.used, d.Rule)
	}
	s.attach(c, d.At, d.RequestID)
}

func (s *State) applyHeld(e Event, d CallHeld) {
	c := s.submitted(d.CallID, e.Seq)
	s.detach(c)
	s.holding++
	c.held = &hold{rule: d.Rule, code: d.Code, ran: d.Ran, seq: e.Seq}
	s.calls[d.CallKey()] = c
}

func (s *State) applyAnswered(d CallAnswered) {
	if c := s.waiting(d.At, d.RequestID); c != nil && c.id == d.CallID {
		c.requestState = d.RequestState
	}
	if p := s.current(d.At); p != nil {
		p.silent = 0
	}
}

// applySettled ends a call. One that asked for input may go on, and one that was
// lost may be sent again on an operator's word.
func (s *State) applySettled(now int64, d CallSettled) {
	c := s.calls[d.CallKey()]
	if c == nil {
		return
	}
	s.detach(c)
	c.held, c.ran, c.joined = nil, d.Ran, 0
	switch {
	case c.attempts == 0:
		s.keys.giveBack(c)
	case d.Status == StatusInputRequired && c.mostRounds > 0:
		s.paused.put(c, c.until+endedWindow) // a day longer: who comes too late is told so
	case d.Status == StatusLost, d.Status == StatusTimedOut:
		s.ended.put(c, now+endedWindow)
	}
}

func (s *State) applyHealth(d HealthRequested) {
	s.nextRequest = max(s.nextRequest, d.RequestID)
	if p := s.current(d.At); p != nil {
		p.health = d.RequestID
	}
}
