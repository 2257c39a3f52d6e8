package peer

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	defaultPause = time.Second
	longestPause = 30 * time.Second
	steadyLife   = time.Minute
)

// spawner keeps one watchdog process at a time, and starts another when it is gone, for whatever reason, until it is closed. The new
// one starts when everything of the old one is ended. Its methods may be called at once from several goroutines.
type spawner struct {
	argv, env []string
	log       *slog.Logger
	closing   chan struct{}
	done      chan struct{} // closed when no watchdog is left and none will be started; err is set then
	err       error

	mu    sync.Mutex
	guard *guard // the newest
	down  error  // why none can be started, since the newest was lost
}

func newSpawner(argv, env []string, pause time.Duration, log *slog.Logger) (*spawner, error) {
	g, err := startGuard(argv, env, log)
	if err != nil {
		return nil, err
	}
	s := &spawner{argv: argv, env: env, log: log, closing: make(chan struct{}), done: make(chan struct{}), guard: g}
	go s.run(g, newPace(pause, time.Now()))
	return s, nil
}

// start is that of the watchdog that is there. While there is none it fails at once.
func (s *spawner) start(p program, stdio [3]int) (*child, error) {
	g, err := s.present()
	if err != nil {
		return nil, err
	}
	return g.start(p, stdio)
}

func (s *spawner) present() (*guard, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.guard, s.down
}

// close ends the watchdog, and with it every process that is left below it. It returns when that is done; it is called once.
func (s *spawner) close() error {
	close(s.closing)
	<-s.done
	return s.err
}

// run owns which watchdog there is.
func (s *spawner) run(g *guard, p *pace) {
	defer close(s.done)
	for {
		select {
		case <-s.closing:
		case <-g.done:
			if next := s.replace(p); next != nil {
				g = next
				continue
			}
		}
		s.err = g.close()
		return
	}
}

// replace starts another watchdog, however often it has to be tried; nil where the service closes first.
func (s *spawner) replace(p *pace) *guard {
	for {
		timer := time.NewTimer(p.next(time.Now()))
		select {
		case <-s.closing:
			timer.Stop()
			return nil
		case <-timer.C:
		}
		g, err := startGuard(s.argv, s.env, s.log)
		if err == nil {
			s.log.Warn("another watchdog process was started", "pid", g.cmd.Process.Pid)
			s.set(g, nil)
			return g
		}
		s.log.Error("the watchdog process cannot be started; it is tried again", "error", err)
		// Not wrapped: what the system says of the watchdog's program says nothing about a peer's.
		s.set(nil, errors.New("the watchdog process cannot be started, which is tried again: "+err.Error()))
	}
}

func (s *spawner) set(g *guard, down error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down = down; g != nil {
		s.guard = g
	}
}

// pace spaces the starts of the watchdog. From one to the next at least a pause goes by, twice as long each time; a watchdog that
// lasted steadyLife begins anew.
type pace struct {
	least, pause time.Duration
	last         time.Time
}

func newPace(least time.Duration, begun time.Time) *pace {
	return &pace{least: least, pause: least, last: begun}
}

// next says how long to wait, and counts a start for then.
func (p *pace) next(now time.Time) time.Duration {
	age := now.Sub(p.last)
	if age >= steadyLife {
		p.pause = p.least
	}
	wait := max(0, p.pause-age)
	p.last = now.Add(wait)
	p.pause = min(2*p.pause, max(longestPause, p.least))
	return wait
}
