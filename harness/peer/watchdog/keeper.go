package watchdog

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

// DefaultPause is a good least time between two starts of the watchdog.
const DefaultPause = time.Second

const (
	longestPause = 30 * time.Second
	steadyLife   = time.Minute
)

// Keeper keeps one watchdog process at a time, and starts another when it is gone, for whatever reason, until it is closed. The new
// one starts when everything of the old one is ended. Its methods may be called at once from several goroutines.
type Keeper struct {
	argv, env []string
	log       *slog.Logger
	once      sync.Once
	closing   chan struct{}
	done      chan struct{} // closed when no watchdog is left and none will be started; err is set then
	err       error

	mu    sync.Mutex
	guard *guard // the newest
	down  error  // why none can be started, since the newest was lost
}

// New starts a watchdog process: a program that calls Main, with its argument list and its complete environment. From one start to the next
// at least the pause goes by, twice as long each time, up to 30s, until a watchdog has lasted a minute.
func New(argv, env []string, pause time.Duration, log *slog.Logger) (*Keeper, error) {
	g, err := startGuard(argv, env, log)
	if err != nil {
		return nil, err
	}
	s := &Keeper{argv: argv, env: env, log: log, closing: make(chan struct{}), done: make(chan struct{}), guard: g}
	go s.run(g, newPace(pause, time.Now()))
	return s, nil
}

// Start has a program run in a group of its own, with three new pipes. The error is the system's reason, which errors.Is finds, or says that
// there is no watchdog: then it fails at once. On an error nothing runs and nothing stays open.
func (s *Keeper) Start(p Program) (*Child, error) {
	g, err := s.present()
	if err != nil {
		return nil, err
	}
	theirs, ours, err := pipes()
	if err != nil {
		return nil, err
	}
	c, err := g.start(p, theirs)
	closePipes(theirs[:], nil)
	if err != nil {
		closePipes(nil, ours[:])
		return nil, err
	}
	c.Stdin, c.Stdout, c.Stderr = ours[0], ours[1], ours[2]
	return c, nil
}

// PID is the number of the watchdog process that is there, or was last.
func (s *Keeper) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.guard.cmd.Process.Pid
}

func (s *Keeper) present() (*guard, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.guard, s.down
}

// Close ends the watchdog, and with it every process that is left below it. It returns when that is done. A watchdog that was
// lost and not replaced is an error.
func (s *Keeper) Close() error {
	s.once.Do(func() { close(s.closing) })
	<-s.done
	return s.err
}

// run owns which watchdog there is.
func (s *Keeper) run(g *guard, p *pace) {
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
func (s *Keeper) replace(p *pace) *guard {
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

func (s *Keeper) set(g *guard, down error) {
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
