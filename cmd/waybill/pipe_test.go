package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"waybill/domain"
	"waybill/events"
)

// pipeRow is one thing that a peer does on its pipe, beside a peer in good
// health, and what comes of it. The peer is this binary: it looks its row up.
type pipeRow struct {
	name string

	// What the peer does. Each function writes the answer to a request, or
	// something else; frame is the right answer.
	start             func(p *pipeScript) // before it reads
	any               func(p *pipeScript, m rpc, frame string)
	probe, list, call func(p *pipeScript, m rpc, frame string) // in place of any
	heard             func(p *pipeScript, m rpc)               // takes a notification of ours
	legacy            bool

	// How it is configured: lines at the top, and in its entry.
	top  string
	more []string

	// What comes of it.
	want  string     // what the report says at first; "ready modern" where empty
	calls []pipeCall // of its echo; where nil, two that are answered
	noise []string   // "what count bytes" or "what count", in the one event that counts it; sorted
	got   string     // the methods it received; where empty, a probe, a list and the calls
	gone  string     // its code in the report after the calls, where it ended by then
	deaf  bool       // it hears nothing by then
	after func(r *pipeRun)
}

// pipeCall is one call of echo.
type pipeCall struct {
	args    string // {"n":N} where empty
	timeout time.Duration
	want    string // STATUS [CODE] RAN, or several with | between
	result  string // must be in the result
	beside  bool   // at the same time as its neighbours that say so too
}

const (
	done     = "complete yes"
	timedOut = "timed_out timed_out maybe"
	lost     = "lost transport_lost maybe"
	broken   = "protocol_error bad_result maybe"
	unsent   = "refused peer_unavailable no|lost transport_lost no" // before or after its end is known
)

// soon is a deadline that must pass.
const soon = 250 * time.Millisecond

// thenGood is a call that must run out, and one that is answered after it.
func thenGood() []pipeCall { return []pipeCall{{timeout: soon, want: timedOut}, {want: done}} }

func pipeRows() []pipeRow {
	return slices.Concat(noiseRows(), framingRows(), sizeRows(), encodingRows(), idRows(), answerRows(), requestRows(), processRows())
}

// What a peer writes on its pipe harms nobody but itself: its own calls end as
// they must, its neighbour does not notice, and what was no answer is counted in
// one event.
func TestPipe(t *testing.T) {
	self := selfScript(t)
	// Most of a row is waiting for deadlines: more run at once than there are processors.
	var wait sync.WaitGroup
	defer wait.Wait()
	turns := make(chan struct{}, 6)
	for _, row := range pipeRows() {
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			t.Run(row.name, func(t *testing.T) { pipeTest(t, self, row) })
		})
	}
}

func pipeTest(t *testing.T, self string, row pipeRow) {
	r := openPiped(t, self, row)
	defer r.stop()
	r.settled()
	r.calls()
	r.neighbour()
	r.leave()
	r.stop()
	r.received()
	r.counted()
	if row.after != nil {
		row.after(r)
	}
	if left := processesWith(t, r.dir); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	r.audit()
}

// pipeRun is a service in this process, without NATS: what call --once runs, for
// several calls.
type pipeRun struct {
	*world
	row  pipeRow
	node *node
	said *syncBuffer
	once sync.Once
}

// selfScript is a command that becomes this binary: one that is quick to hash,
// as each start of a pinned peer does.
func selfScript(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "peer")
	if err := os.WriteFile(file, []byte("#!/bin/sh\nexec '"+self+"' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func openPiped(t *testing.T, self string, row pipeRow) *pipeRun {
	t.Helper()
	r := &pipeRun{world: newWorld(t, ""), row: row, said: &syncBuffer{}}
	entry := func(name, kind, arg string) string {
		return fmt.Sprintf("  %s:\n    command: %q\n    args: [%s, %q, %q]\n    data_files: [%q]\n", name, self, kind, arg, r.record(name), r.record(name))
	}
	y := "collision: prefix-always\n" + row.top + "\npeers:\n" + entry("neighbour", "scripted-peer", "modern") + entry("peer", "pipe-peer", row.name)
	for _, line := range row.more {
		y += "    " + line + "\n"
	}
	if err := os.WriteFile(r.file, []byte(y), 0o600); err != nil {
		t.Fatal(err)
	}
	r.ready()
	a := newApp(context.Background(), r.said, r.said, r.file)
	f, err := a.load(r.file)
	if err != nil {
		t.Fatal(err)
	}
	if r.node, err = a.openNode(f); err != nil {
		t.Fatal(err)
	}
	return r
}

// stop ends the service, once.
func (r *pipeRun) stop() {
	r.t.Helper()
	r.once.Do(func() {
		if err := r.node.stop("the row is done"); err != nil {
			r.t.Errorf("stop: %v\n%s", err, r.said)
		}
	})
}

// settled checks the report once each peer has listed or failed.
func (r *pipeRun) settled() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.node.engine.WaitSettled(ctx); err != nil {
		r.t.Fatalf("the peers do not settle: %v\n%s", err, r.said)
	}
	if got, want := r.peer("peer"), orElse(r.row.want, "ready modern"); got != want {
		r.t.Fatalf("the peer is %q, want %q", got, want)
	}
	if got := r.peer("neighbour"); got != "ready modern" {
		r.t.Errorf("the neighbour is %q", got)
	}
}

