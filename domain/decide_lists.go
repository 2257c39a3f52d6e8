package domain

import "fmt"

// Bounds of how often a list is read, in milliseconds.
const (
	longestInterval = 30_000  // however often a list turned out to be unchanged
	longestAgain    = 300_000 // however often it could not be read
)

// canList reports whether the peer can be asked for its lists.
func (p *Peer) canList() bool {
	return p != nil && p.live && !p.waiting && !p.closing && p.Era != EraUnknown && p.hasTools && p.rules() != nil
}

// want reads a list, or puts that off: there is one reading for everybody who
// waits for it, and an interval between two of them that grows with failures. What
// a peer announces, or a call suggests, makes it grow too while nothing is found to
// have changed, so that a storm of notices costs little. skip is how many request
// ids are claimed by decisions that are not applied yet.
func (s *State) want(l *line, why string, mono, skip int64) (Data, string) {
	p := l.peer
	switch {
	case !p.canList():
		return nil, ActDown
	case l.fetch != nil:
		return nil, ActJoined
	}
	wait := (l.notBefore(why) - mono + 999_999) / 1_000_000
	switch {
	case wait <= 0:
		return s.requestPage(l, 1, nil, why, skip), ActRead
	case l.dueAt != 0 && l.dueAt <= mono+wait*1_000_000:
		return nil, ActDeferred
	}
	return ListDeferred{At: p.at(), Context: contextWord(l.context), Why: why, Delay: wait}, ActDeferred
}

// notBefore is the moment before which a list is not read again.
func (l *line) notBefore(why string) int64 {
	if l.begun == 0 {
		return 0
	}
	interval := l.peer.rules().Interval
	if why == WhyChanged || why == WhyUnknown {
		interval = grow(interval, l.unchanged, longestInterval)
	}
	interval = grow(interval, max(l.failures, l.churned), longestAgain)
	return l.begun + interval*1_000_000
}

// grow doubles a time n times, up to most; one that is longer stays as it is.
func grow(t int64, n int, most int64) int64 {
	for ; n > 0 && t < most; n-- {
		t = min(2*t, most)
	}
	return t
}

// decideChanged follows a notice: the list is stale, and is read again. One on a
// subscription that is not ours changes nothing.
func (s *State) decideChanged(mono int64, d ListChanged) []Data {
	l := s.current(d.At).line(d.Context)
	if l == nil || !l.concerns(d) {
		return nil
	}
	return one(s.want(l, WhyChanged, mono, 0))
}

func one(d Data, _ string) []Data {
	if d == nil {
		return nil
	}
	return []Data{d}
}

// concerns reports whether a notice is about this list: on its subscription, or
// unasked in the legacy era.
func (l *line) concerns(d ListChanged) bool {
	if l.peer.Era == EraLegacy {
		return d.Subscription == 0
	}
	return d.Subscription != 0 && d.Subscription == l.sub.id
}

// decideDue reads a list for which the time has come.
func (s *State) decideDue(mono int64, d ListDue) []Data {
	l := s.current(d.At).line(d.Context)
	if l == nil || l.dueWhy == "" {
		return nil
	}
	return one(s.want(l, l.dueWhy, mono, 0))
}

// decideNext sets the time of the next reading of a list that has just been read,
// or could not be.
func (s *State) decideNext(mono int64, l *line) []Data {
	if l == nil || !l.peer.canList() || l.fetch != nil {
		return nil
	}
	switch r := l.peer.rules(); {
	case l.dirty:
		return one(s.want(l, WhyChanged, mono, 0))
	case l.failures > 0:
		return one(s.want(l, WhyAgain, mono, 0))
	case r.Refresh > 0:
		delay := r.Refresh + l.peer.at().jitter(r.Refresh/10)
		return []Data{ListDeferred{At: l.peer.at(), Context: contextWord(l.context), Why: WhyRefresh, Delay: delay}}
	}
	return nil
}

// usesInOne bounds the uses that one event holds, so that it fits its limit.
const usesInOne = 200

// decideRead meets the need of a host that reads the tools of a context: what is
// fresh is served, what is stale is read again.
func (s *State) decideRead(mono int64, d ToolsRead) []Data {
	if s.space(d.Context) == nil {
		return nil
	}
	uses, requests, _ := s.consult(contextKey(d.Context), WhyRead, mono)
	return cacheDecisions(contextKey(d.Context), WhyRead, uses, requests)
}

