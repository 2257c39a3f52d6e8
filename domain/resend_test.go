package domain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// A failing is one way in which an exchange fails, and what is known then.
type failing struct {
	name string
	fail func(*world) []Event
	rule string // by which it may be sent again whatever the tool; "" for none
	lost bool   // the transport is gone and the request may have been written
	end  string // of a call that is not sent again
}

func failings() []failing {
	answered := func(f Facts) func(*world) []Event { return func(w *world) []Event { return w.answers("c", f) } }
	failed := func(written string, code Code) func(*world) []Event {
		return func(w *world) []Event {
			x := w.exchange("c")
			return w.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Call: x.Call, Written: written, Code: code})
		}
	}
	offers := Facts{Kind: FactError, ErrorCode: -32022, Supported: "2026-07-28"}
	wants := Facts{Kind: FactError, ErrorCode: -32021, Required: []string{"roots"}}
	const rejected = "protocol_error peer_error no"
	return []failing{
		{"never written", failed("no", CodeTransportLost), RuleNeverWritten, false, "lost transport_lost no"},
		{"maybe written", failed("maybe", CodeTransportLost), "", true, "lost transport_lost maybe"},
		{"nothing said of the write", failed("", CodeTransportLost), "", true, "lost transport_lost maybe"},
		{"too large to write", failed("no", CodeRequestTooLarge), "", false, "lost request_too_large no"},
		{"an answer too large", failed("maybe", CodeFrameTooLarge), "", false, "lost frame_too_large maybe"},
		{"-32020", answered(rejects(-32020)), RuleHeader, false, rejected},
		{"-32021 for what the host declared", answered(wants), "", false, rejected},
		{"-32021 for nothing", answered(rejects(-32021)), "", false, rejected},
		{"-32022 offering ours", answered(offers), RuleVersion, false, rejected},
		{"-32022 offering nothing", answered(rejects(-32022)), "", false, rejected},
		{"another error", answered(rejects(-32000)), "", false, "protocol_error peer_error maybe"},
		{"a broken answer", answered(Facts{Kind: FactBroken}), "", false, "protocol_error bad_result maybe"},
		{"a tool error", answered(Facts{Kind: FactResult, ResultType: "complete", IsError: true}), "", false, "tool_error tool_error yes"},
		{"deadline", func(w *world) []Event { return w.passes("c", false) }, "", false, "timed_out timed_out maybe"},
		{"deadline, never written", func(w *world) []Event {
			x := w.exchange("c")
			return w.see(DeadlinePassed{At: x.At, RequestID: x.RequestID, Written: "no"})
		}, "", false, "timed_out timed_out no"},
		{"cancelled", func(w *world) []Event { return w.see(CallCancelled{CallID{"local", "c"}, "host"}) }, "", false, "cancelled cancelled maybe"},
		{"the service starts again", func(w *world) []Event { return w.see(ServiceStarted{}) }, "", false, "lost service_restarted maybe"},
		{"the service stops", func(w *world) []Event { return w.see(ServiceStopped{}) }, "", false, "cancelled shutting_down maybe"},
	}
}

// A ground is what may let a tool run twice.
type ground struct {
	name  string
	set   func(*PeerConfig)
	hints string // annotations of the tool
	key   bool   // the arguments carry the configured key
	rule  string // "" where it lets nothing run twice
}

func grounds() []ground {
	key := func(p *PeerConfig) { p.Idempotency = map[string]string{"x": "key"} }
	trust := func(p *PeerConfig) { p.TrustHints = true }
	nothing := func(*PeerConfig) {}
	return []ground{
		{"nothing", nothing, `{}`, false, ""},
		{"repeatable", func(p *PeerConfig) { p.Repeatable = []string{"x"} }, `{}`, false, RuleRepeatable},
		{"another tool is repeatable", func(p *PeerConfig) { p.Repeatable = []string{"y"} }, `{}`, false, ""},
		{"a key that is there", key, `{}`, true, RuleKey},
		{"a key that is not there", key, `{}`, false, ""},
		{"a key of another tool", func(p *PeerConfig) { p.Idempotency = map[string]string{"y": "key"} }, `{}`, true, ""},
		{"a key that is not configured", nothing, `{}`, true, ""},
		{"hints not trusted", nothing, `{"readOnlyHint":true,"idempotentHint":true}`, false, ""},
		{"trusted, read-only", trust, `{"readOnlyHint":true}`, false, RuleHints},
		{"trusted, idempotent", trust, `{"idempotentHint":true}`, false, RuleHints},
		{"trusted, without hints", trust, `{}`, false, ""},
		{"trusted, hints denied", trust, `{"readOnlyHint":false,"idempotentHint":"true","destructiveHint":false}`, false, ""},
	}
}

