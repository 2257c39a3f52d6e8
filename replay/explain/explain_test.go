package explain_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"waybill/domain"
	"waybill/replay"
	"waybill/replay/explain"
	"waybill/replay/replaytest"
)

var logs = map[string]func() *replaytest.Log{
	"full": replaytest.Full, "small": replaytest.Small, "fire": replaytest.Fire, "kept": replaytest.Kept, "lists": replaytest.Lists, "http": replaytest.HTTP,
	"rejected": replaytest.Rejected, "keys": replaytest.Keys,
}

func explained(t testing.TB, l replay.Source, name string) explain.Explanation {
	t.Helper()
	x, err := explain.Call(t.Context(), l, name)
	if err != nil {
		t.Fatalf("explain %s: %v", name, err)
	}
	return x
}

// TestEveryCallOfTheRecordedLogsIsExplained holds each explanation to the log it was
// made of.
func TestEveryCallOfTheRecordedLogsIsExplained(t *testing.T) {
	calls, said := 0, map[string]bool{}
	for name, log := range logs {
		calls += check(t, name, log(), said)
	}
	if calls < 50 {
		t.Errorf("%d calls were explained", calls)
	}
	for _, code := range []string{"key", "trace", "joined", "joined_by", "key_holder", "asked", "collision", "moved", "owner_before", "list_older", "tool_changed", "tool_approved", "tool_flagged", "probe_failed",
		"legacy_excluded", "held", "resent", "dropped", "erased", "command_refused", "service_restarted", "peer_retry", "other_context", "host", "cache"} {
		if !said[code] {
			t.Errorf("nowhere is said %s", code)
		}
	}
}

// check explains every submission of a log, and returns how many there are.
func check(t testing.TB, name string, l *replaytest.Log, said map[string]bool) (calls int) {
	t.Helper()
	list := l.Events()
	ends := endings(list)
	for _, r := range l.Rows {
		if r.Type != "call.received" {
			continue
		}
		calls++
		x := explained(t, l, fmt.Sprint(r.Seq))
		if x.Call != r.Call {
			t.Errorf("%s: event %d is of %s, explained is %s", name, r.Seq, r.Call, x.Call)
		}
		if want := ends[r.Seq]; x.Outcome.Seq != want && (want != 0 || x.Outcome.Kind != explain.UnderWay) {
			t.Errorf("%s: call %s of event %d ended with event %d, explained is %+v", name, x.Call, r.Seq, want, x.Outcome)
		}
		checkOutcome(t, list, x)
		checkRests(t, l, x.Sentences, x.Events, said)
		checkWhole(t, x)
	}
	return calls
}

// endings finds for each call.received the decision that ended its call last, in
// another way than explain does: by folding.
func endings(list []domain.Event) map[int64]int64 {
	out, open := map[int64]int64{}, map[string][]int64{}
	for _, e := range list {
		key := e.Call()
		switch d := e.Data.(type) {
		case domain.CallReceived:
			if d.Input != nil && len(open[key]) > 0 && d.DuplicateOf == "" && !refusedBy(list, e.Seq) {
				open[key] = append(open[key], e.Seq)
				continue
			}
			if !refusedBy(list, e.Seq) {
				open[key] = []int64{e.Seq}
			}
		case domain.CallRefused:
			if first := received(list, e.Cause); first != 0 {
				out[first] = e.Seq
				continue
			}
			for _, seq := range open[key] {
				out[seq] = e.Seq
			}
		case domain.CallJoined:
			out[e.Cause] = e.Seq
		case domain.CallSettled:
			for _, seq := range open[key] {
				out[seq] = e.Seq
			}
		case domain.CallResent:
			for _, seq := range open[key] {
				out[seq] = 0
			}
		}
	}
	return out
}

func received(list []domain.Event, seq int64) int64 {
	if _, ok := list[seq-1].Data.(domain.CallReceived); ok {
		return seq
	}
	return 0
}

// refusedBy reports whether a submission was turned away at once.
func refusedBy(list []domain.Event, seq int64) bool {
	for _, e := range list[seq:] {
		if e.Cause != seq {
			return false
		}
		if _, ok := e.Data.(domain.CallRefused); ok {
			return true
		}
	}
	return false
}

