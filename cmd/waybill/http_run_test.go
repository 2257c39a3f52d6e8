package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"waybill/domain"
)

// httpRow is one endpoint with a behaviour of its own, and what comes of it with allow_legacy off and on.
type httpRow struct {
	name    string
	make    func(e *endpoint)
	off, on string // state, era and code; "" is not run
	more    []string
	calls   []httpCall
	after   func(t *testing.T, w *world, peer string, e *endpoint)
	host    string // of its endpoint; that of the server where empty
}

// httpCall is a call and how it ends.
type httpCall struct{ tool, args, want, timeout string }

const (
	webReady  = "ready modern"
	webLegacy = "ready legacy"
	webDone   = "complete yes"
)

func (r httpRow) want(allowed bool) string {
	if allowed {
		return r.on
	}
	return r.off
}

// Every way of a server over HTTP that somebody met in public, with one service that holds them all: what may be used is used, what is closed says why, no initialize
// goes where it is forbidden, and nothing runs twice (design, Streamable HTTP; specification 2026-07-28, basic/transports/streamable-http).
func TestEndpointsAsPeersBehave(t *testing.T) {
	t.Parallel()
	all := map[string]*endpoint{}
	for _, row := range httpRows() {
		for _, allowed := range []bool{false, true} {
			if row.want(allowed) != "" {
				e := &endpoint{}
				row.make(e)
				all[peerOf(row, allowed)] = e
			}
		}
	}
	site := newSites(t, all)
	w := newWorld(t, "")
	yaml := "nats: {listen: \"127.0.0.1:0\"}\nmany_peers_reason: each is a row\ncollision: prefix-always\npeers:\n"
	for _, row := range httpRows() {
		for _, allowed := range []bool{false, true} {
			if row.want(allowed) == "" {
				continue
			}
			name := peerOf(row, allowed)
			url := strings.Replace(site.URL, "127.0.0.1", orElse(row.host, "127.0.0.1"), 1)
			yaml += fmt.Sprintf("  %s:\n    transport: http\n    endpoint: %s/%s/mcp\n    allow_legacy: %v\n", name, url, name, allowed)
			for _, line := range row.more {
				yaml += "    " + line + "\n"
			}
		}
	}
	if err := os.WriteFile(w.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	w.ready()
	s := w.serve()
	for _, row := range httpRows() {
		for _, allowed := range []bool{false, true} {
			if row.want(allowed) != "" {
				name := peerOf(row, allowed)
				t.Run(name, func(t *testing.T) { row.check(t, &world{t: t, dir: w.dir, file: w.file}, name, allowed, all[name]) })
			}
		}
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	w.audit()
}

func peerOf(row httpRow, allowed bool) string {
	if allowed {
		return row.name + "-legacy"
	}
	return row.name
}

func (r httpRow) check(t *testing.T, w *world, peer string, allowed bool, e *endpoint) {
	want := r.want(allowed)
	eventually(t, peer+" is "+want, func() bool { return peerOutcome(w.peer(peer)) == want })
	for i, c := range r.calls {
		if !strings.HasPrefix(want, "ready") {
			break
		}
		_, out, errs := w.run("call", "--json", "--wait", "10s", "--timeout", orElse(c.timeout, "15s"), peer+"/"+c.tool, orElse(c.args, "{}"))
		if got := ended(decode[reply](t, out)); got != c.want {
			t.Errorf("call %d of %s: %q, want %q\n%s%s", i+1, c.tool, got, c.want, out, errs)
		}
	}
	forbidden := !allowed || !strings.Contains(want, "legacy")
	if n := e.count("initialize"); forbidden && n != 0 {
		t.Errorf("received initialize %d times; it was forbidden", n)
	}
	if n := e.count("tools/call"); strings.HasPrefix(want, "unavailable") && n+e.count("tools/list") != 0 {
		t.Error("received more than a probe without a known era")
	}
	for _, p := range e.requests("server/discover") {
		if p.header.Get("Mcp-Session-Id") != "" {
			t.Error("a modern request names a session")
		}
	}
	if r.after != nil {
		r.after(t, w, peer, e)
	}
}

func peerOutcome(p domain.PeerReport) string {
	s := p.State + " " + string(p.Era)
	if p.Code != nil {
		s += " " + string(*p.Code)
	}
	return s
}

// runsAre checks how often calls were carried out.
func runsAre(n int) func(*testing.T, *world, string, *endpoint) {
	return func(t *testing.T, _ *world, _ string, e *endpoint) {
		if e.runs() != n {
			t.Errorf("%d calls were carried out, want %d", e.runs(), n)
		}
	}
}

// without: the endpoint met no request of a verb.
func without(verb string) func(*testing.T, *world, string, *endpoint) {
	return func(t *testing.T, _ *world, _ string, e *endpoint) {
		if n := e.count(verb); n != 0 {
			t.Errorf("received %d %s", n, verb)
		}
	}
}

// reasonHolds checks the words in which the peer's end is told.
func reasonHolds(words ...string) func(*testing.T, *world, string, *endpoint) {
	return func(t *testing.T, w *world, peer string, e *endpoint) {
		for _, word := range words {
			if reason := reasonOf(w.peer(peer)); !strings.Contains(reason, word) {
				t.Errorf("the reason lacks %q: %s", word, reason)
			}
		}
		without(http.MethodGet)(t, w, peer, e)
	}
}
