//go:build lab

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// labCase is one server of the lab: how it is configured, and how it must end
// with allow_legacy off and on. An empty end is not run.
type labCase struct {
	id, note string
	args     []string          // after the id
	set      map[string]string // more variables; DIR is the run's folder
	top      string            // more lines at the top of the configuration
	more     []string          // more lines in the peer's entry
	bare     bool              // without PATH
	twin     bool              // with another peer that is the same server
	slow     bool
	unpinned bool   // no pin can be made of it
	http     bool   // it is reached over HTTP
	host     string // of its endpoint; 127.0.0.1 where empty
	moved    bool   // it redirects
	recovers bool   // it is closed at first, and ready when it is tried again
	sessions int    // that it is asked for, where it is legacy; 1 where 0
	resent   int    // calls of echo that are sent again
	noise    string // what the counts of noise must hold
	off, on  string
	calls    []labCall // where it is ready
	while    func(r *labRun)
	after    func(r *labRun)
}

// labCall is one call of a tool of the lab's peer. want is what ended says, or
// several of them with | between.
type labCall struct {
	tool, args, timeout string
	limit               string // of a call that progress keeps alive
	want                string
	result, never       string
	beside              bool // at the same time as the others
	patient             bool // its host waits for the peer
}

const (
	modernEnd = "ready modern"
	legacyEnd = "ready legacy"

	// What a call can meet while its peer is started again.
	comingBack = "refused peer_unavailable no|refused era_unknown no|lost transport_lost no|complete yes"
)

func (c labCase) label() string {
	if c.note == "" {
		return c.id
	}
	return c.id + " " + c.note
}

func (c labCase) want(allowed bool) string {
	if allowed {
		return c.on
	}
	return c.off
}

func (c labCase) patience() time.Duration {
	if c.slow {
		return 2 * time.Minute
	}
	return 30 * time.Second
}

// wait is eventually with a deadline of one's own.
func wait(t *testing.T, what string, patience time.Duration, ready func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-tick.C
	}
}

// usual is what most cases are called with; charge notes each time it runs.
var usual = []labCall{
	{tool: "echo", args: `{"text":"one"}`, want: done},
	{tool: "echo", args: `{"text":"two"}`, want: done},
	{tool: "charge", want: done},
}

func modern(id string, calls ...labCall) labCase {
	if calls == nil {
		calls = usual
	}
	return labCase{id: id, off: modernEnd, on: modernEnd, calls: calls}
}

// first is a case whose first call ends in its own way; the others are answered.
func first(id string, call labCall) labCase {
	call.args, call.tool = `{"text":"one"}`, "echo"
	return modern(id, call, usual[1], usual[2])
}

func closed(id, off, on string) labCase { return labCase{id: id, off: off, on: on, calls: usual} }

func (c labCase) with(f func(c *labCase)) labCase {
	f(&c)
	return c
}

// noisy says how many lines of a kind the peer wrote; 0 is any number.
func (c labCase) noisy(what string, lines int) labCase {
	c.noise = fmt.Sprintf(`"what":%q,"count":`, what)
	if lines > 0 {
		c.noise += fmt.Sprintf("%d,", lines)
	}
	return c
}

func echo(n int, want string) []labCall {
	var calls []labCall
	for range n {
		calls = append(calls, labCall{tool: "echo", want: want})
	}
	return calls
}

func labCases() []labCase {
	var all []labCase
	for _, group := range [][]labCase{pipeCases(), eraCases(), processCases(), listCases(), changeCases(), resultCases(), httpCases(), overHTTP()} {
		all = append(all, group...)
	}
	return all
}

