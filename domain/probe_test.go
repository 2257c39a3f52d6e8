package domain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func probeRows() []row {
	return slices.Concat(discoverRows(), brokenRows(), versionRows(), correctableRows(), uncorrelatedRows(),
		ambiguousRows(), lateRows(), initializeRows())
}

// probeWorld is one peer that has been asked what it is. It may declare two
// capabilities, and speaks two legacy revisions where it may at all.
func probeWorld(t testing.TB, allowLegacy bool) *world {
	w := newWorld(t)
	c := testConfig(PrefixOnCollision, "archive")
	c.Peers[0].AllowLegacy = allowLegacy
	c.Peers[0].LegacyRevisions = []string{"2025-11-25", "2024-11-05"}
	c.Peers[0].Capabilities = []byte(`{"sampling":{},"elicitation":{"form":{}},"experimental":{"flag":true}}`)
	w.start(c)
	w.spawned("archive")
	return w
}

func (r row) run(t testing.TB, allowLegacy bool) *world {
	w := probeWorld(t, allowLegacy)
	for _, do := range r.steps {
		do(w, "archive")
	}
	return w
}

// outcome says in a few words where the determination of the era stands.
func (w *world) outcome() string {
	p := w.s.Peer("archive")
	out := ""
	switch {
	case p.Era != EraUnknown:
		out = fmt.Sprintf("%s %s", p.Era, p.Version)
		if n := len(p.Warnings); n == 1 {
			out += ", 1 warning"
		} else if n > 1 {
			out += fmt.Sprintf(", %d warnings", n)
		}
	case p.probe.closed:
		out = "closed " + string(p.Code)
	default:
		issued := all[ProbeIssued](w.log)
		out = fmt.Sprintf("waits for %s (%s)", p.probe.method, issued[len(issued)-1].Authority)
	}
	if w.count(MethodInitialize) > 0 {
		out += "; initialize sent"
	}
	return out
}

// TestProbeTable runs every row of the probe table with allow_legacy off and on.
func TestProbeTable(t *testing.T) {
	var summary strings.Builder
	cases := 0
	for _, r := range probeRows() {
		for _, allow := range []bool{false, true} {
			want, name := r.off, "off"
			if allow {
				want, name = r.on, "on"
			}
			t.Run(strings.ReplaceAll(r.name, "/", " ")+"/allow_legacy "+name, func(t *testing.T) {
				w := r.run(t, allow)
				got := w.outcome()
				cases++
				fmt.Fprintf(&summary, "%-72s %-3s  %-66s  %s\n", r.name, name, got, r.source)
				if got != want {
					t.Errorf("%s: %s, want %s", r.source, got, want)
				}
				checkProbes(t, w, allow)
				checkClosing(t, w)
			})
		}
	}
	t.Logf("%d cases\n%s", cases, summary.String())
	if cases < 60 {
		t.Errorf("%d cases, want at least 60", cases)
	}
}

// checkProbes holds for every sequence of one peer: one initialize at most, none
// without the operator's word, discover first, ids that only grow.
func checkProbes(t *testing.T, w *world, allow bool) {
	t.Helper()
	if n := w.count(MethodInitialize); n > 1 || n > 0 && !allow {
		t.Errorf("initialize was ordered %d times with allow_legacy %t", n, allow)
	}
	if w.sends[0].Method != MethodDiscover {
		t.Errorf("the first message is %s, want server/discover", w.sends[0].Method)
	}
	for i := 1; i < len(w.sends); i++ {
		if w.sends[i].RequestID <= w.sends[i-1].RequestID {
			t.Errorf("request id %d follows %d", w.sends[i].RequestID, w.sends[i-1].RequestID)
		}
	}
}

// checkClosing: a closing has a listed code and one sentence that names the
// rule, the same in the event and in the report.
func checkClosing(t *testing.T, w *world) {
	t.Helper()
	closings := all[EraRefused](w.log)
	if len(closings) > 1 {
		t.Fatalf("the peer was closed %d times", len(closings))
	}
	for _, d := range closings {
		if !slices.Contains(Codes(), d.Code) {
			t.Errorf("code %q is not listed", d.Code)
		}
		if d.Reason == "" || len(d.Reason) > 320 || strings.ContainsAny(d.Reason, "\n\r") || strings.HasSuffix(d.Reason, ".") {
			t.Errorf("reason is no short sentence: %q", d.Reason)
		}
		if !slices.ContainsFunc([]string{"no downgrade is made", "stays closed", "set allow_legacy for this peer", "never taken for a legacy server"},
			func(s string) bool { return strings.Contains(d.Reason, s) }) {
			t.Errorf("reason names no rule: %q", d.Reason)
		}
		r := w.s.Report("log").Peers[0]
		if r.State != "unavailable" || r.Code == nil || *r.Code != d.Code || r.Reason == nil || *r.Reason != d.Reason {
			t.Errorf("the report says %+v of %+v", r, d)
		}
	}
}