// TestResendTable: every way an exchange can fail against everything that may
// let it be sent again (protocol: Calls). What is not named is sent once.
func TestResendTable(t *testing.T) {
	for _, f := range failings() {
		for _, g := range grounds() {
			for resends := range 3 {
				for _, era := range []Era{EraModern, EraLegacy} {
					name := fmt.Sprintf("%s, %s, resends %d, %s", f.name, g.name, resends, era)
					t.Run(name, func(t *testing.T) { resendRow(t, f, g, resends, era) })
				}
			}
		}
	}
}

func resendWorld(t *testing.T, g ground, resends int, era Era) *world {
	w := newWorld(t)
	w.start(fireConfig(g.set, func(p *PeerConfig) {
		p.Resends, p.AllowLegacy, p.Capabilities = resends, true, jsontext.Value(`{"roots":{}}`)
	}))
	w.ready("b", "z")
	w.up(era, g.hints)
	w.submit("c", "x", can(`{"roots":{}}`), func(d *CallReceived) { d.CarriesKey = g.key })
	return w
}

// up brings the peer "a" up in an era, with a tool x of these hints.
func (w *world) up(era Era, hints string) {
	w.spawned("a")
	list := listPage("", "x", "y")
	if era == EraLegacy {
		w.probed("a", notFound)
		w.probed("a", legacyResult)
	} else {
		w.probed("a", discoverResult)
		list = toolList("x", "y")
	}
	w.listed("a", strings.Replace(list, `"name":"x"`, `"annotations":`+hints+`,"name":"x"`, 1))
}

func resendRow(t *testing.T, f failing, g ground, resends int, era Era) {
	want := f.rule
	if f.lost {
		want = g.rule
	}
	answered := want == RuleHeader || want == RuleVersion
	if resends == 0 || answered && era == EraLegacy {
		want = ""
	}
	w := resendWorld(t, g, resends, era)
	out := f.fail(w)
	switch {
	case want == "":
		notSentAgain(t, w, f, out, era)
		return
	case answered:
		sentAgain(t, w, out, want)
	default:
		heldThenSentAgain(t, w, out, want, era, g.hints)
	}
	// The second time: a rejection is answered once, the rest as often as configured.
	out = f.fail(w)
	if answered || resends == 1 {
		notSentAgain(t, w, f, out, era)
		return
	}
	heldThenSentAgain(t, w, out, want, era, g.hints)
	notSentAgain(t, w, f, f.fail(w), era)
}

// notSentAgain: the call has its end, and nothing that comes later changes that.
func notSentAgain(t *testing.T, w *world, f failing, out []Event, era Era) {
	t.Helper()
	want := f.end
	if era == EraLegacy && want == "protocol_error peer_error no" { // the codes mean nothing in that era
		want = "protocol_error peer_error maybe"
	}
	ends(t, out, want)
	sent := w.attempts("c")
	w.answers("c", complete)
	w.loses("c", "no")
	w.passes("c", true)
	w.waited("c")
	w.see(CallCancelled{CallID{"local", "c"}, "host"})
	if n := len(all[CallSettled](w.log)); n != 1 || w.attempts("c") != sent {
		t.Errorf("settled %d times, sent %d times more", n, w.attempts("c")-sent)
	}
	w.idle()
}

// sentAgain: at once, under a new id, by this rule, inside the time of the first.
func sentAgain(t *testing.T, w *world, out []Event, rule string) {
	t.Helper()
	d := must[CallResent](t, out)
	x := w.exchange("c")
	if d.Rule != rule || d.By != "" || d.RequestID <= d.After || d.Attempt != w.attempts("c") || d.At != w.at("a") ||
		x.RequestID != d.RequestID || x.Tool != "x" || string(x.Capabilities) != string(d.Capabilities) {
		t.Fatalf("sent again as %+v, want %s", d, rule)
	}
	if end(out) != "" || w.s.InFlight() != 1 || w.s.Peer("a").calls != 1 {
		t.Fatalf("%v; %d calls under way, %d at the peer", kinds(out), w.s.InFlight(), w.s.Peer("a").calls)
	}
}

// heldThenSentAgain: the transport is gone, and the call waits for the next one.
func heldThenSentAgain(t *testing.T, w *world, out []Event, rule string, era Era, hints string) {
	t.Helper()
	d := must[CallHeld](t, out)
	if d.Rule != rule || d.Peer != "a" || d.Wait != resendWait || d.Code != CodeTransportLost || (d.Ran == RanNo) != (rule == RuleNeverWritten) {
		t.Fatalf("held as %+v, want %s", d, rule)
	}
	sent := w.attempts("c")
	if w.loses("c", "no"); w.attempts("c") != sent || w.s.InFlight() != 1 || w.s.Peer("a").calls != 0 {
		t.Fatalf("%d requests, %d calls under way, %d at the peer", w.attempts("c"), w.s.InFlight(), w.s.Peer("a").calls)
	}
	w.exited("a")
	before := len(w.log)
	w.ms(50)
	w.up(era, hints)
	sentAgain(t, w, w.log[before:], rule)
}

