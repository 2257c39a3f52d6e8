package web

import (
	"io"
	"sync"
	"time"
)

// A watch reads from a source and fires when nothing has come for some time. Before it is started it only reads. Its one goroutine,
// that of the timer, is waited for in stop.
type watch struct {
	source io.Reader
	fire   func() // makes the source fail

	mu      sync.Mutex
	period  time.Duration
	timer   *time.Timer
	fired   chan struct{} // closed when fire has returned
	renewed bool          // what comes begins the time again
	stopped bool
}

// start watches from now on for a source that brings nothing for so long; 0 is for ever.
func (w *watch) start(period time.Duration) { w.set(period, true) }

// within leaves the source this time from now on, whatever it brings.
func (w *watch) within(period time.Duration) { w.set(period, false) }

func (w *watch) set(period time.Duration, renewed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped || period == 0 {
		return
	}
	w.period, w.renewed = period, renewed
	if w.timer != nil {
		if w.timer.Stop() {
			w.timer.Reset(period)
		}
		return // one that has fired has ended the source
	}
	fired := make(chan struct{})
	w.fired = fired
	w.timer = time.AfterFunc(period, func() {
		w.fire()
		close(fired)
	})
}

// stop ends the watching for good.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.timer != nil && !w.timer.Stop() {
		<-w.fired
	}
	w.timer = nil
}

func (w *watch) Read(p []byte) (int, error) {
	n, err := w.source.Read(p)
	if n > 0 {
		w.renew()
	}
	return n, err
}

// renew begins the time again. A timer that has fired stays so: the source is at its end, though bytes may have been on their way.
func (w *watch) renew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.renewed && w.timer != nil && w.timer.Stop() {
		w.timer.Reset(w.period)
	}
}
