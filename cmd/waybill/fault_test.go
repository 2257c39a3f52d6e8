package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// obstruct makes the next write of a file fail before anything of it is there.
func obstruct(t *testing.T, path, suffix string) (clear func()) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(path+suffix, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.RemoveAll(path + suffix); err != nil {
			t.Fatal(err)
		}
	}
}

func contents(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// A pin that fails leaves the lock as it was, or as it shall be; either way the
// service goes by what is there, and the next pin makes it right.
func TestAPinThatFailsLeavesAWholeLock(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	lock := filepath.Join(w.dir, "waybill.lock")
	old := contents(t, lock)
	w.configure("", peerYAML{name: "a", mode: "modern"}, peerYAML{name: "b", mode: "modern"})
	clear := obstruct(t, lock, ".new")
	if code, _, errs := w.run("pin"); code != exitInternal || !strings.Contains(errs, lock) {
		t.Errorf("exit %d: %s", code, errs)
	}
	if contents(t, lock) != old {
		t.Error("a pin that failed changed the lock")
	}
	if out := w.must(exitSomeNotReady, "check"); !strings.Contains(out, "not_pinned") {
		t.Errorf("b is not pinned yet, and check says:\n%s", out)
	}
	clear()
	w.must(exitDone, "pin")
	pinned := contents(t, lock)
	// As after one that failed when the new lock was there.
	if out := w.must(exitDone, "pin"); strings.Count(out, "unchanged") != 2 || contents(t, lock) != pinned {
		t.Errorf("pinned again:\n%s", out)
	}
	w.must(exitDone, "check")
	w.audit()
}

// A service that cannot say where it is ends with an error, and with its peers.
func TestAServiceWithoutItsRunFileEnds(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	run := filepath.Join(w.dir, ".waybill", "run.json")
	clear := obstruct(t, run, ".new")
	if code, _, errs := w.run("serve"); code != exitInternal || !strings.Contains(errs, "run.json") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if left := processesWith(t, w.dir); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	clear()
	s := w.serve()
	w.must(exitDone, "call", "echo", "{}")
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	w.audit()
}

// An init that fails at the credentials of NATS is finished by the next, which
// makes no second log and no second key.
func TestAnInitThatFailsAtItsCredentialsIsFinishedByTheNext(t *testing.T) {
	for _, name := range []string{"service.nk", "replier.nk", "operator.nk", "host-local.nk", "nats-accounts.conf"} {
		w := newWorld(t, "", peerYAML{name: "a", mode: "modern"})
		path := filepath.Join(w.dir, ".waybill", "nats", name)
		clear := obstruct(t, path, ".tmp")
		if code, _, errs := w.run("init"); code != exitInternal || !strings.Contains(errs, name) {
			t.Errorf("%s: exit %d: %s", name, code, errs)
		}
		if contents(t, path) != "" {
			t.Errorf("%s is there", name)
		}
		clear()
		public := contents(t, filepath.Join(w.dir, ".waybill", "keys", "log.pub"))
		out := w.must(exitDone, "init")
		if !strings.Contains(out, "made "+path) || strings.Contains(out, "log.db") || strings.Contains(out, "/keys/") || !strings.Contains(out, strings.TrimSpace(public)) {
			t.Errorf("%s: the next init says\n%s", name, out)
		}
		before := contents(t, path)
		if out := w.must(exitDone, "init"); !strings.Contains(out, "nothing was missing") || contents(t, path) != before {
			t.Errorf("%s: once more:\n%s", name, out) // as after one that failed when it was there
		}
	}
}
