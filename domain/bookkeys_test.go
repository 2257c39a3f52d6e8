package domain

// A ledger is the referee's own reading of what an idempotency key promises: at most
// one call that was ever sent, for as long as the key is known.
type ledger struct {
	owners map[string]*owner // by host and digest
	window int64             // nanoseconds
	joins  int
}

type owner struct {
	story *story
	since int64
	waits int
}

func newLedger() *ledger { return &ledger{owners: map[string]*owner{}, window: 24 * 3_600_000_000_000} }

// pass forgets the keys whose time is over.
func (l *ledger) pass(now int64) {
	for k, o := range l.owners { // order-free: each is forgotten alone
		if now-o.since > 8*l.window {
			delete(l.owners, k)
		}
	}
}

func (l *ledger) of(d CallReceived) *owner { return l.owners[d.Host+" "+d.Key] }

// accepted: the call takes its key, which nobody may have.
func (b *book) accepted(e Event, s *story) {
	if s.first.Key == "" || s.sends > 0 || s.phase == held {
		return
	}
	if o := b.ledger.of(s.first); o != nil {
		b.fail(e, s, "%s has the key already", o.story.key)
	}
	b.ledger.owners[s.first.Host+" "+s.first.Key] = &owner{story: s, since: s.time}
}

// unsent: a call that ended without being sent leaves its key.
func (b *book) unsent(s *story) {
	if o := b.ledger.of(s.first); s.sends == 0 && o != nil && o.story == s {
		delete(b.ledger.owners, s.first.Host+" "+s.first.Key)
	}
}

// ended: nobody waits for the call any more.
func (b *book) ended(s *story) {
	if o := b.ledger.of(s.first); o != nil && o.story == s {
		o.waits = 0
	}
}

func (b *book) joined(e Event, s *story, d CallJoined) {
	if s == nil || s.phase != received || s.first.Key == "" || s.first.goesOn() {
		b.fail(e, s, "joined without a key, or in the middle")
	}
	o := b.ledger.of(s.first)
	if o == nil || o.story.first.Same != s.first.Same || e.Time-o.since >= b.ledger.window || o.story.key != d.First || o.story.seq != d.Received {
		b.fail(e, s, "joined to what does not have its key: %+v", o)
	}
	if o.story.phase == sent || o.story.phase == held {
		if o.waits++; o.waits > 64 {
			b.fail(e, s, "%d wait", o.waits)
		}
	}
	b.ledger.joins++
	s.phase = over
	b.reply(e, s)
}

// turned: a refusal for the sake of a key has its ground, and what has one is refused
// for no other.
func (b *book) turned(e Event, s *story, d CallRefused) {
	o := b.ledger.of(s.first)
	known := s.first.Key != "" && s.phase == received && !s.first.goesOn() && o != nil
	switch d.Code {
	case CodeIdempotencyConflict:
		if !known || o.story.first.Same == s.first.Same {
			b.fail(e, s, "there is no conflict: %+v", o)
		}
	case CodeOutcomeExpired:
		if !known || o.story.first.Same != s.first.Same || e.Time-o.since < b.ledger.window || d.Ran() != RanMaybe {
			b.fail(e, s, "it has not expired: %+v", o)
		}
	case CodeShuttingDown, CodeOverloaded:
	default:
		if known {
			b.fail(e, s, "its key is that of %s", o.story.key)
		}
	}
}