func pipeCases() []labCase {
	exact := labCall{tool: "echo", want: done, result: "dash \u2014 kana \u8aad face \U0001f600"}
	slow := labCall{tool: "slow", timeout: "1s", want: timedOut}
	next := labCall{tool: "echo", args: `{"text":"own"}`, want: done, result: "echo:own", never: "LATE"}
	return []labCase{
		modern("B01").noisy("not_json", 2), modern("B02").noisy("not_json", 3), modern("B03").noisy("not_json", 7), modern("B05"), modern("B06"),
		modern("B07").noisy("blank", 0), modern("B16").noisy("not_json", 5), modern("B65"),
		modern("B09", echo(2, done)...),
		modern("B10", echo(2, "complete result_too_large yes")...),
		modern("B12", echo(6, done+"|complete result_too_large yes")...),
		modern("B13", exact, exact),
		// The lone surrogate is refused with its answer, at once; it is never replaced.
		modern("B15", labCall{tool: "echo", want: "protocol_error bad_result maybe"}),
		first("B17", labCall{timeout: "1s", want: timedOut}),
		first("B19", labCall{timeout: "1s", want: timedOut}).noisy("batch", 1),
		first("B20", labCall{timeout: "1s", want: timedOut}).noisy("not_json", 1),
		modern("B21", labCall{tool: "echo", want: lost}, labCall{tool: "echo", want: comingBack}).noisy("half_line", 1),
		first("B23", labCall{timeout: "1s", want: timedOut}).noisy("unknown_id", 1),
		modern("B24", labCall{tool: "echo", timeout: "1s", want: timedOut, never: "DECOY"}).noisy("unknown_id", 2),
		first("B25", labCall{timeout: "1s", want: timedOut}).noisy("null_id", 1),
		modern("B27", slow, next).noisy("late_answer", 1), modern("B28", slow, next).noisy("late_answer", 1),
		modern("B31").with(func(c *labCase) { c.after = never("dropped_big_id") }),
		modern("B130"), modern("B131"),
	}
}

func eraCases() []labCase {
	quick := func(c *labCase) { c.more = []string{"probe_timeout: 2s"} }
	closedBy := func(id, code string) labCase { return closed(id, "unavailable unknown "+code, legacyEnd) }
	return []labCase{
		closedBy("B32", "ambiguous_error"), closedBy("B33", "ambiguous_error"), closedBy("B35", "ambiguous_error"),
		closedBy("B37", "ambiguous_silence").with(quick), closedBy("B44", "ambiguous_silence").with(quick),
		closedBy("B38", "ambiguous_exit").with(func(c *labCase) { c.after = freshProcess }),
		closed("B43", "unavailable unknown legacy_only", "unavailable unknown legacy_only"),
		closedBy("B45", "ambiguous_error"), closedBy("B49", "ambiguous_error"), closedBy("B50", "ambiguous_error"),
		closed("B48", "unavailable unknown ambiguous_error", "unavailable unknown legacy_error"),
		closedBy("B47", "ambiguous_error").with(func(c *labCase) { c.while, c.after = pinged, never("dropped_client_no_pong") }),
	}
}

func processCases() []labCase {
	argv := labCall{tool: "argv", want: done, result: `[\"a (b) c.txt\", \"$HOME;id\", \"*\"]`}
	names := labCall{tool: "env_names", want: done, never: "FAKEPEER_CANARY_SECRET"}
	big := labCall{tool: "big", want: "complete result_too_large yes", beside: true}
	long := labCall{tool: "echo", args: `{"text":"` + strings.Repeat("e", 100<<10) + `"}`, want: done, beside: true}
	return []labCase{
		modern("B51").with(func(c *labCase) { c.note, c.slow, c.more = "patient", true, []string{"probe_timeout: 60s"} }),
		closed("B51", "unavailable unknown ambiguous_silence", "unavailable unknown legacy_silence").with(func(c *labCase) {
			c.note, c.more = "impatient", []string{"probe_timeout: 2s", "legacy_probe_timeout: 1s"}
		}),
		closed("B52", "unavailable unknown ambiguous_exit", "unavailable unknown legacy_exit").with(func(c *labCase) { c.after = leaves("1") }),
		modern("B53"), modern("B54"), modern("B55"),
		modern("B58", names).with(func(c *labCase) { c.after = noLeak }),
		modern("B59"),
		closed("B59", "unavailable unknown ambiguous_exit", "unavailable unknown legacy_exit").with(func(c *labCase) {
			c.note, c.bare, c.after = "without PATH", true, leaves("127")
		}),
		modern("B60", labCall{tool: "pwd", want: done}).with(func(c *labCase) {
			c.more, c.set = []string{"cwd: \"DIR\""}, map[string]string{"FAKEPEER_EXPECT_CWD": "DIR"}
		}),
		closed("B60", "unavailable unknown directory_missing", "unavailable unknown directory_missing").with(func(c *labCase) {
			c.note, c.unpinned, c.more = "elsewhere", true, []string{"cwd: \"DIR/nowhere\""}
		}),
		modern("B61", argv).with(func(c *labCase) { c.args = []string{"a (b) c.txt", "$HOME;id", "*"} }),
		modern("B63", big, long, big, long),
	}
}

