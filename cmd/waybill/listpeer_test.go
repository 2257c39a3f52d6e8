package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

func init() { testPeers["listing-peer"] = listingPeer }

// listingPeer is an MCP server of ours that lists as one row says, which it finds by
// the name of the peer. It notes each line it receives ("got") and each call it runs
// ("ran") in a file. Beside it stands the number of the version that it lists, for
// rows with several: a call of change sets it and announces the change.
func listingPeer(args []string) int {
	f, err := os.OpenFile(args[1], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	for _, row := range allListRows() {
		if row.peer == args[0] {
			return (&listScript{row: row, file: args[1], note: f, out: os.Stdout}).run(os.Stdin)
		}
	}
	return 1
}

// listScript is a running listingPeer.
type listScript struct {
	row   listRow
	file  string
	note  io.Writer
	out   io.Writer
	lists int    // tools/list that came
	subs  int    // subscriptions/listen that came
	sub   string // the last of them, while it is open
}

func (p *listScript) run(in io.Reader) int {
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return 0
		}
		fmt.Fprintf(p.note, "got %s", line)
		var m rpc
		if json.Unmarshal([]byte(line), &m) == nil && m.ID != nil {
			p.take(m)
		}
	}
}

func (p *listScript) take(m rpc) {
	switch {
	case m.Method == "server/discover" && p.row.legacy:
		p.fail(m, -32601)
	case m.Method == "server/discover":
		p.answer(m, `"supportedVersions":["2026-07-28"],"capabilities":`+p.capabilities()+`,"ttlMs":60000,"cacheScope":"public"`)
	case m.Method == "initialize":
		p.answer(m, `"protocolVersion":"2025-11-25","capabilities":`+p.capabilities()+`,"serverInfo":{"name":"listing","version":"1"}`)
	case m.Method == "tools/list":
		if p.lists++; p.row.hangs == nil || !p.row.hangs(p, m) {
			p.answer(m, p.list(m))
		}
	case m.Method == "subscriptions/listen" && p.row.listen != nil:
		p.subs, p.sub = p.subs+1, string(m.ID)
		p.row.listen(p, m)
	case m.Method == "tools/call":
		p.call(m)
	default:
		p.fail(m, -32601)
	}
}

func (p *listScript) capabilities() string {
	return fmt.Sprintf(`{"tools":{"listChanged":%v}}`, p.row.listen != nil || p.row.announces)
}

// list is the members of a page.
func (p *listScript) list(m rpc) string {
	if p.row.list != nil {
		return p.row.list(p, m)
	}
	return onePage(p.row.tools...)
}

// onePage is a list in one page that stays fresh.
func onePage(tools ...string) string { return page("public", 600_000, "", tools...) }

// page is the members of a page; more is what else stands in it, behind a comma.
func page(scope string, ttl int, more string, tools ...string) string {
	return fmt.Sprintf(`"tools":[%s],"ttlMs":%d,"cacheScope":%q%s`, strings.Join(tools, ","), ttl, scope, more)
}

// tool is a definition with nothing in it.
func tool(name string) string { return toolWith(name, "A tool.", "") }

// toolWith is a definition; more is what else stands in it, behind a comma.
func toolWith(name, about, more string) string {
	return fmt.Sprintf(`{"name":%s,"description":%s,"inputSchema":{"type":"object"}%s}`, quoted(name), quoted(about), more)
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // of a string it cannot fail
	return string(b)
}

// call notes the call, and says who ran it.
func (p *listScript) call(m rpc) {
	fmt.Fprintf(p.note, "ran %s %s\n", m.Params.Name, m.Params.Arguments)
	if p.row.call != nil && p.row.call(p, m) {
		return
	}
	if m.Params.Name == "change" {
		var a struct{ To int }
		_ = json.Unmarshal(m.Params.Arguments, &a) // what cannot be read is version 0
		if os.WriteFile(p.file+".version", []byte(strconv.Itoa(a.To)), 0o600) != nil {
			leave(1)
		}
		p.changed()
	}
	p.answer(m, fmt.Sprintf(`"content":[],"structuredContent":{"by":%q,"tool":%q}`, p.row.peer, m.Params.Name))
}

// version is what the peer lists now.
func (p *listScript) version() int {
	b, _ := os.ReadFile(p.file + ".version")
	n, _ := strconv.Atoi(string(b)) // until it is changed it is version 0
	return n
}

// changed announces a change, on its subscription or unasked.
func (p *listScript) changed() {
	switch {
	case p.row.legacy:
		p.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	case p.sub != "":
		p.line(changedOn(p.sub))
	}
}

func changedOn(subscription string) string {
	return `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + subscription + `}}}`
}

// acknowledge agrees to a subscription, for the types that are named.
func (p *listScript) acknowledge(m rpc, types string) {
	p.line(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":%s}}`,
		m.ID, types))
}

// listens agrees to every subscription and keeps it open.
func listens(p *listScript, m rpc) { p.acknowledge(m, `{"toolsListChanged":true}`) }

// ends ends the subscription in good order.
func (p *listScript) ends() {
	p.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, p.sub, p.sub))
	p.sub = ""
}

func (p *listScript) answer(m rpc, members string) {
	if !p.row.legacy {
		members = `"resultType":"complete",` + members
	}
	p.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{%s}}`, m.ID, members))
}

func (p *listScript) fail(m rpc, code int) {
	p.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"}}`, m.ID, code))
}

func (p *listScript) line(s string) { p.lines(s, 1) }

// lines writes a line so many times, in one go.
func (p *listScript) lines(s string, times int) {
	if _, err := io.WriteString(p.out, strings.Repeat(s+"\n", times)); err != nil {
		leave(1)
	}
}

// held reports whether the test holds the peer up, by a file beside its record.
func (p *listScript) held() bool {
	_, err := os.Stat(p.file + ".hold")
	return err == nil
}
