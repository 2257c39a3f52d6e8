package domain

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// world drives a State as the service would: it feeds observations and keeps
// what was decided and what was ordered. Its clock moves only when told.
type world struct {
	t     testing.TB
	s     *State
	now   int64
	log   []Event
	sends []Send // every request ordered so far
}

func newWorld(t testing.TB) *world { return &world{t: t, s: NewState(), now: 1_000_000_000} }

// see feeds one observation and returns the decisions it led to.
func (w *world) see(d Data, evidence ...string) []Event {
	o := Event{Time: w.now, Mono: w.now, Data: d}
	if len(evidence) > 0 {
		o.Evidence = []byte(evidence[0])
	}
	out := w.s.Step(o)
	w.log = append(w.log, out...)
	for _, e := range out {
		for _, effect := range Effects(e) {
			if x, ok := effect.(Send); ok {
				w.sends = append(w.sends, x)
			}
		}
	}
	return out[1:]
}

// start feeds the start of a service under a configuration.
func (w *world) start(c Config) []Event {
	w.t.Helper()
	ended := w.see(ServiceStarted{Version: "test", Rules: RulesVersion})
	return append(ended, w.load(c)...)
}

func (w *world) load(c Config) []Event {
	w.t.Helper()
	b, err := EncodeConfig(c)
	if err != nil {
		w.t.Fatalf("encode the configuration: %v", err)
	}
	return w.see(ConfigLoaded{Config: RefTo(b), Peers: len(c.Peers)}, string(b))
}

// at is the present incarnation of a peer.
func (w *world) at(peer string) At {
	w.t.Helper()
	p := w.s.Peer(peer)
	if p == nil {
		w.t.Fatalf("no peer %q is configured", peer)
	}
	return p.at()
}

func (w *world) spawned(peer string) []Event { return w.see(PeerSpawned{At: w.at(peer), PID: 7}) }

// last is the request of a peer that was ordered last.
func (w *world) last(peer string) Send {
	w.t.Helper()
	for i := len(w.sends) - 1; i >= 0; i-- {
		if w.sends[i].Peer == peer {
			return w.sends[i]
		}
	}
	w.t.Fatalf("nothing was sent to %q", peer)
	return Send{}
}

// frame puts the ids of the peer's requests into a frame: $ID is that of the
// last one, $FIRST that of its first server/discover.
func (w *world) frame(peer, frame string) string {
	if !strings.Contains(frame, "$") {
		return frame
	}
	frame = strings.ReplaceAll(frame, "$ID", fmt.Sprint(w.last(peer).RequestID))
	for _, x := range w.sends {
		if x.Peer == peer && x.Method == MethodDiscover {
			return strings.ReplaceAll(frame, "$FIRST", fmt.Sprint(x.RequestID))
		}
	}
	return frame
}

// probed feeds a frame that comes before the era is known.
func (w *world) probed(peer, frame string) []Event {
	f := w.frame(peer, frame)
	return w.see(ProbeAnswered{At: w.at(peer), Frame: RefTo([]byte(f))}, f)
}

// listed feeds an answer to the tools/list ordered last.
func (w *world) listed(peer, frame string) []Event {
	f := w.frame(peer, frame)
	return w.see(CatalogListed{At: w.at(peer), RequestID: w.last(peer).RequestID, Frame: RefTo([]byte(f))}, f)
}

func (w *world) silent(peer string) []Event {
	x := w.last(peer)
	return w.see(DeadlinePassed{At: x.At, RequestID: x.RequestID})
}

func (w *world) exited(peer string) []Event {
	return w.see(PeerExited{At: w.at(peer), Status: 1, Cause: "exited"})
}

// ready brings a modern peer up with these tools.
func (w *world) ready(peer string, tools ...string) []Event {
	w.spawned(peer)
	w.probed(peer, discoverResult)
	return w.listed(peer, toolList(tools...))
}

// listTools lists everything that the default context can call.
func listTools(s *State) ToolList { return s.Tools("", "", 0, 0) }

func (w *world) call(id, tool string) []Event {
	return w.see(CallReceived{CallID: CallID{Host: "local", ID: id}, Tool: tool, Arguments: Payload{Size: 2}})
}

// count counts the requests with a method.
func (w *world) count(method string) int {
	n := 0
	for _, x := range w.sends {
		if x.Method == method {
			n++
		}
	}
	return n
}

// Frames that peers say.
const (
	discoverResult = `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":1000,"cacheScope":"public"}}`
	noToolsResult  = `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":1000,"cacheScope":"public"}}`
	legacyResult   = `{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"archive","version":"1"}}}`
	notFound       = `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"method not found"}}`
)

// toolList is a modern, public answer to tools/list with nothing after it.
func toolList(names ...string) string {
	return listPage(`,"resultType":"complete","ttlMs":1000,"cacheScope":"public"`, names...)
}

func listPage(more string, names ...string) string {
	defs := make([]string, 0, len(names))
	for _, n := range names {
		defs = append(defs, toolDef(n))
	}
	return `{"jsonrpc":"2.0","id":$ID,"result":{"tools":[` + strings.Join(defs, ",") + `]` + more + `}}`
}

func toolDef(name string) string {
	quoted, err := json.Marshal(name)
	if err != nil {
		return ""
	}
	return `{"name":` + string(quoted) + `,"inputSchema":{"type":"object"}}`
}

// testPeer is a pinned peer as the configuration's defaults make it.
func testPeer(name string) PeerConfig {
	return PeerConfig{Name: name, Transport: "stdio", Command: name + "-server", Pin: "pin-" + name,
		LegacyRevisions: LegacyRevisions, ProbeTimeout: 10_000, LegacyProbeTimeout: 5_000, CallTimeout: 60_000,
		Capabilities: []byte(`{}`)}
}

func testConfig(policy string, peers ...string) Config {
	c := Config{Node: "local", Collision: policy, Separator: "/", Inflight: 8}
	for _, name := range peers {
		c.Peers = append(c.Peers, testPeer(name))
	}
	return c
}

// find returns the data of the first event of a type, and whether there is one.
func find[D Data](events []Event) (d D, ok bool) {
	for _, e := range events {
		if x, is := e.Data.(D); is {
			return x, true
		}
	}
	return d, false
}

// must is find where there has to be one.
func must[D Data](t testing.TB, events []Event) D {
	t.Helper()
	d, ok := find[D](events)
	if !ok {
		t.Fatalf("no %s among %v", d.Kind(), kinds(events))
	}
	return d
}

// all returns the data of every event of a type.
func all[D Data](events []Event) []D {
	var out []D
	for _, e := range events {
		if x, is := e.Data.(D); is {
			out = append(out, x)
		}
	}
	return out
}

func kinds(events []Event) []string {
	out := make([]string, 0, len(events))
	for _, e := range events {
		out = append(out, e.Data.Kind())
	}
	return out
}

// sameKinds checks which decisions an observation led to, in order.
func sameKinds(t testing.TB, events []Event, want ...string) {
	t.Helper()
	if got := strings.Join(kinds(events), " "); got != strings.Join(want, " ") {
		t.Fatalf("decided [%s], want %v", got, want)
	}
}

// facts renders what an event says as JSON, for comparison.
func facts(t testing.TB, d Data) string {
	t.Helper()
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatalf("%s: %v", d.Kind(), err)
	}
	return d.Kind() + " " + string(b)
}
