package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"

	"waybill/harness"
	"waybill/migrations"
)

// plainUser runs a command of waybill without the right to pass over the modes of
// files, which root has; other users never have it.
func plainUser(args []string) int {
	runtime.LockOSThread()
	for _, right := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0); err != nil && os.Geteuid() == 0 {
			fmt.Fprintln(os.Stderr, "drop a right:", err)
			return 99
		}
	}
	self, err := os.Executable()
	if err == nil {
		err = syscall.Exec(self, append([]string{self}, args...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, "run as a plain user:", err)
	return 99
}

// smallFiles runs a command of waybill with SIGXFSZ ignored, so that a limit to
// the size of files is an error like that of a full disk.
func smallFiles(args []string) int {
	signal.Ignore(syscall.SIGXFSZ)
	return run(args, os.Stdout, os.Stderr)
}

// A fault is one thing that is wrong when the service starts.
type fault struct {
	name string
	do   func(t *testing.T, d harness.DataDir, other harness.DataDir) (undo func())

	exit int    // of serve; 0: it starts all the same
	code string // in its error document
	says string // in its error document, or in what it logs where it starts
	find string // a code that doctor must name; "" for none
}

// swap puts other bytes into a file until it is undone.
func swap(t *testing.T, path string, b []byte) (undo func()) {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put := func(b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(b)
	return func() { put(before) }
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sqliteFile opens a file of SQLite as another program would.
func sqliteFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", migrations.DSN(path, "mode=rw"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func execute(t *testing.T, path string, queries ...string) {
	t.Helper()
	db := sqliteFile(t, path)
	for _, q := range queries {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func modes(t *testing.T, mode os.FileMode, paths ...string) (undo func()) {
	t.Helper()
	var undos []func()
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		undos = append(undos, func() { _ = os.Chmod(path, info.Mode().Perm()) })
	}
	undo = func() {
		for _, u := range undos {
			u()
		}
	}
	t.Cleanup(undo)
	return undo
}

func nothing() {}

// waiting puts a pipe that nobody writes to in the place of a file until it is
// undone: whoever reads it waits.
func waiting(t *testing.T, path string) (undo func()) {
	t.Helper()
	if err := errors.Join(os.Rename(path, path+".away"), unix.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
}

var faults = []fault{
	{name: "log.db is a pipe", exit: exitInternal, says: "regular file", code: "internal",
		do: func(t *testing.T, d, _ harness.DataDir) func() { return waiting(t, d.LogFile()) }},
	{name: "the checkpoint is a pipe", exit: exitInternal, says: "no regular file", code: "internal",
		do: func(t *testing.T, d, _ harness.DataDir) func() { return waiting(t, d.CheckpointFile()) }},
	{name: "the private key is a pipe", exit: exitInternal, says: "no regular file", code: "internal", find: "unreadable",
		do: func(t *testing.T, d, _ harness.DataDir) func() { return waiting(t, d.KeyFiles().Private) }},
	{name: "the public key is a pipe", says: "NATS at",
		do: func(t *testing.T, d, _ harness.DataDir) func() { return waiting(t, d.KeyFiles().Public) }},
	{name: "views.db is a pipe", says: "NATS at",
		do: func(t *testing.T, d, _ harness.DataDir) func() { waiting(t, d.ViewsFile()); return nothing }},
	{name: "log.db cannot be written", exit: exitInternal, says: "cannot be written: run as its owner", code: "internal",
		do: func(t *testing.T, d, _ harness.DataDir) func() { return modes(t, 0o400, d.LogFile()) }},
	{name: "log.db cannot be read", exit: exitInternal, says: "run as its owner", code: "internal", find: "unreadable",
		do: func(t *testing.T, d, _ harness.DataDir) func() { return modes(t, 0, d.LogFile()) }},
	{name: "the directory cannot be written", exit: exitInternal, says: "cannot be written: run as its owner", code: "internal", find: "read_only",
		do: func(t *testing.T, d, _ harness.DataDir) func() { return modes(t, 0o500, string(d)) }},
	{name: "another process has locked log.db", exit: exitInternal, says: "another program has locked it", code: "internal",
		do: func(t *testing.T, d, _ harness.DataDir) func() {
			db := sqliteFile(t, d.LogFile())
			if _, err := db.Exec(`BEGIN IMMEDIATE`); err != nil {
				t.Fatal(err)
			}
			return func() { _ = db.Close() }
		}},
	{name: "another process has the directory", exit: exitInternal, says: fmt.Sprintf("pid %d", os.Getpid()), code: "locked", find: "locked",
		do: func(t *testing.T, d, _ harness.DataDir) func() {
			lock, err := d.Lock()
			if err != nil {
				t.Fatal(err)
			}
			return func() { _ = lock.Release() }
		}},
	{name: "a newer schema", exit: exitInternal, says: "release 9.9 or later", code: "internal", find: "newer_schema",
		do: func(t *testing.T, d, _ harness.DataDir) func() {
			before := content(t, d.LogFile())
			execute(t, d.LogFile(), `UPDATE schema_migrations SET version = 99`, `INSERT INTO migrations_done (version, release) VALUES (99, '9.9')`)
			return func() { swap(t, d.LogFile(), before) }
		}},
	{name: "a migration marked dirty", says: "NATS at", find: "dirty_migration",
		do: func(t *testing.T, d, _ harness.DataDir) func() {
			execute(t, d.LogFile(), `UPDATE schema_migrations SET dirty = 1`)
			return nothing
		}},
	{name: "log.db is cut in half", exit: exitInternal, says: "altered or damaged", code: "internal", find: "altered",
		do: func(t *testing.T, d, _ harness.DataDir) func() {
			b := content(t, d.LogFile())
			return swap(t, d.LogFile(), b[:len(b)/2])
		}},
	{name: "log.db is empty", exit: exitInternal, says: "not a log", code: "internal", find: "not_a_log",
		do: func(t *testing.T, d, _ harness.DataDir) func() { return swap(t, d.LogFile(), nil) }},
	{name: "log.db is something else", exit: exitInternal, says: "not a log", code: "internal", find: "not_a_log",
		do: func(t *testing.T, d, _ harness.DataDir) func() {
			return swap(t, d.LogFile(), bytes.Repeat([]byte("no"), 9000))
		}},
	{name: "log.db of another log", exit: exitInternal, says: "log.key", code: "key_differs", find: "key_differs",
		do: func(t *testing.T, d, other harness.DataDir) func() {
			return swap(t, d.LogFile(), content(t, other.LogFile()))
		}},
	{name: "an older log.db", exit: exitInternal, says: "the log was put back from an older copy", code: "log_shorter", find: "log_shorter",
		do: func(t *testing.T, d, _ harness.DataDir) func() {
			return swap(t, d.LogFile(), content(t, filepath.Join(string(d), "older.db")))
		}},
	{name: "the private key of another log", exit: exitInternal, says: "not the key of this log", code: "key_differs", find: "key_differs",
		do: func(t *testing.T, d, other harness.DataDir) func() {
			return swap(t, d.KeyFiles().Private, content(t, other.KeyFiles().Private))
		}},
	{name: "the private key is public", exit: exitInternal, says: "log.key", code: "internal", find: "key_unusable",
		do: func(t *testing.T, d, _ harness.DataDir) func() {
			return swap(t, d.KeyFiles().Private, content(t, d.KeyFiles().Public))
		}},
	{name: "the checkpoint of another log", exit: exitInternal, says: "belong together", code: "key_differs", find: "key_differs",
		do: func(t *testing.T, d, other harness.DataDir) func() {
			return swap(t, d.CheckpointFile(), content(t, other.CheckpointFile()))
		}},
	{name: "the checkpoint is something else", exit: exitInternal, says: "put it back from a copy", code: "checkpoint_unreadable", find: "checkpoint_unreadable",
		do: func(t *testing.T, d, _ harness.DataDir) func() { return swap(t, d.CheckpointFile(), []byte("no\n")) }},
	{name: "no checkpoint", says: "it is made again from the log", find: "checkpoint_missing",
		do: func(t *testing.T, d, _ harness.DataDir) func() { return removed(t, d.CheckpointFile()) }},
	{name: "views.db is something else", says: "NATS at", find: "views_unreadable",
		do: func(t *testing.T, d, _ harness.DataDir) func() {
			swap(t, d.ViewsFile(), bytes.Repeat([]byte("no"), 9000))
			return nothing
		}},
	{name: "views.db of another log", says: "NATS at", find: "views_other",
		do: func(t *testing.T, d, other harness.DataDir) func() {
			swap(t, d.ViewsFile(), content(t, other.ViewsFile()))
			return nothing
		}},
	{name: "views.db cannot be read", exit: exitInternal, says: "views.db: permission denied", code: "internal", find: "unreadable",
		do: func(t *testing.T, d, _ harness.DataDir) func() { return modes(t, 0, d.ViewsFile()) }},
	{name: "jetstream cannot be read", exit: exitInternal, says: ".waybill/jetstream", code: "internal",
		do: func(t *testing.T, d, _ harness.DataDir) func() {
			return modes(t, 0, filepath.Join(string(d), "jetstream"))
		}},
	{name: "jetstream is a file", exit: exitInternal, says: ".waybill/jetstream", code: "internal",
		do: func(t *testing.T, d, _ harness.DataDir) func() {
			path := filepath.Join(string(d), "jetstream")
			if err := os.Rename(path, path+".away"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("no"), 0o600); err != nil {
				t.Fatal(err)
			}
			return func() { _ = os.Remove(path); _ = os.Rename(path+".away", path) }
		}},
	{name: "no jetstream", says: "NATS at",
		do: func(t *testing.T, d, _ harness.DataDir) func() {
			return removed(t, filepath.Join(string(d), "jetstream"))
		}},
	{name: "no NATS key", exit: exitInternal, says: "run waybill init", code: "internal", find: "credentials",
		do: func(t *testing.T, d, _ harness.DataDir) func() {
			path := filepath.Join(d.NATSDir(), "service.nk")
			b := content(t, path)
			removed(t, path)
			return func() { _ = os.WriteFile(path, b, 0o600) }
		}},
	{name: "a stale run.json", says: "NATS at", find: "stale_run",
		do: func(t *testing.T, d, _ harness.DataDir) func() {
			if err := d.WriteRun(harness.Run{PID: os.Getpid(), URL: "nats://127.0.0.1:1"}); err != nil {
				t.Fatal(err)
			}
			return nothing
		}},
}

func removed(t *testing.T, path string) (undo func()) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	return nothing
}

// prepared is a data directory whose log has settled calls, and the world of
// which it is.
type prepared struct {
	dir   harness.DataDir
	calls []string
}

// prepare makes a log with three acknowledged calls, closed in good order, beside
// an older copy of it.
func prepare(t *testing.T) prepared {
	t.Helper()
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	d := harness.DataDir(filepath.Join(w.dir, ".waybill"))
	w.must(exitDone, "check", "--json")
	w.must(exitDone, "backup", filepath.Join(string(d), "older.db"))
	s := w.serve()
	p := prepared{dir: d, calls: []string{"one", "two", "three"}}
	for _, id := range p.calls {
		w.must(exitDone, "call", "--json", "--call-id", id, "echo")
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Fatalf("the preparation ended with %d", code)
	}
	w.must(exitDone, "peers", "--json") // brings the views up to date
	return p
}

// in copies a prepared directory into a world of its own.
func (p prepared) in(t *testing.T) (*world, harness.DataDir) {
	t.Helper()
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"})
	d := harness.DataDir(filepath.Join(w.dir, ".waybill"))
	if err := os.CopyFS(string(d), os.DirFS(string(p.dir))); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(string(p.dir), func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return os.Chmod(string(d)+strings.TrimPrefix(path, string(p.dir)), info.Mode().Perm()) // CopyFS does not keep them
	})
	if err != nil {
		t.Fatal(err)
	}
	w.must(exitDone, "pin")
	return w, d
}

// whole shows that nothing was lost: the service starts, knows every acknowledged
// call, runs another, and the log verifies and replays.
func (p prepared) whole(t *testing.T, w *world) {
	t.Helper()
	s := w.serve()
	for _, id := range p.calls {
		if r := decode[reply](t, w.must(exitDone, "calls", "outcome", "--json", id)); r.Status != "complete" {
			t.Errorf("call %s is %+v", id, r)
		}
	}
	w.must(exitDone, "call", "--json", "echo")
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	w.audit()
	if code, out, errs := w.run("doctor", "--verify", "--json"); code != exitDone {
		t.Errorf("doctor finds fault at the end: exit %d\n%s%s", code, out, errs)
	}
}

// serveAs runs serve without root's rights until it ends or is ready, and returns
// its exit code, -1 where it was ready and was then stopped.
func (w *world) serveAs(t *testing.T, as string) (exit int, out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	said, stdout := &syncBuffer{}, &syncBuffer{}
	cmd := exec.CommandContext(ctx, self, as, "serve", "--json", "-c", w.file)
	cmd.Stdout, cmd.Stderr = stdout, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ready := func() bool { return strings.Contains(stdout.String(), `"namespaces"`) }
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return cmd.ProcessState.ExitCode(), stdout.String(), said.String()
		case <-tick.C:
			if !ready() {
				continue
			}
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-ended
			return -1, stdout.String(), said.String()
		}
	}
}

