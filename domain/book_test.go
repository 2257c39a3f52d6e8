package domain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A book keeps the story of every call of a run, apart from the state, and its
// own reading of the rules: each exchange ends once, and a request that may run
// a tool a second time is sent only on one of the named grounds.
type book struct {
	t       testing.TB
	stories map[string]*story
	config  map[string]PeerConfig
	most    int // limits.inflight
	now     Event
	hinted  func(peer, local string) bool // by the hints of its list
	listed  map[string]int64              // the last catalog.accepted of each peer
	ledger  *ledger
}

// What a story has come to.
const (
	received = "received"
	held     = "held"
	sent     = "sent"
	paused   = "paused"
	lostCall = "lost" // lost or timed out: an operator may send it again
	over     = "over"
)

// A story is one call under one key.
type story struct {
	key, phase  string
	first       CallReceived
	peer, local string
	era         Era
	at          At
	request     int64
	sends       int // exchanges
	byRule      map[string]int
	rounds      int
	mostRounds  int
	until       int64
	state       *Payload
	ground      Event // what ended the last exchange, or what may start the next
	mayHaveRun  bool  // one of the exchanges that have ended
	replied     int   // answers to the host
	submitted   int   // submissions that were the call's own
	heldSeq     int64 // of its last call.held
	seq, time   int64 // of its call.received
}

func newBook(t testing.TB) *book {
	return &book{t: t, stories: map[string]*story{}, config: map[string]PeerConfig{}, listed: map[string]int64{}, ledger: newLedger(),
		hinted: func(_, local string) bool { return local == "y" }}
}

func (b *book) fail(e Event, s *story, format string, args ...any) {
	b.t.Helper()
	b.t.Fatalf("event %d, %s: %s\n%+v", e.Seq, facts(b.t, e.Data), fmt.Sprintf(format, args...), s)
}

// find returns the stories in a phase, sorted by key.
func (b *book) find(phase string) []*story {
	var out []*story
	for _, s := range b.stories { // order-free: sorted below
		if s.phase == phase {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *story) int { return strings.Compare(a.key, b.key) })
	return out
}

// of returns the story whose present exchange an observation speaks of.
func (b *book) of(at At, request int64) *story {
	for _, s := range b.find(sent) {
		if s.at == at && s.request == request {
			return s
		}
	}
	return nil
}

func (b *book) observation(e Event) {
	b.now = e
	b.ledger.pass(e.Time)
	switch d := e.Data.(type) {
	case ConfigLoaded:
		b.configured(e)
	case CallReceived:
		b.received(e, d)
	case CallAnswered:
		if s := b.of(d.At, d.RequestID); s != nil && s.key == d.CallKey() {
			s.ground, s.state = e, d.RequestState
			code := d.Facts.ErrorCode
			s.mayHaveRun = s.mayHaveRun || s.era != EraModern || d.Facts.Kind != FactError || code > -32020 || code < -32022
		}
	case ExchangeFailed:
		if s := b.of(d.At, d.RequestID); s != nil {
			s.ground = e
			s.mayHaveRun = s.mayHaveRun || d.Written != "no" && d.Code != CodeSessionGone && d.Code != CodeUnauthorized
		}
	case DeadlinePassed:
		if s := b.of(d.At, d.RequestID); s != nil {
			s.ground = e
			s.mayHaveRun = s.mayHaveRun || d.Written != "no"
		}
	}
}

func (b *book) configured(e Event) {
	c, err := DecodeConfig(e.Evidence)
	if err != nil {
		b.t.Fatalf("event %d: %v", e.Seq, err)
	}
	b.config, b.most = map[string]PeerConfig{}, c.Inflight
	if b.ledger.window = c.Idempotency * 1_000_000; c.Idempotency == 0 {
		b.ledger.window = 24 * 3_600_000_000_000
	}
	for _, p := range c.Peers {
		b.config[p.Name] = p
	}
}

func (b *book) received(e Event, d CallReceived) {
	s := b.stories[d.CallKey()]
	if s != nil && s.phase == paused && d.goesOn() {
		s.submitted++
		s.ground = e
		return
	}
	if s != nil && s.phase != over && s.phase != lostCall && s.phase != paused {
		b.fail(e, s, "the driver used a key twice")
	}
	b.stories[d.CallKey()] = &story{key: d.CallKey(), phase: received, first: d, byRule: map[string]int{}, submitted: 1, seq: e.Seq, time: e.Time}
}

