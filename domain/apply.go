package domain

import "slices"

// Apply folds one event into the state. It is total: an event that does not fit
// changes nothing but the head. It is the same for the live service, a start
// after a crash and a replay.
func (s *State) Apply(e Event) {
	s.Head = e.Seq
	s.ids.expire(e.Time)
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
	case HealthAnswered:
		if p := s.current(d.At); p != nil && p.health == d.RequestID {
			p.health, p.silent = 0, 0
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
		s.applyCatalog(e.Seq, d)
	case CatalogRefused:
		s.applyCatalogRefused(d)
	default:
		s.applyNaming(e)
	}
}

func (s *State) applyNaming(e Event) {
	switch d := e.Data.(type) {
	case CollisionDecided:
		s.applyCollision(e.Seq, d)
	case NameMoved:
		s.namespace.movedAt[d.Name] = e.Time
	case NamespaceMerged:
		s.applyMerged(e.Seq, d)
	case ConfigRejected:
		s.Rejected = &d
	case PayloadsErased:
		s.applyErased(d)
	case CallRouted, CallResent, CallHeld, CallRefused, CallSettled:
		s.applyCall(e)
	}
}

func (s *State) applyCollision(seq int64, d CollisionDecided) {
	ns := &s.namespace
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
	p.live, p.listed, p.settled = false, false, false
	p.Era, p.Version, p.Code, p.Reason, p.Warnings = EraUnknown, "", "", "", nil
	p.hasTools, p.capabilities = false, nil
	p.waiting, p.attempt, p.selectedAt = false, 0, 0
	p.closing, p.silent, p.health, p.nextTry, p.exit = false, 0, 0, 0, nil
	p.probe, p.fetch = probe{}, nil
}

func (s *State) applyConfig(e Event) {
	c, err := DecodeConfig(e.Evidence)
	if err != nil {
		return
	}
	s.Config, s.ConfigSeq, s.names, s.Rejected = c, e.Seq, nil, nil
	s.namespace.merged = false
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
		p.Warnings = append([]string(nil), pc.Warnings...)
		s.names = append(s.names, pc.Name)
	}
	for _, p := range s.peers { // order-free: each is cleared alone
		if !p.configured {
			p.reset()
			p.Catalog = nil
		}
	}
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
		p.Era, p.Version, p.listed, p.fetch = EraUnknown, "", false, nil
		p.closing, p.silent, p.health, p.nextTry = false, 0, 0, 0
		p.Code, p.Reason, p.Warnings = "", "", slices.Clone(p.Config.Warnings)
		p.probe = probe{method: d.First, respawned: d.First == MethodInitialize}
	}
}

func (s *State) applyProbe(d ProbeIssued) {
	s.nextRequest = max(s.nextRequest, d.RequestID)
	p := s.current(d.At)
	if p == nil {
		return
	}
	p.probe.id, p.probe.method, p.probe.version, p.probe.attempt = d.RequestID, d.Method, d.Version, d.Attempt
	p.probe.capabilities = d.Capabilities
	if d.Method == MethodDiscover {
		p.probe.discoverID = d.RequestID
	}
	// What is asked again was answered with a recognised modern error.
	p.probe.legacyExcluded = p.probe.legacyExcluded || d.Method == MethodDiscover && d.Authority != AuthorityFirst
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
	p.live, p.listed, p.fetch, p.health = false, false, nil, 0
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
	}
}

func (s *State) applyListRequested(mono int64, d ListRequested) {
	s.nextRequest = max(s.nextRequest, d.RequestID)
	p := s.current(d.At)
	if p == nil {
		return
	}
	if p.fetch == nil || d.Page == 1 {
		p.fetch = &fetch{began: mono}
	}
	p.fetch.id = d.RequestID
	if d.Cursor != nil {
		p.fetch.cursors = append(p.fetch.cursors, *d.Cursor)
	}
}

func (s *State) applyListed(e Event, d CatalogListed) {
	p := s.current(d.At)
	if p == nil || p.fetch == nil || p.fetch.id != d.RequestID {
		return
	}
	f := p.fetch
	pg, code, reason := parsePage(e.Evidence, p.Era)
	if code != "" {
		f.code, f.reason = code, reason
		return
	}
	f.pages, f.frames, f.next = append(f.pages, pg), append(f.frames, d.Frame.Digest), pg.next
	f.tools += len(pg.tools)
	f.bytes += d.Frame.Size
	switch {
	case f.next != nil && e.Mono-f.began > listPatience*p.Config.ProbeTimeout*1_000_000:
		f.code, f.reason = CodeListTimeout, "reading all pages takes longer than three times probe_timeout"
	case f.bytes > MaxList:
		f.code, f.reason = CodeListLimit, "the list has more than 64 MiB"
	case f.tools > MaxTools:
		f.code, f.reason = CodeListLimit, "the list has more than 25000 tools"
	case f.next != nil && len(f.pages) >= MaxPages:
		f.code, f.reason = CodeListLimit, "the list has more than 100 pages"
	case f.next != nil && contains(f.cursors, *f.next):
		f.code, f.reason = CodeListCursor, "the same nextCursor came twice"
	}
}

func (s *State) applyCatalog(seq int64, d CatalogAccepted) {
	p := s.current(d.At)
	if p == nil {
		return
	}
	var c Catalog
	if p.fetch != nil {
		c, _, _ = buildCatalog(p.fetch.pages)
	} else {
		c = Catalog{Digest: catalogDigest(nil), CacheScope: ScopePrivate}
	}
	for i := range c.Tools { // the frames they were cut from are not kept
		c.Tools[i].Definition = c.Tools[i].Definition.Clone()
	}
	c.Seq = seq
	p.Catalog, p.fetch = &c, nil
	p.listed, p.settled, p.Code, p.Reason = true, true, "", ""
	p.Warnings = addNew(p.Warnings, d.Warnings...)
}

func (s *State) applyCatalogRefused(d CatalogRefused) {
	if p := s.current(d.At); p != nil {
		p.fetch, p.settled, p.Code, p.Reason = nil, true, d.Code, d.Reason
		p.listed = p.Catalog != nil
		if p.listed {
			p.Warnings = addNew(p.Warnings, "the last good list is served: "+d.Reason)
		}
	}
}
