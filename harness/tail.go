package harness

import (
	"context"
	"sync"

	"waybill/domain"
	"waybill/events"
	"waybill/store"
)

// What a tail holds at most.
const (
	tailEvents = 8 << 10
	tailBytes  = 16 << 20
)

// A Tail holds the newest events of a log as this process has sealed and committed them,
// so that a follower that is up to date need not read back what was written a moment
// before. It is a convenience: what it does not hold is in the log. Safe for concurrent
// use.
type Tail struct {
	mu      sync.Mutex
	records []store.Record // dense, without leaf hashes; older ones are only ever cut off
	size    int            // of their bytes
}

// add appends what was committed after a seq.
func (t *Tail) add(after int64, entries []store.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.records); n > 0 && t.records[n-1].Seq != after {
		t.records, t.size = nil, 0
	}
	for i, e := range entries {
		t.records = append(t.records, store.Record{Seq: after + 1 + int64(i), Type: e.Type, Peer: e.Peer, Call: e.Call, Bytes: e.Bytes})
		t.size += len(e.Bytes)
	}
	n := 0
	for n < len(t.records) && (len(t.records)-n > tailEvents || t.size > tailBytes) {
		t.size -= len(t.records[n].Bytes)
		t.records[n] = store.Record{} // its bytes are not to be kept by the array
		n++
	}
	t.records = t.records[n:]
}

// after returns at most max events after a seq; none where the tail does not reach back
// to it, or there are none.
func (t *Tail) after(seq int64, max int) []store.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.records) == 0 || seq+1 < t.records[0].Seq {
		return nil
	}
	rest := t.records[min(seq+1-t.records[0].Seq, int64(len(t.records))):]
	return append([]store.Record(nil), rest[:min(max, len(rest))]...)
}

// Read returns at most max events of the log after a seq, in order, without their leaf
// hashes: from memory where they are new, else from the log. Safe for concurrent use.
func (e *Engine) Read(ctx context.Context, after int64, max int) ([]store.Record, error) {
	if records := e.tail.after(after, max); len(records) > 0 {
		return records, nil
	}
	return e.log.Reader().Read(ctx, after, max)
}

// next returns the events that a follower has not seen, decoded and with their evidence.
func (e *Engine) next(ctx context.Context, after int64) ([]domain.Event, error) {
	src, id := e.log.Reader(), e.log.ID()
	decode, records := openSealed, e.tail.after(after, foldBatch)
	if len(records) == 0 {
		var err error
		if records, err = src.Read(ctx, after, foldBatch); err != nil {
			return nil, err
		}
		decode = open
	}
	facts := make([]domain.Event, 0, len(records))
	for _, r := range records {
		fact, err := decode(id, r)
		if err == nil {
			err = joinEvidence(ctx, src, &fact)
		}
		if err != nil {
			return nil, err
		}
		facts = append(facts, fact)
	}
	return facts, nil
}

// openSealed is open for what this process has sealed.
func openSealed(_ string, r store.Record) (domain.Event, error) {
	_, e, err := events.OpenSealed(r.Bytes)
	return e, err
}
