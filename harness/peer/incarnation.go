package peer

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"waybill/domain"
	"waybill/harness/peer/frame"
	"waybill/harness/peer/message"
	"waybill/harness/peer/watchdog"
)

// Causes of the end of an incarnation.
const (
	causeExited       = "exited"
	causeStdoutClosed = "stdout_closed"
	causeTooLong      = "frame_too_large"
	causeWriteFailed  = "write_failed"
	causeStopped      = "stopped"
	causeWatchdogLost = "watchdog_lost"
)

// drainWait is how long the pipes of a process that is gone may stay open: what it wrote has been read long before, unless something
// that left its group still holds them.
const drainWait = time.Second

// incarnation is one life of a peer's process. Its lane starts it and writes to it; a supervisor, a reader and a drainer
// of standard error run from the start until it has been reported as gone.
type incarnation struct {
	link

	broken chan string // a side of the transport failed, perhaps because the process exited
	deaf   bool        // a write failed; the lane's own

	// The reader's own, until it has ended.
	in     *frame.Reader
	choked bool // by a line over the limit

	// Set by start, before the goroutines that use them.
	child                 *watchdog.Child
	stdin, stdout, stderr *os.File
}

func newIncarnation(l *lane, at domain.At) *incarnation {
	c := &incarnation{broken: make(chan string, 2)}
	c.init(l, at, c)
	c.keep = func(b []byte) []byte { return c.in.Keep(b) }
	return c
}

// exclusive implements carrier: two processes of one peer do not run at once.
func (c *incarnation) exclusive() bool { return true }

// abort implements carrier: the ladder is under way.
func (c *incarnation) abort() {}

// broke says that a side of the transport failed. The process is ended, unless it turns out to have exited.
func (c *incarnation) broke(cause string) {
	select {
	case c.broken <- cause:
	default:
	}
}

// start runs the process, or reports why it could not.
func (c *incarnation) start() {
	code, reason := c.spawn()
	if code == "" {
		c.lane.m.report(domain.PeerSpawned{At: c.at, PID: c.child.PID})
		go c.supervise()
		return
	}
	c.stillborn(code, reason)
}

func (c *incarnation) spawn() (domain.Code, string) {
	spec := c.lane.spec
	if c.ended() {
		return domain.CodeSpawnFailed, "it was stopped before it was started"
	}
	if spec.Path == "" {
		return domain.CodeSpawnFailed, "no peer of this name is configured"
	}
	if spec.Verify != nil {
		if code, reason := spec.Verify(); code != "" {
			return code, reason
		}
	}
	if err := watchdog.Searchable(spec.Dir); err != nil {
		return domain.CodeDirMissing, fmt.Sprintf("working directory %s: %v", spec.Dir, err)
	}
	if err := c.open(spec); err != nil {
		return spawnCode(err), fmt.Sprintf("start %s: %v", spec.Path, err)
	}
	return "", ""
}

// spawnCode reads the system's reason. A script whose interpreter is missing is a command that is not there, too.
func spawnCode(err error) domain.Code {
	for _, e := range []error{unix.ENOENT, unix.ENOTDIR, unix.EACCES} {
		if errors.Is(err, e) {
			return domain.CodeCommandMissing
		}
	}
	return domain.CodeSpawnFailed
}

// open has the watchdog start the program. On an error nothing runs and nothing stays open.
func (c *incarnation) open(spec Spec) error {
	child, err := c.lane.m.keeper.Start(watchdog.Program{Path: spec.Path, Argv: append([]string{cmp.Or(spec.Argv0, spec.Path)}, spec.Args...), Env: spec.Env, Dir: spec.Dir})
	if err != nil {
		return err
	}
	c.child, c.stdin, c.stdout, c.stderr = child, child.Stdin, child.Stdout, child.Stderr
	return nil
}

