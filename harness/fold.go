package harness

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"waybill/domain"
	"waybill/events"
	"waybill/store"
)

// Source reads a log: *store.Reader is one. Its methods are called from several
// goroutines at once.
type Source interface {
	// Read returns at most max events after a seq, in order.
	Read(ctx context.Context, after int64, max int) ([]store.Record, error)
	// Evidence returns the bytes kept under a digest.
	Evidence(ctx context.Context, digest [32]byte) ([]byte, error)
}

const (
	foldBatch = 1024
	mostAhead = 8 // stretches of so many events that are decoded and not yet asked for
)

// Fold applies every event after the state's head. It is how the service, and
// whoever reads the log without it, comes to the state: the same Apply as live.
//
// Each event is held to its one encoding, to the log and to its place before it
// is applied; that the bytes are those that were hashed is for a verifier to say.
// Reading and decoding go ahead on other goroutines, ten thousand events at most,
// which have ended when Fold returns. After an error the state is that of
// the events before the one that failed.
func Fold(ctx context.Context, src Source, logID string, s *domain.State) error {
	return fold(ctx, src, logID, s, func(e domain.Event, _ store.Record) { s.Apply(e) })
}

func fold(ctx context.Context, src Source, logID string, s *domain.State, apply func(domain.Event, store.Record)) error {
	a := readAhead(ctx, src, logID, s.Head)
	defer a.stop()
	for b := range a.ordered {
		<-b.done
		for i, e := range b.events {
			if e.Seq != s.Head+1 {
				return fmt.Errorf("the log has event %d after %d: run waybill-audit verify", e.Seq, s.Head)
			}
			apply(e, b.records[i])
		}
		if b.err != nil {
			return b.err
		}
	}
	return a.err
}

// A stretch is some events of a log, one after the other, and what they decode to.
type stretch struct {
	records []store.Record
	events  []domain.Event // those before the error
	err     error
	done    chan struct{} // closed when the others hold
}

// ahead reads a log and decodes it before its reader asks, which takes stretches
// from ordered until that is closed, waiting for each.
type ahead struct {
	src     Source
	logID   string
	ordered chan *stretch // bounds how far ahead
	err     error         // why there are no more, once ordered is closed; nil at the end of the log
	cancel  context.CancelFunc
	all     sync.WaitGroup
}

func readAhead(ctx context.Context, src Source, logID string, after int64) *ahead {
	a := &ahead{src: src, logID: logID, ordered: make(chan *stretch, min(runtime.GOMAXPROCS(0), mostAhead))}
	ctx, a.cancel = context.WithCancel(ctx)
	a.all.Go(func() { a.read(ctx, after) })
	return a
}

// stop ends the goroutines and waits for them.
func (a *ahead) stop() {
	a.cancel()
	a.all.Wait()
}

func (a *ahead) read(ctx context.Context, after int64) {
	defer close(a.ordered)
	for {
		records, err := a.src.Read(ctx, after, foldBatch)
		if err != nil {
			a.err = fmt.Errorf("read the log after %d: %w", after, err)
			return
		}
		if len(records) == 0 {
			return
		}
		b := &stretch{records: records, done: make(chan struct{})}
		select {
		case a.ordered <- b:
		case <-ctx.Done():
			a.err = ctx.Err()
			return
		}
		after = records[len(records)-1].Seq
		a.all.Go(func() { b.decode(ctx, a.src, a.logID) })
	}
}

func (b *stretch) decode(ctx context.Context, src Source, logID string) {
	defer close(b.done)
	b.events = make([]domain.Event, 0, len(b.records))
	for _, r := range b.records {
		e, err := Decode(ctx, src, logID, r)
		if err != nil {
			b.err = err
			return
		}
		b.events = append(b.events, e)
	}
}

// open opens a record of a log, without its evidence.
func open(logID string, r store.Record) (domain.Event, error) {
	log, e, err := events.Open(r.Bytes)
	if err != nil {
		return e, fmt.Errorf("event %d: %w", r.Seq, err)
	}
	if log != logID || e.Seq != r.Seq {
		return e, fmt.Errorf("event %d says that it is event %d of %s: run waybill-audit verify", r.Seq, e.Seq, log)
	}
	return e, nil
}

// Decode opens a record of a log and joins its evidence.
func Decode(ctx context.Context, src Source, logID string, r store.Record) (domain.Event, error) {
	e, err := open(logID, r)
	if err == nil {
		err = joinEvidence(ctx, src, &e)
	}
	return e, err
}

// joinEvidence fetches the evidence that an event cites, if it cites any.
func joinEvidence(ctx context.Context, src Source, e *domain.Event) error {
	ref, ok := events.EvidenceOf(e.Data)
	if !ok {
		return nil
	}
	d, err := events.DigestOf(ref)
	if err != nil {
		return fmt.Errorf("event %d: %w: run waybill-audit verify", e.Seq, err)
	}
	if e.Evidence, err = src.Evidence(ctx, d); err != nil {
		return fmt.Errorf("evidence of event %d: %w", e.Seq, err)
	}
	return nil
}

// seal makes the entry of one event: its envelope, and the evidence it cites.
func seal(log string, e domain.Event) (store.Entry, error) {
	b, err := events.Seal(log, e)
	if err != nil {
		return store.Entry{}, fmt.Errorf("seal: %w", err)
	}
	entry := store.Entry{Type: e.Data.Kind(), Peer: e.Peer(), Call: e.Call(), Bytes: b}
	if ref, ok := events.EvidenceOf(e.Data); ok {
		d, err := events.DigestOf(ref)
		if err != nil {
			return store.Entry{}, fmt.Errorf("seal event %d: %w", e.Seq, err)
		}
		entry.Evidence = []store.Evidence{{Digest: d, Bytes: e.Evidence}}
	}
	return entry, nil
}
