package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// keyedReply is a reply with what a key adds.
type keyedReply struct {
	reply
	Joined int64           `json:"joined"`
	Reason string          `json:"reason"`
	Erased json.RawMessage `json:"erased"`
}

// A key outlives a kill: what was under way is lost and not run again, and what was
// answered is answered again, byte for byte, where nothing else is kept.
func TestAKeyLeadsToOneRunAcrossKills(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	s := w.serve()
	first := decode[keyedReply](t, w.must(exitDone, "call", "--json", "--idempotency-key", "order-4711", "echo", `{"n":1.0}`))
	again := decode[keyedReply](t, w.must(exitDone, "call", "--json", "--idempotency-key", "order-4711", "echo", `{"n":1.0}`))
	if first.Joined != 0 || again.Joined == 0 || again.CallID != first.CallID || !bytes.Equal(again.Result, first.Result) {
		t.Errorf("first %+v, then %+v", first, again)
	}
	other := decode[keyedReply](t, w.must(exitRefused, "call", "--json", "--idempotency-key", "order-4711", "echo", `{"n":1}`))
	if *other.Code != "idempotency_conflict" || other.Ran != "no" {
		t.Errorf("another call has %+v", other)
	}
	var wait sync.WaitGroup
	var out, errs bytes.Buffer
	var exit int
	wait.Go(func() {
		exit = run([]string{"call", "-c", w.file, "--call-id", "doomed", "--idempotency-key", "doomed-1", "--timeout", "30s", "hang"}, &out, &errs)
	})
	eventually(t, "the peer runs the call", func() bool { return len(w.lines("a", "ran")) == 2 })
	s.stop(syscall.SIGKILL)
	if wait.Wait(); exit != exitLost {
		t.Errorf("the caller ended with %d: %s%s", exit, out.String(), errs.String())
	}
	s = w.serve()
	lost := decode[keyedReply](t, w.must(exitLost, "call", "--json", "--idempotency-key", "doomed-1", "hang"))
	if lost.CallID != "doomed" || lost.Status != "lost" || *lost.Code != "service_restarted" || lost.Ran != "maybe" || lost.Joined == 0 {
		t.Errorf("what was under way is %+v", lost)
	}
	again = decode[keyedReply](t, w.must(exitDone, "call", "--json", "--idempotency-key", "order-4711", "echo", `{"n":1.0}`))
	if again.CallID != first.CallID || again.Ran != "yes" || !bytes.Equal(again.Result, first.Result) || len(again.Seqs) != len(first.Seqs) {
		t.Errorf("first %+v, after a kill %+v", first, again)
	}
	w.must(exitDone, "erase", "--by", "ann", "--call", "local/"+first.CallID)
	gone := decode[keyedReply](t, w.must(exitDone, "call", "--json", "--idempotency-key", "order-4711", "echo", `{"n":1.0}`))
	if *gone.Code != "outcome_lost" || gone.Status != "complete" || string(gone.Result) != "null" || !strings.Contains(string(gone.Erased), `"ann"`) {
		t.Errorf("what was erased is %+v", gone)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	if ran := w.lines("a", "ran"); len(ran) != 2 {
		t.Errorf("the peer ran %q, want the echo once and the doomed call once", ran)
	}
	if all := w.must(exitDone, "events", "--json"); strings.Contains(all, "order-4711") || strings.Contains(all, "doomed-1") {
		t.Error("a key is in the log")
	}
	w.audit()
}

// TestAKeyedCallRunsOnceWhereverTheServiceIsKilled: the host repeats it until it has a
// reply that is no refusal, and the peer's own notes say how often it ran.
func TestAKeyedCallRunsOnceWhereverTheServiceIsKilled(t *testing.T) {
	for _, c := range []struct {
		point, status string
		ran           int // at least
	}{
		{"before call.received", "complete", 1}, {"saved call.received", "complete", 1},
		{"after call.routed", "lost", 0}, {"wrote tools/call", "lost", 0}, {"read tools/call", "lost", 1},
		{"before call.settled", "lost", 1}, {"saved call.answered", "lost", 1},
		{"after call.settled", "complete", 1}, {"replied", "complete", 1},
	} {
		t.Run(c.point, func(t *testing.T) {
			w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
			t.Setenv(crashEnv, c.point+":1:0")
			s := w.serve()
			call := []string{"call", "--json", "--idempotency-key", "k", "echo", `{"n":1}`}
			code, _, errs := w.run(call...)
			if code != exitLost && (c.point != "replied" || code != exitDone) {
				t.Errorf("the caller ended with %d: %s", code, errs)
			}
			if s.cmd.Wait() == nil || !strings.Contains(s.errs.String(), crashNote+c.point) {
				t.Fatalf("it did not die: %s", s.errs.String())
			}
			t.Setenv(crashEnv, "")
			s = w.serve()
			var r keyedReply
			eventually(t, "the call has a reply", func() bool {
				_, out, _ := w.run(call...)
				r = decode[keyedReply](t, out)
				return r.Status != "refused"
			})
			again := decode[keyedReply](t, func() string { _, out, _ := w.run(call...); return out }())
			if r.Status != c.status || again.Status != c.status || again.CallID != r.CallID || !bytes.Equal(again.Result, r.Result) {
				t.Errorf("repeated it has %+v, then %+v; want %s", r, again, c.status)
			}
			if c.status == "complete" && !strings.Contains(string(r.Result), `{"n":1}`) {
				t.Errorf("the result is %s", r.Result)
			}
			if n := len(w.lines("a", "ran")); n > 1 || n < c.ran {
				t.Errorf("the peer ran it %d times", n)
			}
			s.stop(syscall.SIGTERM)
			w.audit()
		})
	}
}

const aTraceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// TestATraceparentReachesThePeer in both eras, with a service and without one, and is
// on record and in the explanation.
func TestATraceparentReachesThePeer(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}, peerYAML{name: "b", mode: "legacy", more: []string{"allow_legacy: true"}}).ready()
	w.must(exitDone, "call", "--once", "--traceparent", aTraceparent, "echo", `{"n":1}`)
	s := w.serve()
	w.must(exitDone, "call", "--traceparent", aTraceparent, "--call-id", "traced", "b/echo", `{"n":2}`)
	w.must(exitDone, "call", "b/echo", `{"n":3}`)
	if code, _, errs := w.run("call", "--traceparent", "00-1-2-3", "b/echo"); code != exitConfig || !strings.Contains(errs, "traceparent") {
		t.Errorf("a malformed one: exit %d, %s", code, errs)
	}
	s.stop(syscall.SIGTERM)
	seen := map[string]string{}
	for _, peer := range []string{"a", "b"} {
		for _, line := range w.lines(peer, "got") {
			var m struct {
				Method string
				Params struct {
					Arguments json.RawMessage
					Meta      map[string]json.RawMessage `json:"_meta"`
				}
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			if trace := string(m.Params.Meta["traceparent"]); trace != "" || m.Method == "tools/call" {
				seen[m.Method+peer+string(m.Params.Arguments)] = trace
			}
		}
	}
	quoted := `"` + aTraceparent + `"`
	if len(seen) != 3 || seen[`tools/calla{"n":1}`] != quoted || seen[`tools/callb{"n":2}`] != quoted || seen[`tools/callb{"n":3}`] != "" {
		t.Errorf("the peers saw %q", seen)
	}
	if got := w.must(exitDone, "events", "--json", "--type", "call.received"); strings.Count(got, `"traceparent":`+quoted) != 2 {
		t.Errorf("recorded: %s", got)
	}
}

