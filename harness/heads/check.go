package heads

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"waybill/events/checkpoint"
	"waybill/harness"
	"waybill/store"
)

// Codes of a RefusedError.
const (
	LogShorter           = "log_shorter"           // than the checkpoint beside it
	LogDiffers           = "log_differs"           // from what was signed
	KeyDiffers           = "key_differs"           // from the one that signed
	CheckpointUnreadable = "checkpoint_unreadable" // it is no checkpoint
)

// RefusedError says that a log is not the one that was signed, and must not be
// written to.
type RefusedError struct {
	Code   string
	File   string // the checkpoint it was held to, or the log itself
	Reason string // and what to do
}

// Error is the file and the reason.
func (e *RefusedError) Error() string { return e.File + ": " + e.Reason }

// headLog is what is needed of a log.
type headLog interface {
	ID() string
	PublicKey() string
	Keys() []string // all the log has had, the present one last
	Head() store.Head
	Checkpoint(ctx context.Context, size int64, note []byte) error
	LastCheckpoint(ctx context.Context) (store.Checkpoint, error)
	RootAt(ctx context.Context, size int64, head store.Head) ([32]byte, error)
}

// storeLog joins the writer and the readers of one log.
type storeLog struct {
	*store.Log
	keys []string
}

// keyed reads what keys the log has had.
func keyed(dir harness.DataDir, l *store.Log) (storeLog, error) {
	keys, err := dir.Keys(l.ID(), l.PublicKey())
	return storeLog{l, keys}, err
}

func (l storeLog) Keys() []string { return l.keys }

func (l storeLog) LastCheckpoint(ctx context.Context) (store.Checkpoint, error) {
	return l.Reader().LastCheckpoint(ctx)
}

func (l storeLog) RootAt(ctx context.Context, size int64, head store.Head) ([32]byte, error) {
	return l.Reader().RootAt(ctx, size, head)
}

// Check holds a log to the checkpoint file beside it, and to the checkpoint it
// stored last. A log that is shorter, or has another root at that size, or was
// signed by another key, gives a *RefusedError that says what to do. A file that
// a crash left behind the log is brought up to date; one that is missing is made
// again, with a warning; where nothing was ever signed there is none. The caller
// holds the lock of the directory.
func Check(ctx context.Context, dir harness.DataDir, l *store.Log, logger *slog.Logger) error {
	log, err := keyed(dir, l)
	if err != nil {
		return err
	}
	_, err = check(ctx, dir.CheckpointFile(), log, logger)
	return err
}

// signed is a checkpoint with its bytes; no bytes where there is none.
type signed struct {
	checkpoint.Head
	note []byte
}

// check returns what the file holds in the end.
func check(ctx context.Context, file string, log headLog, logger *slog.Logger) (signed, error) {
	last, err := stored(ctx, log)
	if err != nil {
		return signed{}, err
	}
	b, err := harness.ReadSmall(file)
	if errors.Is(err, fs.ErrNotExist) {
		return last, restore(file, last, logger)
	} else if err != nil {
		return signed{}, fmt.Errorf("read the last checkpoint: %w", err)
	}
	beside, err := hold(ctx, log, b, file)
	switch {
	case err != nil:
		return signed{}, err
	case last.note == nil || beside.Size > last.Size:
		// A checkpoint is stored before the file is written, so it was taken out of the log.
		logger.Warn("the log has lost the checkpoint beside it, which it had stored; it is stored again", "file", file, "size", beside.Size)
		return beside, log.Checkpoint(ctx, beside.Size, b)
	case beside.Size < last.Size:
		return last, harness.WriteFile(file, last.note, fileMode) // a crash came between the two
	}
	return beside, nil
}

const fileMode = 0o644 // it is for everybody to keep

// stored returns the checkpoint that the log stored last.
func stored(ctx context.Context, log headLog) (signed, error) {
	last, err := log.LastCheckpoint(ctx)
	if errors.Is(err, store.ErrNoCheckpoint) {
		return signed{}, nil
	} else if err != nil {
		return signed{}, err
	}
	h, err := hold(ctx, log, last.Note, "log "+log.ID()+", its last stored checkpoint")
	if err == nil && h.Size != last.Size {
		err = &RefusedError{LogDiffers, "log " + h.Log, fmt.Sprintf("the checkpoint stored for %d events is of %d: run waybill-audit verify", last.Size, h.Size)}
	}
	return h, err
}

// restore makes a file that is missing where something was signed before.
func restore(file string, last signed, logger *slog.Logger) error {
	if last.note == nil {
		return nil
	}
	logger.Warn("the checkpoint beside the log is missing; it is made again from the log", "file", file, "size", last.Size)
	return harness.WriteFile(file, last.note, fileMode)
}

// openBy opens a checkpoint that any of the log's keys has signed. That each
// signed in its time only is for waybill-audit verify to see: it reads every event.
func openBy(b []byte, keys []string) (h checkpoint.Head, err error) {
	for i := len(keys) - 1; i >= 0; i-- {
		if h, err = checkpoint.Open(b, keys[i]); !errors.Is(err, checkpoint.ErrSignature) {
			return h, err
		}
	}
	return h, err
}

// hold opens a checkpoint and holds the log to it.
func hold(ctx context.Context, log headLog, b []byte, name string) (signed, error) {
	refuse := func(code, format string, args ...any) (signed, error) {
		return signed{}, &RefusedError{code, name, fmt.Sprintf(format, args...)}
	}
	h, err := openBy(b, log.Keys())
	switch {
	case errors.Is(err, checkpoint.ErrSignature):
		return refuse(KeyDiffers, "%v: it belongs to another log, or the log does: put back the log.db, keys and checkpoint that belong together", err)
	case err != nil:
		return refuse(CheckpointUnreadable, "%v: put it back from a copy; only if it was damaged by accident, move it away, and it is made again from the log", err)
	case h.Log != log.ID():
		return refuse(KeyDiffers, "it is of log %s, and this is log %s: put back the log.db and checkpoint that belong together", h.Log, log.ID())
	}
	head := log.Head()
	if head.Size < h.Size {
		return refuse(LogShorter, "it is of %d events and the log has %d: the log was put back from an older copy, or its end was cut off. "+
			"Events %d to %d were signed, and may have been acted on. Put back the newest log.db; if it is lost, keep this one as a record, never edit it, "+
			"and begin a new log from it", h.Size, head.Size, head.Size+1, h.Size)
	}
	root, err := log.RootAt(ctx, h.Size, head)
	if err != nil {
		return signed{}, fmt.Errorf("compare with the checkpoint of %d events: %w", h.Size, err)
	}
	if root != h.Root {
		return refuse(LogDiffers, "the first %d events of the log are not those that were signed: run waybill-audit verify --checkpoint with it. "+
			"Put back the log.db that was signed; if it is lost, keep this one as a record, never edit it, and begin a new log from it", h.Size)
	}
	return signed{h, b}, nil
}
