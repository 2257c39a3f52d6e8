package web

import (
	"io"
	"time"
)

// A watch reads from a source, and fires when a reading waits too long. The time between readings is the reader's and does not count.
type watch struct {
	source io.Reader
	fire   func()        // makes the source fail
	idle   time.Duration // that a reading may wait; 0 for as long as it likes
}

func (w *watch) Read(p []byte) (n int, err error) {
	if w.idle == 0 {
		return w.source.Read(p)
	}
	within(w.idle, w.fire, func() { n, err = w.source.Read(p) })
	return n, err
}

// within fires when f takes longer than it may. The goroutine of the timer has ended when within returns.
func within(limit time.Duration, fire, f func()) {
	fired := make(chan struct{})
	t := time.AfterFunc(limit, func() {
		defer close(fired)
		fire()
	})
	f()
	if !t.Stop() {
		<-fired
	}
}
