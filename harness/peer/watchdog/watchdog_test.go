package watchdog

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary is run again as the watchdog, and as what it starts.
const roleVar = "WAYBILL_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "watchdog":
		Main()
	case "hang":
		select {}
	case "idle": // until its input ends; it writes what it read
		_, _ = io.Copy(os.Stdout, os.Stdin)
		os.Exit(3)
	}
	os.Exit(m.Run())
}

func self(t *testing.T) string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// kept starts a watchdog for the time of a test, which may lose it.
func kept(t *testing.T, pause time.Duration) *Keeper {
	t.Helper()
	k, err := New([]string{self(t)}, []string{"GORACE=atexit_sleep_ms=0", roleVar + "=watchdog"}, pause, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() }) // where its end matters, a test closes it
	return k
}

func role(t *testing.T, name string) Program {
	return Program{Path: self(t), Argv: []string{"x"}, Env: []string{roleVar + "=" + name}}
}

func poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(30 * time.Second); !ok(); <-tick.C {
		if time.Now().After(limit) {
			t.Fatalf("not within 30 seconds: %s", what)
		}
	}
}

// dead waits for the end of a process, which nobody may have collected.
func dead(t *testing.T, pid int) {
	t.Helper()
	poll(t, "the end of a process", func() bool {
		b, err := os.ReadFile(filepath.Join(procDir, strconv.Itoa(pid), "stat"))
		rest := b[bytes.LastIndexByte(b, ')')+1:]
		return err != nil || bytes.HasPrefix(rest, []byte(" Z")) || bytes.HasPrefix(rest, []byte(" X"))
	})
}

func TestAProgramHasThreePipesAndAnEnd(t *testing.T) {
	k := kept(t, time.Hour)
	c, err := k.Start(role(t, "idle"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c.Stdin, "words"); err != nil {
		t.Fatal(err)
	}
	if err := c.Stdin.Close(); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(c.Stdout)
	if err != nil || string(said) != "words" {
		t.Errorf("%q: %v", said, err)
	}
	if words, err := io.ReadAll(c.Stderr); err != nil || len(words) > 0 {
		t.Errorf("%q: %v", words, err)
	}
	if <-c.Exited; c.Status != 3 || c.Signal != "" || c.Lost || c.PID == 0 {
		t.Errorf("%+v", c)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

func TestAProgramThatIsNotThereIsAnErrorOfTheSystem(t *testing.T) {
	k := kept(t, time.Hour)
	p := role(t, "idle")
	p.Path = filepath.Join(t.TempDir(), "absent")
	if _, err := k.Start(p); !errors.Is(err, unix.ENOENT) {
		t.Errorf("%v", err)
	}
	p = role(t, "idle")
	p.Dir = p.Path
	if _, err := k.Start(p); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("%v", err)
	}
}

func TestWhatIsToldAndFinished(t *testing.T) {
	k := kept(t, time.Hour)
	for want, end := range map[string]func(*Child){"SIGTERM": func(c *Child) { c.Tell(unix.SIGTERM) }, "SIGKILL": (*Child).Finish} {
		c, err := k.Start(role(t, "hang"))
		if err != nil {
			t.Fatal(err)
		}
		end(c)
		if <-c.Exited; c.Signal != want || c.Status != -1 || c.Lost {
			t.Errorf("%+v", c)
		}
		dead(t, c.PID)
	}
	c, err := k.Start(role(t, "hang"))
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if <-c.Exited; !c.Lost {
		t.Errorf("%+v", c)
	}
	dead(t, c.PID)
	if _, err := k.Start(role(t, "hang")); err == nil {
		t.Error("a program was started by a watchdog that is closed")
	}
}

// A watchdog that does not answer is killed, and replaced; what it guarded is ended in its place.
func TestAWatchdogThatDoesNotAnswerIsReplaced(t *testing.T) {
	k := kept(t, time.Millisecond)
	c, err := k.Start(role(t, "hang"))
	if err != nil {
		t.Fatal(err)
	}
	first := k.PID()
	if err := syscall.Kill(first, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	c.guard.kill() // as Finish does, when its patience is over
	if <-c.Exited; !c.Lost || c.Signal != "SIGKILL" || c.Status != -1 {
		t.Errorf("%+v", c)
	}
	dead(t, c.PID)
	poll(t, "another watchdog", func() bool { return k.PID() != first })
	if _, err := k.Start(role(t, "hang")); err != nil {
		t.Error(err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

func TestAWatchdogLostWhileAProgramStarts(t *testing.T) {
	k := kept(t, time.Millisecond)
	first, g := k.PID(), k.guard
	if err := syscall.Kill(first, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		_, err := k.Start(role(t, "hang"))
		started <- err
	}()
	poll(t, "the watchdog has its order", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.children) == 1
	})
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-started; !errors.Is(err, errWatchdogLost) || !strings.Contains(err.Error(), "watchdog") {
		t.Errorf("%v", err)
	}
}

// A watchdog that is killed with an order unread resets its socket; what it said before names a group that has to be ended.
func TestTheLastWordsOfAWatchdogAreHeard(t *testing.T) {
	ours, file, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := packetConn(file)
	if err != nil {
		t.Fatal(err)
	}
	gone, orphan := exec.Command("/bin/true"), exec.Command(self(t))
	orphan.Env = []string{roleVar + "=hang"}
	orphan.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, cmd := range []*exec.Cmd{gone, orphan} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // it is a child of the test, and may have been collected as an orphan
		_, _ = orphan.Process.Kill(), orphan.Wait()
		_ = orphan.Process.Release()
	})
	g := &guard{conn: ours, cmd: gone, log: slog.New(slog.DiscardHandler), done: make(chan struct{}), children: map[int64]*Child{}}
	c, err := g.register()
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(sendPacket(theirs, notice{Child: c.id, What: noticeStarted, PID: orphan.Process.Pid}),
		sendPacket(ours, order{Child: 99, Signal: 15}), theirs.Close())
	if err != nil {
		t.Fatal(err)
	}
	g.listen()
	if err := <-c.started; err != nil {
		t.Fatal(err)
	}
	if <-c.Exited; !c.Lost || c.PID != orphan.Process.Pid {
		t.Errorf("%+v", c)
	}
	dead(t, orphan.Process.Pid)
}

func TestParentsAreReadWhateverAProcessIsCalled(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a) Z 1 (b")
	if err := os.Symlink(self(t), name); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name)
	cmd.Env = []string{roleVar + "=idle"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	parent, ok := parentOf(cmd.Process.Pid)
	if !ok || parent != os.Getpid() {
		t.Errorf("the parent is %d (%v), want %d", parent, ok, os.Getpid())
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Fatal(err)
	}
	if _, ok := parentOf(cmd.Process.Pid); ok {
		t.Error("a process that is gone has a parent")
	}
}
