package domain

import "testing"

// A referee looks at every event of a run and keeps a count of its own, apart
// from the state: what was launched, what each launch has heard, which calls are
// open. It fails the test at the first event that breaks a rule.
type referee struct {
	t       testing.TB
	chains  map[string]*chain // the present launch of each peer
	request int64             // the last id that was used
	open    map[string]bool   // calls received and not ended; true once routed
	ended   map[string]bool
	allow   map[string]bool
	stopped bool
}

// A chain is one launch of a peer: a process, and the one that may be started in
// its place for an initialize.
type chain struct {
	first, last int64 // incarnations
	modern      bool  // modern behaviour was heard before an era was chosen
	decided     bool
	inits       int
	running     map[int64]bool
	closed      map[int64]bool
}

func newReferee(t testing.TB) *referee {
	return &referee{t: t, chains: map[string]*chain{}, open: map[string]bool{}, ended: map[string]bool{}, allow: map[string]bool{}}
}

// heard notes what a peer said, before it is fed.
func (r *referee) heard(at At, modern bool) {
	c := r.chains[at.Peer]
	if c != nil && modern && !c.decided && !r.stopped && at.Incarnation >= c.first && at.Incarnation <= c.last {
		c.modern = true
	}
}

// watch looks at what one step of the driver led to.
func (r *referee) watch(w *world, events []Event) {
	r.t.Helper()
	for _, e := range events {
		if e.IsDecision() {
			r.decision(w, e)
		} else {
			r.observation(e)
		}
		for _, effect := range Effects(e) {
			if x, ok := effect.(Send); ok {
				r.send(x)
			}
		}
	}
	r.state(w.s)
}

func (r *referee) observation(e Event) {
	switch d := e.Data.(type) {
	case ServiceStarted:
		r.stopped = false
		r.chains = map[string]*chain{}
	case ServiceStopped:
		r.stopped = true
	case ConfigLoaded:
		r.allow = map[string]bool{}
		c, err := DecodeConfig(e.Evidence)
		if err != nil {
			r.t.Fatalf("event %d: %v", e.Seq, err)
		}
		for _, p := range c.Peers {
			r.allow[p.Name] = p.AllowLegacy
		}
	case PeerSpawned:
		if c := r.chains[d.Peer]; c != nil && d.Incarnation == c.last {
			c.running[d.Incarnation] = true
		}
	case SpawnFailed:
		if c := r.chains[d.Peer]; c != nil && !c.running[d.Incarnation] {
			c.closed[d.Incarnation] = true // a stray word about one that runs means nothing
		}
	case PeerExited:
		if c := r.chains[d.Peer]; c != nil {
			delete(c.running, d.Incarnation)
			c.closed[d.Incarnation] = true
		}
	case CallReceived:
		if _, taken := r.open[d.CallKey()]; taken {
			r.t.Fatalf("the driver used %s twice", d.CallKey())
		}
		r.open[d.CallKey()] = false
		delete(r.ended, d.CallKey())
	}
}

func (r *referee) decision(w *world, e Event) {
	switch d := e.Data.(type) {
	case PeerLaunched:
		r.launched(d)
	case PeerRestarted:
		r.restarted(e, d)
	case EraDetermined:
		r.chains[d.Peer].decided = true
		if c := r.chains[d.Peer]; d.Era == EraLegacy && (c.modern || !r.allow[d.Peer]) {
			r.t.Fatalf("event %d: legacy was selected for %s after modern behaviour, or without permission", e.Seq, d.Peer)
		}
	case EraRefused:
		c := r.chains[d.Peer]
		if c.closed[d.Incarnation] && c.decided {
			r.t.Fatalf("event %d: %s was closed twice", e.Seq, d.Peer)
		}
		c.decided = true
		c.closed[d.Incarnation] = true
	case NamespaceMerged:
		if _, digest, _ := w.s.Tools(); digest == "" {
			r.t.Fatalf("event %d: a namespace without a digest", e.Seq)
		}
	case CallRouted:
		if routed, ok := r.open[d.CallKey()]; !ok || routed {
			r.t.Fatalf("event %d: %s is routed a second time, or was never received", e.Seq, d.CallKey())
		}
		r.open[d.CallKey()] = true
	case CallRefused:
		r.end(e, d.CallKey(), false)
	case CallSettled:
		r.end(e, d.CallKey(), true)
	}
}

