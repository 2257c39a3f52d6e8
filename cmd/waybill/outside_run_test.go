package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/domain"
	"waybill/harness/bus"
	"waybill/harness/bus/bustest"
	"waybill/harness/bus/stream"
)

// The one server is killed under load and started again, twice: the service goes on,
// each reply comes or its outcome is had, and the copy is the log.
func TestANATSServerIsKilledUnderLoad(t *testing.T) {
	f := newFar(t)
	server := f.one(stored(t))
	s := f.serve()
	l := f.callFrom(f.dial(localHost), f.dial(localHost), f.dial(localHost), f.dial(localHost))
	for range 2 {
		at := l.done.Load() + 200
		within(t, time.Minute, "calls are answered", func() bool { return l.done.Load() > at })
		said := s.cutOff()
		server.Kill()
		eventually(t, "the users of the service notice", func() bool { return s.cutOff() > said })
		server.Start()
	}
	at := l.done.Load() + 200
	within(t, time.Minute, "calls are answered again", func() bool { return l.done.Load() > at })
	l.stop()
	eventually(t, "no call is under way", func() bool { return f.health().Inflight == 0 })
	events, found := f.copied(), f.settled(l)
	t.Logf("%d events; %d replies came, %d did not, of which %d calls had run", events, len(l.had), len(l.lost), found)
	if len(l.lost) == 0 {
		t.Error("no call was under way when the server was killed")
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	f.audit()
}

// A host waits while the service cannot reach NATS. What fits into the buffer of its
// connection arrives late; what does not is logged, and had by asking for it.
func TestRepliesDecidedWhileTheServiceIsCutOff(t *testing.T) {
	const calls, size = 16, 900 << 10
	f := newFar(t)
	server := f.one(stored(t))
	wire := bustest.NewWire(t, server.URL())
	f.write(fmt.Sprintf("url: %q", wire.URL()))
	s := f.serve()
	host := f.raw(server.URL())
	replies, err := host.SubscribeSync(bus.InboxPrefix(localHost) + ".late.*")
	if err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		body := fmt.Appendf(nil, `{"tool":"wait","arguments":{"size":%d},"call_id":"w%d"}`, size, i)
		if err := host.PublishRequest(bus.RequestSubject(prefix, bus.CallVerb, localHost), fmt.Sprintf("%s.late.w%d", bus.InboxPrefix(localHost), i), body); err != nil {
			t.Fatal(err)
		}
	}
	within(t, longest, "all calls are under way", func() bool { return f.health().Inflight == calls })
	wire.To("127.0.0.1:1")
	wire.Cut()
	eventually(t, "the service notices", func() bool { return s.cutOff() == 1 })
	if err := os.WriteFile(f.gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	within(t, longest, "all calls are settled", func() bool {
		return strings.Count(f.must(exitDone, "events", "--type", "call.settled"), "\n") == calls
	})
	within(t, longest, "some replies could not be sent", func() bool {
		return strings.Contains(s.errs.String(), "a reply could not be sent; the outcome is in the log")
	})
	wire.To(server.URL())
	came := map[string]bool{}
	within(t, longest, "every reply came or was logged as not sent", func() bool {
		if m, err := replies.NextMsg(time.Millisecond); err == nil {
			came[m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]] = len(m.Data) > size
		}
		return len(came)+strings.Count(s.errs.String(), "a reply could not be sent") == calls
	})
	for i := range calls {
		id := fmt.Sprintf("w%d", i)
		if whole, ok := came[id]; ok && !whole {
			t.Errorf("half of the reply of %s came", id)
		}
		doc := decode[reply](t, f.must(exitDone, "calls", "outcome", "--json", id))
		if doc.Status != string(domain.StatusComplete) || len(doc.Result) < size {
			t.Errorf("the outcome of %s is %s with %d bytes", id, doc.Status, len(doc.Result))
		}
	}
	if len(came) < 8 || len(came) == calls {
		t.Errorf("%d of %d replies came", len(came), calls)
	}
	f.copied()
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
}