func resultCases() []labCase {
	probe := func(want, result string) labCall { return labCall{tool: "probe_tool", want: want, result: result} }
	numbers := `{"id":9007199254740993,"neg":-725653563933458433,"f":1.10,"e":1e3}`
	image := labCall{tool: "image", timeout: "18s"}
	return []labCase{
		modern("B135", probe(done, `"temperature":"warm"`)), modern("B138", probe(done, "temperature")),
		modern("B137", probe("tool_error tool_error yes", "date must be in the future")),
		modern("B139", labCall{tool: "echo_raw", args: numbers, want: done,
			result: `"structuredContent":{"id":9007199254740993,"neg":-725653563933458433,"big":123456789012345678901234567890,"f":1.10}`}).with(
			func(c *labCase) { c.after = sent(numbers) }),
		modern("B141", labCall{tool: "echo", want: done}).with(func(c *labCase) { c.after = sent(`"arguments":{}`) }),
		modern("B142", image.ends("complete result_too_large yes"), usual[0]).with(func(c *labCase) {
			c.note, c.top = "within the limit", "limits: {frame: 64MiB}"
		}),
		modern("B142", image.ends("lost frame_too_large maybe"), usual[0]).with(func(c *labCase) { c.note = "over the limit" }),
		first("B145", labCall{want: "protocol_error undeclared_input maybe"}),
		modern("B153", labCall{tool: "echo", timeout: "1s", want: timedOut}).with(func(c *labCase) {
			c.set, c.after = map[string]string{"FAKEPEER_SCALE": "0.25"}, executedOnce
		}),
		modern("B154", labCall{tool: "big", want: "complete result_too_large yes"}),
		modern("B156"),
		modern("B133", labCall{tool: "echo", timeout: "15s", limit: "120s", want: done}).with(func(c *labCase) { c.slow = true }),
		modern("B134", labCall{tool: "echo", timeout: "120s", want: done}).with(func(c *labCase) { c.slow = true }),
	}
}

func (c labCall) ends(want string) labCall {
	c.want = want
	return c
}

// invariants holds for every case, as the lab and our own records say.
func (r *labRun) invariants() {
	methods, events := r.received()
	r.eraInvariants(methods)
	called := map[string]int{}
	for i, c := range r.c.calls {
		if i < len(r.replies) && r.replies[i].Status != "refused" && r.replies[i].Status != "" {
			called[c.tool]++
		}
	}
	if r.allowed {
		called["echo"] += r.c.resent
	}
	ids := map[string]bool{}
	for _, l := range r.noted() {
		if l.Type != "msg" || l.Msg.Method == "" || l.Msg.ID == nil {
			continue
		}
		if r.movedOn(l) {
			continue
		}
		id := string(l.Msg.ID)
		var n int64
		if err := json.Unmarshal(l.Msg.ID, &n); err != nil || n <= 0 || n > 1<<53 || ids[id] {
			r.t.Errorf("id %s of %s is no small new number", id, l.Msg.Method)
		}
		ids[id] = true
		if l.Msg.Method == "tools/call" && l.Raw != "" {
			called[l.Msg.Params.Name]--
		} else if l.Msg.Method == "tools/call" {
			called["echo"]-- // the only tool that is called with more than the lab notes
		}
		if strings.Contains(l.Raw, "\r") {
			r.t.Errorf("a line holds a carriage return: %.200s", l.Raw)
		}
	}
	for tool, n := range called {
		if n != 0 {
			r.t.Errorf("%s was called %d times more by us than it reached the peer", tool, n)
		}
	}
	for i, c := range r.c.calls {
		if c.tool == "charge" && i < len(r.replies) && r.replies[i].Status != "" && events["executed"] != 1 {
			r.t.Errorf("one call of charge was executed %d times", events["executed"])
		}
	}
	if events["unknown_tool"]+events["client_wrote_response"] > 0 {
		r.t.Errorf("the peer noted %v", events)
	}
	r.ourInvariants()
}

