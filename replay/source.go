package replay

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"waybill/domain"
	"waybill/events"
)

// Record is one stored event: its exact bytes, the leaf hash stored with it and
// the columns stored beside it.
type Record struct {
	Seq              int64
	Type, Peer, Call string
	Bytes            []byte
	Leaf             [32]byte
}

// Root is a stored root: the tree head after one transaction.
type Root struct {
	Size int64
	Hash [32]byte
}

// Tile is a stored complete tile: 256 hashes, one after the other.
type Tile struct {
	Level  int
	Index  int64
	Hashes []byte
}

// Checkpoint is a stored signed tree head.
type Checkpoint struct {
	Size int64  // as it is stored beside the note
	Note []byte // in C2SP format, signed
}

// Source is a log to be examined. Each method returns at most max items after
// the given one, ascending, and none where there are no more. The log may grow
// meanwhile, by whole transactions.
type Source interface {
	// ID is the log id.
	ID() string
	// PublicKey is the key that the log names as its own.
	PublicKey() string
	// Records returns events after a seq.
	Records(ctx context.Context, after int64, max int) ([]Record, error)
	// Roots returns stored roots beyond a size.
	Roots(ctx context.Context, after int64, max int) ([]Root, error)
	// Tiles returns complete tiles of a level after an index.
	Tiles(ctx context.Context, level int, after int64, max int) ([]Tile, error)
	// Checkpoints returns stored checkpoints beyond a size.
	Checkpoints(ctx context.Context, after int64, max int) ([]Checkpoint, error)
	// Strays names a row that stands where no log has one, before the first or at
	// a level that does not exist; "" for none.
	Strays(ctx context.Context) (string, error)
	// Evidence returns the bytes kept under a digest, or an error matching
	// ErrNoEvidence.
	Evidence(ctx context.Context, digest [32]byte) ([]byte, error)
	// Digests lists the digests of all evidence that is kept.
	Digests(ctx context.Context, after [32]byte, max int) ([][32]byte, error)
}

// ErrNoEvidence is matched by a Source's error for evidence it does not hold.
var ErrNoEvidence = errors.New("no evidence under this digest")

// AlteredError says that the log is not what was written. Seq is the event
// concerned, 0 where it is none. Evidence that is gone counts as altered: it is
// written with the event that cites it, and never removed.
type AlteredError struct {
	Seq  int64
	What string
}

func (e *AlteredError) Error() string {
	if e.Seq == 0 {
		return "altered: " + e.What
	}
	return fmt.Sprintf("altered at event %d: %s", e.Seq, e.What)
}

// UndecidableError says that an event cannot be examined by this program: a
// newer one may have written it.
type UndecidableError struct {
	Seq  int64
	What string
}

func (e *UndecidableError) Error() string {
	return fmt.Sprintf("undecidable at event %d: %s", e.Seq, e.What)
}

const batch = 1024

// first is below every seq, size and index, so that a row that was given a
// number below the lowest is met, too.
const first = math.MinInt64

// each calls f with every record of the log, in order, and checks that the
// seqs are dense from 1.
func each(ctx context.Context, src Source, f func(Record) error) error {
	after, next := int64(first), int64(1)
	for {
		records, err := src.Records(ctx, after, batch)
		if err != nil {
			return fmt.Errorf("read events after %d: %w", next-1, err)
		}
		if len(records) == 0 {
			return nil
		}
		for _, r := range records {
			if err := dense(r.Seq, next); err != nil {
				return err
			}
			if err := f(r); err != nil {
				return err
			}
			after, next = r.Seq, r.Seq+1
		}
	}
}

func dense(seq, want int64) error {
	switch {
	case seq < want:
		return &AlteredError{Seq: want, What: fmt.Sprintf("an event numbered %d stands before it", seq)}
	case seq > want:
		return &AlteredError{Seq: want, What: fmt.Sprintf("missing; the next event is %d", seq)}
	}
	return nil
}

// open decodes a record and checks it against its own columns.
func open(src Source, r Record) (domain.Event, error) {
	log, e, err := events.Open(r.Bytes)
	switch {
	case errors.Is(err, events.ErrUnknown):
		return e, &UndecidableError{Seq: r.Seq, What: err.Error()}
	case err != nil:
		return e, &AlteredError{Seq: r.Seq, What: "no waybill writes such an event: " + err.Error()}
	case log != src.ID():
		return e, &AlteredError{Seq: r.Seq, What: fmt.Sprintf("it belongs to log %q", log)}
	case e.Seq != r.Seq:
		return e, &AlteredError{Seq: r.Seq, What: fmt.Sprintf("its envelope says it is event %d", e.Seq)}
	case r.Type != e.Data.Kind() || r.Peer != e.Peer() || r.Call != e.Call():
		return e, &AlteredError{Seq: r.Seq, What: "the columns stored beside it disagree with its envelope"}
	}
	return e, nil
}

// join fetches the evidence an event cites and checks that it is what was
// cited. cited is false where it cites none.
func join(ctx context.Context, src Source, e *domain.Event) (d [32]byte, cited bool, err error) {
	ref, cited := events.EvidenceOf(e.Data)
	if !cited {
		return d, false, nil
	}
	if d, err = events.DigestOf(ref); err != nil {
		return d, true, &AlteredError{Seq: e.Seq, What: err.Error()}
	}
	b, err := src.Evidence(ctx, d)
	switch {
	case errors.Is(err, ErrNoEvidence):
		return d, true, &AlteredError{Seq: e.Seq, What: "the evidence it cites is gone"}
	case err != nil:
		return d, true, fmt.Errorf("evidence of event %d: %w", e.Seq, err)
	case sha256.Sum256(b) != d || int64(len(b)) != ref.Size:
		return d, true, &AlteredError{Seq: e.Seq, What: "the evidence it cites was changed"}
	}
	e.Evidence = b
	return d, true, nil
}
