package domain

import "slices"

// Apply folds one event into the state. It is total: an event that does not fit
// changes nothing but the head. It is the same for the live service, a start
// after a crash and a replay.
func (s *State) Apply(e Event) {
	s.Head = e.Seq
	s.ids.expire(e.Time)
	s.keys.expire(e.Time, s.Config.IdempotencyWindow())
	s.paused.expire(e.Time)
	s.ended.expire(e.Time)
	switch d := e.Data.(type) {
	case ServiceStarted:
		s.applyStarted()
	case ServiceStopped:
		s.Stopped = true
	case ConfigLoaded:
		s.applyConfig(e)
	case PeerExited:
		s.applyExited(d)
	case PeerSpawned:
		if p := s.current(d.At); p != nil {
			p.waiting = false
		}
	case SpawnFailed:
		if p := s.current(d.At); p.starting() {
			p.live, p.waiting = false, false
		}
	case CatalogListed:
		s.applyListed(e, d)
	case CallReceived:
		s.received, s.receivedSeq, s.receivedAt = d, e.Seq, e.Time
	case CallAnswered:
		s.applyAnswered(d)
	case DeadlinePassed:
		if c := s.waiting(d.At, d.RequestID); c != nil {
			s.noteLife(c, d)
		}
	case ListChanged:
		s.applyChanged(d)
	case ListDue:
		if l := s.current(d.At).line(d.Context); l != nil {
			l.dueAt = 0
		}
	case HealthAnswered:
		if p := s.current(d.At); p != nil && p.health == d.RequestID {
			p.health, p.silent = 0, 0
		}
	case ExchangeFailed:
		if p := s.current(d.At); p != nil && p.http() && p.health == d.RequestID && d.Code == CodeUnauthorized {
			p.health = 0 // it could not be asked: that says nothing about it
		}
	default:
		s.applyDecision(e)
	}
}

func (s *State) applyDecision(e Event) {
	switch d := e.Data.(type) {
	case PeerRefused:
		s.applyRefused(d)
	case PeerLaunched:
		s.applyLaunched(d)
	case PeerRestarted:
		s.applyRestarted(e.Time, d)
	case PeerAbandoned:
		if p := s.current(d.At); p != nil {
			p.closing, p.Code, p.Reason = true, d.Code, d.Reason
		}
	case HealthRequested:
		s.applyHealth(d)
	case PeerQuarantined:
		s.applyQuarantined(d)
	case ProbeIssued:
		s.applyProbe(d)
	case LegacyExcluded:
		if p := s.current(d.At); p != nil {
			p.probe.legacyExcluded = true
		}
	case EraDetermined:
		s.applyEra(e.Mono, d)
	case EraRefused:
		s.applyEraRefused(d)
	case ListRequested:
		s.applyListRequested(e.Mono, d)
	case CatalogAccepted:
		s.applyCatalog(e, d)
	case CatalogRefused:
		s.applyCatalogRefused(e.Mono, d)
	default:
		s.applyNaming(e)
	}
}

func (s *State) applyNaming(e Event) {
	switch d := e.Data.(type) {
	case CollisionDecided:
		s.applyCollision(e.Seq, d)
	case NameMoved:
		if ns := s.space(d.Context); ns != nil {
			ns.movedAt[d.Name] = e.Time
		}
	case NamespaceMerged:
		s.applyMerged(e, d)
	case ConfigRejected:
		s.Rejected = &d
	case PayloadsErased:
		s.applyErased(d)
	case ListDeferred:
		if l := s.current(d.At).line(d.Context); l != nil {
			l.dueAt, l.dueWhy = max(1, e.Mono+d.Delay*1_000_000), d.Why
		}
	case ToolChanged:
		s.applyToolChanged(e.Seq, d)
	case ToolApproved:
		s.applyApproved(d)
	case SubscriptionRequested, SubscriptionOpened, SubscriptionClosed:
		s.applySubscription(e.Mono, d)
	case CallRouted, CallResent, CallHeld, CallRefused, CallSettled, CallJoined:
		s.applyCall(e)
	}
}

func (s *State) applyCollision(seq int64, d CollisionDecided) {
	ns := s.space(d.Context)
	if ns == nil {
		return
	}
	ns.collisions[d.Name] = collisionRecord{seq: seq, policy: d.Policy,
		Collision: Collision{Name: d.Name, Candidates: d.Candidates, Winner: d.Winner}}
	if i, known := slices.BinarySearch(ns.contested, d.Name); !known {
		ns.contested = slices.Insert(ns.contested, i, d.Name)
	}
}

// applyStarted ends every incarnation: processes do not outlive the service.
// The last good lists and the names stay; their routes answer unavailable.
func (s *State) applyStarted() {
	s.Stopped, s.Rejected = false, nil
	for _, p := range s.peers { // order-free: each is reset alone
		p.reset()
	}
}