// TestNothingFollowsAClosing feeds all that can still come after each row: after
// a closing nothing is sent any more, and after modern behaviour there is no
// initialize, in this incarnation or in one started for it.
func TestNothingFollowsAClosing(t *testing.T) {
	checked := 0
	for _, r := range probeRows() {
		for _, allow := range []bool{false, true} {
			for first := range afterwards() {
				w := r.run(t, allow)
				sent, closed, inits := len(w.sends), strings.HasPrefix(w.outcome(), "closed"), w.count(MethodInitialize)
				launched := len(all[PeerLaunched](w.log))
				storm(w, first)
				checked++
				if closed && (len(w.sends) != sent || len(all[PeerLaunched](w.log)) != launched) {
					t.Errorf("%s, allow_legacy %t, storm %d: %d requests and %d launches after the closing",
						r.name, allow, first, len(w.sends)-sent, len(all[PeerLaunched](w.log))-launched)
				}
				if r.modern && w.count(MethodInitialize) != inits {
					t.Errorf("%s, allow_legacy %t, storm %d: initialize after modern behaviour", r.name, allow, first)
				}
				checkProbes(t, w, allow)
			}
		}
	}
	t.Logf("%d sequences", checked)
}

// afterwards is what may come after a row: each of them comes first once.
func afterwards() []step {
	return []step{silence, exit, code(-32601), result(`{}`), result(`null`), result(`{"ok":true}`), refused(usable), code(-32020),
		requires(`{"sampling":{}}`), says(discoverResult), says(legacyResult), under("null", modernError), under("99", oldError), spawnNext,
		func(w *world, peer string) {
			for _, x := range slices.Clone(w.sends) {
				w.see(DeadlinePassed{At: x.At, RequestID: x.RequestID})
				w.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Written: "maybe", Code: CodeTransportLost})
			}
		}}
}

// storm feeds all of it, beginning with the given one.
func storm(w *world, first int) {
	steps := afterwards()
	for i := range steps {
		steps[(first+i)%len(steps)](w, "archive")
	}
}

// TestRetriesStampWhatWasAskedFor: what is sent again carries the version and
// the capabilities that the answer asked for, under a new id and deadline.
func TestRetriesStampWhatWasAskedFor(t *testing.T) {
	w := probeWorld(t, false)
	first := w.last("archive")
	if first.Version != "2026-07-28" || string(first.Capabilities) != `{}` || first.Era != EraUnknown || first.Deadline != 10_000 {
		t.Errorf("the first discover is %+v", first)
	}
	again := must[ProbeIssued](t, w.probed("archive", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32021,"message":"","data":{"requiredCapabilities":{ "sampling" : { } }}}}`))
	if string(again.Capabilities) != `{"sampling":{}}` || again.RequestID != first.RequestID+1 || again.Attempt != 2 || again.Deadline != 10_000 {
		t.Errorf("after -32021: %+v", again)
	}
	again = must[ProbeIssued](t, w.probed("archive", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32020,"message":""}}`))
	if string(again.Capabilities) != `{"sampling":{}}` || again.Authority != AuthorityStamp {
		t.Errorf("after -32020: %+v", again)
	}
	era := must[EraDetermined](t, w.probed("archive", discoverResult))
	if string(era.Capabilities) != `{"sampling":{}}` {
		t.Errorf("the era declares %s", era.Capabilities)
	}
	if x := w.last("archive"); x.Method != "tools/list" || x.Era != EraModern || string(x.Capabilities) != `{"sampling":{}}` {
		t.Errorf("the list is asked for with %+v", x)
	}
}

// TestEraLivesAsLongAsItsIncarnation: a fresh probe at each start, none before a
// call, nothing kept across.
func TestEraLivesAsLongAsItsIncarnation(t *testing.T) {
	w := newWorld(t)
	c := testConfig(PrefixOnCollision, "notes")
	w.start(c)
	w.ready("notes", "search")
	for i := range 3 {
		w.call(fmt.Sprint("c", i), "search")
	}
	if n := w.count(MethodDiscover); n != 1 {
		t.Fatalf("%d probes for one incarnation", n)
	}
	w.exited("notes") // incarnation 2 is waiting to be started when the service ends
	if p := w.s.Peer("notes"); p.Era != EraUnknown || p.Version != "" {
		t.Fatalf("the era outlives the process: %s %s", p.Era, p.Version)
	}
	w.start(c)
	w.spawned("notes")
	if x := w.last("notes"); x.Method != MethodDiscover || x.Incarnation != 3 {
		t.Fatalf("a new life begins with %s of incarnation %d", x.Method, x.Incarnation)
	}
}

