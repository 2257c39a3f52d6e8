//go:build interop

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// natsTool is the nats command line that the examples are run with.
const natsTool = "github.com/nats-io/natscli/nats@v0.5.0"

const examples = "../../docs/examples"

// natsCommand builds the nats command line and returns its folder.
func natsCommand(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "install", natsTool)
	build.Env = append(os.Environ(), "GOBIN="+dir)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go install %s: %v\n%s", natsTool, err, out)
	}
	return dir
}

// exampleWorld is the demo's notes, served, and what the examples need to find it.
type exampleWorld struct {
	*world
	url, log string
	path     string // folders that come first in PATH
}

func newExampleWorld(t *testing.T) *exampleWorld {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir()}
	w.file = filepath.Join(w.dir, "waybill.yaml")
	yaml := fmt.Sprintf("nats: {listen: \"127.0.0.1:0\"}\npeers:\n  notes:\n    command: %q\n    args: [demo-peer, notes]\n", self)
	if err := os.WriteFile(w.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	w.ready()
	w.serve()
	run := decode[struct{ URL, Log string }](t, w.runFile())
	return &exampleWorld{world: w, url: run.URL, log: run.Log}
}

// example runs a program as a user, and returns what it printed; it must end well.
func (w *exampleWorld) example(user string, more []string, program string, args ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "NATS_URL="+w.url, "WAYBILL_KEY="+filepath.Join(w.dir, ".waybill", "nats", user+".nk"),
		"WAYBILL_LOG="+w.log, "PATH="+w.path+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, more...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, errs.String())
	}
	w.t.Logf("%s %s:\n%s%s", filepath.Base(program), strings.Join(args, " "), out, errs.String())
	return string(out) + errs.String()
}

// script puts an example of JavaScript beside the installed packages.
func (w *exampleWorld) script(name string) string {
	w.t.Helper()
	dir := w.t.TempDir()
	content, err := os.ReadFile(filepath.Join(examples, name))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), content, 0o600)
	}
	if err == nil {
		err = os.Symlink(modules(w.t), filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// python says whether the interpreter there has a module: a machine may have none of
// the packages, and PyPI is not reached from everywhere.
func python(t *testing.T, module string) bool {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import "+module).CombinedOutput()
	if err != nil {
		t.Logf("python3 without %s is left out: %v\n%s", module, err, out)
	}
	return err == nil
}

func wants(t *testing.T, what, out string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(out, word) {
			t.Errorf("%s does not say %q:\n%s", what, word, out)
		}
	}
}

// What every example of a host prints.
var hostSays = []string{"tool add_note of notes", "tool search of notes", "complete: {", `notes: 2 notes mention \"tea\"`, "call: unknown_tool (409)"}

func TestInteropExamplesOfTheDocumentation(t *testing.T) {
	w := newExampleWorld(t)
	w.path = natsCommand(t)
	w.hosts()
	w.operators()
	w.readers()
}

func (w *exampleWorld) hosts() {
	w.t.Helper()
	wants(w.t, "call.sh", w.example("host-local", nil, "sh", filepath.Join(examples, "call.sh")),
		`"canonical":"add_note"`, `"status":"complete"`, `notes: 2 notes mention`, `"code":"unknown_tool"`, "Nats-Service-Error: unknown_tool", "Nats-Service-Error-Code: 409")
	wants(w.t, "gohost", w.example("host-local", nil, "go", "run", examples+"/gohost"), hostSays...)
	wants(w.t, "call.mjs", w.example("host-local", nil, "node", w.script("call.mjs")), hostSays...)
	if python(w.t, "cryptography") {
		wants(w.t, "plain.py", w.example("host-local", nil, "python3", filepath.Join(examples, "plain.py")), hostSays...)
	}
	if python(w.t, "nats, nkeys") {
		wants(w.t, "call.py", w.example("host-local", nil, "python3", filepath.Join(examples, "call.py")), hostSays...)
	}
}

func (w *exampleWorld) operators() {
	w.t.Helper()
	out := w.example("operator", nil, "sh", filepath.Join(examples, "operate.sh"))
	wants(w.t, "operate.sh", out, "Holds MCP servers and routes tool calls", "rtt=", "Subject: waybill.v1.call.*", "role: host", "role: operator",
		"Subject: waybill.v1.op.erase.*", "schema.response:", "op-revive", `"code":"not_down"`)
	for line := range strings.Lines(out) {
		if len(line) > 400 && !strings.Contains(line, "\u2502") && !strings.Contains(line, "\u2500") {
			w.t.Errorf("nats micro prints a line of %d bytes: %.100s", len(line), line)
		}
	}
}

func (w *exampleWorld) readers() {
	w.t.Helper()
	everything := []string{"1 service.started", "3 peer.admitted notes {", "call.settled", "era.determined notes"}
	for user, says := range map[string][]string{"auditor": everything, "dashboard": {"3 peer.admitted notes {", "era.determined notes", "namespace.merged"}} {
		as := []string{"WAYBILL_USER=" + user}
		outs := map[string]string{
			"goevents":   w.example(user, as, "go", "run", examples+"/goevents"),
			"events.mjs": w.example(user, as, "node", w.script("events.mjs")),
		}
		if python(w.t, "nats, nkeys") {
			outs["events.py"] = w.example(user, as, "python3", filepath.Join(examples, "events.py"))
		}
		for name, out := range outs {
			wants(w.t, name, out, says...)
			if user == "dashboard" && strings.Contains(out, "call.") {
				w.t.Errorf("a dashboard reads of calls:\n%s", out)
			}
		}
		wants(w.t, "events.sh", w.example(user, as, "sh", filepath.Join(examples, "events.sh")), `"type":"peer.admitted"`, `"type":"peer.spawned"`)
	}
	later := w.example("auditor", []string{"WAYBILL_USER=auditor", "WAYBILL_FROM=3"}, "go", "run", examples+"/goevents")
	if !strings.HasPrefix(later, "3 peer.admitted") {
		w.t.Errorf("from seq 3 on:\n%s", later)
	}
}
