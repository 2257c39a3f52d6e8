package heads

import (
	"log/slog"
	"sync"
	"time"
)

// outlet hands the newest checkpoint on, on a goroutine of its own, so that
// whoever takes it cannot hold up the signing.
type outlet struct {
	take   func([]byte) error
	every  time.Duration // pause after a failure
	logger *slog.Logger

	mu    sync.Mutex
	note  []byte // not handed on yet, nil for none
	ended bool

	wake chan struct{}
	done chan struct{}
}

func startOutlet(take func([]byte) error, every time.Duration, logger *slog.Logger) *outlet {
	if take == nil {
		take = func([]byte) error { return nil }
	}
	o := &outlet{take: take, every: every, logger: logger, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go o.run()
	return o
}

// put replaces whatever was not handed on yet. It never blocks.
func (o *outlet) put(note []byte) {
	o.mu.Lock()
	o.note = note
	o.mu.Unlock()
	o.signal()
}

// stop tries what is left once, and waits.
func (o *outlet) stop() {
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
	o.signal()
	<-o.done
}

func (o *outlet) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outlet) run() {
	defer close(o.done)
	for failing := false; ; {
		note, ended := o.next()
		if note != nil {
			err := o.take(note)
			if err != nil && (!failing || ended) {
				o.logger.Warn("a checkpoint could not be published; it is in the log and beside it", "err", err)
			}
			if failing = err != nil; failing {
				o.putBack(note)
			}
		}
		if ended {
			return
		}
		o.pause(failing)
	}
}

// next takes the checkpoint to hand on.
func (o *outlet) next() (note []byte, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	note, o.note = o.note, nil
	return note, o.ended
}

// putBack keeps one that failed, unless there is a newer one.
func (o *outlet) putBack(note []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.note == nil {
		o.note = note
	}
}

// pause waits for the next checkpoint, or for the time to try again.
func (o *outlet) pause(failing bool) {
	var again <-chan time.Time
	if failing {
		timer := time.NewTimer(o.every)
		defer timer.Stop()
		again = timer.C
	}
	select {
	case <-o.wake:
	case <-again:
	}
}