func checkOutcome(t testing.TB, list []domain.Event, x explain.Explanation) {
	t.Helper()
	switch d := list[x.Outcome.Seq-1].Data.(type) {
	case domain.CallSettled:
		if x.Outcome.Kind == explain.Settled && (x.Outcome.Status != d.Status || x.Outcome.Code != d.Code || x.Outcome.Ran != d.Ran || d.CallKey() != x.Call) {
			t.Errorf("outcome %+v, recorded %+v", x.Outcome, d)
		}
	case domain.CallRefused:
		if x.Outcome.Kind != explain.Refused || x.Outcome.Code != d.Code || x.Outcome.Reason != d.Reason || d.CallKey() != x.Call {
			t.Errorf("outcome %+v, recorded %+v", x.Outcome, d)
		}
	case domain.CallJoined:
		if x.Outcome.Kind != explain.Joined || x.Outcome.First != d.First || d.CallKey() != x.Call {
			t.Errorf("outcome %+v, recorded %+v", x.Outcome, d)
		}
	default:
		if x.Outcome.Kind != explain.UnderWay {
			t.Errorf("outcome %+v rests on %s", x.Outcome, list[x.Outcome.Seq-1].Data.Kind())
		}
	}
}

// checkRests holds every sentence to events that are there and of which it speaks.
func checkRests(t testing.TB, l *replaytest.Log, list []explain.Sentence, table []explain.Line, said map[string]bool) {
	t.Helper()
	inTable := map[int64]explain.Line{}
	for _, e := range table {
		inTable[e.Seq] = e
	}
	for _, s := range list {
		said[s.Code] = true
		allowed, known := kinds[s.Code]
		if !known || len(s.Seqs) == 0 || !slices.IsSorted(s.Seqs) || s.Section == "" || s.Facts == nil {
			t.Errorf("sentence %+v: known %t", s, known)
		}
		if !strings.HasSuffix(s.Line(), ")") || strings.Contains(s.Text, "%!") || strings.Contains(s.Text, "  ") || !strings.HasSuffix(strings.TrimSpace(s.Text), ".") {
			t.Errorf("no sentence: %q", s.Line())
		}
		for _, seq := range s.Seqs {
			if seq < 1 || seq > int64(len(l.Rows)) {
				t.Fatalf("%q rests on event %d", s.Text, seq)
			}
			r := l.Rows[seq-1]
			if known && allowed != nil && !slices.Contains(allowed, r.Type) {
				t.Errorf("%s rests on event %d, which is %s: %s", s.Code, seq, r.Type, s.Text)
			}
			if e := inTable[seq]; e.Kind != r.Type || e.Digest != hex.EncodeToString(r.Leaf[:]) {
				t.Errorf("event %d is in the table as %+v", seq, e)
			}
		}
	}
}

// checkWhole holds an explanation to leave out no event of its call.
func checkWhole(t testing.TB, x explain.Explanation) {
	t.Helper()
	cited := explain.Seqs(x.Sentences)
	for _, e := range x.Events {
		if e.OfCall && !slices.Contains(cited, e.Seq) && e.Kind != "payloads.erased" {
			t.Errorf("call %s: nothing is said of event %d, %s", x.Call, e.Seq, e.Kind)
		}
	}
}

// indexed finds calls as a log file does.
type indexed struct{ *replaytest.Log }

func (l indexed) OfCall(_ context.Context, key string) (out []replay.Record, err error) {
	for _, r := range l.Rows {
		if r.Call == key {
			out = append(out, r)
		}
	}
	return out, nil
}

func TestNamesOfCalls(t *testing.T) {
	l := replaytest.HTTP()
	list := l.Events()
	seq := ""
	for _, e := range list {
		if d, ok := e.Data.(domain.CallSettled); ok && d.ID == "headers" {
			seq = fmt.Sprint(e.Seq)
		}
	}
	want := explained(t, l, "local/headers").Text()
	for _, name := range []string{"headers", seq} {
		for _, src := range []replay.Source{l, indexed{l}} {
			if got := explained(t, src, name); got.Text() != want || got.Host != "local" || got.CallID != "headers" {
				t.Errorf("%s means %s", name, got.Call)
			}
		}
	}
	for _, c := range []struct{ name, want string }{
		{"nosuch", "no host has a call"}, {"local/nosuch", "was received"}, {"9999", "no event 9999"}, {"1", "event 1 (\"service.started\") belongs to none"},
		{"0", "no event 0"}, {"", "no host has a call"}, {"local/", "was received"}, {"-1", "no event -1"},
	} {
		_, err := explain.Call(t.Context(), l, c.name)
		if !errors.Is(err, explain.ErrNoCall) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%q: %v", c.name, err)
		}
	}
}

// TestIDOfTwoHosts names both where an id alone is not enough.
func TestIDOfTwoHosts(t *testing.T) {
	w := newWorld(nil, onePeer("notes", "search"))
	for _, host := range []string{"a", "b"} {
		w.Observe(domain.CallReceived{CallID: domain.CallID{Host: host, ID: "same"}, Tool: "search"}, nil)
	}
	l := replaytest.Make(w.Events)
	_, err := explain.Call(t.Context(), l, "same")
	if !errors.Is(err, explain.ErrNoCall) || !strings.Contains(err.Error(), "a/same, b/same") {
		t.Error(err)
	}
	if x := explained(t, l, "b/same"); x.Host != "b" || x.Outcome.Kind != explain.UnderWay {
		t.Errorf("%+v", x.Outcome)
	}
}