// TestATraceparentAndAKeyOverHTTP: an endpoint sees where a call belongs, and the call
// once.
func TestATraceparentAndAKeyOverHTTP(t *testing.T) {
	e := &endpoint{}
	site := newSites(t, map[string]*endpoint{"web": e})
	w := newWorld(t, "")
	yaml := "nats: {listen: \"127.0.0.1:0\"}\npeers:\n  web: {transport: http, endpoint: \"" + site.URL + "/web/mcp\"}\n"
	if err := os.WriteFile(w.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	w.ready()
	s := w.serve()
	call := []string{"call", "--json", "--wait", "10s", "--traceparent", aTraceparent, "--idempotency-key", "k", "charge"}
	first := decode[keyedReply](t, w.must(exitDone, call...))
	again := decode[keyedReply](t, w.must(exitDone, call...))
	if again.Joined == 0 || !bytes.Equal(again.Result, first.Result) {
		t.Errorf("first %+v, then %+v", first, again)
	}
	s.stop(syscall.SIGTERM)
	var traces []string
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.seen {
		if p.method == "tools/call" {
			traces = append(traces, string(p.meta))
		}
	}
	if e.ran != 1 || len(traces) != 1 || !strings.Contains(traces[0], `"traceparent":"`+aTraceparent+`"`) {
		t.Errorf("it ran %d times; _meta is %q", e.ran, traces)
	}
}
