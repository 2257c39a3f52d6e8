package harness

import (
	"context"
	"maps"
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
	put     func(*flight) bool   // hands one to the loop; false once that has ended
	waiting map[string][]*flight // by context: durable, and lists are being read. The loop's alone
	cut     cut                  // the loop's alone

	mu     sync.Mutex
	open   map[string]*flight   // by context: not yet decided on
	last   map[string]time.Time // by context, of those decided on within the pause
	closed bool
}

// flight is one reading for everybody who asked before it was decided on. Whoever
// waits for it learns of the loop's end by the inbox.
type flight struct {
	context string
	count   int64         // guarded by the lock of reads, as is timer
	timer   *time.Timer   // of the pause before it; nil for none
	durable chan struct{} // closed when the decision is
	read    chan struct{} // closed when no list of the context is being read any more
}

func newReads(put func(*flight) bool) *reads {
	return &reads{put: put, waiting: map[string][]*flight{}, open: map[string]*flight{}, last: map[string]time.Time{}}
}

// join takes part in the next reading of a context; nil if there is none any more.
func (r *reads) join(context string) *flight {
	if context == domain.DefaultContext {
		context = "" // as events have it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	if f := r.open[context]; f != nil {
		f.count++
		return f
	}
	f := &flight{context: context, count: 1, durable: make(chan struct{}), read: make(chan struct{})}
	if wait := time.Until(r.last[context].Add(readPause)); wait > 0 {
		f.timer = time.AfterFunc(wait, func() { r.leave(f) })
	} else if !r.put(f) {
		return nil
	}
	r.open[context] = f
	return f
}

// leave hands a flight to the loop whose pause is over.
func (r *reads) leave(f *flight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.timer = nil; !r.closed {
		r.put(f)
	}
}

// take closes a flight to those who come later, and says what it is. The loop
// calls it.
func (r *reads) take(f *flight) domain.ToolsRead {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(r.last, func(_ string, at time.Time) bool { return now.Sub(at) >= readPause })
	delete(r.open, f.context)
	r.last[f.context] = now
	return domain.ToolsRead{Context: f.context, Reads: f.count}
}

// close ends what waits for its pause: it will not be recorded.
func (r *reads) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, f := range r.open { // in no order: each is ended alone
		if f.timer != nil {
			f.timer.Stop()
		}
	}
	clear(r.open)
}

// cut is what the last host was given: others who ask for the same at the same
// moment share it, so that a thousand of them do not keep the loop from its work.
type cut struct {
	host, context, after string
	most                 int
	list                 domain.ToolList
	until                int64 // monotonic clock; 0 for none
}

// sameMoment is how long a cut may be given to others, unless something is
// recorded before. A list that becomes stale meanwhile is named as such so much
// later.
const sameMoment = 5 * time.Millisecond

// tools lists the tools of a context, or of a host where one is named. The loop calls it.
func (r *reads) tools(s *domain.State, host, context, after string, most int, mono func() int64) domain.ToolList {
	now, c := mono(), &r.cut
	if now >= c.until || c.host != host || c.context != context || c.after != after || c.most != most {
		*c = cut{host: host, context: context, after: after, most: most}
		if c.list = s.Tools(context, after, most, now); host != "" {
			c.list = s.ToolsFor(host, after, most, now)
		}
		c.until = mono() + int64(sameMoment)
	}
	return c.list
}

// landed tells those who read that the decision is durable, and those who wait for
// lists that none is being read. It is asked once for a context after each commit,
// however many hosts wait.
func (l *Loop) landed() {
	l.reads.cut = cut{}
	for _, f := range l.flights {
		close(f.durable)
		l.reads.waiting[f.context] = append(l.reads.waiting[f.context], f)
	}
	l.flights = nil
	for context, list := range l.reads.waiting { // in no order: each is told alone
		if l.state.Reading(context) {
			continue
		}
		for _, f := range list {
			close(f.read)
		}
		delete(l.reads.waiting, context)
	}
}

// NoteRead records that a host reads the tools of a context, "" for the default
// one, and returns when what follows from it is durable: the lists that are not
// fresh are being read again. Hosts that read at the same time share one record.
// After an error it may be recorded all the same. Safe for concurrent use.
func (l *Loop) NoteRead(ctx context.Context, context string) error {
	_, err := l.noteRead(ctx, context)
	return err
}

func (l *Loop) noteRead(ctx context.Context, context string) (*flight, error) {
	f := l.reads.join(context)
	if f == nil {
		return nil, errStopping
	}
	select {
	case <-f.durable:
		return f, nil
	case <-l.inbox.ended:
		return nil, errStopping
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// awaitLists returns when the lists that were read again for a flight have come, or
// patience is spent.
func (l *Loop) awaitLists(ctx context.Context, f *flight) error {
	patience := time.NewTimer(readPatience)
	defer patience.Stop()
	select {
	case <-f.read:
	case <-patience.C:
	case <-l.inbox.ended:
		return errStopping
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// ReadTools reads the tools of a context, "" for the default one, after a
// canonical name, at most as many as most; 0 is for all. A reading from the
// beginning is recorded, and waits a moment for lists that are read again because
// of it; what could not be had by then is served as it is, and named as stale.
// What is returned is shared and must not be changed. Safe for concurrent use.
func (e *Engine) ReadTools(ctx context.Context, context, after string, most int) (domain.ToolList, error) {
	return e.readTools(ctx, "", context, after, most)
}

// ReadToolsFor is ReadTools for a host: of its authorization context, without what
// it may not use.
func (e *Engine) ReadToolsFor(ctx context.Context, host, after string, most int) (domain.ToolList, error) {
	if len(e.config.Hosts) == 0 {
		host = "" // all are given the same
	}
	return e.readTools(ctx, host, e.config.ContextOf(host), after, most)
}

func (e *Engine) readTools(ctx context.Context, host, context, after string, most int) (domain.ToolList, error) {
	var list domain.ToolList
	if after == "" {
		f, err := e.Loop.noteRead(ctx, context)
		if err != nil {
			return list, err
		}
		if err := e.Loop.awaitLists(ctx, f); err != nil {
			return list, err
		}
	}
	l := e.Loop
	err := l.Ask(ctx, func(s *domain.State) { list = l.reads.tools(s, host, context, after, most, l.cfg.Clock.Mono) })
	return list, err
}