// peer is "STATE ERA [CODE]" of a peer.
func (r *pipeRun) peer(name string) string {
	r.t.Helper()
	report, err := r.node.engine.Report(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, p := range report.Peers {
		if p.Name == name && p.Code != nil {
			return p.State + " " + string(p.Era) + " " + string(*p.Code)
		} else if p.Name == name {
			return p.State + " " + string(p.Era)
		}
	}
	return "not in the report"
}

// plan is the row's calls, none where it is not ready.
func (r *pipeRun) plan() []pipeCall {
	switch {
	case r.row.want != "" && !strings.HasPrefix(r.row.want, "ready"):
		return nil
	case r.row.calls == nil:
		return []pipeCall{{want: done}, {want: done}}
	}
	return r.row.calls
}

func (r *pipeRun) calls() {
	r.t.Helper()
	var wait sync.WaitGroup
	for i, c := range r.plan() {
		if !c.beside {
			wait.Wait()
			r.call(i+1, c)
			continue
		}
		wait.Go(func() { r.call(i+1, c) })
	}
	wait.Wait()
}

func (r *pipeRun) call(n int, c pipeCall) {
	args := orElse(c.args, fmt.Sprintf(`{"n":%d}`, n))
	got := r.ask("peer/echo", args, max(c.timeout, 0))
	if !slices.Contains(strings.Split(c.want, "|"), ended(got)) {
		r.t.Errorf("call %d: %q, want %q", n, ended(got), c.want)
	}
	if c.result == "" && c.want == done {
		c.result = `"structuredContent":` + args
	}
	if !strings.Contains(string(got.Result), c.result) {
		r.t.Errorf("call %d: the result lacks %q: %.300s", n, c.result, got.Result)
	}
	if strings.Contains(string(got.Result), "DECOY") {
		r.t.Errorf("call %d: what was not its answer was delivered: %.300s", n, got.Result)
	}
}

// ask makes one call; no time to live is 10 seconds.
func (r *pipeRun) ask(tool, args string, timeout time.Duration) reply {
	if timeout == 0 {
		timeout = 10 * time.Second
	}
	var got reply
	request, err := callCmd{Tool: tool, Arguments: args, Timeout: timeout}.request()
	if err != nil {
		r.t.Error(err)
		return got
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout+10*time.Second)
	defer cancel()
	re, err := r.node.engine.CallOnce(ctx, "local", request, domain.Trace{})
	if err != nil {
		r.t.Errorf("%s: %v", tool, err)
		return got
	}
	if err := json.Unmarshal(re.Encode(), &got); err != nil {
		r.t.Errorf("%s: the reply is no JSON: %v: %.300s", tool, err, re.Encode())
	}
	return got
}

// neighbour calls the other peer, which answers at once whatever its neighbour
// does.
func (r *pipeRun) neighbour() {
	r.t.Helper()
	if got := r.ask("neighbour/echo", `{"n":9007199254740993}`, 5*time.Second); ended(got) != done {
		r.t.Errorf("the neighbour's call: %q", ended(got))
	}
	if got := r.peer("neighbour"); got != "ready modern" {
		r.t.Errorf("the neighbour became %q", got)
	}
}

// leave ends the peer, where it has not ended, so that all it wrote is counted.
func (r *pipeRun) leave() {
	r.t.Helper()
	if r.row.deaf {
		return
	}
	if r.row.gone == "" && r.plan() != nil {
		if got := r.ask("peer/leave", `{}`, 0); ended(got) != lost {
			r.t.Errorf("leave: %q", ended(got))
		}
	}
	eventually(r.t, "the peer is reported as gone", r.isGone)
	if got := r.peer("peer"); r.row.gone != "" && !strings.HasSuffix(got, " "+r.row.gone) {
		r.t.Errorf("after its end the peer is %q, want %q", got, r.row.gone)
	}
}

// isGone reports whether each process that was started has ended, but for one
// that was started again.
func (r *pipeRun) isGone() bool {
	over := map[domain.At]bool{}
	for _, d := range r.events("peer.exited") {
		over[d.(domain.PeerExited).At] = true
	}
	for _, d := range r.events("peer.restarted") {
		over[d.(domain.PeerRestarted).At] = true
	}
	for _, d := range r.events("peer.spawned") {
		if !over[d.(domain.PeerSpawned).At] {
			return false
		}
	}
	return true
}

// events returns the peer's events of a type.
func (r *pipeRun) events(kind string) []domain.Data {
	r.t.Helper()
	var all []domain.Data
	for line := range strings.Lines(r.must(exitDone, "events", "--json", "--type", kind, "--peer", "peer")) {
		_, e, err := events.Open([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, e.Data)
	}
	return all
}

// received checks what reached the peer: each request once, under a new small
// id, and initialize only where the row names it.
func (r *pipeRun) received() {
	r.t.Helper()
	want := r.row.got
	if want == "" {
		want = "server/discover tools/list"
		for _, c := range r.plan() {
			want += map[bool]string{true: " tools/call notifications/cancelled", false: " tools/call"}[c.want == timedOut]
		}
		if r.row.gone == "" && !r.row.deaf {
			want += " tools/call"
		}
	}
	ids := map[int64]bool{}
	var got []string
	for _, line := range r.lines("peer", "got") {
		var m rpc
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			r.t.Fatalf("the peer received %.200q: %v", line, err)
		}
		if got = append(got, orElse(m.Method, "(answer)")); m.ID == nil || m.Method == "" {
			continue
		}
		id, err := strconv.ParseInt(string(m.ID), 10, 64)
		if err != nil || id <= 0 || id > 1<<53 || ids[id] {
			r.t.Errorf("id %s of %s is no small new number", m.ID, m.Method)
		}
		ids[id] = true
	}
	if strings.Join(got, " ") != want {
		r.t.Errorf("the peer received %s, want %s", strings.Join(got, " "), want)
	}
	if n := len(r.lines("neighbour", "got")); n < 3 || n != 2+len(r.lines("neighbour", "ran")) {
		r.t.Errorf("the neighbour received %d messages, want a probe, a list and its calls", n)
	}
}

// counted checks that all noise is in one event, and of which size it was.
func (r *pipeRun) counted() {
	r.t.Helper()
	if r.row.deaf {
		return
	}
	all := r.events("noise.counted")
	var got []string
	for _, d := range all {
		for i, k := range d.(domain.NoiseCounted).Kinds {
			s := fmt.Sprintf("%s %d", k.What, k.Count)
			if i < len(r.row.noise) && strings.Count(r.row.noise[i], " ") == 2 {
				s += fmt.Sprintf(" %d", k.Bytes)
			}
			got = append(got, s)
			if k.Bytes <= 0 {
				r.t.Errorf("%s has no size", s)
			}
		}
	}
	if !slices.Equal(got, r.row.noise) || len(all) != min(1, len(r.row.noise)) {
		r.t.Errorf("noise in %d events: %q, want in one: %q", len(all), got, r.row.noise)
	}
}

// Also the noise of a peer that lives until the service is stopped, and a check
// is over soon.
func TestCheckRecordsTheNoiseOfItsPeers(t *testing.T) {
	r := &pipeRun{world: newWorld(t, "", peerYAML{name: "neighbour", mode: "modern"})}
	r.file = filepath.Join(r.dir, "noisy.yaml")
	y := fmt.Sprintf("peers:\n  peer:\n    command: %q\n    args: [pipe-peer, %q, %q]\n    data_files: [%q]\n", selfScript(t), bannerRow, r.record("peer"), r.record("peer"))
	if err := os.WriteFile(r.file, []byte(y), 0o600); err != nil {
		t.Fatal(err)
	}
	r.ready()
	r.must(exitDone, "check")
	if got := r.events("noise.counted"); len(got) != 1 {
		t.Errorf("the banner is in %d events, want one", len(got))
	}
	r.audit()
}

// ended is "STATUS [CODE] RAN" of a reply.
func ended(r reply) string {
	if r.Code != nil {
		return r.Status + " " + *r.Code + " " + r.Ran
	}
	return r.Status + " " + r.Ran
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
