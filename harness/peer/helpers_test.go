package peer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"waybill/domain"
)

const patience = 30 * time.Second

// report is one call of Config.Report.
type report struct {
	data              domain.Data
	evidence, payload []byte
}

// ledger keeps all reports, in order.
type ledger struct {
	mu      sync.Mutex
	reports []report
	changed chan struct{}
}

func newLedger() *ledger { return &ledger{changed: make(chan struct{})} }

func (l *ledger) report(data domain.Data, evidence, payload []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reports = append(l.reports, report{data, evidence, payload})
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *ledger) all() ([]report, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.reports), l.changed
}

func (l *ledger) data() []domain.Data {
	var data []domain.Data
	reports, _ := l.all()
	for _, r := range reports {
		data = append(data, r.data)
	}
	return data
}

// of returns the reports of one type.
func of[D domain.Data](l *ledger) []D {
	var found []D
	reports, _ := l.all()
	for _, r := range reports {
		if d, ok := r.data.(D); ok {
			found = append(found, d)
		}
	}
	return found
}

// await waits until n reports of a type are there, and returns them with what came with them.
func await[D domain.Data](t testing.TB, l *ledger, n int) ([]D, []report) {
	t.Helper()
	timeout := time.After(patience)
	for {
		reports, changed := l.all()
		var data []D
		var full []report
		for _, r := range reports {
			if d, ok := r.data.(D); ok {
				data, full = append(data, d), append(full, r)
			}
		}
		if len(data) >= n {
			return data, full
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("%d of %d %T after %v; there are %s", len(data), n, *new(D), patience, kinds(reports))
		}
	}
}

func kinds(reports []report) string {
	var words []string
	for _, r := range reports {
		words = append(words, r.data.Kind())
	}
	return strings.Join(words, " ")
}

// story returns the kinds of all reports, in order.
func (l *ledger) story() string {
	reports, _ := l.all()
	return kinds(reports)
}

