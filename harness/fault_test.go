package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"waybill/store"
)

// Each file that is made durable here can fail in two ways, and whoever is told of
// an error does not know which: it is not there, or it is.

// obstruct makes the next write of a file fail before anything of it is there.
func obstruct(t *testing.T, path string) (clear func()) {
	t.Helper()
	noErr(t, os.MkdirAll(filepath.Join(path+".new", "in the way"), 0o700))
	return func() { noErr(t, os.RemoveAll(path+".new")) }
}

var errSync = errors.New("the disk said no")

// failSync makes the nth file that is written fail when it is there, and reports
// whether there was an nth.
func failSync(t *testing.T, n int) (struck func() bool) {
	t.Helper()
	real, count := syncDir, 0
	t.Cleanup(func() { syncDir = real })
	syncDir = func(path string) error {
		if err := real(path); err != nil {
			return err
		}
		if count++; count == n {
			return errSync
		}
		return nil
	}
	return func() bool { return count >= n }
}

// wantInitialized finishes an Init that failed, and checks what it made. Keys that
// were whole are kept.
func wantInitialized(t *testing.T, what string, dir DataDir) {
	t.Helper()
	before := snapshot(t, dir)
	id, _, err := dir.Init("local")
	if err != nil {
		t.Errorf("%s: the next Init: %v", what, err)
		return
	}
	after := snapshot(t, dir)
	if names(after) != "keys/log.key keys/log.pub keys/payload.key log.db" {
		t.Errorf("%s: files are %s", what, names(after))
	}
	for name, b := range before {
		whole := name != "keys/log.key" || before["keys/log.pub"] != "" // half a pair is made again
		if strings.HasPrefix(name, "keys/") && whole && after[name] != b {
			t.Errorf("%s: %s was made again", what, name)
		}
	}
	l, err := store.Open(dir.LogFile())
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	defer l.Close()
	if again, _, err := dir.Init("local"); l.ID() != id || again != id || err != nil {
		t.Errorf("%s: the id is %s, then %s, and that of the log %s: %v", what, id, again, l.ID(), err)
	}
}

func TestAnInitThatFailsAtAFileIsFinishedByTheNext(t *testing.T) {
	for _, name := range []string{"init.partial", "keys/log.key", "keys/log.pub", "keys/payload.key", "log.db"} {
		dir := DataDir(t.TempDir())
		clear := obstruct(t, dir.file(name))
		if _, _, err := dir.Init("local"); err == nil || !missing(dir.file(name)) {
			t.Errorf("%s absent: Init says %v", name, err)
		}
		clear()
		wantInitialized(t, name+" absent", dir)
	}
	for n, name := range []string{"init.partial", "keys/log.key", "keys/log.pub", "keys/payload.key"} {
		dir := DataDir(t.TempDir())
		struck := failSync(t, n+1)
		if _, _, err := dir.Init("local"); !errors.Is(err, errSync) || !struck() || missing(dir.file(name)) {
			t.Errorf("%s present: Init says %v", name, err)
		}
		wantInitialized(t, name+" present", dir)
	}
}

func TestAFileThatFailedIsWrittenAgain(t *testing.T) {
	for _, there := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "file")
		noErr(t, WriteFile(path, []byte("old"), 0o600))
		want, clear := "old", func() {}
		if there {
			want = "new"
			failSync(t, 1)
		} else {
			clear = obstruct(t, path)
		}
		if err := WriteFile(path, []byte("new"), 0o600); err == nil {
			t.Errorf("present %v: no error", there)
		}
		if b, err := os.ReadFile(path); string(b) != want {
			t.Errorf("present %v: after the failure it is %q, %v", there, b, err)
		}
		clear()
		noErr(t, WriteFile(path, []byte("new"), 0o600))
		b, err := os.ReadFile(path)
		if left, _ := filepath.Glob(path + ".*"); string(b) != "new" || len(left) > 0 {
			t.Errorf("present %v: then it is %q, %v, beside it %q", there, b, err, left)
		}
	}
}

// A service that could not say where it is ends. Nobody looks for it there.
func TestAServiceWhoseRunFileFailedIsNotFound(t *testing.T) {
	for _, there := range []bool{false, true} {
		dir, id := initialized(t)
		clear := func() {}
		lock, err := dir.Lock()
		noErr(t, err)
		if there {
			failSync(t, 1)
		} else {
			clear = obstruct(t, dir.file("run.json"))
		}
		run := Run{PID: os.Getpid(), Log: id}
		if err := dir.WriteRun(run); err == nil || missing(dir.file("run.json")) == there {
			t.Errorf("present %v: %v", there, err)
		}
		noErr(t, lock.Release()) // it ends
		if r, err := dir.Running(); r != nil || err != nil {
			t.Errorf("present %v: found %v, %v", there, r, err)
		}
		clear()
		lock, err = dir.Lock()
		noErr(t, err)
		if !missing(dir.file("run.json")) {
			t.Errorf("present %v: the next life finds the file of the last", there)
		}
		noErr(t, dir.WriteRun(run))
		if r, err := dir.Running(); err != nil || r == nil || *r != run {
			t.Errorf("present %v: then %v, %v", there, r, err)
		}
		noErr(t, lock.Release())
	}
}
