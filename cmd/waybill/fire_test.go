package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"waybill/domain"
)

// orderDoc is what an operator reads.
type orderDoc struct {
	By, Verb     string
	Peer, Call   *string
	Code, Reason *string
	Seqs         []int64
	Log          string
	Outcome      *reply
}

// down keeps a peer of mode fire from starting, and kills the process it is.
func (w *world) down(peer string) {
	w.t.Helper()
	if err := os.WriteFile(w.record(peer)+".down", nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.signal(peer, syscall.SIGKILL)
}

// signal sends a signal to the process that a peer of mode fire is.
func (w *world) signal(peer string, sig syscall.Signal) {
	w.t.Helper()
	pids := w.lines(peer, "pid")
	pid, err := strconv.Atoi(pids[len(pids)-1])
	if err == nil {
		err = syscall.Kill(pid, sig)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// filled reports whether something waits in the standard input of a peer's process.
func (w *world) filled(peer string) bool {
	pids := w.lines(peer, "pid")
	in, err := os.OpenFile("/proc/"+pids[len(pids)-1]+"/fd/0", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer in.Close()
	n, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCINQ)
	return err == nil && n > 0
}

// up lets it start again.
func (w *world) up(peer string) {
	w.t.Helper()
	if err := os.Remove(w.record(peer) + ".down"); err != nil {
		w.t.Fatal(err)
	}
}

// peer is one peer's line of the report.
func (w *world) peer(name string) domain.PeerReport {
	w.t.Helper()
	r := decode[domain.Report](w.t, w.must(exitDone, "peers", "--json"))
	i := slices.IndexFunc(r.Peers, func(p domain.PeerReport) bool { return p.Name == name })
	return r.Peers[i]
}

func (w *world) readyAgain(peer string) {
	w.t.Helper()
	eventually(w.t, peer+" is ready again", func() bool { return w.peer(peer).State == "ready" })
}

// refused runs an order that must be refused with a code.
func (w *world) refused(code domain.Code, args ...string) {
	w.t.Helper()
	doc := decode[orderDoc](w.t, w.must(exitRefused, append(args, "--json")...))
	if doc.Code == nil || *doc.Code != string(code) || doc.Reason == nil {
		w.t.Errorf("%v: %+v, want %s", args, doc, code)
	}
}

// A peer that fails again and again is left alone, until an operator orders
// otherwise; peers says all that is known of it.
func TestQuarantineEndsByAnOperatorsWord(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"},
		peerYAML{name: "p", mode: "fire", more: []string{"restarts: 1", "quarantine: 10m"}}).ready()
	w.must(exitNotRunning, "peers", "revive", "p", "--by", "ann")
	s := w.serve()
	w.refused(domain.CodeNotDown, "peers", "revive", "p", "--by", "ann")
	w.refused(domain.CodeUnknownPeer, "peers", "revive", "nobody", "--by", "ann")
	w.refused(domain.CodeBadRequest, "peers", "revive", "no.name *", "--by", "ann")
	w.must(exitConfig, "peers", "revive", "p", "--by", "Ann")
	w.must(exitConfig, "peers", "revive", "p")
	w.down("p")
	eventually(t, "it is quarantined", func() bool { return w.must(exitDone, "events", "--type", "peer.quarantined") != "" })
	p := w.peer("p")
	if p.State != "unavailable" || p.Attempt == nil || *p.Attempt != 2 || p.NextTry == nil || p.LastExit == nil || p.LastExit.Status != 7 || p.LastExit.StderrSize != 5 {
		t.Errorf("%+v, %+v", p, p.LastExit)
	}
	text := w.must(exitDone, "peers")
	for _, want := range []string{"p: process 2 ended: exited, status 7, 5 bytes on standard error", "p: attempt 2; next try " + *p.NextTry} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "a: ") {
		t.Errorf("the healthy peer is spoken of:\n%s", text)
	}
	w.up("p")
	doc := decode[orderDoc](t, w.must(exitDone, "peers", "revive", "p", "--by", "ann", "--json"))
	if doc.By != "ann" || doc.Verb != "revive" || doc.Peer == nil || *doc.Peer != "p" || doc.Code != nil || len(doc.Seqs) != 2 || doc.Outcome != nil {
		t.Errorf("%+v", doc)
	}
	w.readyAgain("p")
	if out := w.must(exitDone, "events", "--type", "operator", "--peer", "p"); strings.Count(out, `"by":"ann"`) != 2 {
		t.Errorf("orders on record:\n%s", out)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	w.audit()
}

// A lost call runs again only on an operator's word, and with the arguments it was
// made with.
func TestALostCallIsSentAgainByAnOrder(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "p", mode: "fire"}).ready()
	s := w.serve()
	lost := decode[reply](t, w.must(exitLost, "call", "--json", "--call-id", "pay", "once", `{"n": 1}`))
	if lost.Status != "lost" || lost.Ran != "maybe" {
		t.Errorf("%+v", lost)
	}
	w.readyAgain("p")
	w.refused(domain.CodePayloadNotKept, "calls", "resend", "pay", "--by", "ann")
	w.refused(domain.CodePayloadNotKept, "calls", "resend", "pay", `{"n":1}`, "--by", "ann")
	w.refused(domain.CodeNotResendable, "calls", "resend", "nobodys", `{"n": 1}`, "--by", "ann")
	w.refused(domain.CodeNotResendable, "calls", "resend", "pay", `{"n": 1}`, "--by", "ann", "--host", "other")
	w.refused(domain.CodeBadRequest, "calls", "resend", "no id", "--by", "ann")
	w.must(exitConfig, "calls", "resend", "pay", `[1]`, "--by", "ann")
	if ran := w.lines("p", "ran"); len(ran) != 1 {
		t.Errorf("refused orders ran %q", ran)
	}
	doc := decode[orderDoc](t, w.must(exitDone, "calls", "resend", "pay", `{"n": 1}`, "--by", "ann", "--json"))
	if doc.Outcome == nil || doc.Outcome.Status != "complete" || doc.Outcome.CallID != "pay" || doc.Call == nil || *doc.Call != "local/pay" || len(doc.Seqs) != 2 {
		t.Errorf("%+v", doc)
	}
	if ran := w.lines("p", "ran"); !slices.Equal(ran, []string{`once {"n": 1}`, `once {"n": 1}`}) {
		t.Errorf("it ran %q", ran)
	}
	if r := decode[reply](t, w.must(exitDone, "calls", "outcome", "pay")); r.Status != "complete" {
		t.Errorf("outcome: %+v", r)
	}
	w.refused(domain.CodeNotResendable, "calls", "resend", "pay", `{"n": 1}`, "--by", "ann")
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	w.must(exitNotRunning, "calls", "resend", "pay", `{"n": 1}`, "--by", "ann")
	w.audit()
}

