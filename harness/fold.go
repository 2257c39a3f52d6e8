package harness

import (
	"context"
	"fmt"

	"waybill/domain"
	"waybill/events"
	"waybill/store"
)

// Source reads a log: *store.Reader is one.
type Source interface {
	// Read returns at most max events after a seq, in order.
	Read(ctx context.Context, after int64, max int) ([]store.Record, error)
	// Evidence returns the bytes kept under a digest.
	Evidence(ctx context.Context, digest [32]byte) ([]byte, error)
}

const foldBatch = 1024

// Fold applies every event after the state's head. It is how the service, and
// whoever reads the log without it, comes to the state: the same Apply as live.
func Fold(ctx context.Context, src Source, logID string, s *domain.State) error {
	for {
		records, err := src.Read(ctx, s.Head, foldBatch)
		if err != nil {
			return fmt.Errorf("read the log after %d: %w", s.Head, err)
		}
		if len(records) == 0 {
			return nil
		}
		for _, r := range records {
			e, err := Decode(ctx, src, logID, r)
			if err != nil {
				return err
			}
			if e.Seq != s.Head+1 {
				return fmt.Errorf("the log has event %d after %d: run waybill-audit verify", e.Seq, s.Head)
			}
			s.Apply(e)
		}
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
	if err != nil {
		return e, err
	}
	ref, ok := events.EvidenceOf(e.Data)
	if !ok {
		return e, nil
	}
	d, err := events.DigestOf(ref)
	if err != nil {
		return e, fmt.Errorf("event %d: %w: run waybill-audit verify", r.Seq, err)
	}
	if e.Evidence, err = src.Evidence(ctx, d); err != nil {
		return e, fmt.Errorf("evidence of event %d: %w", r.Seq, err)
	}
	return e, nil
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
