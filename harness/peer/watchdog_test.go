package peer

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"waybill/domain"
)

// family starts a peer with a grandchild in its group and one in a session of its own, and returns all three numbers.
func family(t *testing.T, b *bench) []int {
	t.Helper()
	spawned, _ := await[domain.PeerSpawned](t, b.ledger, 1)
	return append(forked(t, b.file), spawned[0].PID)
}

// forked returns the numbers of both grandchildren when they run.
func forked(t *testing.T, file string) []int {
	t.Helper()
	var pids []int
	for _, line := range notes(t, file, 2)[:2] {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	notes(t, file+".up", 2)
	for _, pid := range pids {
		if !alive(pid) {
			t.Fatalf("grandchild %d does not run", pid)
		}
	}
	return pids
}

func dead(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		poll(t, fmt.Sprint("the end of process ", pid), func() bool { return !alive(pid) })
	}
}

func TestCloseLeavesNoGrandchildAndNoWatchdog(t *testing.T) {
	b := started(t, nil, "fork group", "fork setsid", "untilEOF")
	pids := append(family(t, b), guardian(b.Manager))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d outlived Close", pid)
		}
	}
}

func TestTheGroupOfAnIncarnationIsGoneWhenItsEndIsReported(t *testing.T) {
	b := started(t, nil, "fork group", "fork setsid", "read", "exit 0")
	pids := forked(t, b.file)
	b.call("{}")
	b.ended()
	if alive(pids[0]) {
		t.Error("a helper in the group outlived its peer")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if alive(pids[1]) {
		t.Error("a helper outside the group outlived the service")
	}
}

func TestThePipesOfAHelperThatLeftTheGroupDoNotDelayTheEnd(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.Specs["p"] = Spec{Path: "/bin/sh", Env: []string{"PATH=/usr/bin:/bin"}, Args: []string{"-c",
			`setsid sleep 1000 & echo '{"jsonrpc":"2.0","method":"notifications/message"}'; exit 3`}}
	})
	b.Do(domain.Launch{At: at1}, nil)
	if exit := b.ended(); exit.Status != 3 || exit.Cause != "exited" || b.noises()["notification_message"] != 1 {
		t.Errorf("%+v, noise %v", exit, b.noises())
	}
}

