package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
)

func init() {
	testPeers["changing-peer"] = func(args []string) int { return changingPeer(args[0], os.Stdin, os.Stdout) }
}

// changingPeer is a modern MCP server that lists what is in a file: a tool a line,
// its name and its description. Without the file it cannot list.
func changingPeer(file string, in io.Reader, out io.Writer) int {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var m rpc
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		answer := `"result":{"resultType":"complete","content":[]}`
		switch m.Method {
		case "server/discover":
			answer = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public"}`
		case "tools/list":
			answer = listedIn(file)
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer)
	}
	return 0
}

func listedIn(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return `"error":{"code":-32603,"message":"no list"}`
	}
	var tools []string
	for line := range strings.Lines(string(b)) {
		name, about, _ := strings.Cut(strings.TrimSpace(line), " ")
		tools = append(tools, fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, name, about))
	}
	return `"result":{"resultType":"complete","tools":[` + strings.Join(tools, ",") + `],"ttlMs":0,"cacheScope":"public"}`
}

// changing is a world of peers that list what is in a file each.
type changing struct{ *world }

func newChanging(t *testing.T, lines string, lists map[string]string) changing {
	t.Helper()
	c := changing{newWorld(t, "")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	yaml := "nats: {listen: \"127.0.0.1:0\"}\npeers:\n"
	for peer, list := range lists {
		c.lists(peer, list)
		yaml += fmt.Sprintf("  %s:\n    command: %q\n    args: [changing-peer, %q]\n    data_files: [%q]\n    list_interval: 10ms\n%s", peer, self, c.list(peer), c.list(peer), lines)
	}
	if err := os.WriteFile(c.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	c.ready()
	return c
}

func (c changing) list(peer string) string { return filepath.Join(c.dir, peer+".list") }

// lists says what a peer lists from now on.
func (c changing) lists(peer, list string) {
	c.t.Helper()
	next := c.list(peer) + ".next"
	if err := os.WriteFile(next, []byte(list), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(next, c.list(peer)); err != nil {
		c.t.Fatal(err)
	}
}

type toolsDoc struct {
	Log, Context, Digest string
	Generation           int64
	Tools                []domain.ToolEntry
	Stale, Missing       []string
}

// tool is a tool as waybill tools has it.
func (c changing) tool(name string) domain.ToolEntry {
	c.t.Helper()
	doc := decode[toolsDoc](c.t, c.must(exitDone, "tools", "--json"))
	if e := find(doc.Tools, name); e != nil {
		return *e
	}
	c.t.Fatalf("no tool %s in %+v", name, doc.Tools)
	return domain.ToolEntry{}
}

func (c changing) held(name string) domain.ToolEntry {
	c.t.Helper()
	eventually(c.t, name+" is in quarantine", func() bool { return c.tool(name).Held != nil })
	return c.tool(name)
}

// A tool whose definition changes is not called until somebody has looked at what
// changed and approves that very definition.
func TestAToolThatChangesIsHeldUntilSomebodyApprovesIt(t *testing.T) {
	c := newChanging(t, "    on_tool_change: quarantine\n", map[string]string{"mail": "send Sends a letter.\n"})
	approve := []string{"tools", "approve", "send", "--by", "ann"}
	c.must(exitNotRunning, approve...)
	s := c.serve()
	c.must(exitDone, "call", "send")
	c.refused(domain.CodeNotQuarantined, approve...)
	c.refused(domain.CodeUnknownTool, "tools", "approve", "nothing", "--by", "ann")

	c.lists("mail", "send Sends a letter, and a copy to us.\n")
	e := c.held("send")
	if e.Held.Now != e.Digest || e.Held.Approved == e.Digest || string(e.Definition) != "null" || len(e.Held.Diff) != 1 || !strings.Contains(e.Held.Diff[0], "and a copy to us") {
		t.Errorf("%+v, %+v", e, e.Held)
	}
	if r := decode[reply](t, c.must(exitRefused, "call", "--json", "send")); *r.Code != string(domain.CodeToolQuarantined) {
		t.Errorf("a call of it: %s", *r.Code)
	}
	if out := c.must(exitDone, "tools"); !strings.Contains(out, fmt.Sprintf("changed (event %d)", e.Held.Seq)) {
		t.Errorf("tools:\n%s", out)
	}
	if out := c.must(exitDone, "tools", "diff", "send"); !strings.Contains(out, e.Held.Diff[0]) || !strings.Contains(out, "now "+e.Held.Now) {
		t.Errorf("diff:\n%s", out)
	}
	c.refused(domain.CodeToolDiffers, append(approve, "--digest", e.Held.Approved)...)
	c.must(exitConfig, append(approve, "--digest", "abc")...)
	c.must(exitConfig, "tools", "approve", "send")
	c.must(exitConfig, "tools", "approve", "", "--by", "ann")

	code, out, errs := c.run(append(approve, "--digest", e.Held.Now, "--json")...)
	doc := decode[struct {
		orderDoc
		Tool string `json:"tool"`
	}](t, out)
	if code != exitDone || doc.By != "ann" || doc.Verb != "approve" || doc.Tool != "send" || doc.Code != nil || len(doc.Seqs) != 2 {
		t.Errorf("exit %d: %s", code, out)
	}
	if !strings.Contains(errs, e.Held.Diff[0]) {
		t.Errorf("what was approved is not shown:\n%s", errs)
	}
	c.must(exitDone, "call", "send")
	if out := c.must(exitDone, "events", "--type", "tool.approved"); !strings.Contains(out, `"by":"ann"`) || !strings.Contains(out, e.Held.Now) {
		t.Errorf("on record:\n%s", out)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	c.audit()
}

// What is shown is approved where no digest is named; and without a service there
// is nobody to take the order, though the log says what changed.
func TestQuarantineIsSeenWithAndWithoutAService(t *testing.T) {
	c := newChanging(t, "    on_tool_change: quarantine\n", map[string]string{"a": "send One.\nSum Adds.\n", "b": "send Two.\n"})
	s := c.serve()
	c.lists("a", "send Another one.\nSum Adds.\n")
	first := c.held("send")
	c.must(exitDone, "tools", "approve", "send", "--by", "ann")
	if e := c.tool("send"); e.Held != nil || e.Digest != first.Held.Now {
		t.Errorf("approved as shown: %+v", e)
	}
	c.lists("a", "send A third one.\nSum Adds.\n")
	online := c.held("send")
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	if a, b := fmt.Sprintf("%+v", *c.tool("send").Held), fmt.Sprintf("%+v", *online.Held); a != b {
		t.Errorf("without a service:\n%s\nwith one:\n%s", a, b)
	}
	if out := c.must(exitDone, "tools", "diff", "send"); !strings.Contains(out, online.Held.Diff[0]) {
		t.Errorf("diff without a service:\n%s", out)
	}
	if out := c.must(exitDone, "tools", "diff", "b/send"); !strings.Contains(out, "is not in quarantine") {
		t.Errorf("diff of another tool:\n%s", out)
	}
	doc := decode[failureDoc](t, c.must(exitRefused, "tools", "diff", "nothing", "--json"))
	if doc.Error.Code != string(domain.CodeUnknownTool) {
		t.Errorf("diff of no tool: %+v", doc)
	}
	doc = decode[failureDoc](t, c.must(exitNotRunning, "tools", "approve", "send", "--by", "ann", "--json"))
	if doc.Error.Code != "not_running" || !strings.Contains(doc.Error.Message, "waybill serve") {
		t.Errorf("approve without a service: %+v", doc)
	}
	c.must(exitConfig, "tools", "diff", "")
	c.audit()
}

// The tools say whose they are, since when, by which name a model calls them, what
// else claims the name, and whose lists may be old or are not there.
func TestToolsSayWhatIsToBeKnownOfEach(t *testing.T) {
	c := newChanging(t, "", map[string]string{"a": "send One.\n", "b": "send Two.\n", "late": ""})
	if err := os.Remove(c.list("late")); err != nil {
		t.Fatal(err)
	}
	s := c.serve()
	doc := decode[toolsDoc](t, c.must(exitDone, "tools", "--json"))
	if doc.Context != "default" || doc.Digest == "" || fmt.Sprint(doc.Missing) != "[late]" {
		t.Errorf("%+v", doc)
	}
	mine, others := c.tool("send"), c.tool("b/send")
	if mine.Peer != "a" || mine.Model != "send" || mine.SinceGen != 1 || fmt.Sprint(mine.Collided) != "[{b send}]" {
		t.Errorf("%+v", mine)
	}
	if others.Local != "send" || !strings.HasPrefix(others.Model, "b_send_") || fmt.Sprint(others.Collided) != "[{a send}]" || len(others.Definition) == 0 {
		t.Errorf("%+v", others)
	}
	out := c.must(exitDone, "tools")
	since, _, _ := strings.Cut(mine.Since, ".")
	for _, want := range []string{since, "(generation 1)", others.Model, "b: send", "a: send", "partial: no list of late yet", "2 tools, generation 1"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if report := c.must(exitSomeNotReady, "check"); !strings.Contains(report, "late: list: readings that failed in a row: ") {
		t.Errorf("the report does not speak of the list:\n%s", report)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	offline := decode[toolsDoc](t, c.must(exitDone, "tools", "--json"))
	if fmt.Sprint(offline.Stale, offline.Missing) != "[a b] [late]" || offline.Digest != doc.Digest || offline.Log != doc.Log {
		t.Errorf("without a service: %+v", offline)
	}
	if a, b := encode(t, offline.Tools), encode(t, doc.Tools); a != b {
		t.Errorf("without a service:\n%s\nwith one:\n%s", a, b)
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// An order that is none is refused before it is recorded.
func TestAnOrderToApproveNamesAToolAndADigest(t *testing.T) {
	c := newChanging(t, "", map[string]string{"a": "send One.\n"})
	s := c.serve()
	run, err := harness.DataDir(filepath.Join(c.dir, ".waybill")).Running()
	if err != nil || run == nil {
		t.Fatal(run, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	operator, err := bus.DialOperator(ctx, run.URL, run.Credentials, run.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close()
	for _, body := range []string{``, `[]`, `{}`, `{"tool":""}`, `{"tool":1}`, `{"tool":"send","digest":"x"}`, `{"tool":"send","digest":"` + strings.Repeat("A", 64) + `"}`,
		`{"tool":"` + strings.Repeat("x", 1000) + `"}`} {
		b, code, err := operator.Order(ctx, "approve", "ann", []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if doc := decode[orderDoc](t, string(b)); code != "bad_request" || doc.Code == nil || len(doc.Seqs) != 0 {
			t.Errorf("%.40s: code %q, %s", body, code, b)
		}
	}
	if out := c.must(exitDone, "events", "--type", "operator"); out != "" {
		t.Errorf("they are on record:\n%s", out)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
}

func TestHelpOfToolsHasExamples(t *testing.T) {
	for args, want := range map[string]string{"tools": "waybill tools -c waybill.yaml --json", "tools list": "waybill tools -c waybill.yaml --json",
		"tools diff": "waybill tools diff search", "tools approve": "waybill tools approve search --by ann"} {
		var out, errs syncBuffer
		if code := run(append(strings.Fields(args), "--help"), &out, &errs); code != exitDone || !strings.Contains(out.String(), "  "+want+"\n") {
			t.Errorf("waybill %s --help: exit %d\n%s%s", args, code, out.String(), errs.String())
		}
	}
}

// An answer holds at least one tool, and says where to go on if there are more.
func TestAnAnswerHoldsAsManyToolsAsFit(t *testing.T) {
	tools := make([]domain.ToolEntry, mostTools+1)
	for i := range tools {
		tools[i] = domain.ToolEntry{Canonical: fmt.Sprintf("tool%05d", i), Definition: make([]byte, 708)} // 1000 each
	}
	for _, c := range []struct{ have, most, want int }{
		{mostTools + 1, 1 << 30, mostTools}, {mostTools, 1 << 30, mostTools}, {5, 4000, 4}, {5, 4999, 4}, {5, 5000, 5}, {5, 10, 1}, {1, 10, 1}, {0, 10, 0},
	} {
		r := toolsReply{toolList: toolList{Tools: tools[:c.have]}}
		r.fit(c.most)
		next := ""
		if c.want < c.have {
			next = tools[c.want-1].Canonical
		}
		if len(r.Tools) != c.want || r.Next != next {
			t.Errorf("%d tools, %d bytes: kept %d, next %q, want %d, %q", c.have, c.most, len(r.Tools), r.Next, c.want, next)
		}
	}
}