// TestAHeldCallIsNotEndedByItsOldExchange: what is said of a request that has
// failed already is late, whatever it is.
func TestAHeldCallIsNotEndedByItsOldExchange(t *testing.T) {
	w := fire(t, resends(1))
	w.submit("c", "x")
	must[CallHeld](t, w.loses("c", "no"))
	sameKinds(t, w.answers("c", complete), "answer.dropped")
	sameKinds(t, w.answers("c", rejects(-32020)), "answer.dropped")
	sameKinds(t, w.passes("c", false))
	sameKinds(t, w.loses("c", "maybe"))
	if !w.s.UnderWay("local/c") || w.s.Peer("a").calls != 0 {
		t.Error("the call has ended, or is counted at the peer")
	}
}

// TestSentAgainAtOnceWhereThePeerIsBack: the loss may be reported after the next
// incarnation is ready.
func TestSentAgainAtOnceWhereThePeerIsBack(t *testing.T) {
	w := fire(t, resends(1))
	w.submit("c", "x")
	w.exited("a")
	w.ready("a", "x", "y")
	out := w.loses("c", "no")
	sameKinds(t, out, "call.resent")
	sentAgain(t, w, out, RuleNeverWritten)
}

// TestNoTimeIsLeftToSendAgain: the clock of the first exchange goes on.
func TestNoTimeIsLeftToSendAgain(t *testing.T) {
	for _, c := range []struct {
		after, wait, deadline int64
	}{{0, 5_000, 60_000}, {56_000, 4_000, 4_000}, {59_999, 1, 1}, {60_000, 0, 0}, {70_000, 0, 0}} {
		w := fire(t, resends(1))
		w.submit("c", "x")
		w.ms(c.after)
		out := w.loses("c", "no")
		if c.wait == 0 {
			ends(t, out, "lost transport_lost no")
			continue
		}
		if d := must[CallHeld](t, out); d.Wait != c.wait {
			t.Errorf("after %d ms it waits %d ms, want %d", c.after, d.Wait, c.wait)
		}
		w.exited("a")
		before := len(w.log)
		w.ready("a", "x", "y")
		if d := must[CallResent](t, w.log[before:]); d.Deadline != c.deadline || d.Limit != 0 || d.Idle != 0 {
			t.Errorf("after %d ms it is sent again with %+v, want a deadline of %d", c.after, d, c.deadline)
		}
	}
}

