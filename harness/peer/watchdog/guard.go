package watchdog

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	watchdogPatience = 10 * time.Second // for the watchdog to end after its socket is closed
	orphanPatience   = 2 * time.Second  // for groups to be gone after the watchdog was lost
	orphanTick       = 10 * time.Millisecond
)

var errWatchdogLost = errors.New("the watchdog process was lost, and another is started in its place")

// guard is the service's side of one watchdog process, from its start to its end: it has programs started and signalled, and hears
// how they end. Its methods may be called at once from several goroutines.
type guard struct {
	conn *net.UnixConn
	cmd  *exec.Cmd
	log  *slog.Logger
	done chan struct{} // closed when the watchdog has been reaped and everything it started is ended

	mu       sync.Mutex
	last     int64
	children map[int64]*Child // nil once the watchdog is lost or closed
	closing  bool
}

// Child is one process that a watchdog started, in a group of its own. Its methods may be called at once from several goroutines.
type Child struct {
	PID                   int
	Stdin, Stdout, Stderr *os.File // our ends; they are the caller's to close

	// Exited is closed when the process and its group are gone. What follows is set then.
	Exited chan struct{}
	Status int    // exit status, or -1 where a signal ended it
	Signal string // by name
	Lost   bool   // the watchdog was lost first, and the group was killed in its place

	guard   *guard
	id      int64
	started chan error // gets one value; PID is set before
}

func startGuard(argv, env []string, log *slog.Logger) (*guard, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append([]string{}, env...) // never nil: that would be our own environment
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{theirs}
	// A terminal's interrupt is meant for the service, which then needs the watchdog to stop its peers.
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the watchdog: %w", err), ours.Close())
	}
	g := &guard{conn: ours, cmd: cmd, log: log, done: make(chan struct{}), children: map[int64]*Child{}}
	go g.listen()
	return g, nil
}

// start has a program run with the given descriptors as its standard input, output and error, which stay the caller's to
// close. The error is the system's reason, or errWatchdogLost.
func (g *guard) start(p Program, stdio [3]int) (*Child, error) {
	f, err := writeProgram(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := g.register()
	if err != nil {
		return nil, err
	}
	if err := sendPacket(g.conn, order{Child: c.id}, stdio[0], stdio[1], stdio[2], int(f.Fd())); err != nil {
		g.forget(c.id)
		return nil, fmt.Errorf("ask the watchdog: %w", err)
	}
	deaf := time.AfterFunc(watchdogPatience, g.kill)
	defer deaf.Stop()
	if err := <-c.started; err != nil {
		return nil, err
	}
	return c, nil
}

// Tell signals the whole group of c, if it is still there.
func (c *Child) Tell(signal unix.Signal) {
	// A watchdog that cannot be reached is lost: listen sees it and kills the groups.
	_ = sendPacket(c.guard.conn, order{Child: c.id, Signal: int(signal)})
}

// Finish kills the whole group of c and returns when it is gone.
func (c *Child) Finish() {
	c.Tell(unix.SIGKILL)
	timer := time.NewTimer(watchdogPatience)
	defer timer.Stop()
	select {
	case <-c.Exited:
	case <-timer.C:
		c.guard.kill() // it does not do its work: without it the groups are ended from here
		<-c.Exited
	}
}

// kill ends a watchdog that does not answer. listen then ends every peer.
func (g *guard) kill() {
	g.log.Error("the watchdog process does not answer; it is killed")
	_ = g.cmd.Process.Kill()
}

// close ends the watchdog, and with it every process that is left below it. It returns when that is done. A watchdog that was lost
// before is an error too.
func (g *guard) close() error {
	g.mu.Lock()
	g.closing = true
	g.mu.Unlock()
	_ = g.conn.Close()
	<-g.done
	if state := g.cmd.ProcessState; state == nil || !state.Success() {
		return fmt.Errorf("the watchdog ended badly (%v); processes of peers may be left", state)
	}
	return nil
}

func (g *guard) register() (*Child, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.children == nil || g.closing {
		return nil, errWatchdogLost
	}
	g.last++
	c := &Child{guard: g, id: g.last, started: make(chan error, 1), Exited: make(chan struct{})}
	g.children[c.id] = c
	return c, nil
}

func (g *guard) forget(id int64) *Child {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.children[id]
	delete(g.children, id)
	return c
}

// listen owns the watchdog: it hears what it says until the socket ends, reaps it, and ends what it leaves.
func (g *guard) listen() {
	defer close(g.done)
	for reset := false; ; {
		var n notice
		_, err := receivePacket(g.conn, &n)
		if errors.Is(err, unix.ECONNRESET) && !reset {
			reset = true // orders were left unread; what the watchdog said before is still there
			continue
		}
		if err != nil {
			break
		}
		g.hear(n)
	}
	_ = g.conn.Close() // a watchdog that lives on ends with it
	g.reap()
	g.abandon()
}

// reap waits for the watchdog to be gone, so that nothing of it meets its successor. How it ended is in ProcessState.
func (g *guard) reap() {
	deaf := time.AfterFunc(watchdogPatience, func() { _ = g.cmd.Process.Kill() })
	defer deaf.Stop()
	_ = g.cmd.Wait()
}

func (g *guard) hear(n notice) {
	switch n.What {
	case noticeStarted:
		g.mu.Lock()
		c := g.children[n.Child]
		g.mu.Unlock()
		if c != nil {
			c.PID = n.PID
			c.started <- nil
		}
	case noticeFailed:
		if c := g.forget(n.Child); c != nil {
			c.started <- unix.Errno(n.Errno)
		}
	case noticeExited:
		if c := g.forget(n.Child); c != nil {
			c.end(n.Status, n.Signal)
		}
	}
}

func (c *Child) end(status, signal int) {
	c.Status = status
	if signal != 0 {
		c.Signal = unix.SignalName(unix.Signal(signal))
	}
	close(c.Exited)
}

// abandon does the watchdog's last work in its place: the groups it started are killed. What had left its group is beyond
// reach then; it is the one case in which something may outlive the service.
func (g *guard) abandon() {
	g.mu.Lock()
	children := g.children
	g.children = nil
	if !g.closing {
		g.log.Error("the watchdog process was lost; every peer is ended", "how", g.cmd.ProcessState)
	}
	g.mu.Unlock()
	for _, c := range children {
		if c.PID != 0 {
			_ = unix.Kill(-c.PID, unix.SIGKILL)
		}
	}
	patience := time.Now().Add(orphanPatience)
	for _, c := range children {
		c.outlive(patience)
	}
}

// outlive waits for the group to go and lets those who wait for c know. The watchdog's status of it is lost.
func (c *Child) outlive(patience time.Time) {
	if c.PID == 0 {
		c.started <- errWatchdogLost
		return
	}
	for unix.Kill(-c.PID, 0) == nil && time.Now().Before(patience) {
		// A service that is the first process of a container is the new parent of orphans.
		_, _ = unix.Wait4(-c.PID, nil, unix.WNOHANG, nil)
		time.Sleep(orphanTick)
	}
	c.Lost = true
	c.end(-1, int(unix.SIGKILL))
}