// selected implements carrier: a legacy peer is told in the order of what is written to it.
func (c *incarnation) selected(e domain.SelectEra) {
	if e.Era == domain.EraLegacy {
		c.lane.put(task{do: func() { c.write(message.Initialized()) }})
	}
}

// supervise owns the incarnation from its start to its end, which it reports last: the process and its group are gone by then.
func (c *incarnation) supervise() {
	var readers sync.WaitGroup
	readers.Go(c.read)
	readers.Go(func() { c.stderrTail.drain(c.stderr) })

	cause := c.outlast()
	_ = c.stdin.Close()
	limit := time.Now().Add(drainWait)
	_ = c.stdout.SetReadDeadline(limit)
	_ = c.stderr.SetReadDeadline(limit)
	readers.Wait()
	_ = c.stdout.Close()
	_ = c.stderr.Close()
	if c.choked && cause != causeStopped && cause != causeWatchdogLost {
		cause = causeTooLong // also where the process had ended before the line was read
	}

	c.noise.close()
	c.lane.forget(&c.link)
	c.lane.m.report(domain.PeerExited{At: c.at, Status: c.child.Status, Signal: c.child.Signal, Cause: cause,
		StderrSize: c.stderrTail.total(), Replaced: cause == causeWatchdogLost})
	close(c.done)
}

// outlast returns when the process and its group are gone, and says why they are.
func (c *incarnation) outlast() string {
	select {
	case <-c.child.Exited:
	case <-c.ending:
	case cause := <-c.broken:
		// The pipes of a process close before its end is known.
		if !c.exits(c.lane.grace(), c.ending) {
			c.end(cause)
		}
	}
	cause := causeExited
	select {
	case <-c.ending:
		c.ladder()
		cause = c.cause
	default:
	}
	// The pipes break with the watchdog, too, which is no sign of the peer's.
	if c.child.Lost && cause != causeStopped && cause != causeTooLong {
		return causeWatchdogLost
	}
	return cause
}

// ladder ends the process: its input is closed, which asks for it; then the group is told, then killed. Where it shall be
// killed, the last rung is the next.
func (c *incarnation) ladder() {
	if c.yields(func() { _ = c.stdin.Close() }) || c.yields(func() { c.child.Tell(unix.SIGTERM) }) {
		return
	}
	c.child.Finish()
}

// yields asks the process to end, and reports whether it did in time. One that shall be killed is not asked.
func (c *incarnation) yields(ask func()) bool {
	if c.killing.isGiven() {
		return false
	}
	ask()
	return c.exits(c.lane.grace(), c.killing.given)
}

// exits waits for the process and its group to be gone, but not once cut is closed.
func (c *incarnation) exits(within time.Duration, cut <-chan struct{}) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-c.child.Exited:
		return true
	case <-cut:
	case <-timer.C:
	}
	return false
}

// send writes one request, if anybody still waits for its answer and there is somebody to write to. Else it is left as
// it is: unwritten.
func (c *incarnation) send(r *request) {
	if c.unwritable() {
		return
	}
	frame, _, ok := c.compose(r)
	if !ok {
		return
	}
	if c.unwritable() || !c.table.begin(r) {
		return
	}
	if c.write(frame) == 0 {
		c.table.unwritten(r)
		return
	}
	c.lane.m.mark("wrote", r.send.Method)
}

// tell implements carrier.
func (c *incarnation) tell(frame []byte) { c.write(frame) }

// write writes a line and returns how much of it went into the pipe. It blocks for as long as the peer does not read, until
// the incarnation ends. Only the lane calls it.
func (c *incarnation) write(frame []byte) int {
	if c.unwritable() {
		return 0
	}
	n, err := c.stdin.Write(frame)
	if err != nil {
		c.deaf = true
		c.broke(causeWriteFailed)
	}
	return n
}

// unwritable reports whether the process was never started, hears nothing any more, or is being ended: its input is closed then. Only
// the lane calls it.
func (c *incarnation) unwritable() bool {
	return c.ended() || c.stdin == nil || c.deaf
}
