package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// scriptedPeer is an MCP server of ours that notes each line it receives
// ("got") and each call it runs ("ran") in a file. Its modes are modern, legacy,
// refusing (an unknown error to everything), silent (never answers), mute (a
// legacy one that does not answer what it does not know), leaving (one that exits
// then), vast (a modern one with 20,000 more tools) and fire (a modern one with the
// tools of fireTools, that notes its "pid" and ends at once while the file beside
// its record that ends in .down is there).
func scriptedPeer(args []string, in io.Reader, out io.Writer) int {
	mode, file := args[0], args[1]
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	p := &peerScript{mode: mode, file: file, note: f, out: out}
	if mode == "fire" {
		fmt.Fprintf(f, "pid %d\n", os.Getpid())
		if _, err := os.Stat(file + ".down"); err == nil {
			fmt.Fprintln(os.Stderr, "down")
			return 7
		}
	}
	if len(args) > 2 {
		p.mode, p.awaits = "modern", args[2]
	}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return 0
		}
		if !p.take(strings.TrimSuffix(line, "\n")) {
			return 3
		}
	}
}

type peerScript struct {
	mode   string
	file   string
	awaits string // a file in which another peer must have noted its probe before ours is answered
	note   io.Writer
	mu     sync.Mutex
	out    io.Writer
}

type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Input     json.RawMessage `json:"inputResponses"`
		State     json.RawMessage `json:"requestState"`
		Cursor    *string         `json:"cursor"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

// take handles one line; false ends the process.
func (p *peerScript) take(line string) bool {
	fmt.Fprintf(p.note, "got %s\n", line)
	var m rpc
	if json.Unmarshal([]byte(line), &m) != nil || m.ID == nil {
		return true
	}
	switch {
	case p.mode == "silent":
		return true
	case p.mode == "refusing":
		p.fail(m, -32601, "unknown")
		return true
	case m.Method == "server/discover" && p.mode == "leaving":
		return false
	case m.Method == "server/discover" && p.mode == "mute":
		return true
	case m.Method == "server/discover" && p.mode == "legacy":
		p.fail(m, -32601, "unknown")
		return true
	}
	return p.answer(m)
}

func (p *peerScript) answer(m rpc) bool {
	switch m.Method {
	case "server/discover":
		p.await()
		p.say(m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":60000,"cacheScope":"public"}`)
	case "initialize":
		p.say(m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}`)
	case "tools/list":
		p.say(m, p.list())
	case "tools/call":
		return p.call(m)
	default:
		p.fail(m, -32601, "unknown")
	}
	return true
}

// await waits for the other peer's probe, if it is to.
func (p *peerScript) await() {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for p.awaits != "" {
		if b, _ := os.ReadFile(p.awaits); strings.Contains(string(b), "server/discover") {
			return
		}
		<-tick.C
	}
}

func (p *peerScript) modern() bool { return p.mode == "modern" || p.mode == "vast" || p.mode == "fire" }

func (p *peerScript) list() string {
	var tools []string
	names := []string{"echo", "fail", "rpc_error", "hang", "untyped", "ask", "big", "leave", "slow"}
	for i := 0; p.mode == "vast" && i < 20_000; i++ {
		names = append(names, fmt.Sprintf("tool-%05d-%s", i, strings.Repeat("x", 40)))
	}
	for _, name := range names {
		tools = append(tools, `{"name":"`+name+`","description":"A tool.","inputSchema":{"type":"object"}}`)
	}
	if p.mode == "fire" {
		tools = append(tools, fireTools...)
	}
	list := `"tools":[` + strings.Join(tools, ",") + `]`
	if p.modern() {
		return `{"resultType":"complete",` + list + `,"ttlMs":60000,"cacheScope":"public"}`
	}
	return `{` + list + `}`
}

// call runs a tool. The run is noted before anything is answered.
func (p *peerScript) call(m rpc) bool {
	fmt.Fprintf(p.note, "ran %s %s\n", m.Params.Name, m.Params.Arguments)
	kind := `"resultType":"complete",`
	if !p.modern() {
		kind = ""
	}
	switch m.Params.Name {
	case "echo":
		p.say(m, `{`+kind+`"content":[],"structuredContent":`+string(m.Params.Arguments)+`}`)
	case "fail":
		p.say(m, `{`+kind+`"content":[{"type":"text","text":"no"}],"isError":true}`)
	case "rpc_error":
		p.fail(m, -32603, "broken inside")
	case "untyped":
		p.say(m, `{"content":[]}`)
	case "ask":
		p.say(m, `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}},"requestState":"s"}`)
	case "big":
		p.say(m, `{`+kind+`"content":[{"type":"text","text":"`+strings.Repeat("x", 2<<20)+`"}]}`)
	case "leave":
		return false
	default:
		return p.fire(m)
	}
	return true
}

// fireTools: tell reports progress, confirm asks for input, once ends the process
// the first time it runs, odd breaks its outputSchema.
var fireTools = []string{
	`{"name":"tell","inputSchema":{"type":"object"}}`, `{"name":"confirm","inputSchema":{"type":"object"}}`,
	`{"name":"once","inputSchema":{"type":"object"}}`,
	`{"name":"odd","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["sum"]}}`,
}

func (p *peerScript) fire(m rpc) bool {
	switch m.Params.Name {
	case "tell":
		for _, far := range []string{`"progress":0.5`, `"progress":1,"total":2,"message":"half"`} {
			if m.Params.Meta.Token != nil {
				p.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(m.Params.Meta.Token) + `,` + far + `}}`)
				<-time.After(150 * time.Millisecond) // faster progress is thinned out
			}
		}
		p.say(m, `{"resultType":"complete","content":[]}`)
	case "confirm":
		if m.Params.Input == nil {
			p.say(m, `{"resultType":"input_required","inputRequests":{"sure":{"method":"elicitation/create","params":{"mode":"form",`+
				`"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}},"requestState":"round \"1\""}`)
			return true
		}
		p.say(m, `{"resultType":"complete","content":[],"structuredContent":{"input":`+string(m.Params.Input)+`,"state":`+string(m.Params.State)+`}}`)
	case "once":
		if b, _ := os.ReadFile(p.file); strings.Count(string(b), "ran once ") == 1 {
			return false
		}
		p.say(m, `{"resultType":"complete","content":[]}`)
	case "odd":
		p.say(m, `{"resultType":"complete","content":[],"structuredContent":{"total":1}}`)
	}
	return true
}

func (p *peerScript) say(m rpc, result string) {
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
}

func (p *peerScript) fail(m rpc, code int, text string) {
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, text))
}

func (p *peerScript) write(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(line) < 1<<16 {
		fmt.Fprintf(p.note, "said %s\n", line)
	}
	_, _ = io.WriteString(p.out, line+"\n")
}
