package harness

import "sync"

// lane runs functions one after the other, in the order they were put, on a
// goroutine of its own. put never blocks; what waits is bounded by the calls
// under way, each of which has one reply.
type lane struct {
	mu    sync.Mutex
	work  []func()
	ended bool
	wake  chan struct{}
	done  chan struct{}
}

// startLane starts the goroutine; stop ends it.
func startLane() *lane {
	l := &lane{wake: make(chan struct{}, 1), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *lane) put(f func()) {
	l.mu.Lock()
	l.work = append(l.work, f)
	l.mu.Unlock()
	l.signal()
}

func (l *lane) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *lane) run() {
	defer close(l.done)
	for {
		l.mu.Lock()
		work, ended := l.work, l.ended
		l.work = nil
		l.mu.Unlock()
		for _, f := range work {
			f()
		}
		if len(work) == 0 {
			if ended {
				return
			}
			<-l.wake
		}
	}
}

// stop waits until everything that was put has run.
func (l *lane) stop() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.signal()
	<-l.done
}
