package domain

func (d PayloadsErased) effect(seq int64) Erase {
	x := Erase{Seq: seq, Call: d.Call, Host: d.Host, Before: d.Before}
	if d.Before != 0 && d.By == "" {
		x.Only = keptBy(d.Outcomes)
	}
	return x
}

// Kept says by what something is kept of a call.
type Kept string

// What keeps.
const (
	KeptPayloads Kept = "payloads" // keep_payloads of the peer: arguments, results and input, for payload_retention
	KeptOutcome  Kept = "outcome"  // an idempotency key: what the peer answers, for idempotency_window
)

func keptBy(outcome bool) Kept {
	if outcome {
		return KeptOutcome
	}
	return KeptPayloads
}

// Covers reports whether the decision erases what is kept of a call that was
// received, with the first event of its story, before it.
func (d PayloadsErased) Covers(received Event) bool {
	r, ok := received.Data.(CallReceived)
	switch {
	case !ok || !r.Kept:
		return false
	case d.Call != "":
		return r.CallKey() == d.Call
	case d.Host != "":
		return r.Host == d.Host
	}
	return received.Time < d.Before*1_000_000 && (d.By != "" || d.Outcomes == r.OutcomeOnly)
}

// applyErased marks the calls that may still go on: what they would be compared
// with is gone, and nothing more of them is kept.
func (s *State) applyErased(d PayloadsErased) {
	mark := func(c *call) { c.erased = c.erased || d.Covers(Event{Time: c.receivedAt, Data: c.received}) }
	for _, c := range s.calls { // order-free: each is marked alone
		mark(c)
	}
	for _, shelf := range []shelf{s.paused, s.ended} {
		for _, e := range shelf.kept { // order-free: each is marked alone
			mark(e.call)
		}
	}
}

// decideErase follows the order to erase what is kept of some calls. That nothing
// is kept of them is no reason to refuse it.
func (s *State) decideErase(now int64, d OperatorCommanded) ([]Data, Code, string) {
	given := 0
	for _, is := range []bool{d.Call != "", d.Host != "", d.OlderThan != 0} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, CodeBadRequest, "name what to erase by one of call, host and older_than_ms"
	case d.OlderThan < 0:
		return nil, CodeBadRequest, "older_than_ms must be more than 0"
	}
	out := PayloadsErased{By: d.By, Call: d.Call, Host: d.Host, Calls: d.Calls}
	if d.OlderThan != 0 {
		out.Before = max(1, now/1_000_000-d.OlderThan)
	}
	return []Data{out}, "", ""
}

// decideRetention erases what has been kept for as long as the configuration says.
func (s *State) decideRetention(now int64, d RetentionPassed) []Data {
	if d.Outcomes {
		return []Data{PayloadsErased{Before: max(1, (now-s.Config.IdempotencyWindow())/1_000_000), Calls: d.Calls, Outcomes: true}}
	}
	if s.Config.Retention == 0 {
		return nil
	}
	return []Data{PayloadsErased{Before: max(1, now/1_000_000-s.Config.Retention), Calls: d.Calls}}
}

// Keeps reports whether payloads of a call to a tool are to be kept: the peer that
// owns the name says so. Of a name that nobody owns nothing is kept.
func (s *State) Keeps(d CallReceived) bool {
	b, ok := s.bound(d)
	return ok && s.KeepsOf(b.owner.Peer)
}

// KeepsOutcome reports whether of a call that is kept only the outcome is: it has a
// key, and its peer keeps nothing, or for a shorter time than its outcome must be.
//
// Which peer a call goes to that waits for the names is not known yet.
func (s *State) KeepsOutcome(d CallReceived) bool {
	b, ok := s.bound(d)
	switch {
	case d.Key == "" || !ok:
		return d.Key != "" && d.Wait > 0
	case !s.KeepsOf(b.owner.Peer):
		return true
	}
	return s.Config.Retention > 0 && s.Config.Retention*1_000_000 < s.Config.IdempotencyWindow()
}

// bound finds who owns the name that a call means, in its context.
func (s *State) bound(d CallReceived) (binding, bool) {
	ns := s.space(d.Context)
	if ns == nil {
		return binding{}, false
	}
	name, code, _ := ns.canonical(d)
	b, ok := ns.bindings[name]
	return b, ok && code == ""
}

// KeepsOf reports whether payloads of the calls of a peer are to be kept.
func (s *State) KeepsOf(peer string) bool {
	p := s.Peer(peer)
	return p != nil && p.Config.Keep
}

// KeepsAnswer reports whether an answer to a call under way is to be kept: by its
// peer, as the configuration is now, or for its key.
func (s *State) KeepsAnswer(d CallAnswered) bool {
	c := s.calls[d.CallKey()]
	return c != nil && (s.KeepsOf(d.Peer) || c.received.OutcomeOnly)
}

// OutcomeOnly reports whether of a call that may go on only the outcome is kept.
func (s *State) OutcomeOnly(key string) bool {
	c := s.ongoing(key)
	return c != nil && c.received.OutcomeOnly
}

// ongoing finds a call that is under way or may go on.
func (s *State) ongoing(key string) *call {
	c := s.calls[key]
	if c == nil {
		c = s.paused.get(key)
	}
	if c == nil {
		c = s.ended.get(key)
	}
	return c
}

// Kept returns the seq of the call.received with which the payloads of a call
// began to be kept. ok is false for a call that has ended for good, of which
// nothing is kept, or what was kept has been erased.
func (s *State) Kept(key string) (story int64, ok bool) {
	c := s.ongoing(key)
	if c == nil || !c.received.Kept || c.erased {
		return 0, false
	}
	return c.story, true
}