// decideMissed follows a call of a tool that nobody has: a list that is not fresh
// may have it by now. The call is refused all the same; routing never waits.
func (s *State) decideMissed(context string, mono int64) []Data {
	uses, requests, stale := s.consult(context, WhyMissed, mono)
	if len(requests) == 0 {
		return nil
	}
	for i := len(uses) - 1; i >= 0; i-- {
		if !stale[i] {
			uses = append(uses[:i], uses[i+1:]...)
		}
	}
	return cacheDecisions(context, WhyMissed, uses, requests)
}

// consult judges every list of a context, sorted by peer, and orders what is to be
// read again.
func (s *State) consult(context, why string, mono int64) (uses []CacheUse, requests []Data, stale []bool) {
	uses = []CacheUse{}
	for _, name := range s.names {
		p := s.peers[name]
		if p.asked(context) == "" {
			continue
		}
		verdict, l := p.verdict(context, mono)
		u := CacheUse{Peer: name, Verdict: verdict, Act: ActServed}
		if l != nil && l.catalog != nil {
			u.List, u.Age = l.catalog.Seq, l.age(mono)
			if l.context != p.asked(context) {
				u.Owner = l.context
			}
		}
		old := verdict == CacheStale || verdict == CacheNone
		if own := p.line(p.asked(context)); old && own != nil {
			var d Data
			if d, u.Act = s.want(own, why, mono, claimed(requests)); d != nil {
				requests = append(requests, d)
			}
		}
		uses, stale = append(uses, u), append(stale, old)
	}
	return uses, requests, stale
}

// claimed counts the request ids that decisions claim.
func claimed(list []Data) (n int64) {
	for _, d := range list {
		switch d.(type) {
		case ListRequested, SubscriptionRequested:
			n++
		}
	}
	return n
}

// age is how long ago the list was received, in milliseconds; 0 where that was in
// another life of the service.
func (l *line) age(mono int64) int64 {
	if !l.listed || l.receivedAt == 0 {
		return 0
	}
	return max(0, (mono-l.receivedAt)/1_000_000)
}

func cacheDecisions(context, why string, uses []CacheUse, requests []Data) []Data {
	var out []Data
	for first := true; first || len(uses) > 0; first = false {
		n := min(len(uses), usesInOne)
		out = append(out, CacheDecided{Context: context, Why: why, Uses: uses[:n:n]})
		uses = uses[n:]
	}
	return append(out, requests...)
}

// decideUnknown follows an answer by which a peer does not know the tool of a call,
// or not its arguments: the list may have changed (specification,
// server/utilities/caching, "Freshness Calculation").
func (s *State) decideUnknown(mono int64, c *call, f Facts) []Data {
	if !f.doubtsList() {
		return nil
	}
	p := s.current(c.at)
	if p == nil {
		return nil
	}
	l := p.line(p.asked(contextKey(c.received.Context)))
	if l == nil {
		return nil
	}
	verdict, _ := p.verdict(l.context, mono)
	d, act := s.want(l, WhyUnknown, mono, 0)
	if d == nil {
		return nil
	}
	use := CacheUse{Peer: p.Name, Verdict: verdict, Act: act, Age: l.age(mono)}
	if l.catalog != nil {
		use.List = l.catalog.Seq
	}
	return cacheDecisions(l.context, WhyUnknown, []CacheUse{use}, []Data{d})
}

// doubtsList reports whether an error says that a tool, or its arguments, are not
// as they were listed: method not found, or invalid params.
func (f Facts) doubtsList() bool {
	return f.Kind == FactError && (f.ErrorCode == -32601 || f.ErrorCode == -32602)
}

// Reading reports whether some list that a context is served is being read.
// Those of peers that cannot be asked are not waited for.
func (s *State) Reading(context string) bool {
	for _, name := range s.names {
		p := s.peers[name]
		if l := p.line(p.asked(contextKey(context))); l != nil && l.fetch != nil {
			return true
		}
	}
	return false
}

// unread says in words why no list of a peer stands.
func (l *line) unread() string {
	return fmt.Sprintf("its list could not be read again for longer than stale_lists (%d ms): %s", l.peer.rules().Stale, l.peer.why())
}
