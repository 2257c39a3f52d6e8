//go:build interop

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"waybill/domain"
)

// webWorld writes a configuration with one peer at a URL, and lines added to its entry.
func webWorld(t *testing.T, url string, more ...string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.file = filepath.Join(w.dir, "waybill.yaml")
	yaml := fmt.Sprintf("nats: {listen: \"127.0.0.1:0\"}\npeers:\n  web:\n    transport: http\n    endpoint: %q\n", url)
	for _, line := range more {
		yaml += "    " + line + "\n"
	}
	if err := os.WriteFile(w.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return w.ready()
}

// answer calls a tool, which must answer with a text.
func (w *world) answer(tool, args, want string) {
	w.t.Helper()
	if r := decode[reply](w.t, w.must(exitDone, "call", "--json", tool, args)); !strings.Contains(string(r.Result), want) {
		w.t.Errorf("%s %s: %s, want %q", tool, args, r.Result, want)
	}
}

// modernServers are two, written with the official SDKs, each with the same tools.
var modernServers = map[string]func(*testing.T) *foreign{"go-sdk": startGoSDK, "npm": startNPM}

// What a service does with a server: calls, headers, progress, a call that is given
// up, a list that changes.
func TestInteropModernServersOverHTTP(t *testing.T) {
	for name, start := range modernServers {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			w := webWorld(t, server.url())
			s := w.serve()
			p := w.peer("web")
			if p.Era != domain.EraModern || p.State != "ready" || *p.Version != "2026-07-28" || len(p.Tools) != 6 {
				t.Fatalf("%+v", p)
			}
			w.answer("shout", `{"text":"tea"}`, "TEA")
			w.headers()
			w.progress()
			w.cancelled(server)
			w.grows()
			if code := s.stop(syscall.SIGTERM); code != exitDone {
				t.Errorf("serve ended with %d", code)
			}
			w.audit()
		})
	}
}

func startGoSDK(t *testing.T) *foreign {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startForeign(t, nil, self, "go-sdk-http", "stateless")
}

func startNPM(t *testing.T) *foreign {
	t.Helper()
	return startForeign(t, nil, machineNode(t), filepath.Join(filepath.Dir(modules(t)), "modern-http.mjs"))
}

