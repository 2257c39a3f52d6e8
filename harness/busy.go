package harness

import (
	"sync/atomic"
	"time"
)

// Busy says what the loop has spent its time with since it began to run.
type Busy struct {
	Batches int64         // transactions
	Events  int64         // in them
	Decide  time.Duration // observations numbered and decided on
	Append  time.Duration // sealed and made durable
	Release time.Duration
}

// busy counts for Busy; the loop's goroutine adds, and any may read.
type busy struct{ batches, events, decide, append, release atomic.Int64 }

// Busy reports the sums so far. Safe for concurrent use.
func (l *Loop) Busy() Busy {
	b := &l.busy
	return Busy{Batches: b.batches.Load(), Events: b.events.Load(), Decide: time.Duration(b.decide.Load()),
		Append: time.Duration(b.append.Load()), Release: time.Duration(b.release.Load())}
}

// add counts one transaction; times are in nanoseconds.
func (b *busy) add(events int, decide, append, release int64) {
	b.batches.Add(1)
	b.events.Add(int64(events))
	b.decide.Add(decide)
	b.append.Add(append)
	b.release.Add(release)
}
