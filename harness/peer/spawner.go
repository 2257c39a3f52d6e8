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

// launcher is the service's side of the watchdog: it has programs started and signalled, and hears how they end. Its
// methods may be called at once from several goroutines.
type launcher struct {
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

func newLauncher(argv, env []string, log *slog.Logger) (*launcher, error) {
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
	l := &launcher{conn: ours, cmd: cmd, log: log, done: make(chan struct{}), children: map[int64]*child{}}
	go l.listen()
	return l, nil
}

// start has a program run with the given descriptors as its standard input, output and error, which stay the caller's to
// close. The error is the system's reason, or errWatchdogLost.
func (l *launcher) start(p program, stdio [3]int) (*child, error) {
	f, err := writeProgram(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := l.register()
	if err != nil {
		return nil, err
	}
	if err := sendPacket(l.conn, order{Child: c.id}, stdio[0], stdio[1], stdio[2], int(f.Fd())); err != nil {
		l.forget(c.id)
		return nil, fmt.Errorf("ask the watchdog: %w", err)
	}
	if err := <-c.started; err != nil {
		return nil, err
	}
	return c, nil
}

// signal reaches the whole group of c, if it is still there.
func (l *launcher) signal(c *child, s unix.Signal) {
	// A watchdog that cannot be reached is lost: listen sees it and kills the groups.
	_ = sendPacket(l.conn, order{Child: c.id, Signal: int(s)})
}

// close ends the watchdog, and with it every process that is left below it. It returns when that is done.
func (l *launcher) close() error {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	_ = l.conn.Close()
	timer := time.AfterFunc(watchdogPatience, func() { _ = l.cmd.Process.Kill() })
	defer timer.Stop()
	<-l.done
	if s := l.cmd.ProcessState; s == nil || !s.Success() {
		return fmt.Errorf("the watchdog ended badly (%v); processes of peers may be left", s)
	}
	return nil
}

func (l *launcher) register() (*child, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.children == nil || l.closing {
		return nil, errWatchdogLost
	}
	l.last++
	c := &child{id: l.last, started: make(chan error, 1), exited: make(chan struct{})}
	l.children[c.id] = c
	return c, nil
}

func (l *launcher) forget(id int64) *child {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.children[id]
	delete(l.children, id)
	return c
}

// listen owns the watchdog: it hears what it says until the socket ends, and reaps it.
func (l *launcher) listen() {
	defer close(l.done)
	for {
		var n notice
		if _, err := receivePacket(l.conn, &n); err != nil {
			break
		}
		l.hear(n)
	}
	l.abandon()
	_ = l.conn.Close() // a watchdog that lives on ends with it
	_ = l.cmd.Wait()   // how it ended is in ProcessState
}

func (l *launcher) hear(n notice) {
	switch n.What {
	case noticeStarted:
		l.mu.Lock()
		c := l.children[n.Child]
		l.mu.Unlock()
		if c != nil {
			c.pid = n.PID
			c.started <- nil
		}
	case noticeFailed:
		if c := l.forget(n.Child); c != nil {
			c.started <- unix.Errno(n.Errno)
		}
	case noticeExited:
		if c := l.forget(n.Child); c != nil {
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
func (l *launcher) abandon() {
	l.mu.Lock()
	children := l.children
	l.children = nil
	if !l.closing {
		l.log.Error("the watchdog process was lost; every peer is ended and none can be started")
	}
	l.mu.Unlock()
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
