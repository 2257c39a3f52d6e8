package heads

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/note"

	"waybill/events/checkpoint"
	"waybill/harness"
	"waybill/store"
)

// ErrOther says that something else writes checkpoints where this process does.
// It is matched by the error of Run, which has ended for good.
var ErrOther = errors.New("something else writes checkpoints here: find and stop it, then start again")

// Config of a Checkpointer.
type Config struct {
	Dir    harness.DataDir // whose lock the caller holds
	Log    *store.Log
	Every  time.Duration // 1 s if 0
	Logger *slog.Logger  // slog.Default if nil

	// Publish hands a checkpoint on; nil for nowhere. It is called by one
	// goroutine of its own, with the newest checkpoint, which stands for all
	// before it, and with that of the last life at the start. When it fails it is
	// called again after Every, by then perhaps with a newer one, and once more at
	// the end. It must return in a bounded time, and must not change the bytes.
	Publish func(note []byte) error

	// Mark is told when a checkpoint is in the log, as "stored checkpoint", and
	// when it is in the file too, as "kept checkpoint", by tests that end the
	// process there. Nil otherwise.
	Mark func(point string)
}

// Checkpointer signs the heads of one log.
type Checkpointer struct {
	log     headLog
	file    string
	signer  note.Signer
	every   time.Duration
	publish func(note []byte) error
	marks   func(point string) // nil for nobody
	logger  *slog.Logger

	size atomic.Int64

	// What the file holds, as this process read or wrote it last, and what it has
	// last tried to write: a write that failed may have happened. Run's alone.
	kept, tried []byte
	failing     bool
}

// New holds the log to its last checkpoint as Check does, and makes the
// Checkpointer of the log. It refuses a signing key that is not the log's.
func New(ctx context.Context, cfg Config) (*Checkpointer, error) {
	if err := Settle(ctx, cfg.Dir, cfg.Log); err != nil {
		return nil, err
	}
	signer, public, err := cfg.Dir.Signer(cfg.Log.ID())
	if err != nil {
		return nil, err
	}
	log, err := keyed(cfg.Dir, cfg.Log)
	if err != nil {
		return nil, err
	}
	c := &Checkpointer{log: log, file: cfg.Dir.CheckpointFile(), signer: signer, publish: cfg.Publish, marks: cfg.Mark,
		every: cmp.Or(cfg.Every, time.Second), logger: cmp.Or(cfg.Logger, slog.Default())}
	if keys := log.Keys(); !checkpoint.SameKey(public, keys[len(keys)-1]) {
		return nil, &RefusedError{KeyDiffers, "log " + c.log.ID(), "keys/log.key is not the key of this log: put the right one back from a backup"}
	}
	return c, c.open(ctx)
}

func (c *Checkpointer) open(ctx context.Context) error {
	last, err := check(ctx, c.file, c.log, c.logger)
	if err != nil {
		return err
	}
	c.kept = last.note
	c.size.Store(last.Size)
	return nil
}

// Name is for messages.
func (c *Checkpointer) Name() string { return "checkpointer" }

// Position is the size of the last checkpoint that is in the log and in the
// file. Safe for concurrent use.
func (c *Checkpointer) Position() int64 { return c.size.Load() }

// Run signs the head after events were committed, every Config.Every while
// events arrive, until ctx ends; then it signs what is left and returns nil. A
// head that cannot be stored is tried again; the events do not wait for it. It
// returns an error that matches ErrOther when the file or the log holds a
// checkpoint that this process did not write, and another one when the last
// head of all could not be signed, which the next start makes up for. It owns
// one goroutine, which has ended when it returns. It may be called once.
func (c *Checkpointer) Run(ctx context.Context, feed *harness.Feed) error {
	out := startOutlet(c.publish, c.every, c.logger)
	defer out.stop()
	if c.kept != nil {
		out.put(c.kept)
	}
	for due := time.Now(); ; {
		err := feed.Wait(ctx, c.Position())
		if err == nil {
			due = next(due, c.every)
			err = until(ctx, due)
		}
		signErr := c.sign(context.WithoutCancel(ctx), out)
		switch {
		case errors.Is(signErr, ErrOther):
			return signErr
		case err != nil && signErr != nil:
			return fmt.Errorf("the last events are not signed; the next start does it: %w", signErr)
		case err != nil:
			return nil
		}
		c.tell(signErr)
	}
}

// next keeps the pace while events arrive, and begins anew after a rest.
func next(due time.Time, every time.Duration) time.Time {
	now := time.Now()
	if due = due.Add(every); due.Before(now) {
		return now.Add(every)
	}
	return due
}

func until(ctx context.Context, due time.Time) error {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tell says once that signing fails, and once that it works again.
func (c *Checkpointer) tell(err error) {
	if err != nil && !c.failing {
		c.logger.Error("the head of the log could not be signed; it is tried again", "size", c.log.Head().Size, "err", err)
	}
	if err == nil && c.failing {
		c.logger.Info("the head of the log is signed again", "size", c.Position())
	}
	c.failing = err != nil
}

// sign signs the head, if it was not. The order is: stored in the log, written
// to the file, published. A crash in between leaves a log whose last checkpoint
// is newer than the file, which the next start brings up to date, or one that
// was not published, which the next start does.
func (c *Checkpointer) sign(ctx context.Context, out *outlet) error {
	head := c.log.Head()
	if head.Size <= c.Position() {
		return nil
	}
	b, err := checkpoint.Sign(c.signer, checkpoint.Head{Log: c.log.ID(), Size: head.Size, Root: head.Root})
	if err != nil {
		return err
	}
	if err := c.store(ctx, head.Size, b); err != nil {
		return err
	}
	c.mark("stored checkpoint")
	if err := c.replace(b); err != nil {
		return err
	}
	c.mark("kept checkpoint")
	c.size.Store(head.Size)
	out.put(b)
	return nil
}

func (c *Checkpointer) mark(point string) {
	if c.marks != nil {
		c.marks(point)
	}
}

// store keeps a checkpoint in the log. One that failed may be there all the
// same, and is then not an error.
func (c *Checkpointer) store(ctx context.Context, size int64, b []byte) error {
	err := c.log.Checkpoint(ctx, size, b)
	if err == nil {
		return nil
	}
	last, readErr := c.log.LastCheckpoint(ctx)
	switch {
	case errors.Is(readErr, store.ErrNoCheckpoint):
		return err
	case readErr != nil:
		return errors.Join(err, readErr)
	case last.Size == size && bytes.Equal(last.Note, b):
		return nil
	case last.Size >= size:
		return fmt.Errorf("the log has a checkpoint of %d events, which this process did not sign: %w", last.Size, ErrOther)
	}
	return err
}

// replace writes the file if it holds what this process knows of. The lock of
// the directory keeps other services away; this finds whoever does not ask for
// it, unless they write in the same instant.
func (c *Checkpointer) replace(b []byte) error {
	now, err := harness.ReadSmall(c.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the last checkpoint: %w", err)
	}
	if !bytes.Equal(now, c.kept) && (c.tried == nil || !bytes.Equal(now, c.tried)) {
		return fmt.Errorf("%s is not as this process left it, and was not replaced: %w", c.file, ErrOther)
	}
	c.kept, c.tried = now, b
	if err := harness.WriteFile(c.file, b, fileMode); err != nil {
		return err
	}
	c.kept, c.tried = b, nil
	return nil
}