// eraInvariants: no initialize where it is forbidden, one where it is allowed,
// and nothing else to a peer whose era is not known.
func (r *labRun) eraInvariants(methods map[string]int) {
	want := r.c.want(r.allowed)
	forbidden := !r.allowed || strings.Contains(want, "modern") || strings.Contains(want, "legacy_only")
	switch n := methods["initialize"]; {
	case forbidden && n != 0:
		r.t.Errorf("received initialize %d times; it was forbidden", n)
	case strings.Contains(want, "legacy") && r.allowed && !forbidden && n > max(1, r.c.sessions), want == legacyEnd && n != max(1, r.c.sessions):
		r.t.Errorf("received initialize %d times, want once", n)
	case n > 0 && methods["notifications/initialized"] != 0 && want != legacyEnd:
		r.t.Error("received notifications/initialized after an initialize that did not select legacy")
	}
	if strings.HasPrefix(want, "unavailable") {
		for m := range methods {
			if m != "server/discover" && m != "initialize" {
				r.t.Errorf("received %s without a known era", m)
			}
		}
	}
	restarts := strings.Count(r.command(exitDone, "events", "--type", "peer.restarted", "--peer", "lab"), "peer.restarted")
	if n := methods["server/discover"]; n > 1+restarts {
		r.t.Errorf("probed %d times in %d lives", n, 1+restarts)
	}
}

// ourInvariants: the other peer was left in peace, nothing lives, the log is
// whole, and noise is counted in few events.
func (r *labRun) ourInvariants() {
	if got := r.lines("healthy", "got"); len(got) != 4 || len(r.lines("healthy", "ran")) != 2 {
		r.t.Errorf("the healthy peer received %d messages, want a probe, a list and two calls: %.500q", len(got), got)
	}
	for _, l := range r.noted() {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", l.PID)); err == nil {
			r.t.Errorf("process %d lives", l.PID)
		}
	}
	for _, verb := range []string{"verify", "replay"} {
		if code, out, errs := r.tool(r.auditor, verb, r.log()); code != exitDone {
			r.t.Errorf("waybill-audit %s: exit %d\n%s%s", verb, code, out, errs)
		}
	}
	out := r.command(exitDone, "events", "--type", "noise.counted", "--peer", "lab")
	if n := strings.Count(out, "\n"); n > 4 || !strings.Contains(out, r.c.noise) {
		r.t.Errorf("%d events of noise, want few, and %s in them:\n%s", n, r.c.noise, out)
	}
}

func never(event string) func(*labRun) {
	return func(r *labRun) {
		if _, events := r.received(); events[event] > 0 {
			r.t.Errorf("the peer noted %s", event)
		}
	}
}

func executedOnce(r *labRun) {
	if _, events := r.received(); events["executed"] != 1 {
		r.t.Errorf("one call was executed %d times", events["executed"])
	}
}

func sent(text string) func(*labRun) {
	return func(r *labRun) {
		for _, l := range r.noted() {
			if strings.Contains(l.Raw, text) {
				return
			}
		}
		r.t.Errorf("the peer never received %s", text)
	}
}

func noLeak(r *labRun) {
	for _, l := range r.noted() {
		if l.Event == "env" && l.Leak {
			r.t.Errorf("the environment leaked: %v", l.Names)
		}
	}
}

// freshProcess: a peer that left at the probe is started once more, and its
// first message is initialize.
func freshProcess(r *labRun) {
	firsts := map[int]string{}
	for _, l := range r.noted() {
		if l.Type == "msg" && firsts[l.PID] == "" {
			firsts[l.PID] = l.Msg.Method
		}
	}
	n := map[string]int{}
	for _, m := range firsts {
		n[m]++
	}
	if want := map[bool]int{false: 0, true: 1}[r.allowed]; n["server/discover"] != 1 || n["initialize"] != want {
		r.t.Errorf("the first messages of its processes were %v", firsts)
	}
}

// pinged waits for ten answers to pings, one a second.
func pinged(r *labRun) {
	if !r.allowed {
		return
	}
	wait(r.t, "ten pings are answered", 20*time.Second, func() bool {
		methods, _ := r.received()
		return methods["(result)"] >= 10
	})
	r.again(usual[0])
}

// leaves checks what is said of a process that ended by itself.
func leaves(status string) func(*labRun) {
	return func(r *labRun) {
		if exited := r.command(exitDone, "events", "--type", "peer.exited", "--peer", "lab"); !strings.Contains(exited, `"status":`+status) {
			r.t.Errorf("the exit status %s is nowhere:\n%s", status, exited)
		}
		if reason := reasonOf(r.peer()); !r.allowed && !strings.Contains(reason, status) {
			r.t.Errorf("the reason does not hold the exit status %s: %s", status, reason)
		}
	}
}