// TestLegacyNeedsARevision: allow_legacy without a revision to propose is no
// permission for an initialize.
func TestLegacyNeedsARevision(t *testing.T) {
	for _, do := range []step{silence, exit, code(-32601), result(`{}`)} {
		w := newWorld(t)
		c := testConfig(PrefixOnCollision, "archive")
		c.Peers[0].AllowLegacy, c.Peers[0].LegacyRevisions = true, nil
		w.start(c)
		w.spawned("archive")
		do(w, "archive")
		if got := w.outcome(); !strings.HasPrefix(got, "closed ambiguous_") {
			t.Errorf("%s, want a closing as ambiguous", got)
		}
	}
}

// TestExitSaysHow: each cause in words of its own, and none but the peer's own
// end has a second process started.
func TestExitSaysHow(t *testing.T) {
	for _, c := range []struct {
		exit   PeerExited
		code   Code
		words  string
		second bool
	}{
		{PeerExited{Status: 3, Cause: "exited"}, CodeAmbiguousExit, "status 3", true},
		{PeerExited{Status: -1, Signal: "killed", Cause: "exited"}, CodeAmbiguousExit, "signal killed", true},
		{PeerExited{Cause: "stdout_closed"}, CodeAmbiguousExit, "closed its output", true},
		{PeerExited{Cause: "write_failed"}, CodeAmbiguousExit, "closed its input", true},
		{PeerExited{Cause: "watchdog_lost"}, CodeWatchdogLost, "start the service again", false},
		{PeerExited{Cause: "watchdog_lost", Replaced: true}, CodeWatchdogLost, "waybill peers revive", false},
		{PeerExited{Cause: "frame_too_large"}, CodeFrameTooLarge, "limits.frame", false},
	} {
		for _, allow := range []bool{false, true} {
			w := probeWorld(t, allow)
			c.exit.At = w.at("archive")
			out := w.see(c.exit)
			if d, again := find[PeerLaunched](out); again || c.second && allow {
				if !c.second || !allow || d.First != MethodInitialize || d.Incarnation != 2 {
					t.Errorf("%+v with allow_legacy %t: %v", c.exit, allow, kinds(out))
				}
				continue
			}
			if d := must[EraRefused](t, out); d.Code != c.code || !strings.Contains(d.Reason, c.words) {
				t.Errorf("%+v: %+v", c.exit, d)
			}
			checkClosing(t, w)
		}
	}
}

// TestEvidenceOfAnEarlierLifeIsForgotten: it belonged to a process that this
// launch has nothing to do with.
func TestEvidenceOfAnEarlierLifeIsForgotten(t *testing.T) {
	w := probeWorld(t, true)
	w.start(w.s.Config)
	w.spawned("archive")
	exit(w, "archive")
	f := `{"jsonrpc":"2.0","id":1,` + modernError + `}`
	sameKinds(t, w.see(ProbeAnswered{At: At{"archive", 1}, Frame: RefTo([]byte(f))}, f))
	w.spawned("archive")
	if got := w.outcome(); got != waitsInit {
		t.Errorf("%s, want %s", got, waitsInit)
	}
}

// TestModernRevisionIsNeverLegacy, not even where a configuration says so.
func TestModernRevisionIsNeverLegacy(t *testing.T) {
	frame := strings.NewReplacer("$ID", "1", "2025-11-25", "2026-07-28").Replace(legacyResult)
	if a := ClassifyInitialize([]byte(frame), []string{"2026-07-28"}); a.Code != CodeLegacyRevision {
		t.Errorf("classified as %+v", a)
	}
}

// TestProbeThatCannotBeWrittenCloses: a request that the transport refused has
// no answer and no deadline, so it must end there.
func TestProbeThatCannotBeWrittenCloses(t *testing.T) {
	w := probeWorld(t, true)
	x := w.last("archive")
	w.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Written: "no", Code: CodeRequestTooLarge})
	if got := w.outcome(); got != "closed request_too_large" {
		t.Errorf("%s, want closed request_too_large", got)
	}
	w = probeWorld(t, true)
	x = w.last("archive")
	w.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Written: "maybe", Code: CodeTransportLost})
	if got := w.outcome(); got != "waits for server/discover (first_message)" {
		t.Errorf("%s, want to wait for the exit that follows a lost transport", got)
	}
}

// TestSpawnFailedRefusesOnce: a process that did not start settles its peer, and
// nothing is sent to it.
func TestSpawnFailedRefusesOnce(t *testing.T) {
	w := newWorld(t)
	w.start(testConfig(PrefixOnCollision, "notes"))
	failed := SpawnFailed{At: w.at("notes"), Code: CodeCommandMissing, Reason: "start: no such file"}
	sameKinds(t, w.see(failed), "peer.refused", "namespace.merged")
	sameKinds(t, w.see(failed))
	sameKinds(t, w.spawned("notes"))
	sameKinds(t, w.exited("notes"))
	sameKinds(t, w.see(DeadlinePassed{At: w.at("notes")}))
	if len(w.sends) != 0 {
		t.Errorf("%d requests to a process that is not there", len(w.sends))
	}
}