func (b *book) decision(e Event) {
	s := b.stories[e.Call()]
	switch d := e.Data.(type) {
	case CallRouted:
		b.routed(e, s, d)
	case CallHeld:
		b.held(e, s, d)
	case CallResent:
		b.resent(e, s, d)
	case CallRefused:
		b.refused(e, s, d)
	case CallSettled:
		b.settled(e, s, d)
	case CallJoined:
		b.joined(e, s, d)
	case CatalogAccepted:
		b.listed[d.Peer] = e.Seq
	case CallAbandoned:
		if s.phase != sent || s.request != d.RequestID || s.at != d.At {
			b.fail(e, s, "a request is withdrawn that is not under way")
		}
	}
}

func (b *book) routed(e Event, s *story, d CallRouted) {
	if s == nil || s.phase != received && s.phase != held || s.sends != 0 || s.first.goesOn() {
		b.fail(e, s, "routed a second time, or never received")
	}
	b.accepted(e, s)
	s.phase, s.peer, s.local, s.era, s.at, s.request, s.sends = sent, d.Peer, d.Local, d.Era, d.At, d.RequestID, 1
	s.mostRounds, s.until = b.config[d.Peer].InputRounds, e.Time+b.config[d.Peer].InputWindow*1_000_000
	b.roomAt(e, s)
}

// roomAt: what is new at a peer keeps to its inflight.
func (b *book) roomAt(e Event, s *story) {
	n := 0
	for _, x := range b.find(sent) {
		if x.peer == s.peer {
			n++
		}
	}
	if most := b.config[s.peer].Inflight; most > 0 && n > most {
		b.fail(e, s, "%d calls are under way at %s", n, s.peer)
	}
}

func (b *book) held(e Event, s *story, d CallHeld) {
	switch {
	case s != nil && s.phase == received && d.Rule == "" && d.Ran == RanNo && d.Wait == s.first.Wait && d.Wait > 0:
	case s != nil && s.phase == sent && b.justified(s, d.Rule) && d.Wait > 0 && d.Wait <= resendWait:
	default:
		b.fail(e, s, "held without cause")
	}
	b.accepted(e, s)
	s.phase, s.heldSeq = held, e.Seq
}

func (b *book) refused(e Event, s *story, d CallRefused) {
	switch {
	case s == nil:
		b.fail(e, s, "refused and never received")
	case s.phase == paused: // the submission is refused, the call goes on waiting
	case s.phase == received, s.phase == held && s.sends == 0:
		b.turned(e, s, d)
		b.unsent(s)
		s.phase = over
	default:
		b.fail(e, s, "refused in the middle")
	}
	b.reply(e, s)
}

func (b *book) reply(e Event, s *story) {
	if s.replied++; s.replied > s.submitted {
		b.fail(e, s, "%d replies to %d submissions", s.replied, s.submitted)
	}
}

func (b *book) settled(e Event, s *story, d CallSettled) {
	if s == nil || s.phase != sent && s.phase != held {
		b.fail(e, s, "settled and not under way")
	}
	if s.sends == 0 && d.Ran != RanNo {
		b.fail(e, s, "what was never sent may have run")
	}
	if s.mayHaveRun && d.Ran == RanNo {
		b.fail(e, s, "an exchange of it may have run")
	}
	b.reply(e, s)
	b.unsent(s)
	b.ended(s)
	switch {
	case s.sends > 0 && d.Status == StatusInputRequired && s.mostRounds > 0:
		s.phase = paused
	case s.sends > 0 && (d.Status == StatusLost || d.Status == StatusTimedOut):
		s.phase = lostCall
	default:
		s.phase = over
	}
}

func (b *book) resent(e Event, s *story, d CallResent) {
	if s == nil || d.After != s.request || d.Attempt != s.sends+1 || d.Peer != s.peer || d.Local != s.local || !b.justified(s, d.Rule) {
		b.fail(e, s, "sent again without a ground: %+v", s)
	}
	switch d.Rule {
	case RuleInput, RuleContinue:
		if s.rounds++; s.rounds > s.mostRounds || d.Era != EraModern {
			b.fail(e, s, "%d rounds of %d, %s", s.rounds, s.mostRounds, d.Era)
		}
	case RuleOperator:
		s.submitted++
	default:
		s.byRule[d.Rule]++
		b.bounded(e, s, d.Rule)
	}
	s.phase, s.era, s.at, s.request, s.sends = sent, d.Era, d.At, d.RequestID, s.sends+1
	if d.Rule == RuleInput || d.Rule == RuleOperator {
		b.roomAt(e, s)
	}
}

// bounded: by rule a call is sent again as often as the peer's configuration
// says, and after a rejection once for each kind.
func (b *book) bounded(e Event, s *story, rule string) {
	n := 0
	for _, k := range s.byRule {
		n += k
	}
	once := rule == RuleHeader || rule == RuleVersion || rule == RuleCapability || rule == RuleSession
	if n > b.config[s.peer].Resends || once && s.byRule[rule] > 1 {
		b.fail(e, s, "sent again too often")
	}
}

