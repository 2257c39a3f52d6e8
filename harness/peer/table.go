package peer

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

const (
	pastKept    = 1024 // settled requests of an incarnation that are remembered, to tell late from unknown
	maxEvidence = 8    // reports of modern evidence under ids that nobody waits for, for one incarnation
)

// table holds the requests of one incarnation that wait for an answer. Each is settled once, by whoever takes it out under the
// lock: an answer, its deadline, the loss of the transport, or nobody where it was withdrawn. Reports of losses and
// deadlines are made under the lock, so that none comes after the transport has been reported as lost; progress is told under
// it, so that none comes after the outcome.
type table struct {
	at     domain.At
	report func(domain.Data)
	tell   func(call string, progress jsontext.Value) // nil where nobody listens

	heard atomic.Int64 // bytes that the peer has written

	mu       sync.Mutex
	era      domain.Era
	waiting  map[int64]*request
	past     map[int64]*request
	order    []int64 // of past, oldest first
	evidence int
	closed   bool
	changes  map[int64]*changes // by subscription
}

type request struct {
	send domain.Send

	settled atomic.Bool // set under the table's lock; a lane reads it without

	// The table's lock guards these.
	body     *domain.Body // nil once settled: a queue that nobody reads holds no payloads
	released time.Time
	until    time.Time // the wait ends then
	timer    *time.Timer
	began    bool  // a byte of it may have been written
	heard    int64 // what the peer had written when it began
	answered bool  // or ended by the peer in another way
	progress progress

	acknowledged bool // a subscription; it has no deadline any more

	cancel func() // ends what is under way for it; called under the lock. Nil for nothing
}

// settlement is what the answer to a request is settled with.
type settlement struct {
	send   domain.Send
	schema jsontext.Value // the outputSchema of a call, or nil
}

func newTable(at domain.At, report func(domain.Data)) *table {
	return &table{at: at, report: report, era: domain.EraUnknown, waiting: map[int64]*request{}, past: map[int64]*request{},
		changes: map[int64]*changes{}}
}

// add starts the wait for an answer to s; nil if the transport is gone already.
func (t *table) add(s domain.Send, body *domain.Body) *request {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	r := &request{send: s, body: body, released: time.Now()}
	t.waiting[s.RequestID] = r
	r.until = r.released.Add(milliseconds(s.Deadline))
	r.timer = time.AfterFunc(milliseconds(s.Deadline), func() { t.expire(r) })
	return r
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// wanted returns the body of r; false if nobody waits for it any more.
func (t *table) wanted(r *request) (*domain.Body, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return r.body, !r.settled.Load()
}

// bind has cancel called when r is settled; false if it has been. It must not block.
func (t *table) bind(r *request, cancel func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.settled.Load() {
		return false
	}
	r.cancel = cancel
	return true
}

// claim settles r for whoever reports its outcome, and says whether a byte of it may have been written; false where it is settled.
func (t *table) claim(r *request) (began, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.settle(r) {
		return false, false
	}
	r.answered = true
	return r.began, true
}

// reached reports whether a byte of r may have been written.
func (t *table) reached(r *request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return r.began
}

// begin marks r as about to be written; false if nobody waits for it any more.
func (t *table) begin(r *request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.settled.Load() {
		return false
	}
	r.began, r.heard = true, t.heard.Load()
	return true
}

// unwritten takes begin back: not a byte was written.
func (t *table) unwritten(r *request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.began = false
}

// refuse settles a request that was not written, and will not be.
func (t *table) refuse(r *request, code domain.Code) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.settle(r) {
		r.began = false
		t.report(t.failed(r, code))
	}
}

// expire ends the wait, unless progress put it off when the timer had fired already, or an acknowledgement took the deadline away.
func (t *table) expire(r *request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.acknowledged || time.Now().Before(r.until) || !t.settle(r) {
		return
	}
	passed := domain.DeadlinePassed{At: t.at, RequestID: r.send.RequestID, Call: r.send.Call}
	if r.began {
		passed.Silent = t.heard.Load() == r.heard
	} else {
		passed.Written = writtenNo
	}
	t.report(passed)
}

