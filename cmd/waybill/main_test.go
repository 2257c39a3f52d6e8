package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"waybill/harness/bus/bustest"
)

// testPeers are the programs that the test binary is, beside waybill itself:
// MCP servers, by the first argument that makes it one.
var testPeers = map[string]func(args []string) int{
	"scripted-peer": func(args []string) int { return scriptedPeer(args, os.Stdin, os.Stdout) },
	"fast-peer":     func([]string) int { return fastPeer(os.Stdin, os.Stdout) },
	"pipe-peer":     pipePeer,
	"soak-peer":     soakPeer,
	"secret-peer":   secretPeer,
	"plain-user":    plainUser,
	"small-files":   smallFiles,
	"careless":      careless,
	tokenRole:       printToken,
	"gate-peer":     gatePeer,

	bustest.ServerRole: bustest.ServerMain,
}

// TestMain makes the test binary many programs: the tests; a peer; and waybill
// itself, where the first argument is a command.
func TestMain(m *testing.M) {
	if raced {
		watchdogEnv = []string{"GORACE=atexit_sleep_ms=0"}
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		if peer, ok := testPeers[os.Args[1]]; ok {
			leave(peer(os.Args[2:]))
		}
		armCrash()
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// leave ends a peer past the hook of the race detector, which takes a second.
func leave(code int) { syscall.Exit(code) }

// world is a directory with a configuration in which the commands run.
type world struct {
	t    *testing.T
	dir  string
	file string
}

// peerYAML is one scripted peer: its mode, and lines added to its entry.
type peerYAML struct {
	name, mode string
	more       []string
}

func newWorld(t *testing.T, top string, peers ...peerYAML) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.file = filepath.Join(w.dir, "waybill.yaml")
	w.configure(top, peers...)
	return w
}

func (w *world) configure(top string, peers ...peerYAML) {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	b := "nats: {listen: \"127.0.0.1:0\"}\n" + top + "\npeers:\n"
	for _, p := range peers {
		b += fmt.Sprintf("  %s:\n    command: %q\n    args: [scripted-peer, %s, %q]\n", p.name, self, p.mode, w.record(p.name))
		b += "    data_files: [" + fmt.Sprintf("%q", w.record(p.name)) + "]\n"
		for _, line := range p.more {
			b += "    " + line + "\n"
		}
	}
	if err := os.WriteFile(w.file, []byte(b), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// record is the file in which a scripted peer notes what it received and ran.
func (w *world) record(peer string) string { return filepath.Join(w.dir, peer+".record") }

// lines returns what a scripted peer noted under a kind.
func (w *world) lines(peer, kind string) []string {
	b, err := os.ReadFile(w.record(peer))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), kind+" "); ok {
			out = append(out, rest)
		}
	}
	return out
}

// run runs a command of waybill in this process.
func (w *world) run(args ...string) (code int, out, errs string) {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(append(args[:len(args):len(args)], "-c", w.file), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// must runs a command that has to end with a code.
func (w *world) must(want int, args ...string) string {
	w.t.Helper()
	code, out, errs := w.run(args...)
	if code != want {
		w.t.Fatalf("waybill %s: exit %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, errs)
	}
	return out
}

// ready makes the log and the pins.
func (w *world) ready() *world {
	w.t.Helper()
	w.must(exitDone, "init")
	w.must(exitDone, "pin")
	return w
}

func (w *world) log() string { return filepath.Join(w.dir, ".waybill", "log.db") }

// decode reads a JSON document that must be all of the output.
func decode[T any](t *testing.T, out string) T {
	t.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(out))
	if err := d.Decode(&v); err != nil {
		t.Fatalf("no JSON: %v\n%s", err, out)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Fatalf("more than one document:\n%s", out)
	}
	return v
}

// service is waybill serve in a process of its own.
type service struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  *bytes.Buffer
	errs *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// serve starts the service and waits until it can be asked.
func (w *world) serve() *service { w.t.Helper(); return w.serveWith() }

// serveWith is serve by way of another program that the test binary is.
func (w *world) serveWith(program ...string) *service {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	s := &service{t: w.t, cmd: exec.Command(self, append(program, "serve", "-c", w.file)...), out: &bytes.Buffer{}, errs: &syncBuffer{}}
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.errs
	if err := s.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
		if w.t.Failed() {
			w.t.Logf("serve said:\n%s", s.errs.String())
		}
	})
	// A run.json may be stale; what the service says is not.
	eventually(w.t, "the service is up", func() bool { return strings.Contains(s.errs.String(), "NATS at") })
	if code, out, errs := w.run("check", "--json"); code != exitDone && code != exitSomeNotReady {
		w.t.Fatalf("the service does not answer: exit %d\n%s%s", code, out, errs)
	}
	return s
}

// stop ends the service with a signal and returns its exit code.
func (s *service) stop(sig syscall.Signal) int {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

// eventually polls until all conditions hold, first the later ones.
func eventually(t *testing.T, what string, conditions ...func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for i := len(conditions) - 1; i >= 0; {
		if conditions[i]() {
			i--
			continue
		}
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-tick.C
	}
}

// processesWith returns the pids of living processes whose command line has a
// word.
func processesWith(t *testing.T, word string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(b), word) && !strings.Contains(string(b), "-test.") {
			out = append(out, strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return out
}