// TestIDThatWasUsedAgain tells each of two stories under one key by itself.
func TestIDThatWasUsedAgain(t *testing.T) {
	l := replaytest.Full()
	var seqs []int64
	for _, r := range l.Rows {
		if r.Call == "local/first" && r.Type == "call.received" {
			seqs = append(seqs, r.Seq)
		}
	}
	first, second := explained(t, l, fmt.Sprint(seqs[0])), explained(t, l, fmt.Sprint(seqs[1]))
	if first.Outcome.Status != domain.StatusComplete || second.Outcome.Code != domain.CodeDuplicateCall {
		t.Errorf("%+v and %+v", first.Outcome, second.Outcome)
	}
	if x := explained(t, l, "local/first"); x.Outcome != first.Outcome {
		t.Errorf("the key means the one that was turned away: %+v", x.Outcome)
	}
}

func TestWhatIsAlteredIsNoExplanation(t *testing.T) {
	gone := replaytest.Small()
	clear(gone.Kept)
	_, err := explain.Call(t.Context(), gone, "local/first")
	if altered := (*replay.AlteredError)(nil); !errors.As(err, &altered) {
		t.Error(err)
	}
	bad := replaytest.Small()
	i := slices.IndexFunc(bad.Rows, func(r replay.Record) bool { return r.Call == "local/first" })
	bad.Rows[i].Bytes = []byte("{}")
	_, err = explain.Call(t.Context(), bad, "local/first")
	if altered := (*replay.AlteredError)(nil); !errors.As(err, &altered) {
		t.Error(err)
	}
}

// TestIDThatWasUsedAfterADay has the first call answered while the second is under way.
func TestIDThatWasUsedAfterADay(t *testing.T) {
	w := newWorld(nil, onePeer("notes", "search"))
	submit(w, "it", "search")
	at, request, _ := sent(w, "local/it")
	w.Observe(domain.DeadlinePassed{At: at, RequestID: request, Call: "local/it"}, nil)
	w.Pass(25 * 60 * 60 * 1_000)
	submit(w, "it", "search")
	late := domain.CallAnswered{CallID: domain.CallID{Host: "local", ID: "it"}, At: at, RequestID: request, Facts: replaytest.Complete}
	w.Observe(late, nil)
	_, late.RequestID, _ = sent(w, "local/it")
	w.Observe(late, nil)
	l := replaytest.Make(w.Events)
	var ends []domain.Status
	for _, r := range l.Rows {
		if r.Type != "call.received" {
			continue
		}
		x := explained(t, l, fmt.Sprint(r.Seq))
		ends = append(ends, x.Outcome.Status)
		answers := strings.Count(x.Text(), "answered request")
		if answers != 1 || strings.Contains(x.Text(), "was dropped") != (len(ends) == 1) {
			t.Errorf("%d answers:\n%s", answers, x.Text())
		}
	}
	if !slices.Equal(ends, []domain.Status{domain.StatusTimedOut, domain.StatusComplete}) {
		t.Errorf("ended as %v", ends)
	}
}

// TestCollisionThatIsGone is not told as the reason of an owner.
func TestCollisionThatIsGone(t *testing.T) {
	w := newWorld(nil, twoPeers(domain.PrefixOnCollision))
	submit(w, "before", "wiki/search")
	s := twoPeers(domain.PrefixOnCollision)
	s.peers["wiki"].Pages = [][]string{{"page"}}
	w.Start(s.config, s.peers)
	submit(w, "after", "search")
	l := replaytest.Make(w.Events)
	for name, want := range map[string]bool{"before": true, "after": false} {
		x := explained(t, l, name)
		if got := strings.Contains(x.Text(), "claimed the name"); got != want || x.Outcome.Kind == explain.Refused {
			t.Errorf("%s: told %t, %+v\n%s", name, got, x.Outcome, x.Text())
		}
	}
}

// TestFormerNameOfATool tells what a tool was called before its name was contested.
func TestFormerNameOfATool(t *testing.T) {
	s := twoPeers(domain.PrefixOnCollision)
	s.peers["notes"].Pages = [][]string{{"add"}}
	w := newWorld(nil, s)
	again := twoPeers(domain.PrefixOnCollision)
	w.Start(again.config, again.peers)
	submit(w, "it", "wiki/search")
	x := explained(t, replaytest.Make(w.Events), "it")
	if !strings.Contains(x.Text(), "From generation 1 to generation 2 the same tool was called search.") {
		t.Errorf("%s", x.Text())
	}
}