// An operator needs the key of one, and a directory of before gets it by init.
func TestOrdersNeedTheKeyOfTheOperator(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	if err := os.Remove(filepath.Join(w.dir, ".waybill", "nats", "operator.nk")); err != nil {
		t.Fatal(err)
	}
	s := w.serve()
	doc := decode[failureDoc](t, w.must(exitConfig, "peers", "revive", "a", "--by", "ann", "--json"))
	if doc.Error.Code != "credentials" || !strings.Contains(doc.Error.Message, "run waybill init") {
		t.Errorf("%+v", doc)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	code, out, errs := w.run("init")
	if code != exitDone || !strings.Contains(out, "operator.nk") || !strings.Contains(out, "nats-accounts.conf") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	s = w.serve()
	w.refused(domain.CodeNotDown, "peers", "revive", "a", "--by", "ann")
	s.stop(syscall.SIGTERM)
}

// What a peer says of its progress reaches the host that asked, in order, and
// nobody who did not.
func TestProgressIsPrintedAsItComes(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "p", mode: "fire"}).ready()
	told := "progress {\"progress\":0.5}\nprogress {\"progress\":1,\"total\":2,\"message\":\"half\"}\n"
	s := w.serve()
	for _, args := range [][]string{{"--progress"}, {"--progress", "--call-id", "mine"}} {
		code, out, errs := w.run(append(append([]string{"call", "--json"}, args...), "tell")...)
		r := decode[reply](t, out)
		if code != exitDone || errs != told || r.Status != "complete" || len(args) > 1 && r.CallID != "mine" {
			t.Errorf("%v: exit %d, %+v\n%s", args, code, r, errs)
		}
	}
	if _, _, errs := w.run("call", "tell"); errs != "" {
		t.Errorf("without --progress: %s", errs)
	}
	if out := w.must(exitDone, "events"); strings.Contains(out, "half") {
		t.Error("progress is in the log")
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	if code, _, errs := w.run("call", "--once", "--progress", "tell"); code != exitDone || !strings.Contains(errs, told) {
		t.Errorf("--once: exit %d\n%s", code, errs)
	}
	w.audit()
}