func machineNode(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// headers calls the tool whose arguments also stand in headers, which both SDKs check:
// values that a header holds, values that it does not, values that are not there. Then
// the schema asks for another header; the call that does not know is refused before it
// runs, and sent again as the new list says.
func (w *world) headers() {
	w.t.Helper()
	w.answer("weigh", `{"place":"Ulm","grams":5,"fresh":true,"note":"no header"}`, "Ulm 5 true")
	w.answer("weigh", `{"place":" Zürich\r\nMcp-Method: x ","grams":-9007199254740991,"fresh":false}`, `Mcp-Method: x  -9007199254740991 false`)
	w.answer("weigh", `{"place":"=?base64?VWxt?="}`, "=?base64?VWxt?=")
	w.answer("relabel", `{}`, "relabelled")
	w.answer("weigh", `{"place":"Bern","grams":1}`, "Bern 1")
}

// progress asks for the progress of a call.
func (w *world) progress() {
	w.t.Helper()
	code, out, errs := w.run("call", "--json", "--progress", "count", `{"to":3}`)
	if code != exitDone || !strings.Contains(out, "counted to 3") || !strings.Contains(errs, `progress {"progress":1,"total":3`) {
		w.t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// cancelled gives up a call: the server, which hears nothing but that its stream is
// closed, gives it up too.
func (w *world) cancelled(server *foreign) {
	w.t.Helper()
	var wait sync.WaitGroup
	var code int
	var out, errs bytes.Buffer
	wait.Go(func() { code = run([]string{"call", "-c", w.file, "--json", "--call-id", "mine", "wait"}, &out, &errs) })
	server.says("waiting\n")
	w.must(exitDone, "calls", "cancel", "mine")
	wait.Wait()
	if r := decode[reply](w.t, out.String()); code != exitCancelled || r.Ran == "no" {
		w.t.Errorf("exit %d, %+v\n%s", code, r, errs.String())
	}
	server.says("given up\n")
}

// grows has the server announce a tool, which is then there.
func (w *world) grows() {
	w.t.Helper()
	if l := w.peer("web").Lists[0]; l.Subscription != "active" {
		w.t.Errorf("%+v", l)
	}
	w.answer("grow", `{}`, "grown")
	eventually(w.t, "the tool more is there", func() bool {
		return slices.ContainsFunc(w.own("web"), func(e domain.ToolEntry) bool { return e.Local == "added" })
	})
	w.answer("added", `{}`, "here")
	if n := len(w.events("list.changed", "web")); n == 0 {
		w.t.Error("no change was announced")
	}
}

// An empty argument stands in its header too. The Go SDK takes a header without a
// value for none, and both SDKs take an empty value that is encoded.
func TestInteropEmptyValueInAHeader(t *testing.T) {
	for name, start := range modernServers {
		t.Run(name, func(t *testing.T) {
			w := webWorld(t, start(t).url())
			s := w.serve()
			w.answer("weigh", `{"place":""}`, `"text":" `)
			if code := s.stop(syscall.SIGTERM); code != exitDone {
				t.Errorf("serve ended with %d", code)
			}
			w.audit()
		})
	}
}

// A tool whose headers are asked for otherwise than the list said is sent again, once,
// when the server announces nothing.
func TestInteropHeadersThatChangeUnannounced(t *testing.T) {
	w := webWorld(t, startNPM(t).url())
	s := w.serve()
	w.answer("weigh", `{"place":"Ulm"}`, "Ulm")
	w.answer("relabel", `{}`, "relabelled")
	r := decode[reply](t, w.must(exitDone, "call", "--json", "--call-id", "again", "weigh", `{"place":"Bern"}`))
	if !strings.Contains(string(r.Result), "Bern") {
		t.Errorf("%s", r.Result)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	if got := w.callEvents("local/again"); !slices.Contains(got, "call.resent") {
		t.Errorf("%v", got)
	}
	w.audit()
}

// A stateful server of the Go SDK knows server/discover and offers legacy revisions
// only. That closes, also where allow_legacy is set: a server that knows the modern
// vocabulary is not taken back to a handshake.
func TestInteropStatefulGoSDKServerIsRefused(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := startForeign(t, nil, self, "go-sdk-http", "stateful")
	for _, more := range [][]string{nil, {"allow_legacy: true"}} {
		w := webWorld(t, server.url(), more...)
		p := decode[domain.Report](t, w.must(exitSomeNotReady, "check", "--json")).Peers[0]
		if p.Era != domain.EraUnknown || p.Code == nil || *p.Code != domain.CodeNoCommonVersion || p.Reason == nil {
			t.Fatalf("%+v", p)
		}
		want := `the server offers only "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", which are legacy revisions, and knows the modern vocabulary; no common modern version, and no downgrade is made`
		if *p.Reason != want {
			t.Errorf("the reason is %s\nwant %s", *p.Reason, want)
		}
		w.audit()
	}
}

// A server from before, with a session: calls, progress on the stream of a call, the
// stream for what the server says unasked, and the end of the session.
func TestInteropLegacyServerOverHTTP(t *testing.T) {
	port := freePort(t)
	server := startForeign(t, []string{"PORT=" + port}, machineNode(t),
		filepath.Join(modules(t), "@modelcontextprotocol", "server-everything", "dist", "index.js"), "streamableHttp")
	server.says("listening on port " + port)
	w := webWorld(t, "http://127.0.0.1:"+port+"/mcp", "allow_legacy: true")
	s := w.serve()
	if p := w.peer("web"); p.Era != domain.EraLegacy || p.State != "ready" || *p.Version != "2025-11-25" || len(p.Tools) < 8 {
		t.Fatalf("%+v", p)
	}
	w.answer("echo", `{"message":"tea"}`, "tea")
	w.answer("get-sum", `{"a":2,"b":3}`, "5")
	code, out, errs := w.run("call", "--json", "--progress", "trigger-long-running-operation", `{"duration":0.4,"steps":4}`)
	if code != exitDone || !strings.Contains(errs, `progress {"progress":1,"total":4`) {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	server.says("Establishing new SSE stream for session")
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	server.says("Received session termination request")
	if n := strings.Count(server.out.String(), "Session initialized with ID"); n != 1 {
		t.Errorf("%d sessions were begun", n)
	}
	w.audit()
}

// freePort is a port that nobody listens on: this server takes a number only.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
