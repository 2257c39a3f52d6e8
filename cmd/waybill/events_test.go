package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestEventsSinceAMoment(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	w.must(exitDone, "check")
	all := w.must(exitDone, "events")
	first := decode[struct{ Time string }](t, w.must(exitDone, "events", "--json", "--type", "service.started"))
	for since, want := range map[string]string{"1h": all, "2020-01-01T00:00:00Z": all, first.Time: all, "0s": "", "2100-01-01T00:00:00.5+02:00": ""} {
		if got := w.must(exitDone, "events", "--since", since); got != want {
			t.Errorf("since %s:\n%s\nwant\n%s", since, got, want)
		}
	}
	if stopped := w.must(exitDone, "events", "--since", first.Time, "--type", "service"); strings.Count(stopped, "\n") != 2 {
		t.Errorf("since the start, of the service alone:\n%s", stopped)
	}
	for _, bad := range []string{"yesterday", "-1h", "12"} {
		if code, out, errs := w.run("events", "--since="+bad); code != exitConfig || !strings.Contains(out+errs, "how long ago") {
			t.Errorf("since %s: exit %d\n%s%s", bad, code, out, errs)
		}
	}
}

// follower is waybill events --follow in a process of its own.
func (w *world) follower(args ...string) (*service, func() string) {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	out := &syncBuffer{}
	s := &service{t: w.t, cmd: exec.Command(self, append([]string{"events", "--follow", "-c", w.file}, args...)...), out: &bytes.Buffer{}, errs: &syncBuffer{}}
	s.cmd.Stdout, s.cmd.Stderr = out, s.errs
	if err := s.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
	})
	return s, out.String
}

// What comes while one follows is printed, each event once and in order, over a stop and
// a start of the service as well. A signal is how it ends.
func TestEventsAreFollowed(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	s, printed := w.follower("--json", "--type", "call")
	for range 2 {
		live := w.serve()
		w.must(exitDone, "call", "echo")
		if code := live.stop(syscall.SIGTERM); code != exitDone {
			t.Fatalf("serve ended with %d", code)
		}
	}
	want := w.must(exitDone, "events", "--json", "--type", "call")
	eventually(t, "all of it is printed", func() bool { return len(printed()) >= len(want) })
	if code := s.stop(syscall.SIGINT); code != exitDone || printed() != want || s.errs.String() != "" || strings.Count(want, "call.settled") != 2 {
		t.Errorf("exit %d, %s\n%s\nwant\n%s", code, s.errs.String(), printed(), want)
	}
}