// A server without JetStream carries calls, and no copy: status says what to do, and
// beyond nats.max_lag calls are refused until the copy has caught up.
func TestAServerWithoutJetStream(t *testing.T) {
	f := newFar(t)
	bare := f.one("")
	f.write(fmt.Sprintf("url: %q, max_lag: 300", bare.URL()))
	s := f.serve()
	eventually(t, "status says what is missing", func() bool {
		h := f.health()
		return h.Publisher.State == stream.StateBehind && strings.Contains(h.Publisher.Error, "it is not enabled on the server") && h.Refusing == ""
	})
	f.must(exitDone, "call", "echo", "{}")
	if text := f.must(exitDone, "status"); !strings.Contains(text, "stream: behind") || !strings.Contains(text, "it is not enabled on the server (jetstream in its configuration)") {
		t.Errorf("status says\n%s", text)
	}
	c := f.dial(localHost)
	code := ""
	for i := 0; i < 1000 && code == ""; i++ {
		var err error
		if _, code, err = c.Request(t.Context(), bus.CallVerb, benchRequest); err != nil {
			t.Fatal(err)
		}
	}
	if code != string(domain.CodeAuditLag) {
		t.Fatalf("the last call ended with %q", code)
	}
	f.must(exitRefused, "call", "echo", "{}")
	bare.Kill()
	dir := t.TempDir()
	f.nodes[0] = bustest.StartProcess(t, dir, bare.Port(), stored(t)+f.accounts(dir))
	within(t, time.Minute, "calls are taken again", func() bool { code, _, _ := f.run("call", "echo", "{}"); return code == exitDone })
	f.copied()
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
}

// What keeps a command from its answer is said, with an exit code of its own, also
// where NATS is somebody else's.
func TestCommandsSayWhatKeepsThemFromAnOutsideServer(t *testing.T) {
	f := newFar(t)
	server := f.one(stored(t))
	f.must(exitNotRunning, "call", "echo", "{}")
	s := f.serve()
	f.must(exitDone, "call", "echo", "{}")
	fails := func(exit int, code, words string, args ...string) {
		t.Helper()
		got, out, errs := f.run(append(args, "--json")...)
		doc := decode[struct {
			Error struct{ Code, Message string }
		}](t, out)
		if got != exit || doc.Error.Code != code || !strings.Contains(doc.Error.Message, words) {
			t.Errorf("waybill %s: exit %d, %s %s", strings.Join(args, " "), got, out, errs)
		}
	}
	large := `{"x":"` + strings.Repeat("x", bus.MaxMessage) + `"}`
	fails(exitConfig, "too_large", "the request is larger than one NATS message may be", "call", "echo", large)
	fails(exitConfig, "credentials", "use --host with a name whose credentials exist", "call", "--host", "nobody", "echo", "{}")
	f.pretend("stranger", filepath.Join(newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready().dir, ".waybill", "nats", "host-local.nk"))
	fails(exitConfig, "credentials", "does not accept the key of stranger", "call", "--host", "stranger", "echo", "{}")
	f.pretend("other", filepath.Join(f.dir, ".waybill", "nats", "host-local.nk"))
	fails(exitConfig, "not_permitted", "not permitted to publish to \"waybill.v1.call.other\"", "call", "--host", "other", "echo", "{}")
	server.Kill()
	for _, args := range [][]string{{"call", "echo", "{}"}, {"tools"}, {"status"}, {"peers"}, {"calls", "cancel", "x"}} {
		fails(exitNotRunning, "nats_unreachable", "runs and is asked over NATS, but no NATS server can be reached", args...)
	}
	server.Start()
	eventually(t, "the service is back", func() bool { code, _, _ := f.run("call", "echo", "{}"); return code == exitDone })
	// The service is there and its connection is not: nobody answers.
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	server.Start()
	fails(exitNotRunning, "not_running", "cut off from this NATS server", "call", "echo", "{}")
	fails(exitNotRunning, "not_running", "no Waybill service answers", "tools")
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the service is back again", func() bool { code, _, _ := f.run("call", "echo", "{}"); return code == exitDone })
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
}
