package domain

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// httpPeer makes an endpoint of a peer.
func httpPeer(p *PeerConfig) {
	p.Transport, p.Command, p.Endpoint = TransportHTTP, "", "https://"+p.Name+".example/mcp"
}

// httpWorld is one endpoint that has been asked what it is.
func httpWorld(t testing.TB, allowLegacy bool, contexts ...string) *world {
	w := newWorld(t)
	c := testConfig(PrefixOnCollision, "archive")
	p := &c.Peers[0]
	httpPeer(p)
	p.AllowLegacy, p.Contexts = allowLegacy, contexts
	p.Capabilities = jsontext.Value(`{"sampling":{},"elicitation":{"form":{}},"experimental":{"flag":true}}`)
	w.start(c)
	w.spawned("archive")
	return w
}

func (r row) overHTTP(t testing.TB, allowLegacy bool) *world {
	w := httpWorld(t, allowLegacy)
	for _, do := range r.steps {
		do(w, "archive")
	}
	return w
}

// TestProbeTableOverHTTP runs every row with allow_legacy off and on (design,
// Streamable HTTP).
func TestProbeTableOverHTTP(t *testing.T) {
	var summary strings.Builder
	for _, r := range httpRows() {
		for _, allow := range []bool{false, true} {
			want := r.off
			if allow {
				want = r.on
			}
			t.Run(fmt.Sprintf("%s/allow_legacy %t", strings.ReplaceAll(r.name, "/", " "), allow), func(t *testing.T) {
				w := r.overHTTP(t, allow)
				got := w.outcome()
				fmt.Fprintf(&summary, "%-72s %-5t  %-66s  %s\n", r.name, allow, got, r.source)
				if got != want {
					t.Errorf("%s: %s, want %s", r.source, got, want)
				}
				checkProbes(t, w, allow)
				checkGrounds(t, w)
				closesWithWords(t, w)
			})
		}
	}
	t.Logf("%d rows\n%s", len(httpRows()), summary.String())
}

// checkGrounds: initialize follows from an ambiguous answer to the server/discover
// that was waited for, and from nothing else.
func checkGrounds(t *testing.T, w *world) {
	t.Helper()
	waited := int64(0)
	for _, e := range w.log {
		d, ok := e.Data.(ProbeIssued)
		if !ok {
			continue
		}
		if d.Method == MethodInitialize && !ambiguousAnswer(w.log[e.Cause-1], waited) {
			t.Errorf("initialize follows from %s", facts(t, w.log[e.Cause-1].Data))
		}
		waited = d.RequestID
	}
}

// ambiguousAnswer is a reading of its own of what is ambiguous over HTTP.
func ambiguousAnswer(e Event, waited int64) bool {
	switch d := e.Data.(type) {
	case ProbeFailed:
		return d.RequestID == waited && d.Class == "ambiguous"
	case ProbeAnswered:
		m, err := ParseMessage(e.Evidence)
		id, ok := m.RequestID()
		if err != nil || !ok || id != waited || !m.Is2() || m.Method != nil || d.Modern {
			return false
		}
		empty := m.Error == nil && (string(m.Result) == "{}" || string(m.Result) == "null")
		code, _, coded := rpcError(m.Error)
		return empty || m.Result == nil && coded && (code > -32020 || code < -32022)
	}
	return false
}

// closesWithWords: a closing has a listed code and one sentence that says what
// comes next.
func closesWithWords(t *testing.T, w *world) {
	t.Helper()
	for _, d := range all[EraRefused](w.log) {
		if !slices.Contains(Codes(), d.Code) || d.Reason == "" || len(d.Reason) > 420 || strings.ContainsAny(d.Reason, "\n\r") {
			t.Errorf("%+v", d)
		}
		if !slices.ContainsFunc([]string{"no downgrade is made", "stays closed", "set allow_legacy for this peer", "never taken for a legacy server",
			"it is tried again", "waybill peers revive archive", "the endpoint was given up"}, func(s string) bool { return strings.Contains(d.Reason, s) }) {
			t.Errorf("the reason says nothing of what follows: %q", d.Reason)
		}
		if strings.Contains(d.Reason, "process") {
			t.Errorf("an endpoint is no process: %q", d.Reason)
		}
		if want := d.Code == CodeUnavailable; want != strings.Contains(d.Reason, "tried again") && !strings.Contains(d.Reason, "given up") {
			t.Errorf("%s: %q", d.Code, d.Reason)
		}
	}
}