// poll waits for something that tells nobody.
func poll(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(limit) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// bench is a manager with its reports and one peer, "p", that plays a script.
type bench struct {
	*Manager
	*ledger
	t    *testing.T
	file string
	next int64 // request id
	lost bool  // the watchdog was killed: Close must say so
}

const incarnation1 = 1

var at1 = domain.At{Peer: "p", Incarnation: incarnation1}

func self(t testing.TB) string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func actor(t testing.TB, file string, steps ...string) Spec {
	return Spec{Name: "p", Path: self(t),
		Env: []string{roleVar + "=peer", scriptVar + "=" + strings.Join(steps, "\n"), fileVar + "=" + file}}
}

func testConfig(t testing.TB, l *ledger, specs map[string]Spec) Config {
	return Config{Specs: specs, FrameLimit: 8 << 20, Report: l.report, Digest: testDigest, ClientName: "waybill", ClientVersion: "1.2.3",
		Watchdog: []string{self(t)}, WatchdogEnv: []string{raceVar, roleVar + "=watchdog"}, Grace: 10 * time.Second}
}

func testDigest(b []byte) domain.Payload {
	sum := sha256.Sum256(b)
	return domain.Payload{Size: int64(len(b)), HMAC: hex.EncodeToString(sum[:])}
}

func newBench(t *testing.T, change func(*Config), steps ...string) *bench {
	t.Helper()
	file := filepath.Join(t.TempDir(), "notes")
	l := newLedger()
	cfg := testConfig(t, l, map[string]Spec{"p": actor(t, file, steps...)})
	if change != nil {
		change(&cfg)
	}
	m, err := NewManager(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Manager: m, ledger: l, t: t, file: file}
	t.Cleanup(func() {
		if err := m.Close(); (err != nil) != b.lost {
			t.Error(err)
		}
	})
	return b
}

// started launches the peer and waits until it runs.
func started(t *testing.T, change func(*Config), steps ...string) *bench {
	t.Helper()
	b := newBench(t, change, steps...)
	b.Do(domain.Launch{At: at1}, nil)
	await[domain.PeerSpawned](t, b.ledger, 1)
	return b
}

func quick(c *Config) { c.Grace = 50 * time.Millisecond }

// ask sends a request with a long deadline and returns its id.
func (b *bench) ask(s domain.Send, arguments string) int64 {
	return b.askWith(s, &domain.Body{Arguments: []byte(arguments)})
}

func (b *bench) askWith(s domain.Send, body *domain.Body) int64 {
	b.next++
	s.RequestID = b.next
	if s.At == (domain.At{}) {
		s.At = at1
	}
	if s.Deadline == 0 {
		s.Deadline = patience.Milliseconds()
	}
	if s.Version == "" {
		s.Version = "2026-07-28"
	}
	b.Do(s, body)
	return s.RequestID
}

func (b *bench) discover() int64 {
	return b.ask(domain.Send{Method: domain.MethodDiscover, Era: domain.EraUnknown}, "")
}

func (b *bench) call(arguments string) int64 {
	return b.ask(domain.Send{Method: domain.MethodCall, Era: domain.EraModern, Call: "host/a/b", Tool: "tool"}, arguments)
}

func (b *bench) modern() {
	b.Do(domain.SelectEra{At: at1, Era: domain.EraModern, Version: "2026-07-28"}, nil)
}

func (b *bench) legacy() {
	b.Do(domain.SelectEra{At: at1, Era: domain.EraLegacy, Version: "2025-11-25"}, nil)
}

// ended waits for the end of the incarnation and returns it; it must be the last report.
func (b *bench) ended() domain.PeerExited {
	b.t.Helper()
	exits, _ := await[domain.PeerExited](b.t, b.ledger, 1)
	reports, _ := b.all()
	if last := reports[len(reports)-1].data; last != domain.Data(exits[0]) {
		b.t.Errorf("%s came after peer.exited: %s", last.Kind(), kinds(reports))
	}
	return exits[0]
}

func (b *bench) stopped() domain.PeerExited {
	b.t.Helper()
	b.Do(domain.Stop{At: at1}, nil)
	return b.ended()
}

// noises returns the noise of the whole incarnation: how many lines of each kind.
func (b *bench) noises() map[string]int64 {
	found := map[string]int64{}
	for _, n := range of[domain.NoiseCounted](b.ledger) {
		for _, k := range n.Kinds {
			found[k.What] += k.Count
		}
	}
	return found
}

// notes returns the lines that the peer has written down, once there are n.
func (b *bench) notes(n int) []string {
	b.t.Helper()
	return notes(b.t, b.file, n)
}

func notes(t *testing.T, file string, n int) []string {
	t.Helper()
	var lines []string
	poll(t, "lines in the peer's notes", func() bool {
		content, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		whole := content[:strings.LastIndexByte(string(content), '\n')+1]
		lines = strings.Split(strings.TrimSuffix(string(whole), "\n"), "\n")
		return len(whole) > 0 && len(lines) >= n
	})
	return lines
}

// alive reports whether a process is there and no zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	rest := string(b[strings.LastIndexByte(string(b), ')')+1:])
	return !strings.HasPrefix(rest, " Z") && !strings.HasPrefix(rest, " X")
}

// guardian is the number of the watchdog process that is there, or was last.
func guardian(m *Manager) int { return m.keeper.PID() }

// childrenOf lists the processes whose parent is pid, dead ones that it has not collected too.
func childrenOf(t testing.TB, pid int) []string {
	t.Helper()
	all, err := listChildren(pid)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func listChildren(pid int) ([]string, error) {
	files, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("the children of process %d cannot be listed: %w", pid, errors.Join(err, errors.ErrUnsupported))
	}
	var all []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) { // a thread may end
			return nil, err
		}
		all = append(all, strings.Fields(string(b))...)
	}
	return all, nil
}
