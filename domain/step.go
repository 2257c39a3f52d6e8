package domain

import "slices"

// Step applies one observation and returns it, numbered, followed by every
// decision it leads to, in order. The state is advanced past all of them. The
// caller makes the whole sequence durable before it releases an effect.
//
// Observation must have Time, Mono, Data and Evidence set; Seq and Cause are
// assigned here.
func (s *State) Step(o Event) []Event {
	t := s.Begin(o)
	out := []Event{t.Observation()}
	for e, ok := t.Due(0); ok; e, ok = t.Due(0) {
		t.Drop(1)
		t.Take(e)
		out = append(out, e)
	}
	return out
}

// moot reports whether a decision has been overtaken by one that was applied after
// it was made: two lists that are accepted at once lead to the same names, and to
// the same calls that waited for them.
func (s *State) moot(cause int64, data Data) bool {
	switch d := data.(type) {
	case NamespaceMerged:
		ns := s.space(d.Context)
		// One whose digest is not that of the lists by now is followed by another.
		return ns != nil && (ns.merged && len(ns.touched()) == 0 || s.digestOf(ns) != d.Digest)
	case CollisionDecided:
		ns := s.space(d.Context)
		old, known := ns.collisions[d.Name]
		return known && old.seq > cause && old.policy == d.Policy && slices.Equal(old.Candidates, d.Candidates) && sameOwner(old.Winner, d.Winner)
	case NameMoved:
		return s.space(d.Context).lastOwner[d.Name] == d.To
	case NameFlagged:
		_, bound := s.space(d.Context).bindings[d.Name]
		return bound
	case CallRouted:
		c := s.calls[d.CallKey()]
		return cause != s.receivedSeq && (c == nil || c.held == nil)
	case CallRefused:
		c := s.calls[d.CallKey()]
		return cause != s.receivedSeq && (c == nil || c.held == nil)
	case CallSettled:
		return s.calls[d.CallKey()] == nil
	case CallResent:
		c := s.calls[d.CallKey()]
		return c != nil && c.held == nil && c.reqID != d.After
	}
	return false
}

// numbered gives a request an id that no decision before it has taken.
func (s *State) numbered(data Data) Data {
	next := s.nextRequest + 1
	switch d := data.(type) {
	case ProbeIssued:
		d.RequestID = max(d.RequestID, next)
		return d
	case ListRequested:
		d.RequestID = max(d.RequestID, next)
		return d
	case SubscriptionRequested:
		d.RequestID = max(d.RequestID, next)
		return d
	case HealthRequested:
		d.RequestID = max(d.RequestID, next)
		return d
	case CallRouted:
		d.RequestID = max(d.RequestID, next)
		return d
	case CallResent:
		d.RequestID = max(d.RequestID, next)
		return d
	}
	return data
}

// Decide returns what follows from an event that has just been applied. It
// changes nothing. A decision may lead to further ones: an era to a list, a
// list to a merge.
func (s *State) Decide(e Event) []Data {
	if s.Stopped {
		return s.decideStopped(e)
	}
	switch d := e.Data.(type) {
	case ServiceStarted:
		return s.endCalls(StatusLost, CodeServiceRestarted)
	case ConfigLoaded:
		return s.decideConfig(e)
	case PeerSpawned:
		return s.decideSpawned(d)
	case SpawnFailed:
		return s.decideSpawnFailed(d)
	case PeerExited:
		return s.decideExited(e.Mono, d)
	case ProbeAnswered:
		return s.decideProbeAnswered(e, d)
	case ProbeFailed:
		return s.decideProbeFailed(d)
	case CatalogListed:
		return s.decideListed(d)
	case CallReceived:
		return s.decideCall(e, d)
	case CallAnswered:
		return s.decideAnswered(e, d)
	case CallCancelled:
		return s.decideCancelled(d)
	case ExchangeFailed:
		return s.decideFailed(e.Mono, d)
	case DeadlinePassed:
		return s.decideDeadline(d)
	case WaitPassed:
		return s.decideWaited(d)
	case HealthDue:
		return s.decideHealthDue(d)
	case OperatorCommanded:
		return s.decideCommand(e, d)
	case RetentionPassed:
		return s.decideRetention(e.Time, d)
	}
	return s.decideFollowing(e)
}

// decideFollowing is Decide for what is said of lists and subscriptions.
func (s *State) decideFollowing(e Event) []Data {
	switch d := e.Data.(type) {
	case ListChanged:
		return s.decideChanged(e.Mono, d)
	case ListDue:
		return s.decideDue(e.Mono, d)
	case ToolsRead:
		return s.decideRead(e.Mono, d)
	case SubscriptionAcknowledged:
		return s.decideAcknowledged(e, d)
	case SubscriptionEnded:
		return s.decideSubscriptionEnded(e.Mono, d)
	case SubscriptionDue:
		return s.decideSubscriptionDue(e.Mono, d)
	}
	return s.decideFurther(e)
}

// decideFurther is Decide for decisions that lead to others.
func (s *State) decideFurther(e Event) []Data {
	switch d := e.Data.(type) {
	case PeerRefused:
		return s.decideClosed(e.Mono, d.Peer, d.Code)
	case EraRefused:
		return s.decideClosed(e.Mono, d.Peer, d.Code)
	case PeerRestarted:
		if d.Delay > resendWait {
			return s.decideGivenUp(d.Peer)
		}
	case CatalogAccepted:
		return s.decideNamed(e, s.current(d.At).line(d.Context))
	case CatalogRefused:
		return s.decideNamed(e, s.current(d.At).line(d.Context))
	case NamespaceMerged:
		return s.decideHeld(e)
	case CallSettled:
		return s.decideRoom(e, d)
	case EraDetermined:
		return s.decideListing(e.Mono, d)
	}
	return nil
}

// decideNamed follows a list that was accepted or refused: new names, if it has
// any, the calls that wait for it, and the time of its next reading.
func (s *State) decideNamed(e Event, l *line) []Data {
	out := s.decideMerge()
	if !merges(out) { // else the new names come first
		out = append(out, s.decideHeld(e)...)
	}
	return append(out, s.decideNext(e.Mono, l)...)
}

// decideClosed follows a refusal of a peer. What waits for an endpoint that is tried
// again waits on, for as long as it may.
func (s *State) decideClosed(mono int64, peer string, code Code) []Data {
	out := s.decideMerge()
	if p := s.Peer(peer); p == nil || !p.http() || !p.recoverable(code) {
		out = append(out, s.decideGivenUp(peer)...)
	}
	return append(out, s.decideAgain(mono, peer, code)...)
}

func merges(list []Data) bool {
	for _, d := range list {
		if _, ok := d.(NamespaceMerged); ok {
			return true
		}
	}
	return false
}

// decideStopped is Decide after service.stopped: what is under way is ended, a
// call is refused, and nothing is sent or started any more.
func (s *State) decideStopped(e Event) []Data {
	switch d := e.Data.(type) {
	case ServiceStopped:
		return s.endCalls(StatusCancelled, CodeShuttingDown)
	case CallReceived:
		return s.decideCall(e, d)
	case OperatorCommanded:
		if d.Verb == VerbErase { // it takes neither a peer nor a process
			return s.decideCommand(e, d)
		}
	}
	return nil
}

// endCalls ends every call under way. One whose request was sent may have run.
func (s *State) endCalls(status Status, code Code) []Data {
	var out []Data
	for _, c := range s.unended() {
		ran := RanMaybe
		if c.held != nil {
			ran = c.held.ran
		}
		out = append(out, CallSettled{CallID: c.id, Status: status, Code: code, Ran: ran})
	}
	return out
}