func (p *Peer) reset() {
	p.live, p.settled = false, false
	p.Era, p.Version, p.Code, p.Reason, p.Warnings = EraUnknown, "", "", "", nil
	p.hasTools, p.listChanged, p.capabilities = false, false, nil
	p.waiting, p.attempt, p.selectedAt = false, 0, 0
	p.closing, p.silent, p.health, p.nextTry, p.exit = false, 0, 0, 0, nil
	p.probe = probe{}
	p.each(func(l *line) {
		l.restart()
		l.settled, l.receivedAt = false, 0
	})
}

func (s *State) applyConfig(e Event) {
	c, err := DecodeConfig(e.Evidence)
	if err != nil {
		return
	}
	s.Config, s.ConfigSeq, s.names, s.Rejected = c, e.Seq, nil, nil
	for _, p := range s.peers { // order-free: each is marked alone
		p.configured, p.settled = false, false
	}
	for _, pc := range c.Peers {
		p := s.peers[pc.Name]
		if p == nil {
			p = &Peer{Name: pc.Name, Era: EraUnknown}
			s.peers[pc.Name] = p
		}
		p.Config, p.configured = pc, true
		p.equip()
		p.Warnings = append([]string(nil), pc.Warnings...)
		s.names = append(s.names, pc.Name)
	}
	for _, p := range s.peers { // order-free: each is cleared alone
		if !p.configured {
			p.reset()
			p.each(func(l *line) { l.catalog = nil })
		}
	}
	s.chart()
}

func (s *State) applyRefused(d PeerRefused) {
	if p := s.Peer(d.Peer); p != nil {
		p.settled, p.Code, p.Reason = true, d.Code, d.Reason
		p.probe.closed = true
	}
}

func (s *State) applyLaunched(d PeerLaunched) {
	if p := s.Peer(d.Peer); p != nil {
		p.Incarnation, p.live = d.Incarnation, true
		p.Era, p.Version = EraUnknown, ""
		p.each((*line).restart)
		p.closing, p.silent, p.health, p.nextTry = false, 0, 0, 0
		p.Code, p.Reason, p.Warnings = "", "", slices.Clone(p.Config.Warnings)
		p.probe = probe{method: d.First, respawned: d.First == MethodInitialize}
		if p.http() {
			p.selectedAt = 0
		}
	}
}

func (s *State) applyProbe(d ProbeIssued) {
	s.nextRequest = max(s.nextRequest, d.RequestID)
	p := s.current(d.At)
	if p == nil {
		return
	}
	p.probe.id, p.probe.method, p.probe.version, p.probe.attempt = d.RequestID, d.Method, d.Version, d.Attempt
	p.probe.capabilities, p.probe.context = d.Capabilities, d.Context
	if d.Method == MethodDiscover {
		p.probe.discoverID = d.RequestID
	}
	// What is asked again was answered with a recognised modern error.
	p.probe.legacyExcluded = p.probe.legacyExcluded || d.Method == MethodDiscover && d.Authority != AuthorityFirst && d.Authority != AuthorityCredential
	switch d.Authority {
	case AuthorityVersion:
		p.probe.refused = append(p.probe.refused, d.Version)
	case AuthorityCapability:
		p.probe.raised = true
	case AuthorityStamp:
		p.probe.stamped = true
	}
}

func (s *State) applyEra(mono int64, d EraDetermined) {
	if p := s.current(d.At); p != nil {
		p.Era, p.Version, p.hasTools, p.capabilities = d.Era, d.Version, d.HasTools, d.Capabilities
		p.listChanged = d.ListChanged
		p.Warnings = addNew(p.Warnings, d.Warnings...)
		p.probe.id, p.probe.closed = 0, true
		p.selectedAt = max(1, mono)
	}
}

func (s *State) applyEraRefused(d EraRefused) {
	if p := s.current(d.At); p != nil {
		p.settled, p.Code, p.Reason = true, d.Code, d.Reason
		p.probe.id, p.probe.closed = 0, true
	}
}

func (s *State) applyExited(d PeerExited) {
	p := s.current(d.At)
	if p == nil {
		return
	}
	p.live, p.health = false, 0
	p.each(func(l *line) {
		l.listed, l.fetch, l.dueAt, l.dueWhy, l.sub = false, nil, 0, "", subscription{}
	})
	p.exit = &d
	if p.closing { // what it was given up for stays the reason
		p.Era, p.Version = EraUnknown, ""
		return
	}
	if p.Era != EraUnknown {
		p.Era, p.Version, p.Code = EraUnknown, "", CodePeerExited
		if d.Cause == causeFrameTooLarge {
			p.Code = CodeFrameTooLarge
		}
		p.Reason = "the process ended (" + exitWords(d) + ")"
		if p.http() {
			p.Code, p.Reason = CodeUnavailable, "the endpoint was given up ("+exitWords(d)+")"
		}
	}
}
