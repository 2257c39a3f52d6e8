package peer

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"waybill/domain"
	"waybill/harness/peer/watchdog"
)

// live plays the service for the peers a and b, whose tools are named after them: what is reported is decided on, and what follows is
// done. Decisions are in its ledger beside what was observed.
type live struct {
	*Manager
	*ledger
	t     *testing.T
	files map[string]string // what each peer reads
	inbox chan domain.Event

	mu    sync.Mutex
	state *domain.State
}

func newLive(t *testing.T, change func(*Config)) *live {
	t.Helper()
	adopt(t)
	l := &live{ledger: newLedger(), t: t, files: map[string]string{}, inbox: make(chan domain.Event, 1024), state: domain.NewState()}
	specs := map[string]Spec{}
	for _, name := range []string{"a", "b"} {
		l.files[name] = filepath.Join(t.TempDir(), "notes")
		specs[name] = actor(t, l.files[name], "read", "say "+answerLine("$ID", discovered), "read", "say "+answerLine("$ID", tools(name)), "skip 1", "untilEOF")
	}
	cfg := testConfig(t, l.ledger, specs)
	cfg.WatchdogPause = 10 * time.Millisecond
	cfg.Report = func(d domain.Data, evidence, _ []byte) { l.inbox <- domain.Event{Data: d, Evidence: evidence} }
	if change != nil {
		change(&cfg)
	}
	m, err := NewManager(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l.Manager = m
	over, ended := make(chan struct{}), make(chan struct{})
	go l.run(over, ended)
	t.Cleanup(func() {
		l.inbox <- domain.Event{Data: domain.ServiceStopped{Reason: "test"}}
		await[domain.ServiceStopped](t, l.ledger, 1)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		close(over)
		<-ended
	})
	l.begin()
	return l
}

// adopt makes the test the new parent of orphans, as the first process of a container is. Whoever else would be might never collect them,
// and then every loss takes as long as groups are waited for.
func adopt(t *testing.T) {
	t.Helper()
	set := func(on uintptr) {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, on, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	set(1)
	t.Cleanup(func() { set(0) })
}

const discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":1000,"cacheScope":"public"}`

func tools(name string) string {
	return `{"resultType":"complete","ttlMs":1000,"cacheScope":"public","tools":[{"name":"` + name + `","inputSchema":{"type":"object"}}]}`
}

func (l *live) run(over <-chan struct{}, ended chan<- struct{}) {
	defer close(ended)
	begun := time.Now()
	for {
		var o domain.Event
		select {
		case o = <-l.inbox:
		case <-over:
			return
		}
		o.Time, o.Mono = time.Now().UnixNano(), int64(time.Since(begun))+1
		l.mu.Lock()
		events := l.state.Step(o)
		l.mu.Unlock()
		for _, e := range events {
			l.ledger.report(e.Data, e.Evidence, nil)
			for _, effect := range domain.Effects(e) {
				l.Do(effect, &domain.Body{Arguments: []byte("{}")})
			}
		}
	}
}

// begin starts the service and waits for both peers.
func (l *live) begin() {
	l.t.Helper()
	c := domain.Config{Node: "local", Collision: domain.PrefixOnCollision, Separator: "/", Inflight: 8}
	for _, name := range []string{"a", "b"} {
		c.Peers = append(c.Peers, domain.PeerConfig{Name: name, Transport: "stdio", Command: name, Pin: "pin", AllowLegacy: true,
			LegacyRevisions: domain.LegacyRevisions, ProbeTimeout: patience.Milliseconds(), LegacyProbeTimeout: patience.Milliseconds(),
			CallTimeout: patience.Milliseconds(), Capabilities: []byte("{}")})
	}
	b, err := domain.EncodeConfig(c)
	if err != nil {
		l.t.Fatal(err)
	}
	l.inbox <- domain.Event{Data: domain.ServiceStarted{Version: "test", Rules: domain.RulesVersion}}
	l.inbox <- domain.Event{Data: domain.ConfigLoaded{Config: domain.RefTo(b), Peers: len(c.Peers)}, Evidence: b}
	l.up()
}

func (l *live) up() {
	l.t.Helper()
	poll(l.t, "both peers are ready", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		ready := 0
		for _, p := range l.state.Report("log").Peers {
			if p.State == "ready" {
				ready++
			}
		}
		return ready == 2
	})
}

// calls submits a call to each peer and waits until each has read a number of lines in its lives.
func (l *live) calls(id string, read int) {
	l.t.Helper()
	for name := range l.files {
		l.inbox <- domain.Event{Data: domain.CallReceived{CallID: domain.CallID{Host: "host", ID: id + name}, Tool: name, Arguments: domain.Payload{Size: 2}}}
	}
	for _, file := range l.files {
		if lines := notes(l.t, file, read); !strings.Contains(lines[read-1], `"tools/call"`) {
			l.t.Errorf("the last of %d lines is no call: %s", read, lines[read-1])
		}
	}
}

func (l *live) kill(pid int) {
	l.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		l.t.Fatal(err)
	}
}

