//go:build interop

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpgo "github.com/mark3labs/mcp-go/server"

	"waybill/domain"
)

func init() {
	testPeers["mcp-go-peer"] = func([]string) int {
		s := mcpgo.NewMCPServer("interop-mcp-go", "1.0.0", mcpgo.WithToolCapabilities(false))
		s.AddTool(mcp.NewTool("greet", mcp.WithString("name", mcp.Required())),
			func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("hello " + r.GetString("name", "nobody")), nil
			})
		if mcpgo.ServeStdio(s) != nil {
			return 1
		}
		return 0
	}
}

// modules returns the folder of the installed npm packages. Without it there is
// nothing to test, and that is a failure.
func modules(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("WAYBILL_INTEROP")
	if _, err := os.Stat(filepath.Join(dir, ".bin")); dir == "" || err != nil {
		t.Fatalf("WAYBILL_INTEROP=%q is no folder of installed npm packages: see .ci/run", dir)
	}
	return dir
}

// interopWorld writes a configuration of real servers: three legacy ones of npm,
// and modern ones written with the official Go SDK, mcp-go and the npm SDK.
func interopWorld(t *testing.T) *world {
	t.Helper()
	dir := modules(t)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir()}
	w.file = filepath.Join(w.dir, "waybill.yaml")
	files := filepath.Join(w.dir, "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(files, "hello.txt"), []byte("good day"), 0o600); err != nil {
		t.Fatal(err)
	}
	entry := func(name string, args ...string) string {
		return fmt.Sprintf("  %s:\n    command: %q\n    args: [%q, %s]\n    env: [PATH]\n    allow_legacy: true\n    probe_timeout: 30s\n    legacy_probe_timeout: 30s\n",
			name, node, filepath.Join(dir, "@modelcontextprotocol", "server-"+name, "dist", "index.js"), strings.Join(args, ", "))
	}
	yaml := "nats: {listen: \"127.0.0.1:0\"}\npeers:\n" + entry("filesystem", fmt.Sprintf("%q", files)) + entry("memory") +
		fmt.Sprintf("    set: {MEMORY_FILE_PATH: %q}\n", filepath.Join(w.dir, "memory.jsonl")) +
		entry("everything", "stdio") +
		fmt.Sprintf("  shout:\n    command: %q\n    args: [%q]\n    env: [PATH]\n    probe_timeout: 30s\n", node, filepath.Join(filepath.Dir(dir), "modern.mjs")) +
		fmt.Sprintf("  mcpgo:\n    command: %q\n    args: [mcp-go-peer]\n", self) +
		fmt.Sprintf("  notes:\n    command: %q\n    args: [demo-peer, notes]\n", self)
	if err := os.WriteFile(w.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return w.ready()
}

func TestInteropErasAreWhatTheyShouldBe(t *testing.T) {
	w := interopWorld(t)
	r := decode[domain.Report](t, w.must(exitDone, "check", "--json"))
	want := map[string]string{"filesystem": "legacy 2025-11-25", "memory": "legacy 2025-11-25", "notes": "modern 2026-07-28",
		"everything": "legacy 2025-11-25", "shout": "modern 2026-07-28", "mcpgo": "modern 2026-07-28"}
	for _, p := range r.Peers {
		if got := string(p.Era) + " " + *p.Version; got != want[p.Name] || len(p.Tools) == 0 {
			t.Errorf("%s: %s with %d tools, want %s", p.Name, got, len(p.Tools), want[p.Name])
		}
	}
	w.audit()
}

func TestInteropCallsAreAnswered(t *testing.T) {
	w := interopWorld(t)
	s := w.serve()
	for _, c := range []struct{ tool, args, want string }{
		{"read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(w.dir, "files", "hello.txt")), "good day"},
		{"create_entities", `{"entities":[{"name":"tea","entityType":"drink","observations":["warm"]}]}`, "tea"},
		{"read_graph", `{}`, "warm"},
		{"search", `{"query":"tea"}`, "2 notes"},
		{"shout", `{"text":"tea"}`, "TEA"},
		{"greet", `{"name":"tea"}`, "hello tea"},
		{"echo", `{"message":"tea"}`, "tea"},
	} {
		r := decode[reply](t, w.must(exitDone, "call", "--json", c.tool, c.args))
		if !strings.Contains(string(r.Result), c.want) {
			t.Errorf("%s: %s", c.tool, r.Result)
		}
	}
	w.must(exitToolError, "call", "read_text_file", `{"path":"/nowhere/at/all"}`)
	for peer, want := range map[string]string{"notes": "active", "shout": "active", "mcpgo": "none", "everything": "none"} {
		if l := w.peer(peer).Lists[0]; l.Subscription != want {
			t.Errorf("%s: %+v, want the subscription %s", peer, l, want)
		}
	}
	s.cmd.Process.Signal(os.Interrupt)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("serve: %v", err)
	}
	w.audit()
	if left := processesWith(t, w.dir); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}
