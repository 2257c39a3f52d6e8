package peer

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

var errWatchdogLost = errors.New("the watchdog process has ended; restart the service")

// spawner is the service's side of the watchdog: it has programs started and signalled, and hears how they end. Its
// methods may be called at once from several goroutines.
type spawner struct {
	conn *net.UnixConn
	cmd  *exec.Cmd
	log  *slog.Logger
	done chan struct{} // closed when the watchdog has been reaped

	mu       sync.Mutex
	last     int64
	children map[int64]*child // nil once the watchdog is lost or closed
	closing  bool
}

// child is one process that the watchdog started.
type child struct {
	id      int64
	pid     int           // set before started
	started chan error    // gets one value
	exited  chan struct{} // closed when the process and its group are gone; the fields below are set then
	status  int
	signal  string
	lost    bool // the watchdog was lost first
}

func newSpawner(argv, env []string, log *slog.Logger) (*spawner, error) {
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
	s := &spawner{conn: ours, cmd: cmd, log: log, done: make(chan struct{}), children: map[int64]*child{}}
	go s.listen()
	return s, nil
}

// start has a program run with the given descriptors as its standard input, output and error, which stay the caller's to
// close. The error is the system's reason, or errWatchdogLost.
func (s *spawner) start(p program, stdio [3]int) (*child, error) {
	f, err := writeProgram(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := s.register()
	if err != nil {
		return nil, err
	}
	if err := sendPacket(s.conn, order{Child: c.id}, stdio[0], stdio[1], stdio[2], int(f.Fd())); err != nil {
		s.forget(c.id)
		return nil, fmt.Errorf("ask the watchdog: %w", err)
	}
	deaf := time.AfterFunc(watchdogPatience, s.kill)
	defer deaf.Stop()
	if err := <-c.started; err != nil {
		return nil, err
	}
	return c, nil
}

// signal reaches the whole group of c, if it is still there.
func (s *spawner) signal(c *child, signal unix.Signal) {
	// A watchdog that cannot be reached is lost: listen sees it and kills the groups.
	_ = sendPacket(s.conn, order{Child: c.id, Signal: int(signal)})
}

// kill ends a watchdog that does not answer. listen then ends every peer.
func (s *spawner) kill() {
	s.log.Error("the watchdog process does not answer; it is killed")
	_ = s.cmd.Process.Kill()
}

// close ends the watchdog, and with it every process that is left below it. It returns when that is done.
func (s *spawner) close() error {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	_ = s.conn.Close()
	timer := time.AfterFunc(watchdogPatience, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	<-s.done
	if state := s.cmd.ProcessState; state == nil || !state.Success() {
		return fmt.Errorf("the watchdog ended badly (%v); processes of peers may be left", state)
	}
	return nil
}

func (s *spawner) register() (*child, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.children == nil || s.closing {
		return nil, errWatchdogLost
	}
	s.last++
	c := &child{id: s.last, started: make(chan error, 1), exited: make(chan struct{})}
	s.children[c.id] = c
	return c, nil
}

func (s *spawner) forget(id int64) *child {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.children[id]
	delete(s.children, id)
	return c
}

// listen owns the watchdog: it hears what it says until the socket ends, and reaps it.
func (s *spawner) listen() {
	defer close(s.done)
	for {
		var n notice
		if _, err := receivePacket(s.conn, &n); err != nil {
			break
		}
		s.hear(n)
	}
	s.abandon()
	_ = s.conn.Close() // a watchdog that lives on ends with it
	_ = s.cmd.Wait()   // how it ended is in ProcessState
}

func (s *spawner) hear(n notice) {
	switch n.What {
	case noticeStarted:
		s.mu.Lock()
		c := s.children[n.Child]
		s.mu.Unlock()
		if c != nil {
			c.pid = n.PID
			c.started <- nil
		}
	case noticeFailed:
		if c := s.forget(n.Child); c != nil {
			c.started <- unix.Errno(n.Errno)
		}
	case noticeExited:
		if c := s.forget(n.Child); c != nil {
			c.end(n.Status, n.Signal)
		}
	}
}

func (c *child) end(status, signal int) {
	c.status = status
	if signal != 0 {
		c.signal = unix.SignalName(unix.Signal(signal))
	}
	close(c.exited)
}

// abandon does the watchdog's last work in its place: the groups it started are killed. What had left its group is beyond
// reach then; it is the one case in which something may outlive the service.
func (s *spawner) abandon() {
	s.mu.Lock()
	children := s.children
	s.children = nil
	if !s.closing {
		s.log.Error("the watchdog process was lost; every peer is ended and none can be started")
	}
	s.mu.Unlock()
	for _, c := range children {
		if c.pid != 0 {
			_ = unix.Kill(-c.pid, unix.SIGKILL)
		}
	}
	patience := time.Now().Add(orphanPatience)
	for _, c := range children {
		c.outlive(patience)
	}
}

// outlive waits for the group to go and lets those who wait for c know. The watchdog's status of it is lost.
func (c *child) outlive(patience time.Time) {
	if c.pid == 0 {
		c.started <- errWatchdogLost
		return
	}
	for unix.Kill(-c.pid, 0) == nil && time.Now().Before(patience) {
		time.Sleep(orphanTick)
	}
	c.lost = true
	c.end(-1, int(unix.SIGKILL))
}
