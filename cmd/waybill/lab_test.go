//go:build lab

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"waybill/domain"
)

// The lab is a folder with fakepeer.py: small servers, each with one fault that
// somebody met in public. WAYBILL_LAB names it, WAYBILL_LAB_SLOW=1 adds the cases
// that take more than half a minute. Without a lab there is nothing to test, and
// that is a failure.
//
//	WAYBILL_LAB=DIR go test -tags lab -run '^TestLab$' -v -timeout 20m ./cmd/waybill

// labTools are the programs of a run: ours as they are built, and the lab's.
type labTools struct {
	waybill, auditor string
	python, peers    string
}

// labRun is one case under one setting of allow_legacy.
type labRun struct {
	*world
	labTools
	c       labCase
	allowed bool
	cmd     *exec.Cmd
	said    *syncBuffer
	report  domain.Report
	replies []reply
	ahead   bool      // the other peer was ready before the lab's had settled
	server  *exec.Cmd // the lab's peer where it is reached over HTTP
	port    string
}

// row is a line of the printed table.
type row struct{ id, legacy, peer, received, calls, verdict string }

func TestLab(t *testing.T) {
	tools := findLab(t)
	var mu sync.Mutex
	var table []row
	t.Run("case", func(t *testing.T) {
		for _, c := range labCases() {
			for _, allowed := range []bool{false, true} {
				if c.want(allowed) == "" || c.slow && os.Getenv("WAYBILL_LAB_SLOW") != "1" {
					continue
				}
				t.Run(fmt.Sprintf("%s/allow_legacy=%v", c.label(), allowed), func(t *testing.T) {
					t.Parallel()
					r := newLabRun(t, tools, c, allowed)
					defer func() {
						mu.Lock()
						defer mu.Unlock()
						table = append(table, r.row(t.Failed()))
					}()
					r.run()
				})
			}
		}
	})
	slices.SortStableFunc(table, func(a, b row) int { return strings.Compare(a.id+" "+a.legacy, b.id+" "+b.legacy) })
	t.Log("\n" + printed(table))
}

func findLab(t *testing.T) labTools {
	t.Helper()
	tools := labTools{peers: filepath.Join(os.Getenv("WAYBILL_LAB"), "fakepeer.py")}
	if _, err := os.Stat(tools.peers); err != nil || os.Getenv("WAYBILL_LAB") == "" {
		t.Fatalf("WAYBILL_LAB=%q is no folder with fakepeer.py", os.Getenv("WAYBILL_LAB"))
	}
	// What a version manager puts on PATH is a launcher; the interpreter itself can be pinned.
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatalf("find the interpreter: %v", err)
	}
	tools.python = strings.TrimSpace(string(out))
	dir := t.TempDir()
	tools.waybill, tools.auditor = filepath.Join(dir, "waybill"), filepath.Join(dir, "waybill-audit")
	if out, err := exec.Command("go", "build", "-o", dir, "waybill/cmd/waybill", "waybill/cmd/waybill-audit").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return tools
}

