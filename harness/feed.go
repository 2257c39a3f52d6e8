package harness

import (
	"context"
	"sync"
	"time"
)

// Feed tells followers how far the log has come. Advance is called by the loop
// after each commit; Wait by any number of followers.
type Feed struct {
	mu      sync.Mutex
	head    int64
	changed chan struct{}
}

// NewFeed returns a feed of a log with the given head.
func NewFeed(head int64) *Feed { return &Feed{head: head, changed: make(chan struct{})} }

// Advance says that events up to head are committed. It never blocks.
func (f *Feed) Advance(head int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if head <= f.head {
		return
	}
	f.head = head
	close(f.changed)
	f.changed = make(chan struct{})
}

// Head returns the last head told.
func (f *Feed) Head() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.head
}

// Wait returns when there is an event after the given one, or ctx ends.
func (f *Feed) Wait(ctx context.Context, after int64) error { return f.wait(ctx, after, nil) }

// Gather is Wait that lets events gather for a while once there is one, so that
// a follower which is up to date does not take the disk and the processors for
// every single commit. One that is far behind is not held up.
func (f *Feed) Gather(ctx context.Context, after int64, linger time.Duration) error {
	if err := f.Wait(ctx, after); err != nil || f.Head()-after >= foldBatch {
		return err
	}
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait is Wait that also returns, with errStopping, when done is closed and no
// event came.
func (f *Feed) wait(ctx context.Context, after int64, done <-chan struct{}) error {
	for {
		f.mu.Lock()
		head, changed := f.head, f.changed
		f.mu.Unlock()
		if head > after {
			return nil
		}
		select {
		case <-changed:
		case <-done:
			return errStopping
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
