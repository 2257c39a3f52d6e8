package heads

import (
	"context"
	"errors"
	"io/fs"

	"waybill/events/checkpoint"
	"waybill/harness"
	"waybill/store"
)

// Seen is what Look found.
type Seen struct {
	Stored int64 // size of the checkpoint that the log stored last; 0 for none
	Beside int64 // size of the one in the file beside it; 0 for none
}

// still is a log that is only read, with the head it had when it was looked at.
type still struct {
	*store.Reader
	head store.Head
	keys []string

	last    store.Checkpoint // what LastCheckpoint answers
	lastErr error
}

// LastCheckpoint implements headLog.
func (l still) LastCheckpoint(context.Context) (store.Checkpoint, error) { return l.last, l.lastErr }

func (l still) Keys() []string { return l.keys }

func (l still) Head() store.Head { return l.head }

// Checkpoint implements headLog: nothing is stored.
func (still) Checkpoint(context.Context, int64, []byte) error { return nil }

// Look holds a log to the checkpoint file beside it and to the one it stored
// last, as Check does, and changes nothing. A log that is not the one that was
// signed gives a *RefusedError. It may be used while the service runs.
func Look(ctx context.Context, dir harness.DataDir, r *store.Reader) (s Seen, err error) {
	// The head comes last: it may then only be larger than what was signed.
	b, err := harness.ReadSmall(dir.CheckpointFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Seen{}, err
	}
	last, lastErr := r.LastCheckpoint(ctx)
	head, err := r.Head(ctx)
	if err != nil {
		return Seen{}, err
	}
	keys, err := dir.Keys(r.ID(), r.PublicKey())
	if err != nil {
		return Seen{}, err
	}
	log := still{r, head, keys, last, lastErr}
	if b != nil {
		beside, err := hold(ctx, log, b, dir.CheckpointFile())
		if err != nil {
			return Seen{}, err
		}
		s.Beside = beside.Size
	}
	in, err := stored(ctx, log)
	s.Stored = in.Size
	return s, err
}

// Held holds a log, which has had these keys, to a checkpoint that was kept, and
// which may be of a longer log than r is. One that is of another log, or of other
// events, gives a *RefusedError. name is for messages.
func Held(ctx context.Context, r *store.Reader, keys []string, note []byte, name string) (checkpoint.Head, error) {
	head, err := r.Head(ctx)
	if err != nil {
		return checkpoint.Head{}, err
	}
	h, err := hold(ctx, still{Reader: r, head: head, keys: keys}, note, name)
	var refused *RefusedError
	if errors.As(err, &refused) && refused.Code == LogShorter {
		return openBy(note, keys)
	}
	return h.Head, err
}