func newLabRun(t *testing.T, tools labTools, c labCase, allowed bool) *labRun {
	t.Helper()
	r := &labRun{world: &world{t: t, dir: t.TempDir()}, labTools: tools, c: c, allowed: allowed}
	r.file = filepath.Join(r.dir, "waybill.yaml")
	if c.http {
		r.listen()
	}
	if err := os.WriteFile(r.file, []byte(r.yaml()), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// yaml configures the peer of the lab beside one of ours that is in good health.
func (r *labRun) yaml() string {
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	args := []string{fmt.Sprintf("%q", r.peers), r.c.id}
	for _, a := range r.c.args {
		args = append(args, fmt.Sprintf("%q", a))
	}
	set := fmt.Sprintf("FAKEPEER_NAME: lab, FAKEPEER_LOG: %q", r.labLog())
	for _, k := range slices.Sorted(maps.Keys(r.c.set)) {
		set += fmt.Sprintf(", %s: %q", k, strings.ReplaceAll(r.c.set[k], "DIR", r.dir))
	}
	y := "nats: {listen: \"127.0.0.1:0\"}\ncollision: prefix-always\n" + r.c.top + "\npeers:\n"
	y += fmt.Sprintf("  healthy:\n    command: %q\n    args: [scripted-peer, modern, %q]\n    data_files: [%q]\n", self, r.record("healthy"), r.record("healthy"))
	if r.c.http {
		y += fmt.Sprintf("  lab:\n    transport: http\n    endpoint: http://%s:%s/mcp\n    allow_legacy: %v\n", orElse(r.c.host, "127.0.0.1"), r.port, r.allowed)
	} else {
		y += fmt.Sprintf("  lab:\n    command: %q\n    args: [%s]\n    set: {%s}\n    allow_legacy: %v\n", r.python, strings.Join(args, ", "), set, r.allowed)
	}
	if !r.c.bare && !r.c.http {
		y += "    env: [PATH]\n"
	}
	for _, line := range r.c.more {
		y += "    " + strings.ReplaceAll(line, "DIR", r.dir) + "\n"
	}
	if r.c.twin {
		y += fmt.Sprintf("  twin:\n    command: %q\n    args: [%s]\n    set: {FAKEPEER_NAME: twin, FAKEPEER_LOG: %q}\n    env: [PATH]\n", r.python, strings.Join(args, ", "), r.twinLog())
	}
	return y
}

func (r *labRun) labLog() string  { return filepath.Join(r.dir, "lab.log") }
func (r *labRun) twinLog() string { return filepath.Join(r.dir, "twin.log") }

// tool runs one of our programs to its end.
func (r *labRun) tool(program string, args ...string) (int, string, string) {
	r.t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &errs, append(os.Environ(), "FAKEPEER_CANARY_SECRET=canary")
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func (r *labRun) command(want int, command string, args ...string) string {
	r.t.Helper()
	code, out, errs := r.tool(r.waybill, append(append([]string{command}, args...), "-c", r.file)...)
	if code != want {
		r.t.Errorf("waybill %s %s: exit %d, want %d\n%.2000s%s", command, strings.Join(args, " "), code, want, out, errs)
	}
	return out
}

// run is a whole life of the service with the case in it.
func (r *labRun) run() {
	r.command(exitDone, "init")
	r.command(map[bool]int{false: exitDone, true: exitSomeNotReady}[r.c.unpinned], "pin")
	r.start()
	defer r.kill()
	r.settle()
	r.healthy()
	if ready := strings.HasPrefix(r.c.want(r.allowed), "ready"); ready && r.state() == "ready" {
		r.calls()
	}
	r.healthy()
	if r.c.while != nil {
		r.c.while(r)
	}
	r.noise()
	r.stop()
	r.hangUp()
	r.invariants()
	if r.c.after != nil {
		r.c.after(r)
	}
}

func (r *labRun) start() {
	r.t.Helper()
	r.cmd, r.said = exec.Command(r.waybill, "serve", "-c", r.file), &syncBuffer{}
	r.cmd.Stderr, r.cmd.Env = r.said, append(os.Environ(), "FAKEPEER_CANARY_SECRET=canary")
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, "the service is up", func() bool { return strings.Contains(r.said.String(), "NATS at") })
}

// kill ends what a failed test left; stop has ended it otherwise.
func (r *labRun) kill() {
	if r.cmd.ProcessState == nil {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
	}
	r.hangUp()
	if r.t.Failed() {
		r.t.Logf("serve said:\n%s", r.said.String())
	}
}

func (r *labRun) stop() {
	r.t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.t.Fatal(err)
	}
	_ = r.cmd.Wait()
	if code := r.cmd.ProcessState.ExitCode(); code != exitDone {
		r.t.Errorf("serve ended with %d", code)
	}
}

// settle waits for the end of the probe and the list, and checks the report.
func (r *labRun) settle() {
	r.t.Helper()
	wait(r.t, "the lab's peer settles", r.c.patience(), func() bool {
		_, out, _ := r.tool(r.waybill, "peers", "-c", r.file, "--json")
		r.report = domain.Report{}
		if json.Unmarshal([]byte(out), &r.report) != nil || len(r.report.Peers) < 2 {
			return false
		}
		other, settled := r.report.Peers[0].State == "ready", r.state() == "ready" || r.peer().Code != nil && !r.c.recovers
		r.ahead = r.ahead || other && !settled
		return other && settled && (!r.c.twin || r.report.Peers[2].State == "ready" && len(r.report.Namespaces) > 0)
	})
	if !r.ahead && strings.Contains(strings.Join(r.c.more, ""), "probe_timeout") {
		r.t.Error("the other peer waited for the lab's")
	}
	want := r.c.want(r.allowed)
	if got := r.outcome(); got != want {
		r.t.Errorf("the peer is %q, want %q (%s)", got, want, reasonOf(r.peer()))
	}
	exit := exitDone
	if r.state() != "ready" {
		exit = exitSomeNotReady
		if reason := reasonOf(r.peer()); len(reason) < 10 || strings.Contains(reason, "\n") {
			r.t.Errorf("the reason is no sentence: %q", reason)
		}
	}
	r.command(exit, "check")
}

func (r *labRun) peer() domain.PeerReport { return r.report.Peers[1] }
func (r *labRun) state() string           { return r.peer().State }

// outcome is "STATE ERA [CODE]".
func (r *labRun) outcome() string {
	if len(r.report.Peers) < 2 {
		return "no report"
	}
	s := r.state() + " " + string(r.peer().Era)
	if r.peer().Code != nil {
		s += " " + string(*r.peer().Code)
	}
	return s
}

// healthy calls the other peer, which must answer whatever the lab's does.
func (r *labRun) healthy() {
	r.t.Helper()
	r.command(exitDone, "call", "--json", "--timeout", "5s", "healthy/echo", `{"n":9007199254740993}`)
}

// noise waits for the event in which the noise of the case is counted.
func (r *labRun) noise() {
	r.t.Helper()
	if r.c.noise != "" {
		wait(r.t, "noise is counted as "+r.c.noise, 10*time.Second, func() bool {
			_, out, _ := r.tool(r.waybill, "events", "-c", r.file, "--type", "noise.counted", "--peer", "lab")
			return strings.Contains(out, r.c.noise)
		})
	}
}

func (r *labRun) calls() {
	r.t.Helper()
	var wait sync.WaitGroup
	r.replies = make([]reply, len(r.c.calls))
	for i, c := range r.c.calls {
		if c.beside {
			wait.Go(func() { r.call(i, c) })
			continue
		}
		r.call(i, c)
	}
	wait.Wait()
}

func (r *labRun) call(i int, c labCall) {
	r.t.Helper()
	args := []string{"call", "-c", r.file, "--json", "--timeout", orElse(c.timeout, "15s")}
	if c.limit != "" {
		args = append(args, "--limit", c.limit, "--progress")
	}
	if c.patient {
		args = append(args, "--wait", "10s")
	}
	args = append(args, "lab/"+c.tool)
	if c.args != "" {
		args = append(args, c.args)
	}
	code, out, errs := r.tool(r.waybill, args...)
	var got reply
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		r.t.Errorf("call %d of %s: exit %d, no reply: %v\n%.500s%s", i+1, c.tool, code, err, out, errs)
		return
	}
	r.replies[i] = got
	if !slices.Contains(strings.Split(c.want, "|"), ended(got)) || code != exitOf(domain.Status(got.Status)) {
		r.t.Errorf("call %d of %s: %q with exit %d, want %q", i+1, c.tool, ended(got), code, c.want)
	}
	if c.result != "" && !strings.Contains(string(got.Result), c.result) {
		r.t.Errorf("call %d of %s: the result lacks %q: %.300s", i+1, c.tool, c.result, got.Result)
	}
	if c.never != "" && strings.Contains(out, c.never) {
		r.t.Errorf("call %d of %s: %q was delivered: %.300s", i+1, c.tool, c.never, out)
	}
}

