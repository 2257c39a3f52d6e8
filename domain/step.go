package domain

// Step applies one observation and returns it, numbered, followed by every
// decision it leads to, in order. The state is advanced past all of them. The
// caller makes the whole sequence durable before it releases an effect.
//
// Observation must have Time, Mono, Data and Evidence set; Seq and Cause are
// assigned here.
func (s *State) Step(o Event) []Event {
	o.Seq, o.Cause = s.Head+1, 0
	s.Apply(o)
	out := []Event{o}
	queue := s.Decide(o)
	for len(queue) > 0 {
		d := Event{Seq: s.Head + 1, Time: o.Time, Mono: o.Mono, Cause: o.Seq, Data: queue[0]}
		s.Apply(d)
		out = append(out, d)
		queue = append(queue[1:], s.Decide(d)...)
	}
	return out
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
	case CatalogListed:
		return s.decideListed(d)
	case CallReceived:
		return s.decideCall(e, d)
	case CallAnswered:
		return s.decideAnswered(d)
	case CallCancelled:
		return s.decideCancelled(d)
	case ExchangeFailed:
		return s.decideFailed(d)
	case DeadlinePassed:
		return s.decideDeadline(d)
	case PeerRefused:
		return append(s.decideMerge(), s.decideAgain(e.Mono, d.Peer, d.Code)...)
	case EraRefused:
		return append(s.decideMerge(), s.decideAgain(e.Mono, d.Peer, d.Code)...)
	case CatalogAccepted, CatalogRefused:
		return s.decideMerge()
	case EraDetermined:
		return s.decideListing(d)
	}
	return nil
}

// decideStopped is Decide after service.stopped: what is under way is ended, a
// call is refused, and nothing is sent or started any more.
func (s *State) decideStopped(e Event) []Data {
	switch d := e.Data.(type) {
	case ServiceStopped:
		return s.endCalls(StatusCancelled, CodeShuttingDown)
	case CallReceived:
		return s.decideCall(e, d)
	}
	return nil
}

// endCalls ends every call under way. They were routed, so they may have run.
func (s *State) endCalls(status Status, code Code) []Data {
	var out []Data
	for _, c := range s.unended() {
		out = append(out, CallSettled{CallID: c.id, Status: status, Code: code, Ran: RanMaybe})
	}
	return out
}