func (r *referee) end(e Event, key string, routed bool) {
	if was, ok := r.open[key]; !ok || was != routed || r.ended[key] {
		r.t.Fatalf("event %d: %s ends as %s; open %t, routed %t, ended %t", e.Seq, key, e.Data.Kind(), ok, was, r.ended[key])
	}
	delete(r.open, key)
	r.ended[key] = true
}

func (r *referee) launched(d PeerLaunched) {
	c := r.chains[d.Peer]
	if d.First == MethodInitialize {
		switch {
		case c == nil || d.Incarnation != c.last+1 || c.first != c.last:
			r.t.Fatalf("%s is started for an initialize without a first process", d.Peer)
		case c.modern || c.inits > 0 || c.decided:
			r.t.Fatalf("%s is started for an initialize; modern %t, initialize sent %d times, decided %t", d.Peer, c.modern, c.inits, c.decided)
		}
		c.last = d.Incarnation
		return
	}
	if c != nil && d.Incarnation <= c.last {
		r.t.Fatalf("incarnation %d of %s is used again", d.Incarnation, d.Peer)
	}
	r.chains[d.Peer] = &chain{first: d.Incarnation, last: d.Incarnation, running: map[int64]bool{}, closed: map[int64]bool{}}
}

// restarted: only what has ended, or was never there, is started again.
func (r *referee) restarted(e Event, d PeerRestarted) {
	c := r.chains[d.Peer]
	if c == nil || !c.closed[c.last] || len(c.running) > 0 || r.stopped || d.Delay <= 0 {
		r.t.Fatalf("event %d: %s is started again: %+v", e.Seq, d.Peer, c)
	}
	r.launched(PeerLaunched{At: d.At, First: MethodDiscover})
}

// send holds for every request that leaves.
func (r *referee) send(x Send) {
	if x.RequestID <= r.request || x.RequestID > 1<<53 {
		r.t.Fatalf("request id %d follows %d", x.RequestID, r.request)
	}
	r.request = x.RequestID
	c := r.chains[x.Peer]
	if c == nil || r.stopped || !c.running[x.Incarnation] || c.closed[x.Incarnation] || x.Incarnation != c.last {
		r.t.Fatalf("%s is sent to %s.%d, which is not there: %+v", x.Method, x.Peer, x.Incarnation, c)
	}
	switch x.Method {
	case MethodInitialize:
		c.inits++
		if !r.allow[x.Peer] || c.inits > 1 || c.modern {
			r.t.Fatalf("initialize is sent to %s: allowed %t, %d times, modern %t", x.Peer, r.allow[x.Peer], c.inits, c.modern)
		}
	case MethodDiscover:
		if c.inits > 0 || c.decided {
			r.t.Fatalf("%s is probed again after %d initialize", x.Peer, c.inits)
		}
	default:
		if !c.decided || x.Era == EraUnknown || x.Version == "" {
			r.t.Fatalf("%s is sent to %s, whose era is not known", x.Method, x.Peer)
		}
	}
}

// state holds between any two observations.
func (r *referee) state(s *State) {
	names := map[string]bool{}
	_, _, tools := s.Tools()
	for _, e := range tools {
		if names[e.Canonical] {
			r.t.Fatalf("%q has two owners", e.Canonical)
		}
		names[e.Canonical] = true
	}
	routed := 0
	for _, is := range r.open {
		if is {
			routed++
		}
	}
	if len(s.calls) != routed || len(s.byRequest) != routed || routed > 3 {
		r.t.Fatalf("%d calls and %d requests are kept, %d are under way", len(s.calls), len(s.byRequest), routed)
	}
}