// A call to a peer that is down is refused at once, or waits if it says so.
func TestACallWaitsForItsPeer(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "p", mode: "fire"}).ready()
	s := w.serve()
	w.down("p")
	eventually(t, "its end is seen", func() bool { return w.peer("p").State != "ready" })
	for _, args := range [][]string{{}, {"--wait", "20ms"}} {
		r := decode[reply](t, w.must(exitRefused, append(append([]string{"call", "--json"}, args...), "echo")...))
		if r.Status != "refused" || r.Ran != "no" {
			t.Errorf("%v: %+v", args, r)
		}
	}
	var wait sync.WaitGroup
	var out, errs syncBuffer
	var exit int
	wait.Go(func() {
		exit = run([]string{"call", "-c", w.file, "--json", "--call-id", "patient", "--wait", "1m", "echo"}, &out, &errs)
	})
	eventually(t, "the call is held", func() bool { return w.must(exitDone, "events", "--call", "local/patient", "--type", "call.held") != "" })
	w.up("p")
	wait.Wait()
	if r := decode[reply](t, out.String()); exit != exitDone || r.Status != "complete" {
		t.Errorf("exit %d, %+v\n%s", exit, r, errs.String())
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	w.audit()
}

// A tool asks, the host answers: one call, one story.
func TestInputGoesToTheHostAndBack(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "p", mode: "fire", more: []string{"capabilities: {elicitation: {}}"}}).ready()
	s := w.serve()
	able := []string{"call", "--json", "--capabilities", `{"elicitation":{}}`, "--call-id", "talk"}
	code, out, errs := w.run(append(able, "confirm", `{"a":1}`)...)
	asked := decode[reply](t, out)
	if code != exitInputRequired || asked.Status != "input_required" || !strings.Contains(string(asked.Result), `"requestState":"round \"1\""`) || !strings.Contains(errs, "--call-id talk") {
		t.Fatalf("exit %d, %+v\n%s", code, asked, errs)
	}
	input, state := `{"sure":{"action":"accept","content":{}}}`, `"round \"1\""`
	for _, wrong := range [][]string{
		{"--input", input, "--state", `"round 2"`, "confirm", `{"a":1}`},
		{"--input", input, "confirm", `{"a":1}`},
		{"--state", state, "confirm", `{"a":1}`},
		{"--input", input, "--state", state, "confirm", `{"a":2}`},
	} {
		if r := decode[reply](t, w.must(exitRefused, append(slices.Clip(able), wrong...)...)); r.Code == nil || *r.Code != "input_mismatch" {
			t.Errorf("%v: %+v", wrong, r)
		}
	}
	for _, bad := range [][]string{{"--input", "[]"}, {"--state", "x"}, {"--capabilities", "1"}} {
		w.must(exitConfig, append(append([]string{"call", "--call-id", "talk"}, bad...), "confirm")...)
	}
	w.must(exitConfig, "call", "--input", input, "confirm")
	done := decode[reply](t, w.must(exitDone, append(able, "--input", input, "--state", state, "confirm", `{"a":1}`)...))
	want := `{"resultType":"complete","content":[],"structuredContent":{"input":` + input + `,"state":` + state + `}}`
	if done.CallID != "talk" || string(done.Result) != want || len(done.Seqs) <= len(asked.Seqs) {
		t.Errorf("%+v\n%s", done, done.Result)
	}
	if r := decode[reply](t, w.must(exitRefused, append(able, "--input", input, "--state", state, "confirm", `{"a":1}`)...)); *r.Code != "not_waiting" {
		t.Errorf("again: %+v", r)
	}
	if ran := w.lines("p", "ran"); len(ran) != 2 {
		t.Errorf("it ran %q", ran)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	w.audit()
}

// hanging is a call under the id mine that has no answer.
type hanging struct {
	wait      sync.WaitGroup
	out, errs syncBuffer
	exit      int
}

