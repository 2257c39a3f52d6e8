//go:build lab

package main

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// listen starts the lab's peer as an endpoint.
func (r *labRun) listen() {
	r.t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	_, r.port, _ = net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	args := append([]string{r.peers, r.c.id}, r.c.args...)
	r.server = exec.Command(r.python, append(args, "--http", r.port)...)
	r.server.Env = append(os.Environ(), "FAKEPEER_NAME=lab", "FAKEPEER_LOG="+r.labLog())
	for k, v := range r.c.set {
		r.server.Env = append(r.server.Env, k+"="+strings.ReplaceAll(v, "DIR", r.dir))
	}
	said, err := r.server.StderrPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.server.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(r.hangUp)
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil || !strings.Contains(line, "listening on") {
		r.t.Fatalf("the lab's endpoint said %q: %v", line, err)
	}
}

// hangUp ends the endpoint, where there is one.
func (r *labRun) hangUp() {
	if r.server != nil && r.server.ProcessState == nil {
		_ = r.server.Process.Kill()
		_ = r.server.Wait()
	}
}

// movedOn reports whether a line is of a request that was redirected: it is noted once more where it is answered.
func (r *labRun) movedOn(l labLine) bool { return r.c.moved && l.HTTP != nil && l.HTTP.Path == "/mcp" }

// overHTTP are the cases whose fault is none of the pipe, met over HTTP too.
func overHTTP() []labCase {
	var all []labCase
	anywhere := []string{"B31", "B108", "B109", "B111", "B112", "B113", "B116", "B117", "B118", "B119", "B120", "B123", "B126", "B129", "B131",
		"B135", "B137", "B138", "B139", "B141", "B142", "B145", "B146", "B147", "B151", "B153", "B154"}
	for _, group := range [][]labCase{pipeCases(), listCases(), changeCases(), resultCases()} {
		for _, c := range group {
			if slices.Contains(anywhere, c.id) && !c.slow && !c.twin {
				if c.id == "B146" { // there a subscription may be opened after the list was read, which is then read again at once
					c.more = append(slices.Clone(c.more), "subscribe: false")
				}
				c.http, c.on, c.note = true, "", strings.TrimSpace(c.note+" over HTTP")
				all = append(all, c)
			}
		}
	}
	return all
}

func httpCases() []labCase {
	var all []labCase
	for _, group := range [][]labCase{statusCases(), streamCases(), sessionCases()} {
		for _, c := range group {
			c.http = true
			all = append(all, c)
		}
	}
	return all
}

// statusCases are told apart by the status of an answer.
func statusCases() []labCase {
	suspect := func(id, code string) labCase { return closed(id, "unavailable unknown "+code, legacyEnd) }
	dead := func(id, off, on string) labCase {
		return closed(id, "unavailable unknown "+off, "unavailable unknown "+on)
	}
	return []labCase{
		dead("B68", "ambiguous_status", "legacy_status").with(func(c *labCase) { c.after = says("HTTP 405") }),
		suspect("B69", "ambiguous_status"), suspect("B70", "ambiguous_error"),
		suspect("B70", "ambiguous_error").with(func(c *labCase) { c.note, c.args = "under 404", []string{"404"} }),
		suspect("B71", "ambiguous_status"), suspect("B72", "ambiguous_status"),
		modern("B75", labCall{tool: "write", want: "protocol_error forbidden maybe"}, labCall{tool: "read", want: done}).with(func(c *labCase) { c.after = probedOnce }),
		modern("B76"), modern("B77"),
		dead("B78", "unavailable", "unavailable").with(func(c *labCase) { c.after = says("HTTP 421") }),
		modern("B79").with(func(c *labCase) { c.recovers, c.after = true, restarted(2) }),
		dead("B80", "ambiguous_status", "legacy_status").with(func(c *labCase) { c.while = leftInPeace }),
		dead("B83", "broken_answer", "broken_answer").with(func(c *labCase) { c.after = says("HTTP 200") }),
		modern("B84").with(func(c *labCase) { c.moved = true }),
		dead("B85", "redirect_refused", "redirect_refused").with(func(c *labCase) { c.after = noVerb("GET") }),
		modern("B107", labCall{tool: "echo", want: "protocol_error unauthorized no"}, labCall{tool: "echo", want: "protocol_error unauthorized no"}).with(
			func(c *labCase) { c.after = probedOnce }),
	}
}

