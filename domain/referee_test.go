package domain

import "testing"

// A referee looks at every event of a run and keeps a count of its own, apart
// from the state: what was launched, what each launch has heard, which calls are
// open. It fails the test at the first event that breaks a rule.
type referee struct {
	t       testing.TB
	chains  map[string]*chain // the present launch of each peer
	request int64             // the last id that was used
	book    *book             // the story of each call
	allow   map[string]bool
	web     map[string]bool // endpoints
	now     Event           // the last observation
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
	gone        map[int64]bool // ended: a stray word that it runs means nothing
	health      int64          // the request for a sign of life that waits
	waits       int64          // the probe that waits
	lost        bool           // it ended with our own watchdog
	replaced    bool           // which another replaced
}

func newReferee(t testing.TB) *referee {
	return &referee{t: t, chains: map[string]*chain{}, book: newBook(t), allow: map[string]bool{}}
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
			r.book.decision(e)
		} else {
			r.observation(e)
			r.book.observation(e)
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
	r.now = e
	switch d := e.Data.(type) {
	case ServiceStarted:
		r.stopped = false
		r.chains = map[string]*chain{}
	case ServiceStopped:
		r.stopped = true
	case ConfigLoaded:
		r.allow, r.web = map[string]bool{}, map[string]bool{}
		c, err := DecodeConfig(e.Evidence)
		if err != nil {
			r.t.Fatalf("event %d: %v", e.Seq, err)
		}
		kept := map[string]*chain{} // what is not configured any more is nobody's business
		for _, p := range c.Peers {
			r.allow[p.Name], r.web[p.Name] = p.AllowLegacy, p.Transport == TransportHTTP
			if r.chains[p.Name] != nil {
				kept[p.Name] = r.chains[p.Name]
			}
		}
		r.chains = kept
	case PeerSpawned:
		if c := r.chains[d.Peer]; c != nil && d.Incarnation == c.last && !c.gone[d.Incarnation] {
			c.running[d.Incarnation] = true
		}
	case SpawnFailed:
		if c := r.chains[d.Peer]; c != nil && !c.running[d.Incarnation] {
			c.gone[d.Incarnation] = true
			c.closed[d.Incarnation] = true // a stray word about one that runs means nothing
		}
	case PeerExited:
		if c := r.chains[d.Peer]; c != nil {
			if d.Incarnation == c.last {
				c.lost, c.replaced = d.Cause == causeWatchdogLost, d.Replaced
			}
			delete(c.running, d.Incarnation)
			c.closed[d.Incarnation], c.gone[d.Incarnation] = true, true
		}
	case HealthAnswered:
		if c := r.chains[d.Peer]; c != nil && c.health == d.RequestID {
			c.health = 0
		}
	}
}

func (r *referee) decision(w *world, e Event) {
	switch d := e.Data.(type) {
	case PeerLaunched:
		r.launched(d)
	case PeerRestarted:
		r.restarted(e, d)
	case ProbeIssued:
		r.probed(e, d)
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
		if digest := w.s.Tools(d.Context, "", 0, 0).Digest; digest == "" {
			r.t.Fatalf("event %d: a namespace without a digest", e.Seq)
		}
	case PeerAbandoned:
		c := r.chains[d.Peer]
		if c == nil || !c.decided || c.closed[d.Incarnation] || d.Incarnation != c.last || r.stopped {
			r.t.Fatalf("event %d: %s is given up: %+v", e.Seq, d.Peer, c)
		}
		c.closed[d.Incarnation] = true // nothing is sent to it from here on
	}
}

// probed: over HTTP initialize follows from an ambiguous answer to the
// server/discover that waits, and from nothing else.
func (r *referee) probed(e Event, d ProbeIssued) {
	c := r.chains[d.Peer]
	if d.Method == MethodInitialize && r.web[d.Peer] && (c.waits == 0 || !ambiguousAnswer(r.now, c.waits)) {
		r.t.Fatalf("event %d: initialize for %s follows from %s", e.Seq, d.Peer, facts(r.t, r.now.Data))
	}
	if f, ok := r.now.Data.(ProbeFailed); ok && f.Class != "unauthorized" && d.Method == MethodDiscover {
		r.t.Fatalf("event %d: %s is probed again after %s", e.Seq, d.Peer, f.Class)
	}
	c.waits = d.RequestID
}

func (r *referee) launched(d PeerLaunched) {
	c := r.chains[d.Peer]
	if d.First == MethodInitialize {
		switch {
		case r.web[d.Peer]:
			r.t.Fatalf("%s, an endpoint, is started for an initialize", d.Peer)
		case c != nil && c.lost:
			r.t.Fatalf("%s is started for an initialize on the loss of our own watchdog", d.Peer)
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
	r.chains[d.Peer] = &chain{first: d.Incarnation, last: d.Incarnation, running: map[int64]bool{}, closed: map[int64]bool{},
		gone: map[int64]bool{}}
}

// restarted: only what has ended, or was never there, is started again; by
// itself after a pause, on an operator's word at once, and before that pause is
// over too.
func (r *referee) restarted(e Event, d PeerRestarted) {
	c := r.chains[d.Peer]
	if d.By != "" {
		if c != nil && len(c.running) > 0 || r.stopped || d.Delay != 0 {
			r.t.Fatalf("event %d: %s is revived: %+v", e.Seq, d.Peer, c)
		}
	} else if c == nil || !c.closed[c.last] || len(c.running) > 0 || r.stopped || d.Delay <= 0 ||
		c.lost && !c.replaced && c.inits == 0 && c.first == c.last { // an initialize that ends is taken for the peer's doing
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
	case MethodDiscover, MethodPing:
		r.asked(c, x)
	default:
		if !c.decided || x.Era == EraUnknown || x.Version == "" {
			r.t.Fatalf("%s is sent to %s, whose era is not known", x.Method, x.Peer)
		}
	}
}

// state holds between any two observations.
func (r *referee) state(s *State) {
	names := map[string]bool{}
	tools := listTools(s).Tools
	for _, e := range tools {
		if names[e.Canonical] {
			r.t.Fatalf("%q has two owners", e.Canonical)
		}
		names[e.Canonical] = true
	}
	r.book.state(s)
}

// asked holds for server/discover, as a probe or for a sign of life, and ping.
func (r *referee) asked(c *chain, x Send) {
	switch {
	case x.Era == EraUnknown && (c.inits > 0 || c.decided || x.Method == MethodPing):
		r.t.Fatalf("%s is probed again after %d initialize", x.Peer, c.inits)
	case x.Era == EraUnknown:
		return
	case !c.decided || c.health != 0 || (x.Era == EraLegacy) != (x.Method == MethodPing):
		r.t.Fatalf("%s asks %s of the %s era for a sign of life: %+v", x.Method, x.Peer, x.Era, c)
	}
	c.health = x.RequestID
}
