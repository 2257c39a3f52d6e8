package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// pipePeer is an MCP server of ours with the fault of one row. It notes each
// line it receives in a file ("got"), as scriptedPeer does. Its tools are echo
// and leave, which ends it without an answer.
func pipePeer(args []string) int {
	if args[0] == "helper" {
		stay()
		return 0
	}
	// A row is about the first life: what is started again after it is silent.
	if b, _ := os.ReadFile(args[1]); strings.Contains(string(b), `"tools/list"`) {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	}
	f, err := os.OpenFile(args[1], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	for _, row := range pipeRows() {
		if row.name == args[0] {
			return (&pipeScript{row: row, note: f}).run(os.Stdin)
		}
	}
	return 1
}

// pipeScript is a running pipePeer.
type pipeScript struct {
	row   pipeRow
	note  io.Writer
	calls int   // of echo
	held  []rpc // calls that wait for an answer, where the fault wants that
	deaf  bool  // reads no more
}

func (p *pipeScript) run(in io.Reader) int {
	if p.row.start != nil {
		p.row.start(p)
	}
	lines := bufio.NewReader(in)
	for !p.deaf {
		line, err := lines.ReadString('\n')
		if err != nil {
			return 0
		}
		fmt.Fprintf(p.note, "got %s", line)
		var m rpc
		if json.Unmarshal([]byte(line), &m) != nil {
			return 1
		}
		p.take(m)
	}
	stay()
	return 0
}

// stay waits for a signal that ends the process.
func stay() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	<-c
}

func (p *pipeScript) take(m rpc) {
	say := p.row.any
	switch {
	case m.ID == nil && p.row.heard != nil:
		p.row.heard(p, m)
		return
	case m.ID == nil || m.Method == "":
		return
	case m.Method == "tools/call" && m.Params.Name == "leave":
		leave(0)
	case m.Method == "tools/call":
		p.calls++
		if p.row.call != nil {
			say = p.row.call
		}
	case m.Method == "tools/list" && p.row.list != nil:
		say = p.row.list
	case m.Method == "server/discover" && p.row.probe != nil:
		say = p.row.probe
	}
	if say == nil {
		say = func(p *pipeScript, _ rpc, frame string) { p.line(frame) }
	}
	say(p, m, p.frame(m))
}

// frame is the right answer, without its terminator.
func (p *pipeScript) frame(m rpc) string {
	if p.row.legacy && m.Method == "server/discover" {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, m.ID)
	}
	return answer(string(m.ID), p.result(m))
}

func answer(id, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func (p *pipeScript) result(m rpc) string {
	kind, hints := `"resultType":"complete",`, `,"ttlMs":60000,"cacheScope":"public"`
	if p.row.legacy {
		kind, hints = "", ""
	}
	switch m.Method {
	case "server/discover":
		return `{` + kind + `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}` + hints + `}`
	case "initialize":
		return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"piped","version":"1"}}`
	case "tools/list":
		return `{` + kind + `"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"leave","inputSchema":{"type":"object"}}]` + hints + `}`
	}
	return `{` + kind + `"content":[],"structuredContent":` + string(m.Params.Arguments) + `}`
}

// text is an answer with a text in it, which must be good between quotes.
func (p *pipeScript) text(m rpc, s string) string {
	return answer(string(m.ID), `{"resultType":"complete","content":[{"type":"text","text":"`+s+`"}]}`)
}

// sized is an answer that is, with its newline, of the size that the arguments
// ask for.
func (p *pipeScript) sized(m rpc) string {
	var a struct{ Size int }
	if json.Unmarshal(m.Params.Arguments, &a) != nil {
		leave(1)
	}
	return p.text(m, strings.Repeat("b", max(0, a.Size-1-len(p.text(m, "")))))
}

// write writes to standard output as it is: one write, unless the pipe is full.
func (p *pipeScript) write(s string) {
	if _, err := io.WriteString(os.Stdout, s); err != nil {
		leave(1)
	}
}

func (p *pipeScript) line(s string) { p.write(s + "\n") }

// once answers the first call with what first makes of it, and the others well.
func once(first func(p *pipeScript, m rpc, frame string) string) func(*pipeScript, rpc, string) {
	return func(p *pipeScript, m rpc, frame string) {
		if p.calls == 1 {
			frame = first(p, m, frame)
		}
		p.line(frame)
	}
}

// inTurn answers the nth call with the nth of the frames; @ in it stands for the
// id. The calls after those are answered well.
func inTurn(frames ...string) func(*pipeScript, rpc, string) {
	return func(p *pipeScript, m rpc, frame string) {
		if p.calls <= len(frames) {
			frame = strings.ReplaceAll(frames[p.calls-1], "@", string(m.ID))
		}
		p.line(frame)
	}
}

// leaveHelper starts a process that keeps the pipes, and ends. The helper is in
// a session of its own where it shall outlive its group.
func leaveHelper(apart bool) func(*pipeScript, rpc, string) {
	return func(p *pipeScript, _ rpc, _ string) {
		self, err := os.Executable()
		if err != nil {
			leave(1)
		}
		cmd := exec.Command(self, "pipe-peer", "helper", os.Args[3])
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: apart}
		if err := cmd.Start(); err != nil {
			fmt.Fprintf(p.note, "failed %v\n", err)
			leave(1)
		}
		fmt.Fprintf(p.note, "helper %d\n", cmd.Process.Pid)
		leave(0)
	}
}