func TestPeersRecoverFromTheLossOfTheirWatchdog(t *testing.T) {
	for name, lose := range map[string]func(*live){
		"killed": func(l *live) { l.kill(guardian(l.Manager)) },
		"killed while it does not answer": func(l *live) {
			if err := syscall.Kill(guardian(l.Manager), syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			l.kill(guardian(l.Manager))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLive(t, nil)
			l.calls("first", 3)
			before := guardian(l.Manager)
			lose(l)
			settled, _ := await[domain.CallSettled](t, l.ledger, 2)
			for _, d := range settled {
				if d.Status != domain.StatusLost || d.Ran != domain.RanMaybe || d.Code != domain.CodeTransportLost {
					t.Errorf("%+v", d)
				}
			}
			exits, _ := await[domain.PeerExited](t, l.ledger, 2)
			for _, d := range exits {
				if d.Cause != "watchdog_lost" || !d.Replaced || d.Status != -1 || d.Signal != "SIGKILL" {
					t.Errorf("%+v", d)
				}
			}
			await[domain.PeerSpawned](t, l.ledger, 4)
			l.up()
			if now := guardian(l.Manager); now == before || !alive(now) || alive(before) {
				t.Errorf("the watchdog was process %d and is %d", before, now)
			}
			l.calls("second", 6)
			if n := len(of[domain.CallSettled](l.ledger)); n != 2 {
				t.Errorf("%d calls have ended", n)
			}
			for _, d := range of[domain.PeerSpawned](l.ledger)[:2] {
				if alive(d.PID) {
					t.Errorf("process %d outlived its watchdog", d.PID)
				}
			}
		})
	}
}

func TestTheNextWatchdogGuardsAsTheFirstDid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	cmd, said := service(t, file, 1, loseVar+"=1")
	if left := number(t, said); left != 0 {
		t.Errorf("%d processes are left to the service after its watchdog was lost", left)
	}
	pids := append(forked(t, file), number(t, said), number(t, said))
	kill(t, cmd)
	dead(t, pids...)
	poll(t, "no process of the service", func() bool { return len(marked(t, file)) == 0 })
}

