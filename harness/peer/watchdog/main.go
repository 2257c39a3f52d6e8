package watchdog

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchdogSocket is where the watchdog finds its end of the socket.
const watchdogSocket = 3

const (
	lingerTick  = 10 * time.Millisecond
	lingerTicks = 200 // how often a killed group is looked at before it is given up
	purgeWait   = time.Second
)

// Main is the whole life of the watchdog process. a Keeper starts it; the program does nothing else in that process, and
// calls it before it has opened a file or started a goroutine. It does not return.
//
// It starts each peer in a process group of its own, so that it knows every group before the program in it runs, and it is
// the subreaper of all of them, so that what leaves its group is still its own. When its socket closes, however the
// service ended, it kills everything below it and exits. It writes nothing to standard output.
//
// With the first process of a group goes the whole group. What has left its group, and its parent, is told from no other peer's
// orphans, and lives until the service ends.
func Main() {
	if err := watch(); err != nil {
		fmt.Fprintln(os.Stderr, "waybill watchdog:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func watch() error {
	// The parent-death signal of a peer is bound to the thread that started it; this one lives as long as the watchdog.
	runtime.LockOSThread()
	// Nothing that was inherited reaches a peer. An old kernel cannot close a range; our own files are marked anyway.
	_ = unix.CloseRange(watchdogSocket, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	unix.CloseOnExec(watchdogSocket)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	conn, err := packetConn(os.NewFile(watchdogSocket, "watchdog's end"))
	if err != nil {
		return err
	}
	defer conn.Close()
	// Caught, not ignored: an ignored signal would stay ignored in the peers.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)

	w := watchdog{conn: conn, groups: map[int]*group{}}
	w.serve(takeOrders(conn), ended)
	w.purge(ended)
	return nil
}

// watchdog is owned by one goroutine: a process is reaped, signalled and forgotten in one order, so no signal goes to a number
// that may belong to another by now.
type watchdog struct {
	conn   *net.UnixConn
	groups map[int]*group // by the number of the group, which is that of its first process
}

type group struct {
	child  int64
	exited bool // the first process has been reaped, the group killed
	status unix.WaitStatus
	ticks  int // looks left until the group is given up
}

type delivery struct {
	order order
	files []int
}

// takeOrders reads the socket until it ends, whatever ends it; then the channel is closed. The reader ends with the service.
func takeOrders(conn *net.UnixConn) <-chan delivery {
	c := make(chan delivery)
	go func() {
		defer close(c)
		for {
			var d delivery
			var err error
			if d.files, err = receivePacket(conn, &d.order); err != nil {
				return
			}
			c <- d
		}
	}()
	return c
}

func (w *watchdog) serve(orders <-chan delivery, ended <-chan os.Signal) {
	for {
		var tick <-chan time.Time
		if w.lingering() {
			tick = time.After(lingerTick)
		}
		select {
		case d, ok := <-orders:
			if !ok {
				return
			}
			w.obey(d)
		case <-ended:
		case <-tick:
		}
		_ = w.reap()
		w.bury()
	}
}

func (w *watchdog) obey(d delivery) {
	if len(d.files) == orderFiles {
		w.start(d)
		return
	}
	for pid, g := range w.groups {
		if g.child == d.order.Child && !g.exited {
			killGroup(pid, unix.Signal(d.order.Signal))
		}
	}
}

// start runs a program in a new group. The pipes are its own from then on.
func (w *watchdog) start(d delivery) {
	defer func() {
		for _, fd := range d.files[:3] {
			_ = unix.Close(fd)
		}
	}()
	p, err := readProgram(d.files[3])
	pid := 0
	if err == nil {
		pid, err = syscall.ForkExec(p.Path, p.Argv, &syscall.ProcAttr{Dir: p.Dir, Env: p.Env,
			Files: []uintptr{uintptr(d.files[0]), uintptr(d.files[1]), uintptr(d.files[2])},
			Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}})
	}
	if err != nil {
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			errno = unix.EINVAL
		}
		w.say(notice{Child: d.order.Child, What: noticeFailed, Errno: int(errno)})
		return
	}
	w.groups[pid] = &group{child: d.order.Child, ticks: lingerTicks}
	w.say(notice{Child: d.order.Child, What: noticeStarted, PID: pid})
}

// say cannot fail in a way that matters: a service that does not listen is gone, and the end of the orders says so.
func (w *watchdog) say(n notice) { _ = sendPacket(w.conn, n) }

// reap collects everything that has ended, our own and adopted, and returns ECHILD where nothing is left below us. With the first
// process of a group goes the rest of it.
func (w *watchdog) reap() error {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || pid == 0:
			return err
		}
		if g := w.groups[pid]; g != nil && !g.exited {
			// The number was freed a moment ago, but numbers are given out in a circle: it is nobody else's yet.
			_ = unix.Kill(-pid, unix.SIGKILL)
			g.exited, g.status = true, status
		}
	}
}

// bury reports the groups that are gone. A member that its own parent never collects cannot be waited for longer than
// lingerTicks: it is dead already.
func (w *watchdog) bury() {
	for pid, g := range w.groups {
		if !g.exited {
			continue
		}
		g.ticks--
		if g.ticks > 0 && !errors.Is(unix.Kill(-pid, 0), unix.ESRCH) {
			continue
		}
		delete(w.groups, pid)
		n := notice{Child: g.child, What: noticeExited, PID: pid, Status: g.status.ExitStatus()}
		if g.status.Signaled() {
			n.Signal = int(g.status.Signal())
		}
		w.say(n)
	}
}

func (w *watchdog) lingering() bool {
	for _, g := range w.groups {
		if g.exited {
			return true
		}
	}
	return false
}

// purge kills everything below the watchdog and returns when nothing is left: first the groups, then what left them, again
// and again because a process may fork while it is being looked for. An orphan becomes a child of the watchdog, so none is lost.
func (w *watchdog) purge(ended <-chan os.Signal) {
	for pid := range w.groups {
		killGroup(pid, unix.SIGKILL)
	}
	for wait := time.Millisecond; !errors.Is(w.reap(), unix.ECHILD); wait = min(2*wait, purgeWait) {
		for _, pid := range descendants(os.Getpid()) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		select {
		case <-ended:
		case <-time.After(wait):
		}
	}
}

// killGroup signals a group, or its first process alone where that has joined another group.
func killGroup(pid int, s unix.Signal) {
	if errors.Is(unix.Kill(-pid, s), unix.ESRCH) {
		_ = unix.Kill(pid, s)
	}
}

// descendants lists the processes below root, nearest first.
func descendants(root int) []int {
	children := childrenByParent()
	found := slices.Clone(children[root])
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}
