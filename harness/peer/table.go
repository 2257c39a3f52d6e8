package peer

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"waybill/domain"
)

const (
	pastKept    = 1024 // settled requests of an incarnation that are remembered, to tell late from unknown
	maxEvidence = 8    // reports of modern evidence under ids that nobody waits for, for one incarnation
)

// table holds the requests of one incarnation that wait for an answer. Each is settled once, by whoever takes it out under the
// lock: an answer, its deadline, the loss of the transport, or nobody where it was withdrawn. Reports of losses and
// deadlines are made under the lock, so that none comes after the transport has been reported as lost.
type table struct {
	at     domain.At
	report func(domain.Data)

	mu       sync.Mutex
	era      domain.Era
	waiting  map[int64]*request
	past     map[int64]*request
	order    []int64 // of past, oldest first
	evidence int
	closed   bool
}

type request struct {
	send domain.Send

	settled atomic.Bool // set under the table's lock; a lane reads it without

	// The table's lock guards these.
	arguments []byte // nil once settled: a queue that nobody reads holds no payloads
	timer     *time.Timer
	began     bool // a byte of it may have been written
	answered  bool
}

func newTable(at domain.At, report func(domain.Data)) *table {
	return &table{at: at, report: report, era: domain.EraUnknown, waiting: map[int64]*request{}, past: map[int64]*request{}}
}

// add starts the wait for an answer to s; nil if the transport is gone already.
func (t *table) add(s domain.Send, arguments []byte) *request {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	r := &request{send: s, arguments: arguments}
	t.waiting[s.RequestID] = r
	r.timer = time.AfterFunc(time.Duration(s.Deadline)*time.Millisecond, func() { t.expire(r) })
	return r
}

// wanted returns the arguments of r; false if nobody waits for it any more.
func (t *table) wanted(r *request) ([]byte, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return r.arguments, !r.settled.Load()
}

// begin marks r as about to be written; false if nobody waits for it any more.
func (t *table) begin(r *request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.settled.Load() {
		return false
	}
	r.began = true
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
		t.report(domain.ExchangeFailed{At: t.at, RequestID: r.send.RequestID, Call: r.send.Call, Written: writtenNo, Code: code})
	}
}

func (t *table) expire(r *request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.settle(r) {
		passed := domain.DeadlinePassed{At: t.at, RequestID: r.send.RequestID, Call: r.send.Call}
		if !r.began {
			passed.Written = writtenNo
		}
		t.report(passed)
	}
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

// cancellable reports whether the peer may still be at work on r: a call that reached it and was not answered. A probe
// is never cancelled.
func (t *table) cancellable(r *request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return r.send.Method == methodCall && r.began && !r.answered
}

// take finds the request that an answer under id belongs to, and settles it; nil if there is none. Until the era is
// selected an answer to server/discover is taken after its deadline too, once: it may still decide the era.
func (t *table) take(id int64) *request {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.waiting[id]; r != nil {
		t.settle(r)
		r.answered = true
		return r
	}
	if r := t.past[id]; r != nil && !r.answered && t.era == domain.EraUnknown && r.send.Method == domain.MethodDiscover {
		r.answered = true
		return r
	}
	return nil
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
	for _, id := range slices.Sorted(maps.Keys(t.waiting)) {
		r := t.waiting[id]
		t.settle(r)
		written := writtenNo
		if r.began {
			written = writtenMaybe
		}
		t.report(domain.ExchangeFailed{At: t.at, RequestID: id, Call: r.send.Call, Written: written, Code: code})
	}
}

// settle moves r from waiting to past; false if it had been settled. The lock is held.
func (t *table) settle(r *request) bool {
	if r.settled.Swap(true) {
		return false
	}
	id := r.send.RequestID
	r.timer.Stop()
	r.arguments = nil
	delete(t.waiting, id)
	t.past[id] = r
	t.order = append(t.order, id)
	if len(t.order) > pastKept {
		delete(t.past, t.order[0])
		t.order = t.order[1:]
	}
	return true
}