// justified is the book's own reading of the rules (protocol: Calls).
func (b *book) justified(s *story, rule string) bool {
	switch g := s.ground.Data.(type) {
	case ExchangeFailed:
		open := s.phase == sent || s.phase == held
		if open && g.Code == CodeSessionGone && rule == RuleSession {
			return true
		}
		if open && g.Code == CodeTransportLost && b.mayRunTwice(s, rule, g.Written) {
			return true
		}
	case CallAnswered:
		if s.phase == sent && b.askedAgain(s, rule, g) {
			return true
		}
		if s.phase == held && rule == RuleHeader && b.listed[s.peer] > s.heldSeq && b.askedAgain(s, rule, g) { // over HTTP, with a fresh list
			return true
		}
	case CallReceived:
		if s.phase == paused && rule == RuleInput && b.now.Seq == s.ground.Seq {
			return g.Host == s.first.Host && g.DuplicateOf == "" && g.Tool == s.first.Tool && g.Arguments == s.first.Arguments &&
				g.Input != nil && sameBytes(g.RequestState, s.state) && s.ground.Time <= s.until
		}
	}
	d, commanded := b.now.Data.(OperatorCommanded)
	return rule == RuleOperator && commanded && s.phase == lostCall && d.Verb == VerbResend && d.Call == s.key && s.rounds == 0 &&
		d.Arguments != nil && *d.Arguments == s.first.Arguments
}

func (b *book) mayRunTwice(s *story, rule, written string) bool {
	c := b.config[s.peer]
	switch rule {
	case RuleNeverWritten:
		return written == "no"
	case RuleRepeatable:
		return slices.Contains(c.Repeatable, s.local)
	case RuleKey:
		return s.first.CarriesKey && c.Idempotency[s.local] != ""
	case RuleHints:
		return c.TrustHints && b.hinted(s.peer, s.local)
	}
	return false
}

func (b *book) askedAgain(s *story, rule string, g CallAnswered) bool {
	f := g.Facts
	if s.era != EraModern {
		return false
	}
	switch rule {
	case RuleHeader:
		return f.Kind == FactError && f.ErrorCode == -32020
	case RuleVersion:
		return f.Kind == FactError && f.ErrorCode == -32022 && f.Supported != ""
	case RuleContinue:
		return f.Kind == FactResult && f.ResultType == "input_required" && len(f.Asks) == 0 && g.RequestState != nil
	}
	return false
}

// state holds between any two observations: what the state keeps of calls is
// what the book knows to be under way.
func (b *book) state(s *State) {
	perPeer := map[string]int{}
	for _, x := range b.find(sent) {
		perPeer[x.peer]++
		if x.ground.Seq == b.now.Seq && x.ground.Seq != 0 && !b.wentOn(x) {
			b.fail(b.now, x, "its exchange has ended and the call has not")
		}
	}
	nSent, nHeld := len(b.find(sent)), len(b.find(held))
	if s.holding != nHeld {
		b.t.Fatalf("event %d: %d calls are counted as held, %d are", b.now.Seq, s.holding, nHeld)
	}
	if s.InFlight() != nSent+nHeld || len(s.byRequest) != nSent || s.InFlight() > b.most {
		b.t.Fatalf("event %d: %d calls and %d requests are kept, %d are sent and %d held", b.now.Seq, s.InFlight(), len(s.byRequest), nSent, nHeld)
	}
	for name, p := range s.peers { // order-free: each is compared alone
		if p.calls != perPeer[name] {
			b.t.Fatalf("event %d: %d calls are counted at %s, %d are under way", b.now.Seq, p.calls, name, perPeer[name])
		}
	}
	if n := len(b.find(received)); n != 0 {
		b.fail(b.now, b.find(received)[0], "%d calls are neither under way nor ended", n)
	}
	b.shelves(s)
}

// wentOn reports whether what ended the exchange of this story was followed by
// another exchange: its request is newer than what was seen.
func (b *book) wentOn(x *story) bool {
	switch g := x.ground.Data.(type) {
	case CallAnswered:
		return x.request != g.RequestID
	case ExchangeFailed:
		return x.request != g.RequestID
	case DeadlinePassed:
		return false
	}
	return true
}

// shelves: a call that waits for input, or for an operator, is not under way.
func (b *book) shelves(s *State) {
	for _, shelf := range []shelf{s.paused, s.ended} {
		for key := range shelf.calls { // order-free: each is looked at alone
			if s.UnderWay(key) || b.stories[key].phase != paused && b.stories[key].phase != lostCall {
				b.fail(b.now, b.stories[key], "a call is on a shelf that has not ended so")
			}
		}
	}
}
