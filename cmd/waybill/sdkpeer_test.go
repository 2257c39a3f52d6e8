package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
)

func init() { testPeers["shifting-peer"] = shiftingPeer }

// shiftingNames are the tools that a shiftingPeer adds, redefines and removes.
var shiftingNames = strings.Fields("add book call drop edit find give hold index join keep look")

// shiftingPeer is a server of the official SDK whose tools change every few
// milliseconds, until the file it is given with .stop behind it is there. It then
// writes what it lists to that file. In the mode legacy it does not know
// server/discover, as a server does that was built before.
func shiftingPeer(args []string) int {
	mode, name, file := args[0], args[1], args[2]
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.TTLMs, c.CacheScope = 600_000, "public" }})
	p := &shifting{name: name, file: file, server: s, now: map[string]string{}, rand: rand.New(rand.NewPCG(3, uint64(len(name))))}
	for range 40 {
		p.shift()
	}
	in := bufio.NewReader(os.Stdin)
	if mode == "legacy" && !declineDiscover(in) {
		return 1
	}
	var wait sync.WaitGroup
	wait.Go(p.keepShifting)
	if err := s.Run(context.Background(), &mcp.IOTransport{Reader: io.NopCloser(in), Writer: os.Stdout}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 0
}

// declineDiscover answers the first request as a server that does not know it.
func declineDiscover(in *bufio.Reader) bool {
	line, err := in.ReadBytes('\n')
	var m rpc
	if err != nil || json.Unmarshal(line, &m) != nil || m.Method != "server/discover" {
		return false
	}
	_, err = fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`+"\n", m.ID)
	return err == nil
}

// shifting is a server with the tools it has now, by name, with their description.
type shifting struct {
	name, file string
	server     *mcp.Server
	now        map[string]string
	rand       *rand.Rand
	version    int
}

// shift changes one tool. Every third version of one asks for an argument that
// nobody gives.
func (p *shifting) shift() {
	tool := shiftingNames[p.rand.IntN(len(shiftingNames))]
	if p.rand.IntN(3) == 0 {
		p.server.RemoveTools(tool)
		delete(p.now, tool)
		return
	}
	p.version++
	about := fmt.Sprintf("version %d", p.version)
	p.now[tool] = about
	answer := fmt.Sprintf("by %s, tool %s", p.name, tool)
	reply := func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: answer}}}, nil, nil
	}
	schema := `{"type":"object"}`
	if p.version%3 == 0 {
		schema = `{"type":"object","required":["more"]}`
	}
	mcp.AddTool(p.server, &mcp.Tool{Name: tool, Description: about, InputSchema: json.RawMessage(schema)}, reply)
}

// keepShifting changes tools with pauses of up to 14 ms: what follows within 10 ms
// of a change puts off the notice of it.
func (p *shifting) keepShifting() {
	for {
		<-time.After(time.Duration(1+p.rand.IntN(14)) * time.Millisecond)
		if _, err := os.Stat(p.file + ".stop"); err == nil {
			break
		}
		p.shift()
	}
	b, err := json.Marshal(p.now)
	if err == nil {
		err = os.WriteFile(p.file+".next", b, 0o600)
	}
	if err == nil {
		err = os.Rename(p.file+".next", p.file)
	}
	if err != nil {
		leave(1)
	}
}

// shiftWorld is a service with two such peers, and what its callers were told.
type shiftWorld struct {
	*world
	mu    sync.Mutex
	ended map[string]int // replies by status and code
}

// Two servers of the official SDK, one of each era, change their tools all the time
// while callers call them: every call ends with what happened to it, none at another
// tool than its name stands for, and in the end the names are those that the servers
// list.
func TestToolsThatChangeWhileTheyAreCalled(t *testing.T) {
	t.Parallel()
	w := &shiftWorld{world: newWorld(t, ""), ended: map[string]int{}}
	self := selfScript(t)
	yaml := "nats: {listen: \"127.0.0.1:0\"}\nmoved_window: 20ms\npeers:\n"
	for name, mode := range map[string]string{"new": "modern", "old": "legacy"} {
		yaml += fmt.Sprintf("  %s:\n    command: %q\n    args: [shifting-peer, %s, %s, %q]\n    data_files: [%q]\n    allow_legacy: %v\n    list_interval: 10ms\n",
			name, self, mode, name, w.record(name), w.record(name), mode == "legacy")
	}
	if err := os.WriteFile(w.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	w.ready()
	s := w.serve()
	w.callFor(3 * time.Second)
	for _, peer := range []string{"new", "old"} {
		if err := os.WriteFile(w.record(peer)+".stop", nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the names are those that the servers list", func() bool { return w.listed("new") && w.listed("old") })
	w.eras()
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	w.audit()
	t.Logf("replies: %v; lists read: %d modern, %d legacy", w.ended, len(w.events("catalog.accepted", "new")), len(w.events("catalog.accepted", "old")))
}

// callFor has eight callers on two connections call for so long, and until something
// of every kind has happened.
func (w *shiftWorld) callFor(d time.Duration) {
	w.t.Helper()
	run, err := harness.DataDir(w.dir + "/.waybill").Running()
	if err != nil || run == nil {
		w.t.Fatal(run, err)
	}
	id, err := bus.LoadHost(run.Credentials, localHost)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	over := time.Now().Add(d)
	going := func() bool { return ctx.Err() == nil && (time.Now().Before(over) || !w.enough()) }
	var wait sync.WaitGroup
	for i := range 2 {
		client, err := bus.DialAs(w.t.Context(), id, bus.Target{URL: run.URL, Logger: slog.New(slog.DiscardHandler)}, run.Prefix)
		if err != nil {
			w.t.Fatal(err)
		}
		defer client.Close()
		for j := range 4 {
			wait.Go(func() { w.calling(going, client, rand.New(rand.NewPCG(5, uint64(4*i+j)))) })
		}
	}
	wait.Wait()
	if !w.enough() {
		w.t.Errorf("little has happened: %v", w.ended)
	}
}

func (w *shiftWorld) enough() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended["complete"] >= 100 && w.ended["refused unknown_tool"] > 0 && w.ended["protocol_error peer_error"] > 0 && w.ended["tool_error tool_error"] > 0
}

func (w *shiftWorld) calling(going func() bool, client *bus.Client, r *rand.Rand) {
	for going() {
		name := shiftingNames[r.IntN(len(shiftingNames))]
		if n := r.IntN(3); n > 0 {
			name = []string{"new/", "old/"}[n-1] + name
		}
		patient, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		b, _, err := client.Request(patient, "call", fmt.Appendf(nil, `{"tool":%q,"arguments":{}}`, name))
		cancel()
		var d reply
		if err == nil {
			err = json.Unmarshal(b, &d)
		}
		if err != nil {
			w.t.Errorf("a call of %s: %v: %s", name, err, b)
			return
		}
		w.told(name, d)
	}
}

// told checks a reply: it is of the tool that the name stood for, or says why not.
func (w *shiftWorld) told(name string, d reply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	how := d.Status
	if d.Code != nil {
		how += " " + *d.Code
	}
	w.ended[how]++
	// tool_error and peer_error: the server has another definition by now, or none.
	may := []string{"complete", "tool_error tool_error", "protocol_error peer_error", "refused unknown_tool", "refused name_moved"}
	if !slices.Contains(may, how) {
		w.t.Errorf("a call of %s ended %s: %+v", name, how, d)
	}
	if d.Route == nil {
		if d.Status != "refused" {
			w.t.Errorf("a call of %s went nowhere: %+v", name, d)
		}
		return
	}
	if at := *d.Route; name != at.Local && name != at.Peer+"/"+at.Local {
		w.t.Errorf("a call of %s went to %s of %s", name, at.Local, at.Peer)
	}
	if want := fmt.Sprintf("by %s, tool %s", d.Route.Peer, d.Route.Local); d.Status == "complete" && !strings.Contains(string(d.Result), want) {
		w.t.Errorf("a call of %s was answered with %s, want %s", name, d.Result, want)
	}
}

// listed reports whether the tools of a peer are those that it says it has.
func (w *shiftWorld) listed(peer string) bool {
	w.t.Helper()
	b, err := os.ReadFile(w.record(peer))
	if err != nil {
		return false
	}
	want := decode[map[string]string](w.t, string(b))
	have := w.own(peer)
	for _, e := range have {
		var d struct{ Name, Description string }
		if err := json.Unmarshal(e.Definition, &d); err != nil || d.Name != e.Local || d.Description != want[e.Local] {
			return false
		}
	}
	return len(have) == len(want) && len(want) > 0
}

// eras checks that each peer was spoken to in its own way.
func (w *shiftWorld) eras() {
	w.t.Helper()
	modern, legacy := w.peer("new"), w.peer("old")
	if modern.Era != domain.EraModern || modern.Lists[0].Subscription != "active" || len(w.events("subscription.requested", "new")) != 1 {
		w.t.Errorf("%+v", modern)
	}
	if legacy.Era != domain.EraLegacy || len(w.events("subscription.requested", "old")) != 0 {
		w.t.Errorf("%+v", legacy)
	}
	for _, peer := range []string{"new", "old"} {
		if n := len(w.events("list.changed", peer)); n < 2 {
			w.t.Errorf("%s announced changes %d times", peer, n)
		}
	}
}
