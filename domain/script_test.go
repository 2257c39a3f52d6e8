package domain

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what follows from each observation in testdata/*.txt")

// TestScripts plays testdata/*.txt. A script is a paragraph of purpose, an empty
// line, and then observations with what follows from them:
//
//	> OBSERVATION ARGUMENTS     one thing that the world says
//	  DECISION FACTS            what is decided, as JSON; digests are cut short
//	    -> EFFECT               what that decision releases once it is durable
//
// The observations:
//
//	start POLICY PEER...        service.started and config.loaded; PEER+legacy sets allow_legacy, PEER+fire the
//	                            rules of underFire for the peer "a"; PEER+http makes an endpoint of it, which
//	                            keeps its lists, is asked in two contexts, and sends a call again twice
//	clock DURATION              no observation: time passes
//	spawned PEER                its process runs
//	unspawned PEER CODE         its process could not be started
//	exited PEER STATUS          its process ended
//	says PEER FRAME             a frame before the era is known; $ID is the id of the request sent last
//	lists PEER FRAME            an answer to its tools/list
//	tools PEER NAME...          the same: one page with these tools
//	silence PEER                the deadline of the request sent to it last
//	call ID TOOL [GENERATION]   a call of the host "local"
//	patient ID TOOL MS          a call that waits for its peer, of a host that can answer forms
//	input ID TOOL STATE         the host's input to a call, with the requestState it was asked with
//	waited ID                   the time is over for which the call could be held
//	cancel ID                   the host gives the call up
//	mute ID                     the deadline of the call, with no sign of life since it was written
//	listdue PEER                it is time to read its list, of the default context
//	due PEER                    it is time for a sign of life
//	alive PEER                  the answer to that
//	revive PEER                 an operator's command
//	resend ID                   an operator's command, with the arguments of the call
//	answers ID MEMBERS          the answer to the call: the members of a response
//	deadline ID                 the deadline of the call
//	lost ID WRITTEN             the transport of the call is gone; WRITTEN is no or maybe
//	fails PEER CLASS STATUS     HTTP answers its probe without a message; STATUS 0 is for no answer
//	gone PEER CAUSE             its endpoint is given up
//	http ID CODE STATUS         HTTP answers the call without a message
//	stop                        service.stopped
//
// With -update the decisions and effects are written anew.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scripts, want at least 10 (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if again := play(t, string(want)); again != got {
				t.Fatalf("played twice, it came out differently:\n%s\n%s", got, again)
			}
			if got == string(want) {
				return
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("run with -update if this is meant: %s", firstDifference(got, string(want)))
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d is\n%s\nwant\n%s", i+1, g[i], strings.Join(w[min(i, len(w)):min(i+1, len(w))], ""))
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// play returns a script with what follows from its observations.
func play(t testing.TB, script string) string {
	t.Helper()
	purpose, rest, ok := strings.Cut(script, "\n\n")
	if !ok || strings.HasPrefix(purpose, ">") || len(purpose) < 80 {
		t.Fatal("a script begins with a paragraph that says what it is for, and an empty line")
	}
	w := newWorld(t)
	var out bytes.Buffer
	out.WriteString(purpose + "\n")
	for _, line := range strings.Split(rest, "\n") {
		command, isCommand := strings.CutPrefix(line, "> ")
		if !isCommand {
			continue
		}
		fmt.Fprintf(&out, "\n> %s\n", command)
		for _, e := range w.obey(command) {
			writeEvent(t, &out, e)
		}
	}
	return out.String()
}

var longDigest = regexp.MustCompile(`"([0-9a-f]{8})[0-9a-f]{56}"`)

func writeEvent(t testing.TB, out *bytes.Buffer, e Event) {
	fmt.Fprintf(out, "  %s\n", longDigest.ReplaceAllString(facts(t, e.Data), `"$1"`))
	for _, effect := range Effects(e) {
		fmt.Fprintf(out, "    -> %s\n", effectWords(effect))
	}
}

func effectWords(effect Effect) string {
	where := func(at At) string { return fmt.Sprintf("%s.%d", at.Peer, at.Incarnation) }
	switch x := effect.(type) {
	case Launch:
		return "launch " + where(x.At)
	case Send:
		s := fmt.Sprintf("send %s under %d to %s, %s %s declaring %s, within %d ms", x.Method, x.RequestID, where(x.At), x.Era, x.Version, x.Capabilities, x.Deadline)
		if x.Cursor != nil {
			s += fmt.Sprintf(", at cursor %q", *x.Cursor)
		}
		if x.Call != "" {
			s += fmt.Sprintf(", tool %s for %s", x.Tool, x.Call)
		}
		if x.Limit > 0 {
			s += fmt.Sprintf(", %d ms after progress, %d ms in all", x.Idle, x.Limit)
		}
		return s
	case SelectEra:
		return fmt.Sprintf("speak %s %s with %s", x.Era, x.Version, where(x.At))
	case Withdraw:
		return fmt.Sprintf("withdraw %d from %s", x.RequestID, where(x.At))
	case Stop:
		if x.Kill {
			return "kill " + where(x.At)
		}
		return "stop " + where(x.At)
	case Wake:
		return fmt.Sprintf("wake %s after %d ms", x.Call, x.After)
	case Remind:
		return fmt.Sprintf("remind of %s after %d ms", where(x.At), x.After)
	case Answer:
		return "answer " + x.Call
	case Halt:
		return "halt " + string(x.Code)
	}
	return fmt.Sprintf("%T", effect)
}

// obey feeds the observation that a line of a script names.
func (w *world) obey(command string) []Event {
	w.t.Helper()
	verb, rest, _ := strings.Cut(command, " ")
	first, tail, _ := strings.Cut(rest, " ")
	switch verb {
	case "start":
		return w.start(scriptConfig(first, strings.Fields(tail)))
	case "clock":
		w.now += w.duration(first)
		return nil
	case "call", "answers", "deadline", "lost", "http", "patient", "input", "waited", "cancel", "mute", "resend":
		return w.obeyCall(verb, first, tail)
	case "stop":
		return w.see(ServiceStopped{Reason: "signal"})
	case "spawned":
		return w.spawned(first)
	case "unspawned":
		return w.see(SpawnFailed{At: w.at(first), Code: Code(tail), Reason: "start " + first + "-server: refused"})
	case "exited":
		return w.see(PeerExited{At: w.at(first), Status: w.number(tail), Cause: "exited"})
	case "says":
		return w.probed(first, tail)
	case "fails":
		class, status, _ := strings.Cut(tail, " ")
		return w.failed(first, class, w.number(status))
	case "gone":
		return w.leaves(first, tail)
	case "lists":
		return w.listed(first, tail)
	case "tools":
		return w.listed(first, toolList(strings.Fields(tail)...))
	case "silence":
		return w.silent(first)
	case "listdue":
		return w.see(ListDue{At: w.at(first)})
	case "due":
		return w.see(HealthDue{At: w.at(first)})
	case "alive":
		return w.see(HealthAnswered{At: w.at(first), RequestID: w.last(first).RequestID})
	case "revive":
		return w.revives(first)
	}
	w.t.Fatalf("no observation %q", verb)
	return nil
}

func (w *world) obeyCall(verb, id, tail string) []Event {
	w.t.Helper()
	if verb == "call" {
		tool, generation, _ := strings.Cut(tail, " ")
		d := CallReceived{CallID: CallID{"local", id}, Tool: tool, Arguments: Payload{Size: 2}}
		if generation != "" {
			d.Generation = int64(w.number(generation))
		}
		return w.see(d)
	}
	tool, more, _ := strings.Cut(tail, " ")
	switch verb {
	case "patient":
		return w.submit(id, tool, can(`{"elicitation":{"form":{}}}`), waits(int64(w.number(more))))
	case "input":
		return w.goesOn(id, tool, more)
	case "waited":
		return w.waited(id)
	case "cancel":
		return w.see(CallCancelled{CallID: CallID{"local", id}, By: "host"})
	case "resend":
		return w.resends(id)
	}
	return w.obeyExchange(verb, id, tail)
}

// obeyExchange feeds what became of the last exchange of a call.
func (w *world) obeyExchange(verb, id, tail string) []Event {
	w.t.Helper()
	x := w.exchange(id)
	switch verb {
	case "answers":
		m, err := ParseMessage([]byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, x.RequestID, tail)))
		if err != nil {
			w.t.Fatalf("answer %s: %v", tail, err)
		}
		a := ReadAnswer(m)
		d := CallAnswered{CallID: CallID{"local", id}, At: x.At, RequestID: x.RequestID, Facts: a.Facts}
		if a.RequestState != nil {
			state := StateText(a.RequestState)
			d.RequestState = &Payload{Size: int64(len(state)), HMAC: string(state)}
		}
		return w.see(d)
	case "deadline":
		return w.see(DeadlinePassed{At: x.At, RequestID: x.RequestID})
	case "mute":
		return w.passes(id, true)
	case "http":
		code, status, _ := strings.Cut(tail, " ")
		return w.unanswered(id, "maybe", Code(code), w.number(status))
	}
	return w.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Written: tail, Code: CodeTransportLost})
}

func (w *world) number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// duration reads minutes or seconds, as "9m" or "30s".
func (w *world) duration(s string) int64 {
	n := int64(w.number(s[:len(s)-1])) * 1_000_000_000
	if s[len(s)-1] == 'm' {
		n *= 60
	}
	return n
}

func scriptConfig(policy string, peers []string) Config {
	c := testConfig(policy)
	for _, p := range peers {
		name, legacy := strings.CutSuffix(p, "+legacy")
		name, fire := strings.CutSuffix(name, "+fire")
		name, http := strings.CutSuffix(name, "+http")
		pc := testPeer(name)
		pc.AllowLegacy, pc.Capabilities = legacy, []byte(`{"elicitation":{"form":{}}}`)
		if fire {
			underFire(&pc)
		}
		if http {
			httpPeer(&pc)
			pc.Resends, pc.Contexts, pc.Lists = 2, []string{"alice", DefaultContext}, &ListRules{Interval: 1_000, Stale: 3_600_000}
		}
		c.Peers = append(c.Peers, pc)
	}
	return c
}