// labLine is one line that the lab's peer noted.
type labLine struct {
	Type, Event, Raw, Tool string
	PID                    int
	HTTP                   *labHTTP
	Leak                   bool
	Names, Argv            []string
	Msg                    struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name   string
			Cursor *string
			Meta   map[string]json.RawMessage `json:"_meta"`
		}
		Result json.RawMessage
	}
}

// labHTTP is what the lab's peer noted of one request.
type labHTTP struct {
	Method, Path string
	Headers      map[string]string
}

func (r *labRun) noted() []labLine { r.t.Helper(); return r.notedIn(r.labLog()) }

func (r *labRun) notedIn(file string) []labLine {
	r.t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.t.Fatal(err)
	}
	var all []labLine
	for line := range strings.Lines(string(b)) {
		var l labLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			r.t.Fatalf("the lab's log: %v: %.200s", err, line)
		}
		all = append(all, l)
	}
	return all
}

// received counts the methods the lab's peer received, and its events.
func (r *labRun) received() (methods, events map[string]int) {
	methods, events = map[string]int{}, map[string]int{}
	for _, l := range r.noted() {
		switch {
		case r.movedOn(l):
		case l.Type == "event":
			events[l.Event]++
		case l.Msg.Method == "" && l.Msg.Result != nil:
			methods["(result)"]++
		case l.Msg.Method == "":
			methods["(error)"]++
		default:
			methods[l.Msg.Method]++
		}
	}
	return methods, events
}

func (r *labRun) row(failed bool) row {
	verdict := "ok"
	if failed {
		verdict = "FAILED"
	}
	methods, _ := r.received()
	var got, calls []string
	for _, m := range slices.Sorted(maps.Keys(methods)) {
		got = append(got, fmt.Sprintf("%s %d", m, methods[m]))
	}
	for _, c := range r.replies {
		calls = append(calls, strings.TrimSpace(ended(c)))
	}
	return row{r.c.label(), fmt.Sprint(r.allowed), r.outcome(), strings.Join(got, ", "), strings.Join(calls, ", "), verdict}
}

func printed(table []row) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CASE\tALLOW_LEGACY\tPEER\tVERDICT\tCALLS\tRECEIVED BY THE PEER")
	for _, r := range table {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.id, r.legacy, r.peer, r.verdict, r.calls, r.received)
	}
	_ = w.Flush()
	return fmt.Sprintf("%s%d rows\n", b.String(), len(table))
}