// TestAPeerThatIsNotBackInTime ends what waits to be sent again to it.
func TestAPeerThatIsNotBackInTime(t *testing.T) {
	for name, then := range map[string]func(w *world) []Event{
		"the wait is over": func(w *world) []Event { return w.waited("c") },
		"quarantine":       func(w *world) []Event { return w.exited("a") },
		"a rule of the probe": func(w *world) []Event {
			w.revives("a")
			w.spawned("a")
			return w.probed("a", `{"jsonrpc":"2.0","id":$ID,"result":{"ok":true}}`)
		},
		"the tool is gone": func(w *world) []Event {
			w.spawned("a")
			w.probed("a", discoverResult)
			return w.listed("a", toolList("y"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := fire(t, resends(1), func(p *PeerConfig) { p.Repeatable, p.Attempts = []string{"x"}, 1 })
			w.submit("c", "x")
			must[CallHeld](t, w.loses("c", "maybe"))
			ends(t, w.exited("a"), "")
			if name == "quarantine" {
				w.spawned("a")
			}
			ends(t, then(w), "lost transport_lost maybe")
			w.idle()
			w.waited("c")
			if n := w.attempts("c"); n != 1 || len(all[CallSettled](w.log)) != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

// TestTheConfigurationInForceSaysWhetherToSendAgain: also where the call was held
// under another.
func TestTheConfigurationInForceSaysWhetherToSendAgain(t *testing.T) {
	repeatable := func(p *PeerConfig) { p.Repeatable = []string{"x"} }
	for name, now := range map[string]func(*PeerConfig){"never again": repeatable, "not repeatable": resends(1)} {
		w := fire(t, resends(1), repeatable)
		w.submit("c", "x")
		must[CallHeld](t, w.loses("c", "maybe"))
		w.load(fireConfig(now))
		before := len(w.log)
		w.ready("a", "x", "y")
		if got := end(w.log[before:]); got != "lost transport_lost maybe" || w.attempts("c") != 1 {
			t.Errorf("%s: %q, sent %d times", name, got, w.attempts("c"))
		}
	}
}

// TestALongPauseEndsWhatWaits: a process that worked, and whose next start is
// further away than a call may wait.
func TestALongPauseEndsWhatWaits(t *testing.T) {
	w := fire(t, resends(1), func(p *PeerConfig) { p.Attempts = 1 })
	w.exited("a")
	w.ready("a", "x", "y")
	w.submit("c", "x")
	must[CallHeld](t, w.loses("c", "no"))
	w.submit("d", "y")
	out := w.exited("a")
	sameKinds(t, out, "peer.quarantined", "peer.restarted", "call.settled")
	ends(t, out, "lost transport_lost no")
	if !w.s.UnderWay("local/d") { // its own exchange.failed ends it
		t.Error("a call ended that was not held")
	}
}

// TestRejectedForACapability: sent again only where more can be declared than
// was, and only what the host can do.
func TestRejectedForACapability(t *testing.T) {
	for _, c := range []struct {
		name, host, declared, later string
		required                    []string
		again                       bool
	}{
		{"more is allowed", `{"roots":{}}`, `{}`, `{"roots":{}}`, []string{"roots"}, true},
		{"declared already", `{"roots":{}}`, `{"roots":{}}`, `{"roots":{}}`, []string{"roots"}, false},
		{"the host cannot", `{"sampling":{}}`, `{}`, `{"roots":{}}`, []string{"roots"}, false},
		{"nobody defined it", `{"roots":{}}`, `{}`, `{"roots":{}}`, []string{"?"}, false},
		{"one of two", `{"roots":{}}`, `{}`, `{"roots":{}}`, []string{"roots", "sampling"}, false},
		{"nothing is named", `{"roots":{}}`, `{}`, `{"roots":{}}`, nil, false},
	} {
		w := fire(t, resends(2), func(p *PeerConfig) { p.Capabilities = jsontext.Value(c.declared) })
		w.submit("c", "x", can(c.host))
		w.s.Peer("a").Config.Capabilities = jsontext.Value(c.later)
		out := w.answers("c", Facts{Kind: FactError, ErrorCode: -32021, Required: c.required})
		if !c.again {
			ends(t, out, "protocol_error peer_error no")
			continue
		}
		sentAgain(t, w, out, RuleCapability)
		if d := must[CallResent](t, out); string(d.Capabilities) != c.later {
			t.Errorf("%s: declared %s", c.name, d.Capabilities)
		}
		ends(t, w.answers("c", Facts{Kind: FactError, ErrorCode: -32021, Required: c.required}), "protocol_error peer_error no")
	}
}

// TestOnlySoOftenInAll: rules of several kinds count together.
func TestOnlySoOftenInAll(t *testing.T) {
	offers := Facts{Kind: FactError, ErrorCode: -32022, Supported: "2026-07-28"}
	w := fire(t, resends(2))
	w.submit("c", "x")
	sentAgain(t, w, w.answers("c", rejects(-32020)), RuleHeader)
	sentAgain(t, w, w.answers("c", offers), RuleVersion)
	ends(t, w.loses("c", "no"), "lost transport_lost no")
	w.idle()
}

// TestADuplicateTouchesNobodyElsesCall: whoever comes under an id that is taken
// is refused, and the call that has it goes on.
func TestADuplicateTouchesNobodyElsesCall(t *testing.T) {
	w := fire(t, resends(1))
	w.submit("sent", "x")
	w.submit("lost", "x")
	w.loses("lost", "no")
	w.exited("a")
	w.submit("held", "x", waits(9_000))
	for _, id := range []string{"sent", "lost", "held"} {
		for code, change := range map[Code]func(*CallReceived){
			CodeDuplicateCall: func(*CallReceived) {},
			CodeBadRequest:    func(d *CallReceived) { d.Problem = "no tool" },
			CodeNotWaiting:    func(d *CallReceived) { d.Input = &Payload{} },
		} {
			ends(t, w.submit(id, "y", change), "refused "+string(code))
			if !w.s.UnderWay("local/" + id) {
				t.Fatalf("%s came under the id of %s, which is gone", code, id)
			}
		}
	}
	if w.s.InFlight() != 3 || len(w.s.byRequest) != 1 || w.s.Peer("a").calls != 1 {
		t.Errorf("%d calls, %d requests, %d at the peer", w.s.InFlight(), len(w.s.byRequest), w.s.Peer("a").calls)
	}
	ends(t, w.answers("sent", complete), "complete  yes")
	ends(t, w.waited("held"), "refused peer_unavailable")
	ends(t, w.waited("lost"), "lost transport_lost no")
	w.idle()
}