// TestNothingFollowsAClosingOverHTTP feeds all that can still come after each row.
// What is tried again is a fresh incarnation, which begins with server/discover.
func TestNothingFollowsAClosingOverHTTP(t *testing.T) {
	after := func() []step {
		steps := afterwards()
		for _, o := range outcomesOfHTTP() {
			steps = append(steps, fails(o.class, o.status))
		}
		return append(steps, lateFailure(ClassAmbiguous), lateFailure(ClassUnauthorized))
	}
	for _, r := range httpRows() {
		for _, allow := range []bool{false, true} {
			for first := 0; first < len(after()); first += 1 + len(r.name)%5 {
				w := r.overHTTP(t, allow)
				at, sent, closed, inits := w.at("archive"), len(w.sends), strings.HasPrefix(w.outcome(), "closed"), w.count(MethodInitialize)
				for i, steps := 0, after(); i < len(steps); i++ {
					if w.at("archive") != at {
						break // another incarnation, which has heard nothing yet
					}
					steps[(first+i)%len(steps)](w, "archive")
				}
				for _, x := range w.sends[sent:] {
					if closed && x.At == at || r.modern && x.At == at && x.Method == MethodInitialize {
						t.Errorf("%s, allow_legacy %t, storm %d: %s is sent", r.name, allow, first, x.Method)
					}
				}
				if n := w.count(MethodInitialize); n > 1 || n > inits && (!allow || closed || r.modern) {
					t.Errorf("%s, allow_legacy %t, storm %d: %d initialize", r.name, allow, first, n)
				}
				checkGrounds(t, w)
			}
		}
	}
}

// TestAnotherCredentialIsTried: a credential that is refused says nothing about the
// peer; the next context asks, once each, and what was learned stays learned.
func TestAnotherCredentialIsTried(t *testing.T) {
	w := httpWorld(t, true, "alice", "bob")
	if x := w.last("archive"); x.Context != "alice" || x.Method != MethodDiscover {
		t.Fatalf("the first probe is %+v", x)
	}
	d := must[ProbeIssued](t, w.failed("archive", ClassUnauthorized, 401))
	if d.Context != "bob" || d.Authority != AuthorityCredential || d.Attempt != 2 || d.Method != MethodDiscover || d.RequestID <= w.sends[0].RequestID {
		t.Fatalf("%+v", d)
	}
	sameKinds(t, w.failed("archive", ClassUnauthorized, 401)[:1], "era.refused")
	if got := w.outcome(); got != "closed unauthorized" {
		t.Errorf("both refused: %s", got)
	}

	w = httpWorld(t, true, "alice", "bob")
	w.failed("archive", ClassUnauthorized, 403)
	w.probed("archive", discoverResult)
	if got := w.outcome(); got != "modern 2026-07-28" {
		t.Errorf("bob's is good: %s", got)
	}
	for _, x := range w.sends[2:] {
		if x.Method != MethodList {
			t.Errorf("%+v", x)
		}
	}

	w = httpWorld(t, true, "alice", "bob")
	w.failed("archive", ClassUnauthorized, 401)
	d = must[ProbeIssued](t, w.failed("archive", ClassAmbiguous, 404))
	if d.Method != MethodInitialize || d.Context != "bob" {
		t.Errorf("bob's is good, and the answer ambiguous: %+v", d)
	}
	w.failed("archive", ClassUnauthorized, 401)
	if got := w.outcome(); got != "closed unauthorized; initialize sent" {
		t.Errorf("initialize refused: %s", got)
	}

	w = httpWorld(t, true, "alice", "bob")
	must[LegacyExcluded](t, w.probed("archive", `{"jsonrpc":"2.0","id":99,`+modernError+`}`))
	w.failed("archive", ClassUnauthorized, 401)
	w.failed("archive", ClassAmbiguous, 404)
	if got := w.outcome(); got != "closed modern_evidence" {
		t.Errorf("modern behaviour before: %s", got)
	}
}

// TestAnEndpointThatIsNotThereYet: it is tried again, later each time, also where it
// never was up, and quarantined after eight tries; nothing of that is an initialize.
func TestAnEndpointThatIsNotThereYet(t *testing.T) {
	for name, down := range map[string]func(*world) []Event{
		"503": func(w *world) []Event {
			return append(w.failed("archive", ClassUnavailable, 503), w.leaves("archive", "stopped")...)
		},
		"silence": func(w *world) []Event { return append(w.silent("archive"), w.leaves("archive", "stopped")...) },
		"gone":    func(w *world) []Event { return w.leaves("archive", causeUnreachable) },
	} {
		t.Run(name, func(t *testing.T) {
			w := httpWorld(t, true)
			var last int64
			for n := 1; n <= mostAttempts; n++ {
				out := down(w)
				if d := must[EraRefused](t, out); d.Code != CodeUnavailable {
					t.Fatalf("%+v", d)
				}
				d := must[PeerRestarted](t, out)
				if len(all[PeerRestarted](out)) != 1 || d.Attempt != n || d.After != CodeUnavailable || d.By != "" || d.Delay <= last*5/4 && last < longestDelay {
					t.Fatalf("try %d after %d ms: %+v", n, last, d)
				}
				if last = d.Delay; !strings.Contains(w.s.Peer("archive").Reason, fmt.Sprint("attempt ", n)) {
					t.Errorf("nothing is said of try %d: %s", n, w.s.Peer("archive").Reason)
				}
				w.spawned("archive")
			}
			out := down(w)
			q, d := must[PeerQuarantined](t, out), must[PeerRestarted](t, out)
			if q.Attempts != mostAttempts || d.Delay != quarantineDelay {
				t.Fatalf("%+v %+v", q, d)
			}
			w.spawned("archive")
			w.probed("archive", discoverResult)
			if got := w.outcome(); got != "modern 2026-07-28" || w.count(MethodInitialize) != 0 {
				t.Errorf("it is there at last: %s", got)
			}
		})
	}
}