// hang makes a call that a peer runs and does not answer.
func (w *world) hang(peer string) *hanging {
	w.t.Helper()
	h := &hanging{}
	h.wait.Go(func() {
		h.exit = run([]string{"call", "-c", w.file, "--json", "--call-id", "mine", "hang"}, &h.out, &h.errs)
	})
	eventually(w.t, "the peer runs the call", func() bool { return len(w.lines(peer, "ran")) == 1 })
	return h
}

// A stop gives calls under way the time of limits.drain and says how many there
// are. A host that has its share of calls gets no other meanwhile.
func TestServeDrains(t *testing.T) {
	w := newWorld(t, "limits: {host_inflight: 1, drain: 300ms}", peerYAML{name: "a", mode: "modern"}).ready()
	s := w.serve()
	mine := w.hang("a")
	code, text, said := w.run("call", "--json", "echo")
	if r := decode[reply](t, text); code != exitRefused || *r.Code != "overloaded" || !strings.Contains(said, "host_inflight") {
		t.Errorf("exit %d, %+v\n%s", code, r, said)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	mine.wait.Wait()
	if r := decode[reply](t, mine.out.String()); mine.exit != exitCancelled || *r.Code != "shutting_down" {
		t.Errorf("exit %d, %+v\n%s", mine.exit, r, mine.errs.String())
	}
	for _, want := range []string{"stopping; calls under way have 300ms", "waybill: 1 call under way"} {
		if !strings.Contains(s.errs.String(), want) {
			t.Errorf("no %q in\n%s", want, s.errs.String())
		}
	}
	w.audit()
}

// A result that breaks its outputSchema is passed on, or refused by policy.
func TestOutputThatBreaksItsSchemaIsRecordedOrRefused(t *testing.T) {
	for policy, want := range map[string]int{"record": exitDone, "refuse": exitProtocolError} {
		w := newWorld(t, "", peerYAML{name: "p", mode: "fire", more: []string{"output_schema: " + policy}}).ready()
		r := decode[reply](t, w.must(want, "call", "--once", "--json", "odd"))
		if refused := want != exitDone; refused != (string(r.Result) == "null") || refused && *r.Code != "output_invalid" || r.Ran != "yes" {
			t.Errorf("%s: %+v", policy, r)
		}
		if out := w.must(exitDone, "events", "--type", "call.answered"); !strings.Contains(out, fmt.Sprintf("%q:%q", "schema", "invalid")) {
			t.Errorf("%s: the verdict is not recorded:\n%s", policy, out)
		}
	}
}

// A peer that is stopped is found by the deadlines of its calls, or by asking it for
// a sign of life, and started again; its neighbour never notices.
func TestAHungPeerIsFoundAndStartedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		more  []string
		calls int
	}{
		"by its calls":             {[]string{"call_timeout: 200ms", "hung_after: 2"}, 2},
		"by a sign of life":        {[]string{"health_interval: 1s", "health_timeout: 200ms", "hung_after: 0"}, 0},
		"not, where it is told so": {[]string{"call_timeout: 200ms", "hung_after: 0", "shutdown_timeout: 100ms"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}, peerYAML{name: "p", mode: "fire", more: c.more}).ready()
			s := w.serve()
			w.signal("p", syscall.SIGSTOP)
			for range c.calls {
				if r := decode[reply](t, w.must(exitTimedOut, "call", "--json", "p/echo")); r.Status != "timed_out" {
					t.Errorf("%+v", r)
				}
			}
			want := int64(2)
			if strings.HasPrefix(name, "not") {
				want = 1
			}
			eventually(t, "it is there", func() bool { p := w.peer("p"); return p.State == "ready" && *p.Incarnation == want })
			if got := w.must(exitDone, "events", "--type", "peer.abandoned") != ""; got != (want == 2) {
				t.Errorf("abandoned: %v", got)
			}
			if p := w.peer("a"); p.State != "ready" || *p.Incarnation != 1 {
				t.Errorf("the neighbour: %+v", p)
			}
			if code := s.stop(syscall.SIGTERM); code != exitDone {
				t.Errorf("serve ended with %d", code)
			}
			if left := processesWith(t, w.dir); len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
			w.audit()
		})
	}
}