func TestTenLostWatchdogsLeaveNothingBehind(t *testing.T) {
	adopt(t)
	b := newBench(t, func(c *Config) { c.WatchdogPause = time.Millisecond }, "serve {}")
	at := func(n int) domain.At { return domain.At{Peer: "p", Incarnation: int64(n)} }
	up := func(n int) {
		b.Do(domain.Launch{At: at(n)}, nil)
		await[domain.PeerSpawned](t, b.ledger, n)
		b.ask(domain.Send{At: at(n), Method: domain.MethodDiscover, Era: domain.EraUnknown}, "")
		await[domain.ProbeAnswered](t, b.ledger, n)
	}
	up(1)
	fds, threads := openFiles(t, os.Getpid()), runtime.NumGoroutine()
	for n := 1; n <= 10; n++ {
		lost := guardian(b.Manager)
		if err := syscall.Kill(lost, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		exits, _ := await[domain.PeerExited](t, b.ledger, n)
		if exit := exits[n-1]; exit.At != at(n) || exit.Cause != "watchdog_lost" || !exit.Replaced {
			t.Errorf("%+v", exit)
		}
		poll(t, "another watchdog", func() bool { return guardian(b.Manager) != lost })
		up(n + 1)
	}
	poll(t, "as many goroutines as with the first", func() bool { return runtime.NumGoroutine() <= threads })
	poll(t, "as many descriptors as with the first", func() bool { return openFiles(t, os.Getpid()) <= fds })
	watchdog := guardian(b.Manager)
	if ours, theirs := childrenOf(t, os.Getpid()), childrenOf(t, watchdog); len(ours) != 1 || len(theirs) != 1 {
		t.Errorf("%v below us, %v below the watchdog", ours, theirs)
	}
	for _, d := range of[domain.PeerSpawned](b.ledger)[:10] {
		if alive(d.PID) {
			t.Errorf("process %d outlived its watchdog", d.PID)
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// The program of the watchdog is gone for a while, as during an update of it.
func TestAWatchdogThatCannotBeStartedAgainIsTriedAgain(t *testing.T) {
	link := filepath.Join(t.TempDir(), "waybill")
	install := func() {
		if err := os.Symlink(self(t), link); err != nil {
			t.Fatal(err)
		}
	}
	install()
	l := newLive(t, func(c *Config) { c.Watchdog = []string{link} })
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	l.kill(guardian(l.Manager))
	failed, _ := await[domain.SpawnFailed](t, l.ledger, 4)
	for _, d := range failed {
		// The peer's own program is there: a code that says it is missing would close the peer for good.
		if d.Code != domain.CodeSpawnFailed || !strings.Contains(d.Reason, "the watchdog process") {
			t.Errorf("%+v", d)
		}
	}
	if d := failed[3]; !strings.Contains(d.Reason, link) || !strings.Contains(d.Reason, "no such file") {
		t.Errorf("%+v", d)
	}
	install()
	await[domain.PeerSpawned](t, l.ledger, 4)
	l.up()
}

func TestWithoutAWatchdogEveryPeerEndsAndNoneStarts(t *testing.T) {
	b := started(t, func(c *Config) { c.WatchdogPause = time.Hour }, "deafTo 15", "note up", "skip 1", "hang")
	b.modern()
	b.notes(1)
	b.call("{}")
	b.notes(2)
	pid := of[domain.PeerSpawned](b.ledger)[0].PID
	if err := syscall.Kill(guardian(b.Manager), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit := b.ended(); exit.Status != -1 || exit.Signal != "SIGKILL" || exit.Cause != "watchdog_lost" || !exit.Replaced {
		t.Errorf("%+v", exit)
	}
	dead(t, pid)
	if failed := of[domain.ExchangeFailed](b.ledger); len(failed) != 1 || failed[0].Written != "maybe" {
		t.Errorf("%+v", failed)
	}
	b.Do(domain.Launch{At: domain.At{Peer: "p", Incarnation: 2}}, nil)
	if refused, _ := await[domain.SpawnFailed](t, b.ledger, 1); refused[0].Code != domain.CodeSpawnFailed || !strings.Contains(refused[0].Reason, "watchdog") {
		t.Errorf("%+v", refused)
	}
	b.lost = true // it waits for its hour: Close does not
}

// Whatever was seen of a process whose watchdog was lost, it says nothing about the peer but what the peer wrote.
func TestWhatALostWatchdogLooksLike(t *testing.T) {
	for cause, want := range map[string]string{causeExited: causeWatchdogLost, causeStdoutClosed: causeWatchdogLost, causeWriteFailed: causeWatchdogLost,
		causeStopped: causeStopped, causeTooLong: causeTooLong} {
		for _, lost := range []bool{true, false} {
			c := newIncarnation(newLane(&Manager{cfg: Config{Grace: patience}}, "p"), at1)
			c.child = &watchdog.Child{Exited: make(chan struct{}), Lost: lost}
			close(c.child.Exited)
			if cause != causeExited {
				c.end(cause)
			}
			if !lost {
				want = cause
			}
			if got := c.outlast(); got != want {
				t.Errorf("%s, lost %t: reported as %s", cause, lost, got)
			}
		}
	}
}
