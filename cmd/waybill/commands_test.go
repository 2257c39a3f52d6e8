package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"waybill/domain"
)

// reply is what a host reads.
type reply struct {
	CallID string          `json:"call_id"`
	Status string          `json:"status"`
	Code   *string         `json:"code"`
	Ran    string          `json:"ran"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Size   int64           `json:"size"`
	Route  *struct {
		Peer, Local, Era, Version string
		Incarnation, Generation   int64
	} `json:"route"`
	Seqs []int64 `json:"seqs"`
	Log  string  `json:"log"`
}

type failureDoc struct {
	Error struct {
		Code, Message string
		Where         *string
	} `json:"error"`
}

func TestWithoutALogEveryCommandSaysInit(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"})
	for _, args := range [][]string{{"check"}, {"serve"}, {"tools"}, {"peers"}, {"events"}, {"call", "echo"}, {"call", "--once", "echo"}} {
		out := w.must(exitNotRunning, append(args, "--json")...)
		doc := decode[failureDoc](t, out)
		if !strings.Contains(doc.Error.Message, "run waybill init") || doc.Error.Code != "not_initialised" {
			t.Errorf("%v: %+v", args, doc)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, ".waybill")); !os.IsNotExist(err) {
		t.Error("a command made the data directory")
	}
}

func TestInitAgainTouchesNothing(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	before, err := os.ReadFile(filepath.Join(w.dir, ".waybill", "keys", "log.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.dir, ".waybill", "nats", "nats-accounts.conf")); err != nil {
		t.Fatal(err)
	}
	type made struct {
		Log  string
		Made []string
	}
	doc := decode[made](t, w.must(exitDone, "init", "--json"))
	if len(doc.Made) == 0 || len(doc.Made) > 1 || !strings.Contains(doc.Made[0], "nats-accounts.conf") {
		t.Errorf("made %v, want the missing credentials only", doc.Made)
	}
	after, err := os.ReadFile(filepath.Join(w.dir, ".waybill", "keys", "log.key"))
	if err != nil || string(before) != string(after) {
		t.Error("the key was touched")
	}
	if again := decode[made](t, w.must(exitDone, "init", "--json")); len(again.Made) != 0 || again.Log != doc.Log {
		t.Errorf("again: %+v", again)
	}
}

func TestCheckReportsEachPeer(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}, peerYAML{name: "b", mode: "modern"},
		peerYAML{name: "old", mode: "legacy", more: []string{"allow_legacy: true"}},
		peerYAML{name: "older", mode: "legacy"}).ready()
	r := decode[domain.Report](t, w.must(exitSomeNotReady, "check", "--json"))
	type row struct{ state, era, code string }
	want := map[string]row{"a": {"ready", "modern", ""}, "b": {"ready", "modern", ""},
		"old": {"ready", "legacy", ""}, "older": {"unavailable", "unknown", "ambiguous_error"}}
	for _, p := range r.Peers {
		code := ""
		if p.Code != nil {
			code = string(*p.Code)
		}
		if got := (row{p.State, string(p.Era), code}); got != want[p.Name] {
			t.Errorf("%s: %+v, want %+v", p.Name, got, want[p.Name])
		}
	}
	if len(r.Namespaces) != 1 || r.Namespaces[0].Tools != 27 || r.Namespaces[0].Context != "default" {
		t.Errorf("namespaces: %+v", r.Namespaces)
	}
	if len(r.Collisions) != 9 || r.Collisions[0].Winner == nil || r.Collisions[0].Winner.Peer != "a" || len(r.Collisions[0].Candidates) != 3 {
		t.Errorf("collisions: %+v", r.Collisions)
	}
	if n := len(w.lines("older", "got")); n != 1 {
		t.Errorf("the peer that is not allowlisted got %d messages, want server/discover only", n)
	}
	for _, a := range []string{"cache_scope", "incarnation", "warnings", "version", "reason"} {
		if !strings.Contains(w.must(exitSomeNotReady, "check", "--json"), `"`+a+`":`) {
			t.Errorf("the report has no %s", a)
		}
	}
	text := w.must(exitSomeNotReady, "check")
	if lines := strings.Split(strings.TrimSpace(text), "\n"); !strings.HasPrefix(lines[len(lines)-1], "collision policy prefix-on-collision: 27 tools") {
		t.Errorf("the last line of the report is %q", lines[len(lines)-1])
	}
	if left := processesWith(t, w.dir); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

func TestRejectedCollisionIsAConfigurationError(t *testing.T) {
	w := newWorld(t, "collision: reject-on-collision", peerYAML{name: "a", mode: "modern"}, peerYAML{name: "b", mode: "modern"}).ready()
	doc := decode[failureDoc](t, w.must(exitConfig, "check", "--json"))
	for _, word := range []string{`"a"`, `"b"`, `"ask"`} {
		if !strings.Contains(doc.Error.Message, word) {
			t.Errorf("the message does not name %s: %s", word, doc.Error.Message)
		}
	}
	if doc.Error.Code != "collision_rejected" {
		t.Errorf("code %q", doc.Error.Code)
	}
}

func TestConfigurationErrorNamesFileLineAndKey(t *testing.T) {
	w := newWorld(t, "colision: x", peerYAML{name: "a", mode: "modern"})
	doc := decode[failureDoc](t, w.must(exitConfig, "check", "--json"))
	if doc.Error.Where == nil || !strings.Contains(*doc.Error.Where, "waybill.yaml:2") || !strings.Contains(doc.Error.Message, "colision") {
		t.Errorf("%+v", doc)
	}
}

func TestUnpinnedAndChangedPeersAreRefusedAndOthersGoOn(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}, peerYAML{name: "b", mode: "modern"}).ready()
	w.configure("", peerYAML{name: "a", mode: "modern"}, peerYAML{name: "b", mode: "legacy"}, peerYAML{name: "c", mode: "modern"})
	r := decode[domain.Report](t, w.must(exitSomeNotReady, "check", "--json"))
	var codes []string
	for _, p := range r.Peers {
		code := "-"
		if p.Code != nil {
			code = string(*p.Code)
		}
		codes = append(codes, p.Name+" "+p.State+" "+code)
	}
	want := "a ready -, b unavailable pin_mismatch, c unavailable not_pinned"
	if got := strings.Join(codes, ", "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if len(w.lines("c", "got")) != 0 {
		t.Error("a peer without a pin was started")
	}
	if out := w.must(exitDone, "events", "--type", "peer.refused"); !strings.Contains(out, "not_pinned") || !strings.Contains(out, "pin_mismatch") {
		t.Errorf("refusals are no events:\n%s", out)
	}
}

func TestCallOnceEndsAsItsExitCodeSays(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	for _, c := range []struct {
		tool, args string
		exit       int
		status     string
		code, ran  string
	}{
		{"echo", `{"n":9007199254740993,"b":1,"a":"\u00e9"}`, exitDone, "complete", "", "yes"},
		{"fail", `{}`, exitToolError, "tool_error", "tool_error", "yes"},
		{"nobody", `{}`, exitRefused, "refused", "unknown_tool", "no"},
		{"leave", `{}`, exitLost, "lost", "transport_lost", "maybe"},
		{"ask", `{}`, exitProtocolError, "protocol_error", "undeclared_input", "maybe"},
		{"untyped", `{}`, exitProtocolError, "protocol_error", "no_result_type", "maybe"},
		{"rpc_error", `{}`, exitProtocolError, "protocol_error", "peer_error", "maybe"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			r := decode[reply](t, w.must(c.exit, "call", "--once", "--json", c.tool, c.args))
			code := ""
			if r.Code != nil {
				code = *r.Code
			}
			if r.Status != c.status || code != c.code || r.Ran != c.ran {
				t.Errorf("got %s/%s/%s, want %s/%s/%s", r.Status, code, r.Ran, c.status, c.code, c.ran)
			}
			if c.tool == "echo" && string(r.Result) != `{"resultType":"complete","content":[],"structuredContent":`+c.args+`}` {
				t.Errorf("the result was touched: %s", r.Result)
			}
		})
	}
	if ran := w.lines("a", "ran"); len(ran) != 6 || ran[0] != `echo {"n":9007199254740993,"b":1,"a":"\u00e9"}` {
		t.Errorf("the peer ran %q", ran)
	}
	r := decode[reply](t, w.must(exitTimedOut, "call", "--once", "--json", "--timeout", "50ms", "hang"))
	if r.Status != "timed_out" || r.Ran != "maybe" {
		t.Errorf("%+v", r)
	}
}

func TestCallWithoutServiceOrOnceIsRefused(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	doc := decode[failureDoc](t, w.must(exitNotRunning, "call", "--json", "echo"))
	if !strings.Contains(doc.Error.Message, "waybill serve") || doc.Error.Code != "not_running" {
		t.Errorf("%+v", doc)
	}
}

func TestRunningServiceIsAskedOverNATS(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}, peerYAML{name: "b", mode: "modern"}).ready()
	s := w.serve()
	r := decode[domain.Report](t, w.must(exitDone, "check", "--json"))
	if len(r.Peers) != 2 || *r.Peers[0].Incarnation != 1 {
		t.Errorf("check started peers of its own: %+v", r.Peers)
	}
	type toolsDoc struct {
		Generation int64
		Tools      []struct {
			Canonical  string
			Definition json.RawMessage
		}
	}
	if tools := decode[toolsDoc](t, w.must(exitDone, "tools", "--json")); len(tools.Tools) != 18 || len(tools.Tools[0].Definition) == 0 {
		t.Errorf("tools: %+v", tools)
	}
	w.must(exitDone, "peers", "--json")
	c := decode[reply](t, w.must(exitDone, "call", "--json", "b/echo", `{"x":1}`))
	if c.Route == nil || c.Route.Peer != "b" || c.Route.Local != "echo" || c.Route.Era != "modern" || len(c.Seqs) != 4 {
		t.Errorf("%+v", c)
	}
	big := decode[reply](t, w.must(exitDone, "call", "--json", "big"))
	if *big.Code != "result_too_large" || big.Ran != "yes" || big.Size < 2<<20 || string(big.Result) != "null" {
		t.Errorf("too large: %+v", big)
	}
	if code, _, errs := w.run("call", "--host", "mallory", "echo"); code == exitDone || !strings.Contains(errs, "mallory") {
		t.Errorf("a host without credentials: exit %d, %s", code, errs)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	w.audit()
	if left := processesWith(t, w.dir); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	offline := decode[domain.Report](t, w.must(exitDone, "peers", "--json"))
	if len(offline.Peers) != 2 {
		t.Errorf("peers without a service: %+v", offline)
	}
}

// Peers start side by side: here each answers its probe only when the other has
// received its own, so one after the other neither would ever be ready.
func TestPeersStartSideBySide(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}, peerYAML{name: "b", mode: "modern"})
	yaml, err := os.ReadFile(w.file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(yaml)
	for peer, other := range map[string]string{"a": "b", "b": "a"} {
		text = strings.Replace(text, fmt.Sprintf("%q]\n    data_files", w.record(peer)), fmt.Sprintf("%q, %q]\n    data_files", w.record(peer), w.record(other)), 1)
		text = strings.Replace(text, fmt.Sprintf("data_files: [%q]", w.record(peer)), fmt.Sprintf("data_files: [%q, %q ]", w.record(peer), w.record(other)), 1)
	}
	if err := os.WriteFile(w.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.ready().must(exitDone, "check")
}

// A refusal is one sentence and one code, the same in the report, over NATS, in
// waybill peers and in the event.
func TestARefusalReadsTheSameEverywhere(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}, peerYAML{name: "old", mode: "legacy"}).ready()
	s := w.serve()
	checked := decode[domain.Report](t, w.must(exitSomeNotReady, "check", "--json")).Peers[1]
	asked := decode[domain.Report](t, w.must(exitDone, "peers", "--json")).Peers[1]
	event := decode[struct{ Data domain.EraRefused }](t, w.must(exitDone, "events", "--json", "--type", "era.refused"))
	text := w.must(exitDone, "peers")
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	offline := decode[domain.Report](t, w.must(exitDone, "peers", "--json")).Peers[1]
	want := "ambiguous: error -32601. If this is a server from before 2026-07-28 and you trust it, set allow_legacy for this peer"
	for name, got := range map[string]string{"check": *checked.Reason, "peers": *asked.Reason, "event": event.Data.Reason, "peers without a service": *offline.Reason} {
		if got != want {
			t.Errorf("%s says %q", name, got)
		}
	}
	if !strings.Contains(text, "old: "+want+" (ambiguous_error)") || !strings.Contains(s.out.String(), "old: "+want) || *checked.Code != event.Data.Code {
		t.Errorf("the reports for people:\n%s%s", text, s.out.String())
	}
}

// A host gives a call up: the peer is told, the call ends cancelled, once, and
// its outcome can be asked for with and without a service.
func TestACancelledCallEndsOnceAndCanBeAskedAfter(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	s := w.serve()
	mine := w.hang("a")
	if r := decode[reply](t, w.must(exitDone, "calls", "outcome", "mine")); r.Status != "under_way" || r.Route == nil {
		t.Errorf("before: %+v", r)
	}
	w.must(exitDone, "calls", "cancel", "mine")
	mine.wait.Wait()
	if r := decode[reply](t, mine.out.String()); mine.exit != exitCancelled || r.Status != "cancelled" || *r.Code != "cancelled" || r.Ran != "maybe" {
		t.Errorf("exit %d: %+v", mine.exit, r)
	}
	eventually(t, "the peer is told", func() bool {
		got := w.lines("a", "got")
		return strings.Contains(got[len(got)-1], "notifications/cancelled")
	})
	w.must(exitRefused, "calls", "cancel", "mine")
	w.must(exitRefused, "calls", "outcome", "nobodys")
	want := "call.received call.routed call.cancelled call.abandoned call.settled"
	if got := strings.Join(w.callEvents("local/mine"), " "); got != want {
		t.Errorf("its story is %s", got)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	if r := decode[reply](t, w.must(exitDone, "calls", "outcome", "mine")); r.Status != "cancelled" || len(r.Seqs) != 5 {
		t.Errorf("without a service: %+v", r)
	}
	w.must(exitNotRunning, "calls", "cancel", "mine")
	w.audit()
}

// A namespace larger than a NATS message is read page by page, and does not hide
// the state of the peers.
func TestVastNamespaceIsReadInPages(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}, peerYAML{name: "v", mode: "vast"}).ready()
	s := w.serve()
	type toolsDoc struct {
		Next  string
		Tools []struct{ Canonical, Peer string }
	}
	tools := decode[toolsDoc](t, w.must(exitDone, "tools", "--json"))
	seen := map[string]bool{}
	for _, e := range tools.Tools {
		seen[e.Canonical] = true
	}
	if len(tools.Tools) != 20_018 || len(seen) != len(tools.Tools) || tools.Next != "" {
		t.Errorf("%d tools, %d names, next %q", len(tools.Tools), len(seen), tools.Next)
	}
	for _, command := range []string{"peers", "check"} {
		r := decode[domain.Report](t, w.must(exitDone, command, "--json"))
		if len(r.Peers) != 2 || r.Peers[1].State != "ready" || len(r.Peers[0].Tools) != 9 || r.Namespaces[0].Tools != 20_018 {
			t.Errorf("%s: %d peers, %d tools of the first", command, len(r.Peers), len(r.Peers[0].Tools))
		}
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
}

// What cannot be opened is said in a sentence, with the exit code of our own
// failures.
func TestANodeThatCannotBeOpenedSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		file, content, want string
	}{
		"lock file":   {"waybill.lock", "<<<<<<< mine", "waybill.lock"},
		"payload key": {".waybill/keys/payload.key", "", "payload.key"},
		"log":         {".waybill/log.db", "not a log at all", "log.db"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
			if err := os.WriteFile(filepath.Join(w.dir, c.file), []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"check", "--json"}, {"call", "--once", "--json", "echo"}} {
				code, out, _ := w.run(args...)
				doc := decode[failureDoc](t, out)
				if code != exitInternal && code != exitConfig || !strings.Contains(doc.Error.Message, c.want) {
					t.Errorf("%v: exit %d: %+v", args, code, doc)
				}
			}
		})
	}
}

func TestHelpHasAnExample(t *testing.T) {
	for _, c := range []string{"init", "pin", "check", "serve", "call", "tools", "peers", "peers revive", "calls outcome", "calls cancel",
		"calls resend", "events", "demo"} {
		var out, errs syncBuffer
		if code := run(append(strings.Fields(c), "--help"), &out, &errs); code != exitDone || !strings.Contains(out.String(), "Example:\n  waybill "+c) && !strings.Contains(out.String(), "waybill "+c) {
			t.Errorf("waybill %s --help: exit %d\n%s%s", c, code, out.String(), errs.String())
		}
	}
}

func TestUsageErrorIsJSONToo(t *testing.T) {
	var out, errs syncBuffer
	if code := run([]string{"check", "--no-such-flag", "--json"}, &out, &errs); code != exitConfig {
		t.Errorf("exit %d", code)
	}
	if doc := decode[failureDoc](t, out.String()); doc.Error.Code != "usage" {
		t.Errorf("%+v", doc)
	}
}