// TestWhatARuleClosedOverHTTPStaysClosed, until an operator revives it.
func TestWhatARuleClosedOverHTTPStaysClosed(t *testing.T) {
	for _, o := range outcomesOfHTTP() {
		if o.discover == "closed unavailable" {
			continue
		}
		w := httpWorld(t, false)
		w.failed("archive", o.class, o.status)
		code := w.s.Peer("archive").Code
		if d := must[CommandRefused](t, w.revives("archive")); d.Code != CodeNotDown {
			t.Errorf("%s: revived before it has ended: %+v", o.name, d)
		}
		sameKinds(t, w.leaves("archive", "stopped"))
		d := must[PeerRestarted](t, w.revives("archive"))
		if d.After != code || d.By != "oncall" || d.Delay != 0 || d.Attempt != 1 {
			t.Errorf("%s: %+v", o.name, d)
		}
		w.spawned("archive")
		w.probed("archive", discoverResult)
		if got := w.outcome(); got != "modern 2026-07-28" {
			t.Errorf("%s: revived, %s", o.name, got)
		}
	}
}

// TestALoadedConfigurationBeginsAnew: what an endpoint was under another one is no
// ground to start it again.
func TestALoadedConfigurationBeginsAnew(t *testing.T) {
	w := httpWorld(t, true)
	w.probed("archive", discoverResult)
	w.load(w.s.Config)
	w.spawned("archive")
	w.failed("archive", ClassUnauthorized, 401)
	sameKinds(t, w.leaves("archive", "stopped"))
}

// TestAnEndpointThatCannotBeMade: what its client is made of may be repaired, so it is
// tried again, also at first; what differs from its pin is not.
func TestAnEndpointThatCannotBeMade(t *testing.T) {
	for code, again := range map[Code]bool{CodeSpawnFailed: true, CodePinMismatch: false, CodeNotPinned: false} {
		w := newWorld(t)
		c := testConfig(PrefixOnCollision, "archive")
		httpPeer(&c.Peers[0])
		w.start(c)
		out := w.see(SpawnFailed{At: w.at("archive"), Code: code, Reason: "its CA cannot be read"})
		must[PeerRefused](t, out)
		if d, ok := find[PeerRestarted](out); ok != again || ok && (d.Attempt != 1 || d.Delay < firstDelay) {
			t.Errorf("%s: %v", code, kinds(out))
		}
	}
}

// TestAnEndpointSaysWhatItIs: there is no process in what is said of one.
func TestAnEndpointSaysWhatItIs(t *testing.T) {
	for cause, words := range map[string]string{causeUnreachable: "could not be reached", causeSessionGone: "session is gone", causeSessionRefused: "refused its session"} {
		w := httpWorld(t, false)
		w.probed("archive", discoverResult)
		w.listed("archive", toolList("x"))
		w.leaves("archive", cause)
		r := w.s.Report("log").Peers[0]
		if *r.Code != CodeUnavailable || !strings.Contains(*r.Reason, words) || strings.Contains(*r.Reason, "process") || r.LastExit.Cause != cause || r.LastExit.StderrSize != 0 {
			t.Errorf("%s: %+v, %s", cause, r, *r.Reason)
		}
	}
}

// TestLongReasonsAreClipped: whatever repeats a reason fits an event.
func TestLongReasonsAreClipped(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	w := httpWorld(t, false)
	x := w.last("archive")
	d := must[EraRefused](t, w.see(ProbeFailed{At: x.At, RequestID: x.RequestID, Class: ClassUnavailable, Status: 503, Reason: long}))
	if len(d.Reason) > 1_200 || !strings.HasPrefix(d.Reason, "server/discover was answered with HTTP 503 (éé") || strings.ContainsRune(d.Reason, '\uFFFD') {
		t.Errorf("%d bytes: %.80q", len(d.Reason), d.Reason)
	}
}