// A call that certainly never reached its peer is sent to the next process by
// itself; one that may have is not.
func TestAnUnwrittenCallIsSentAgainWhenItsPeerIsBack(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "p", mode: "fire"}).ready()
	s := w.serve()
	w.signal("p", syscall.SIGSTOP) // it reads nothing, so that its pipe fills
	var wait sync.WaitGroup
	exits, outs := make([]int, 2), make([]syncBuffer, 2)
	call := func(i int, id, args string) {
		wait.Go(func() {
			var errs syncBuffer
			exits[i] = run([]string{"call", "-c", w.file, "--json", "--call-id", id, "echo", args}, &outs[i], &errs)
		})
		eventually(t, id+" is under way", func() bool { return slices.Contains(w.callEvents("local/"+id), "call.routed") })
	}
	call(0, "large", `{"s":"`+strings.Repeat("s", 512<<10)+`"}`)
	eventually(t, "its first bytes are written", func() bool { return w.filled("p") })
	call(1, "small", `{"n":1}`)
	w.signal("p", syscall.SIGKILL)
	wait.Wait()
	if r := decode[reply](t, outs[0].String()); exits[0] != exitLost || *r.Code != "transport_lost" || r.Ran != "maybe" {
		t.Errorf("the large call: exit %d, %+v", exits[0], r)
	}
	r := decode[reply](t, outs[1].String())
	if exits[1] != exitDone || r.Status != "complete" || r.Route == nil || r.Route.Incarnation != 2 {
		t.Errorf("the small call: exit %d, %+v", exits[1], r)
	}
	if ran := w.lines("p", "ran"); !slices.Equal(ran, []string{`echo {"n":1}`}) {
		t.Errorf("it ran %q", ran)
	}
	if out := w.must(exitDone, "events", "--call", "local/small", "--type", "call.resent"); !strings.Contains(out, "never_written") {
		t.Errorf("its story:\n%s", out)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	w.audit()
}

// A call that is under way when the service drains can be asked after and
// cancelled; a new one is turned away.
func TestACallThatDrainsCanBeCancelled(t *testing.T) {
	w := newWorld(t, "limits: {drain: 10m}", peerYAML{name: "a", mode: "modern"}).ready()
	s := w.serve()
	mine := w.hang("a")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the service drains", func() bool { return strings.Contains(s.errs.String(), "1 call under way") })
	if r := decode[reply](t, w.must(exitDone, "calls", "outcome", "--json", "mine")); r.Status != "under_way" {
		t.Errorf("outcome: %+v", r)
	}
	if r := decode[reply](t, w.must(exitRefused, "call", "--json", "echo")); *r.Code != "shutting_down" {
		t.Errorf("a new call: %+v", r)
	}
	w.must(exitDone, "calls", "cancel", "mine")
	_ = s.cmd.Wait()
	mine.wait.Wait()
	if code := s.cmd.ProcessState.ExitCode(); code != exitDone || mine.exit != exitCancelled {
		t.Errorf("serve ended with %d, the call with %d\n%s", code, mine.exit, mine.errs.String())
	}
	w.audit()
}

// An order about a call that never was makes none.
func TestARefusedOrderIsNoPartOfACall(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	s := w.serve()
	w.must(exitRefused, "calls", "resend", "--by", "oncall", "ghost", "{}")
	if r := decode[reply](t, w.must(exitRefused, "calls", "outcome", "--json", "ghost")); *r.Code != "unknown_call" {
		t.Errorf("outcome: %+v", r)
	}
	first := decode[reply](t, w.must(exitDone, "call", "--json", "--call-id", "ghost", "echo"))
	w.must(exitRefused, "calls", "resend", "--by", "oncall", "ghost", "{}")
	if r := decode[reply](t, w.must(exitDone, "calls", "outcome", "--json", "ghost")); fmt.Sprint(r.Seqs) != fmt.Sprint(first.Seqs) || r.Status != "complete" {
		t.Errorf("outcome: %+v, the reply was %+v", r, first)
	}
	s.stop(syscall.SIGTERM)
}

func TestWhatCannotBeSentAsItWasTypedIsAUsageError(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	for _, args := range [][]string{{"--timeout", "100us", "echo"}, {"--wait", "1ns", "echo"}, {"--host", "../x", "echo"}, {"echo", "{\"a\":\"\xff\"}"}} {
		w.must(exitConfig, append([]string{"call", "--once"}, args...)...)
	}
}