// withdraw ends the wait for an answer without a report. It returns the request, waiting or past, or nil.
func (t *table) withdraw(id int64) *request {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.waiting[id]; r != nil {
		t.settle(r)
		return r
	}
	return t.past[id]
}

// cancellable reports whether the peer may still be at work on r: a call or a subscription that reached it and was not answered. A
// probe is never cancelled.
func (t *table) cancellable(r *request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return (r.send.Method == domain.MethodCall || r.send.Method == domain.MethodListen) && r.began && !r.answered
}

// take finds the request that an answer under id belongs to, and settles it; nil if there is none. Until the era is
// selected an answer to the probe server/discover is taken after its deadline too, once: it may still decide the era.
func (t *table) take(id int64) *settlement {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.waiting[id]; r != nil {
		s := &settlement{send: r.send}
		if r.body != nil {
			s.schema = r.body.OutputSchema
		}
		t.settle(r)
		r.answered = true
		return s
	}
	if r := t.past[id]; r != nil && !r.answered && t.era == domain.EraUnknown && r.send.Method == domain.MethodDiscover && !signOfLife(r.send) {
		r.answered = true
		return &settlement{send: r.send}
	}
	return nil
}

// signOfLife reports whether s only asks whether the peer answers at all.
func signOfLife(s domain.Send) bool {
	return s.Method == domain.MethodPing || s.Method == domain.MethodDiscover && s.Era != domain.EraUnknown
}

// oversized settles the request whose answer was too long to be held, if one waits under id. As a sign of life it is as
// good as any other.
func (t *table) oversized(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.waiting[id]
	if r == nil {
		return
	}
	t.settle(r)
	r.answered = true
	if signOfLife(r.send) {
		t.report(domain.HealthAnswered{At: t.at, RequestID: id})
		return
	}
	t.report(t.failed(r, domain.CodeFrameTooLarge))
}

// failed is the outcome of a request that will have no answer.
func (t *table) failed(r *request, code domain.Code) domain.ExchangeFailed {
	d := domain.ExchangeFailed{At: t.at, RequestID: r.send.RequestID, Call: r.send.Call, Written: writtenNo, Code: code}
	if r.began {
		d.Written = writtenMaybe
	}
	return d
}

// stranger says what kind of noise an answer is that take did not want; "" for an id that was never used here.
func (t *table) stranger(id int64) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch r := t.past[id]; {
	case r == nil:
		return ""
	case r.answered:
		return noiseDuplicate
	}
	return noiseLate
}

// admitEvidence reports whether one more frame under a foreign id may be reported. The answer is no once the era is known.
func (t *table) admitEvidence() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.era != domain.EraUnknown || t.evidence >= maxEvidence {
		return false
	}
	t.evidence++
	return true
}

func (t *table) selectEra(e domain.Era) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.era = e
}

func (t *table) selected() domain.Era {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.era
}

// fail settles everything that waits, with a code that says why: the transport is gone, and no answer can come. Nothing can be
// added afterwards.
func (t *table) fail(code domain.Code) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.tellAllChanges()
	for _, id := range slices.Sorted(maps.Keys(t.waiting)) {
		r := t.waiting[id]
		t.settle(r)
		t.report(t.failed(r, code))
	}
}

// failOthers is fail for everything but calls, which go on. Nothing can be added afterwards.
func (t *table) failOthers(code domain.Code) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, id := range slices.Sorted(maps.Keys(t.waiting)) {
		if r := t.waiting[id]; r.send.Method != domain.MethodCall && t.settle(r) {
			t.report(t.failed(r, code))
		}
	}
}

// settle moves r from waiting to past; false if it had been settled. What must be known before its outcome is reported first. The
// lock is held.
func (t *table) settle(r *request) bool {
	if r.settled.Swap(true) {
		return false
	}
	t.tellBefore(r)
	if r.cancel != nil {
		r.cancel()
	}
	id := r.send.RequestID
	r.timer.Stop()
	r.body = nil
	r.progress.stop()
	delete(t.waiting, id)
	t.past[id] = r
	t.order = append(t.order, id)
	if len(t.order) > pastKept {
		delete(t.past, t.order[0])
		t.order = t.order[1:]
	}
	return true
}