// Each fault gives a clear error and changes nothing, or is mended; once it is
// away, every acknowledged call is there.
func TestStartUpFaults(t *testing.T) {
	t.Parallel() // most of it is waiting
	p, other := prepare(t), prepare(t)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			w, d := p.in(t)
			undo := f.do(t, d, other.dir)
			if code, out, errs := doctorAs(t, w); f.find != "" && !strings.Contains(out, `"code":"`+f.find+`"`) || code != exitDone && code != exitInternal {
				t.Errorf("doctor, exit %d, does not say %s: %s%s", code, f.find, out, errs)
			}
			exit, out, errs := w.serveAs(t, "plain-user")
			switch {
			case f.exit == 0 && (exit != -1 || !strings.Contains(errs, f.says)):
				t.Errorf("serve ended with %d, and was to start and say %q\n%s%s", exit, f.says, out, errs)
			case f.exit != 0 && exit != f.exit:
				t.Fatalf("serve: exit %d, want %d\n%s%s", exit, f.exit, out, errs)
			case f.exit != 0:
				doc := decode[failureDoc](t, out)
				if doc.Error.Code != f.code || !strings.Contains(doc.Error.Message, f.says) {
					t.Errorf("serve says %+v, want code %s and %q", doc.Error, f.code, f.says)
				}
			}
			undo()
			p.whole(t, w)
		})
	}
}

func doctorAs(t *testing.T, w *world) (exit int, out, errs string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	before := treeOf(t, filepath.Join(w.dir, ".waybill"))
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), self, "plain-user", "doctor", "--verify", "--json", "-c", w.file)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // its exit code is what counts
	if after := treeOf(t, filepath.Join(w.dir, ".waybill")); after != before {
		t.Errorf("doctor changed the directory from\n%s\nto\n%s", before, after)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// treeOf lists the files of a directory with mode, size and time.
func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if errors.Is(err, os.ErrPermission) {
			return filepath.SkipDir // nobody else may look into it either
		} else if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			fmt.Fprintf(&out, "%s %v %d %v\n", path, info.Mode(), info.Size(), info.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
