package harness

import (
	"context"
	"sync"
	"time"

	"waybill/domain"
)

// readPause is the least time between two recorded readings of the tools of one
// context: hosts that ask more often share one.
const readPause = 100 * time.Millisecond

// readPatience is how long a host that reads tools waits for lists that are read
// again. Then it is served what there is, marked stale: one slow peer holds up
// nobody for longer.
const readPatience = 500 * time.Millisecond

// reads gathers hosts that read the tools of a context at the same time, so that
// there is one decision, and one reading of each stale list, for all of them.
type reads struct {
	put func(*flight) bool // hands one to the loop; false once that has ended

	mu     sync.Mutex
	open   map[string]*flight // by context: not yet decided on
	last   map[string]time.Time
	timers map[*flight]*time.Timer
	closed bool
}

// flight is one reading for everybody who asked before it was decided on.
type flight struct {
	context string
	count   int64         // guarded by the lock of reads
	done    chan struct{} // closed when it is durable, or never will be
}

func newReads(put func(*flight) bool) *reads {
	return &reads{put: put, open: map[string]*flight{}, last: map[string]time.Time{}, timers: map[*flight]*time.Timer{}}
}

// join takes part in the next reading of a context; nil if there is none any more.
func (r *reads) join(context string) *flight {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	f := r.open[context]
	if f != nil {
		f.count++
		return f
	}
	f = &flight{context: context, count: 1, done: make(chan struct{})}
	if wait := time.Until(r.last[context].Add(readPause)); wait > 0 {
		r.open[context] = f
		r.timers[f] = time.AfterFunc(wait, func() { r.leave(f) })
		return f
	}
	if !r.put(f) {
		return nil
	}
	r.open[context] = f
	return f
}

// leave hands a flight to the loop whose pause is over.
func (r *reads) leave(f *flight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.timers, f)
	if r.closed || !r.put(f) {
		close(f.done)
		delete(r.open, f.context)
	}
}

// take closes a flight to those who come later, and says what it is. The loop
// calls it.
func (r *reads) take(f *flight) domain.ToolsRead {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, f.context)
	r.last[f.context] = time.Now()
	return domain.ToolsRead{Context: f.context, Reads: f.count}
}

// close ends what waits for its pause. Everybody learns of the loop's end by its
// inbox.
func (r *reads) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for f, t := range r.timers { // in no order: each is ended alone
		if t.Stop() {
			close(f.done)
		}
	}
}

// landed tells those who read that the decision is durable.
func (l *Loop) landed() {
	for _, f := range l.flights {
		close(f.done)
	}
	l.flights = nil
}

// NoteRead records that a host reads the tools of a context, "" for the default
// one, and returns when what follows from it is durable: the lists that are not
// fresh are being read again. Hosts that read at the same time share one record.
// Safe for concurrent use.
func (l *Loop) NoteRead(ctx context.Context, context string) error {
	f := l.reads.join(context)
	if f == nil {
		return errStopping
	}
	select {
	case <-f.done:
		return nil
	case <-l.inbox.ended:
		return errStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ReadTools reads the tools of a context, "" for the default one, after a
// canonical name, at most as many as most; 0 is for all. A reading from the
// beginning is recorded, and waits a moment for lists that are read again because
// of it; what could not be had by then is served as it is, and named as stale.
// Definitions are shared and must not be changed. Safe for concurrent use.
func (e *Engine) ReadTools(ctx context.Context, context, after string, most int) (domain.ToolList, error) {
	var list domain.ToolList
	if after == "" {
		if err := e.Loop.NoteRead(ctx, context); err != nil {
			return list, err
		}
		if err := e.awaitLists(ctx, context); err != nil {
			return list, err
		}
	}
	mono := e.Loop.cfg.Clock.Mono
	err := e.Loop.Ask(ctx, func(s *domain.State) { list = s.Tools(context, after, most, mono()) })
	return list, err
}

// awaitLists returns when no list of a context is being read, or patience is spent.
func (e *Engine) awaitLists(ctx context.Context, context string) error {
	patient, cancel := contextWithTimeout(ctx, readPatience)
	defer cancel()
	for {
		var reading bool
		var head int64
		err := e.Loop.Ask(patient, func(s *domain.State) { reading, head = s.Reading(context), s.Head })
		if err == nil && !reading {
			return nil
		}
		if err == nil {
			err = e.Feed.wait(patient, head, e.loopDone)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case patient.Err() != nil:
			return nil
		case err != nil:
			return err
		}
	}
}

// contextWithTimeout is context.WithTimeout, where a parameter has its name.
func contextWithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}