// playService is a service that starts one peer after the other, as many as it is told, says their numbers, and waits to
// be killed. Where it is told so, it loses its first watchdog, and a peer with it, before.
func playService() {
	file, count := os.Getenv(fileVar), os.Getenv(scriptVar)
	peers, _ := strconv.Atoi(count)
	self, _ := os.Executable()
	env := []string{roleVar + "=peer", fileVar + "=" + file}
	specs := map[string]Spec{"warm": {Path: self, Env: append(env[:1:1], fileVar+"="+file+".warm", scriptVar+"=fork group\nhang")}}
	for i := range peers {
		specs[strconv.Itoa(i)] = Spec{Path: self, Env: append(env, scriptVar+"=deafTo 15\nfork group\nfork setsid\nhang")}
	}
	spawned, exited := make(chan int, peers+1), make(chan bool, peers+1)
	m, err := NewManager(Config{
		Specs:      specs,
		FrameLimit: 1 << 20, Digest: testDigest, ClientName: "waybill", ClientVersion: "1", Watchdog: []string{self},
		WatchdogEnv: []string{raceVar, roleVar + "=watchdog"}, WatchdogPause: time.Millisecond, Logger: slog.Default(),
		Report: func(d domain.Data, _, _ []byte) {
			switch d := d.(type) {
			case domain.PeerSpawned:
				spawned <- d.PID
			case domain.PeerExited:
				exited <- d.Replaced
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if os.Getenv(loseVar) != "" {
		fmt.Println(lose(m, file+".warm", spawned, exited))
	}
	fmt.Println(guardian(m))
	for i := range peers {
		m.Do(domain.Launch{At: domain.At{Peer: strconv.Itoa(i), Incarnation: 1}}, nil)
		fmt.Println(<-spawned)
	}
	select {}
}

// lose kills the watchdog with a peer below it, waits for the next one, and returns how many other children are left to the service, dead
// or alive. It gets the orphans, as the first process of a container does.
func lose(m *Manager, file string, spawned <-chan int, exited <-chan bool) int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return -1
	}
	m.Do(domain.Launch{At: domain.At{Peer: "warm", Incarnation: 1}}, nil)
	<-spawned
	for range time.Tick(time.Millisecond) {
		if _, err := os.Stat(file + ".up"); err == nil {
			break
		}
	}
	first := guardian(m)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil || !<-exited {
		return -2
	}
	for range time.Tick(time.Millisecond) {
		if guardian(m) != first {
			break
		}
	}
	left, err := listChildren(os.Getpid())
	if err != nil {
		return -3
	}
	return len(left) - 1
}

// service starts a service with some peers, and returns it with what it says.
func service(t *testing.T, file string, peers int, env ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(self(t))
	cmd.Env = append([]string{raceVar, roleVar + "=service", fileVar + "=" + file, scriptVar + "=" + strconv.Itoa(peers)}, env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, bufio.NewScanner(out)
}

func number(t *testing.T, said *bufio.Scanner) int {
	t.Helper()
	if !said.Scan() {
		t.Fatal("the service says nothing")
	}
	pid, err := strconv.Atoi(said.Text())
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// marked lists the processes that have a text in their environment.
func marked(t *testing.T, text string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("/proc", "[0-9]*", "environ"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(files, func(file string) bool {
		b, err := os.ReadFile(file)
		return err != nil || !strings.Contains(string(b), text)
	})
}

func TestNothingOutlivesAServiceThatIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	cmd, said := service(t, file, 1)
	pids := append(forked(t, file), number(t, said), number(t, said))
	kill(t, cmd)
	dead(t, pids...)
	poll(t, "no process of the service", func() bool { return len(marked(t, file)) == 0 })
}

func TestNothingOutlivesAServiceThatIsKilledWhileItStartsPeers(t *testing.T) {
	for kills := range 5 {
		file := filepath.Join(t.TempDir(), "notes")
		cmd, said := service(t, file, 20)
		watchdog := number(t, said)
		for range kills {
			number(t, said)
		}
		kill(t, cmd)
		dead(t, watchdog)
		if left := marked(t, file); len(left) != 0 {
			t.Errorf("killed after %d starts, it leaves %v", kills, left)
		}
	}
}

func TestTheWatchdogIsDeafToTheSignalsOfATerminal(t *testing.T) {
	b := started(t, nil, "serve {}")
	watchdog := guardian(b.Manager)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if err := syscall.Kill(watchdog, s); err != nil {
			t.Fatal(err)
		}
	}
	b.stopped()
	b.Do(domain.Launch{At: domain.At{Peer: "p", Incarnation: 2}}, nil)
	await[domain.PeerSpawned](t, b.ledger, 2)
	if own, theirs := pgid(t, os.Getpid()), pgid(t, watchdog); own == theirs {
		t.Error("the watchdog is in the group of the service")
	}
}

func pgid(t *testing.T, pid int) int {
	t.Helper()
	group, err := syscall.Getpgid(pid)
	if err != nil {
		t.Fatal(err)
	}
	return group
}

func TestAWatchdogThatDoesNotStartIsAnError(t *testing.T) {
	cfg := testConfig(t, newLedger(), nil)
	cfg.Watchdog = []string{filepath.Join(t.TempDir(), "absent")}
	if _, err := NewManager(cfg); err == nil {
		t.Error("no error")
	}
	for _, change := range []func(*Config){
		func(c *Config) { c.FrameLimit = 0 }, func(c *Config) { c.Report = nil }, func(c *Config) { c.Digest = nil },
		func(c *Config) { c.Watchdog = nil }, func(c *Config) { c.ClientName = "" },
	} {
		cfg := testConfig(t, newLedger(), nil)
		change(&cfg)
		if _, err := NewManager(cfg); err == nil {
			t.Errorf("accepted %+v", cfg)
		}
	}
}
