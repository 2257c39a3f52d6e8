package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"

	"waybill/domain"
	"waybill/events"
	"waybill/store"
)

const testLog = "local-0a1b2c3d"

// outcome is what a memLog does with one append.
type outcome int

const (
	kept    outcome = iota // durable
	absent                 // fails, and nothing was written
	present                // fails, but everything was written
	moved                  // fails: somebody else wrote as many events
	movedOn                // fails: somebody else wrote one event more
	shrunk                 // fails, and the last event is gone
)

var (
	errDisk   = errors.New("the disk said no")
	errReread = errors.New("the disk cannot be read")
)

// memLog is a log in memory that holds its one writer to the contract of Log: no
// two appends at once, each after the head, each of well-formed events in dense
// order, and none after a failure before the head was read again. A breach fails
// the test.
type memLog struct {
	t testing.TB

	mu       sync.Mutex
	records  []store.Record
	evidence map[[32]byte][]byte
	batches  []int // events of each transaction
	tries    int   // calls of Append
	plan     []outcome
	rereads  []error       // answers of Reread to come
	gate     chan struct{} // each append takes one; nil for none
	busy     bool
	doubt    bool          // Reread is due
	failed   []store.Entry // what the append that failed was given
}

func newMemLog(t testing.TB) *memLog {
	return &memLog{t: t, evidence: map[[32]byte][]byte{}}
}

func (m *memLog) ID() string { return testLog }

// expect plans what becomes of the appends to come; those after are kept.
func (m *memLog) expect(plan ...outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plan = append(m.plan, plan...)
}

// always plans one outcome for more appends than a test can make.
func (m *memLog) always(o outcome) {
	for range 1000 {
		m.expect(o)
	}
}

// hold makes each append wait for a token, of which there are none.
func (m *memLog) hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gate = make(chan struct{})
}

// pass lets the append that waits, and all after it, go on.
func (m *memLog) pass() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.gate)
	m.gate = nil
}

func (m *memLog) Append(ctx context.Context, after int64, entries []store.Entry) (store.Head, error) {
	m.mu.Lock()
	if m.busy {
		m.t.Error("two appends at once")
	}
	m.busy = true
	m.tries++
	gate := m.gate
	m.mu.Unlock()
	if gate != nil {
		<-gate
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy = false
	m.check(ctx, after, entries)
	return m.end(entries)
}

// check fails the test on misuse.
func (m *memLog) check(ctx context.Context, after int64, entries []store.Entry) {
	if ctx.Err() != nil || ctx.Done() != nil {
		m.t.Error("an append was given a context that can end")
	}
	if after != int64(len(m.records)) || len(entries) == 0 {
		m.t.Errorf("append of %d events after %d, the head is %d", len(entries), after, len(m.records))
	}
	if m.doubt {
		m.t.Error("an append without reading the head again after a failure")
	}
	for i, e := range entries {
		m.checkEntry(after+int64(i)+1, e)
	}
	if m.failed != nil && !sameBytes(m.failed, entries) {
		m.t.Error("other bytes were tried again than those that failed")
	}
}

func (m *memLog) checkEntry(seq int64, e store.Entry) {
	log, event, err := events.Open(e.Bytes)
	if err != nil {
		m.t.Errorf("event %d: %v", seq, err)
		return
	}
	if log != testLog || event.Seq != seq || event.Data.Kind() != e.Type || event.Peer() != e.Peer || event.Call() != e.Call {
		m.t.Errorf("event %d of %s is %+v", seq, log, e)
	}
	if ref, cites := events.EvidenceOf(event.Data); cites != (len(e.Evidence) == 1) {
		m.t.Errorf("event %d cites %v and brings %d pieces of evidence", seq, ref, len(e.Evidence))
	}
	for _, ev := range e.Evidence {
		if sha256.Sum256(ev.Bytes) != ev.Digest {
			m.t.Errorf("event %d brings evidence under a wrong digest", seq)
		}
	}
}

func sameBytes(a, b []store.Entry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i].Bytes, b[i].Bytes) {
			return false
		}
	}
	return true
}

func (m *memLog) end(entries []store.Entry) (store.Head, error) {
	what := kept
	if len(m.plan) > 0 {
		what, m.plan = m.plan[0], m.plan[1:]
	}
	switch what {
	case kept, present:
		m.write(entries)
	case moved, movedOn:
		m.others(len(entries) + int(what-moved))
	case shrunk:
		m.records = m.records[:len(m.records)-1]
	}
	if what == kept {
		m.failed = nil
		return store.Head{Size: int64(len(m.records))}, nil
	}
	m.failed, m.doubt = entries, true
	if what == present {
		m.failed = nil // it must not come again
	}
	return store.Head{}, fmt.Errorf("append: %w", errDisk)
}

func (m *memLog) write(entries []store.Entry) {
	for _, e := range entries {
		m.records = append(m.records, store.Record{Seq: int64(len(m.records) + 1), Type: e.Type, Peer: e.Peer, Call: e.Call, Bytes: e.Bytes})
		for _, ev := range e.Evidence {
			m.evidence[ev.Digest] = ev.Bytes
		}
	}
	m.batches = append(m.batches, len(entries))
}

// others writes events as another process would.
func (m *memLog) others(n int) {
	for range n {
		seq := int64(len(m.records) + 1)
		b, err := events.Seal(testLog, domain.Event{Seq: seq, Data: domain.IntakeShed{Count: 1, Code: domain.CodeOverloaded}})
		if err != nil {
			m.t.Error(err)
		}
		m.records = append(m.records, store.Record{Seq: seq, Type: "intake.shed", Bytes: b})
	}
}

func (m *memLog) Reread(context.Context) (store.Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.doubt {
		m.t.Error("the head was read again without a failure")
	}
	if len(m.rereads) > 0 {
		err := m.rereads[0]
		m.rereads = m.rereads[1:]
		if err != nil {
			return store.Head{}, err
		}
	}
	m.doubt = false
	return store.Head{Size: int64(len(m.records))}, nil
}

func (m *memLog) Read(_ context.Context, after int64, most int) ([]store.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if after > int64(len(m.records)) {
		return nil, nil
	}
	out := m.records[after:]
	return append([]store.Record(nil), out[:min(most, len(out))]...), nil
}

func (m *memLog) Evidence(_ context.Context, digest [32]byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b, ok := m.evidence[digest]; ok {
		return b, nil
	}
	return nil, store.ErrNoEvidence
}

// appends returns how often Append was called, and the sizes of what was kept.
func (m *memLog) appends() (tries int, batches []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tries, append([]int(nil), m.batches...)
}

func (m *memLog) ByCall(_ context.Context, call string) (out []store.Record, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		if r.Call == call {
			out = append(out, r)
		}
	}
	return out, nil
}
