package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/domain"
	"waybill/replay"
)

// audit verifies and replays the log, and returns the state it folds to.
func (w *world) audit() *domain.State {
	w.t.Helper()
	return auditLog(w.t, w.log())
}

func auditLog(t testing.TB, path string) *domain.State {
	t.Helper()
	l, err := logfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	v, err := replay.Verify(context.Background(), l)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	r, err := replay.Replay(context.Background(), l)
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	if v.Size != r.Size || r.Agreed != r.Decisions || r.Decisions == 0 {
		t.Fatalf("verify says %d events, replay %d, %d of %d decisions agree", v.Size, r.Size, r.Agreed, r.Decisions)
	}
	return r.State
}

// callEvents returns the types of the events of one call.
func (w *world) callEvents(key string) []string {
	w.t.Helper()
	var out []string
	for line := range strings.Lines(w.must(exitDone, "events", "--json", "--call", key)) {
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, e.Type)
	}
	return out
}

// A call that is routed when the service is killed has no end in the log; the
// next start settles it as lost, it may have run, and sends it to nobody again.
func TestKilledServiceSettlesItsCallsAtTheNextStart(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	s := w.serve()
	var wait sync.WaitGroup
	var out, errs bytes.Buffer
	var exit int
	wait.Go(func() {
		exit = run([]string{"call", "-c", w.file, "--call-id", "doomed", "--timeout", "30s", "hang"}, &out, &errs)
	})
	eventually(t, "the peer runs the call", func() bool { return len(w.lines("a", "ran")) == 1 })
	if got := strings.Join(w.callEvents("local/doomed"), " "); got != "call.received call.routed" {
		t.Fatalf("before the kill: %s; want a routed, unsettled call", got)
	}
	s.stop(syscall.SIGKILL)
	eventually(t, "the peers are gone", func() bool { return len(processesWith(t, w.record("a"))) == 0 })

	s = w.serve()
	if got := strings.Join(w.callEvents("local/doomed"), " "); got != "call.received call.routed call.settled" {
		t.Errorf("after the restart: %s", got)
	}
	if settled := w.must(exitDone, "events", "--type", "call.settled"); !strings.Contains(settled, `"status":"lost","code":"service_restarted","ran":"maybe"`) {
		t.Errorf("settled as %s", settled)
	}
	if r := decode[reply](t, w.must(exitDone, "calls", "outcome", "doomed")); r.Status != "lost" || r.Ran != "maybe" || r.Route == nil {
		t.Errorf("asked after, it is %+v", r)
	}
	w.must(exitDone, "call", "--json", "echo", `{}`)
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("the clean stop ended with %d", code)
	}
	if wait.Wait(); exit != exitLost {
		t.Errorf("the caller ended with %d, want %d: the call may have run", exit, exitLost)
	}
	if ran := w.lines("a", "ran"); len(ran) != 2 {
		t.Errorf("the peer ran %q, want the doomed call once and one echo", ran)
	}
	if n := w.audit().InFlight(); n != 0 {
		t.Errorf("%d calls are still under way in the log", n)
	}
}

// A killed peer loses the call it was running, is started again with a fresh
// probe and list, and keeps its names; its neighbour never notices.
func TestAKilledPeerIsReadyAgain(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}, peerYAML{name: "b", mode: "modern"}).ready()
	s := w.serve()
	var wait sync.WaitGroup
	var out, errs bytes.Buffer
	wait.Go(func() { run([]string{"call", "-c", w.file, "--json", "hang"}, &out, &errs) })
	eventually(t, "the peer runs the call", func() bool { return len(w.lines("a", "ran")) == 1 })
	spawned := decode[struct{ Data domain.PeerSpawned }](t, w.must(exitDone, "events", "--json", "--type", "peer.spawned", "--peer", "a"))
	if err := syscall.Kill(spawned.Data.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	if r := decode[reply](t, out.String()); r.Status != "lost" || r.Ran != "maybe" {
		t.Errorf("the call under way ended %s, ran %s", r.Status, r.Ran)
	}
	eventually(t, "the peer is ready again", func() bool {
		code, _, _ := w.run("call", "--json", "echo", `{}`)
		return code == exitDone
	})
	r := decode[domain.Report](t, w.must(exitDone, "peers", "--json"))
	if *r.Peers[0].Incarnation != 2 || *r.Peers[1].Incarnation != 1 || r.Namespaces[0].Generation != 1 {
		t.Errorf("%+v", r)
	}
	if n := len(w.lines("a", "ran")); n != 2 {
		t.Errorf("the peer ran %d calls, want the lost one once and an echo", n)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	w.audit()
}

// Every modern request carries the three fields, as the bytes that a child
// process received (seed 2.1.0, rule 2; specification, basic, "_meta").
func TestEveryModernRequestIsStamped(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	w.must(exitDone, "call", "--once", "echo", `{"k":1}`)
	w.must(exitTimedOut, "call", "--once", "--timeout", "50ms", "hang", `{}`)
	seen := map[string]int{}
	for _, line := range w.lines("a", "got") {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Meta map[string]json.RawMessage `json:"_meta"`
			}
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		seen[m.Method]++
		if m.ID == nil {
			continue
		}
		if v := string(m.Params.Meta["io.modelcontextprotocol/protocolVersion"]); v != `"2026-07-28"` {
			t.Errorf("%s: protocolVersion %s", m.Method, v)
		}
		if v := string(m.Params.Meta["io.modelcontextprotocol/clientCapabilities"]); v != `{}` {
			t.Errorf("%s: clientCapabilities %s", m.Method, v)
		}
		if v := string(m.Params.Meta["io.modelcontextprotocol/clientInfo"]); !strings.Contains(v, `"waybill"`) {
			t.Errorf("%s: clientInfo %s", m.Method, v)
		}
	}
	for method, n := range map[string]int{"server/discover": 2, "tools/list": 2, "tools/call": 2, "notifications/cancelled": 1} {
		if seen[method] != n {
			t.Errorf("%s was received %d times, want %d", method, seen[method], n)
		}
	}
}

func TestDemoShowsTheWholeJob(t *testing.T) {
	var out, errs syncBuffer
	if code := run([]string{"demo"}, &out, &errs); code != exitDone {
		t.Fatalf("exit %d\n%s%s", code, out.String(), errs.String())
	}
	for _, want := range []string{"archive  ready  legacy  2025-11-25", "library  ready  modern  2026-07-28", "library: 7 books", "notes: 2 notes",
		"9007199254740993", "refused (unknown_tool)", "call.routed", "verify: ", "replay: ", "collision policy prefix-on-collision: 5 tools merged"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not show %q", want)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if left := processesWith(t, self+"\x00demo-peer"); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}