// streamCases are about bodies.
func streamCases() []labCase {
	return []labCase{
		modern("B87"), modern("B88"), modern("B89"),
		modern("B92", labCall{tool: "echo", timeout: "1s", want: timedOut}).with(func(c *labCase) { c.while = streamClosed }),
		modern("B93").with(func(c *labCase) { c.calls, c.while = nil, manyTools }),
		modern("B95", labCall{tool: "echo", want: "protocol_error bad_result maybe"}).with(func(c *labCase) { c.after = noVerb("GET") }),
		modern("B96", labCall{tool: "echo", want: "protocol_error bad_result maybe"}),
		modern("B97"), modern("B98"),
		modern("B99", labCall{tool: "echo", timeout: "12s", want: done}),
		modern("B103").with(func(c *labCase) { c.host = "localhost" }),
		modern("B104", labCall{tool: "issue", args: `{"owner":"a","opts":{"count":3}}`, want: done},
			labCall{tool: "issue", args: `{"owner":" \u4e16\r\nEvil: 1 ","opts":{}}`, want: done}, labCall{tool: "issue", args: `{"owner":null}`, want: done}).with(
			func(c *labCase) { c.after = never("param_header_mismatch") }),
	}
}

// sessionCases are about sessions, which only a legacy peer has.
func sessionCases() []labCase {
	legacy := func(id string, calls ...labCall) labCase {
		return closed(id, "unavailable unknown ambiguous_error", legacyEnd).with(func(c *labCase) { c.calls, c.sessions = calls, 2 })
	}
	return []labCase{
		legacy("B100", echo(3, done)...).with(func(c *labCase) { c.resent = 1 }),
		legacy("B102", labCall{tool: "echo", want: done}, labCall{tool: "echo", want: "protocol_error http_status maybe", result: ""},
			labCall{tool: "echo", want: done, patient: true}),
		modern("B106").with(func(c *labCase) {
			c.after = func(r *labRun) {
				never("echoed_session")(r)
				noVerb("DELETE")(r)
			}
		}),
	}
}

// says checks the words in which the peer's end is told.
func says(words string) func(*labRun) {
	return func(r *labRun) {
		if reason := reasonOf(r.peer()); !strings.Contains(reason, words) {
			r.t.Errorf("the reason lacks %q: %s", words, reason)
		}
	}
}

// noVerb: the peer met no request of a verb.
func noVerb(verb string) func(*labRun) {
	return func(r *labRun) {
		for _, l := range r.noted() {
			if l.HTTP != nil && l.HTTP.Method == verb {
				r.t.Errorf("received a %s", verb)
			}
		}
	}
}

func probedOnce(r *labRun) {
	if methods, _ := r.received(); methods["server/discover"] != 1 {
		r.t.Errorf("probed %d times", methods["server/discover"])
	}
}

func restarted(times int) func(*labRun) {
	return func(r *labRun) {
		if n := len(r.events("peer.restarted", "lab")); n != times {
			r.t.Errorf("started again %d times, want %d", n, times)
		}
	}
}

// leftInPeace: a peer that is closed hears nothing more.
func leftInPeace(r *labRun) {
	before := len(r.noted())
	r.command(exitDone, "peers")
	r.command(exitDone, "tools")
	if after := len(r.noted()); after != before || before > 2 {
		r.t.Errorf("received %d requests, and %d later", before, after)
	}
}

// streamClosed: a call that is given up closes its stream.
func streamClosed(r *labRun) {
	wait(r.t, "the peer sees its stream closed", 10*time.Second, func() bool {
		_, events := r.received()
		return events["stream_closed"] == 1
	})
}

func manyTools(r *labRun) {
	if n := len(r.now().Tools); n != 1030 {
		r.t.Errorf("%d tools", n)
	}
}
