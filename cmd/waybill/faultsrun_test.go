package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"waybill/harness"
)

// Of two services that start at one moment exactly one serves; the other ends
// with 1 and names it.
func TestTwoServicesStartAtOnce(t *testing.T) {
	p := prepare(t)
	w, _ := p.in(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	type one struct {
		cmd       *exec.Cmd
		out, errs *syncBuffer
		ended     chan struct{}
	}
	var both [2]one
	for i := range both {
		s := one{exec.Command(self, "serve", "--json", "-c", w.file), &syncBuffer{}, &syncBuffer{}, make(chan struct{})}
		s.cmd.Stdout, s.cmd.Stderr = s.out, s.errs
		if err := s.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.cmd.Process.Kill(); <-s.ended })
		go func() { _ = s.cmd.Wait(); close(s.ended) }()
		both[i] = s
	}
	first, second := both[0], both[1]
	select {
	case <-first.ended:
		first, second = second, first
	case <-second.ended:
	}
	if code := second.cmd.ProcessState.ExitCode(); code != exitInternal {
		t.Errorf("the second ended with %d: %s%s", code, second.out.String(), second.errs.String())
	}
	doc := decode[failureDoc](t, second.out.String())
	if doc.Error.Code != "locked" || !strings.Contains(doc.Error.Message, fmt.Sprintf("pid %d)", first.cmd.Process.Pid)) {
		t.Errorf("the second says %+v, the first is pid %d", doc, first.cmd.Process.Pid)
	}
	eventually(t, "the first is ready", func() bool { return strings.Contains(first.out.String(), `"namespaces"`) })
	w.must(exitDone, "call", "--json", "echo")
	_ = first.cmd.Process.Signal(syscall.SIGTERM)
	if <-first.ended; first.cmd.ProcessState.ExitCode() != exitDone {
		t.Errorf("the first ended with %d: %s", first.cmd.ProcessState.ExitCode(), first.errs.String())
	}
	p.whole(t, w)
}

// A log that lost its -wal file has lost what was written last. The checkpoint
// beside it shows that; with the file put back, everything is there.
func TestAWalThatIsMissingIsNoticed(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	d := harness.DataDir(filepath.Join(w.dir, ".waybill"))
	s := w.serve()
	w.must(exitDone, "call", "--json", "--call-id", "one", "echo")
	eventually(t, "the head is signed", func() bool { _, err := os.Stat(d.CheckpointFile()); return err == nil })
	s.stop(syscall.SIGKILL)
	for _, end := range []string{"-wal", "-shm"} {
		if err := os.Rename(d.LogFile()+end, d.LogFile()+".kept"+end); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, _ := w.run("doctor", "--json"); code != exitInternal || !strings.Contains(out, `"log_shorter"`) {
		t.Errorf("doctor: exit %d, %s", code, out)
	}
	exit, out, errs := w.serveAs(t, "plain-user")
	if exit != exitInternal || decode[failureDoc](t, out).Error.Code != "log_shorter" {
		t.Fatalf("serve: exit %d\n%s%s", exit, out, errs)
	}
	for _, end := range []string{"-shm", "-wal"} {
		if err := os.Rename(d.LogFile()+".kept"+end, d.LogFile()+end); err != nil {
			t.Fatal(err)
		}
	}
	prepared{d, []string{"one"}}.whole(t, w)
}

// A disk is a data directory with little room, or a process that may not write:
// full takes the room away, and free gives it back.
type disk struct {
	own        bool // a file system of its own
	full, free func(pid int)
}

// smallDisk puts a directory on a file system of its own, or, where this user may
// not mount one, limits the files of the process that writes.
func smallDisk(t *testing.T, dir string) disk {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,mode=0700"); err != nil {
		t.Logf("no file system could be mounted (%v): the files of the process are limited instead", err)
		limit := func(pid int, to uint64) {
			var now unix.Rlimit
			err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &now)
			if now.Cur = min(to, now.Max); err == nil {
				err = unix.Prlimit(pid, unix.RLIMIT_FSIZE, &now, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return disk{false, func(pid int) { limit(pid, 1) }, func(pid int) { limit(pid, unix.RLIM_INFINITY) }}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(dir, "filler")
	return disk{true, func(int) { fill(t, filler) }, func(int) {
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}}
}

func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		_, err := f.Write(make([]byte, size))
		if errors.Is(err, unix.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// On a full disk no call is acknowledged that is not recorded: one is refused or
// waits, and goes on when there is room. Where there is none for long, the service
// ends and says so, and the next start finds everything.
func TestFullDisk(t *testing.T) {
	t.Parallel() // most of it is waiting
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"})
	d := harness.DataDir(filepath.Join(w.dir, ".waybill"))
	room := smallDisk(t, string(d))
	w.ready()
	s := w.serveWith("small-files")
	w.must(exitDone, "call", "--json", "--call-id", "one", "echo")

	room.full(s.cmd.Process.Pid)
	var wait sync.WaitGroup
	var out bytes.Buffer
	var exit int
	wait.Go(func() {
		exit = run([]string{"call", "-c", w.file, "--json", "--call-id", "two", "echo"}, &out, &bytes.Buffer{})
	})
	eventually(t, "an append failed", func() bool { return strings.Contains(s.errs.String(), "did not take an append") })
	if code, out, _ := w.run("call", "--json", "echo"); code != exitRefused || !strings.Contains(out, "log_unavailable") {
		t.Errorf("a call meanwhile: exit %d, %s", code, out)
	}
	room.free(s.cmd.Process.Pid)
	known := []string{"one"}
	if wait.Wait(); exit == exitDone {
		known = append(known, "two")
	} else if !strings.Contains(out.String(), "log_unavailable") {
		t.Errorf("the call that met the full disk: exit %d, %s", exit, out.String())
	}
	eventually(t, "calls go on", func() bool { code, _, _ := w.run("call", "--json", "echo"); return code == exitDone })

	room.full(s.cmd.Process.Pid)
	if code, out, _ := w.run("call", "--json", "echo"); code == exitDone {
		t.Errorf("a call was acknowledged on a full disk: %s", out)
	}
	_ = s.cmd.Wait() // after the ten seconds for which an append is tried again
	if code := s.cmd.ProcessState.ExitCode(); code != exitInternal || !strings.Contains(s.errs.String(), "the log") {
		t.Errorf("the service ended with %d and said %s", code, s.errs.String())
	}
	if code, out, errs := w.run("doctor", "--json"); room.own && (code != exitInternal || !strings.Contains(out, `"disk_full"`)) {
		t.Errorf("doctor, exit %d, does not see a full disk: %s%s", code, out, errs)
	}
	if room.own {
		room.full(0) // the end of the service made room: it folded the log
		if exit, out, _ := w.serveAs(t, "small-files"); exit != exitInternal || !strings.Contains(out, "disk") && !strings.Contains(out, "no space left") {
			t.Errorf("a start on a full disk: exit %d, %s", exit, out)
		}
	}
	room.free(os.Getpid())
	prepared{d, known}.whole(t, w)
}
