package moment_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"waybill/domain"
	"waybill/replay"
	"waybill/replay/moment"
	"waybill/replay/replaytest"
)

// goodLogs are the recorded logs in which nothing is wrong.
func goodLogs(t *testing.T) map[string]*replaytest.Log {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", "good-*.jsonl"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d logs, %v", len(files), err)
	}
	out := map[string]*replaytest.Log{}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, l, err := replaytest.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(name)] = l
	}
	return out
}

func at(t *testing.T, l replay.Source, p moment.Point) moment.Sight {
	t.Helper()
	m, err := moment.At(t.Context(), l, p)
	if err != nil {
		t.Fatal(err)
	}
	return m.Sight()
}

// The digest of a namespace at the moment it was merged is the one that was recorded,
// and at any moment what is seen is what the log up to there leads to.
func TestAMomentIsWhatWasRecordedThen(t *testing.T) {
	for name, l := range goodLogs(t) {
		merged := 0
		for _, e := range l.Events() {
			d, ok := e.Data.(domain.NamespaceMerged)
			if !ok {
				continue
			}
			merged++
			found := false
			for _, ns := range at(t, l, moment.Point{Seq: e.Seq}).Spaces {
				found = found || ns.Context == d.Context && ns.Digest == d.Digest && ns.Generation == d.Generation && len(ns.Names) == d.Tools
			}
			if !found {
				t.Errorf("%s: event %d merged %+v, and that is not seen", name, e.Seq, d)
			}
		}
		for seq := int64(1); seq <= int64(len(l.Rows)); seq += 7 {
			cut := l.Cut(seq)
			r, err := replay.Replay(t.Context(), cut)
			if err != nil {
				t.Fatal(err)
			}
			s := at(t, l, moment.Point{Seq: r.Size})
			if got, want := encoded(t, s.Report), encoded(t, r.State.Report(l.ID())); got != want {
				t.Errorf("%s: at event %d\n%s\nwant what is decided again\n%s", name, r.Size, got, want)
			}
		}
		if (name == "good-full.jsonl" || name == "good-lists.jsonl") && merged < 2 {
			t.Errorf("%s: names were merged %d times", name, merged)
		}
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAMomentIsFoundByTheClock(t *testing.T) {
	l := replaytest.Small()
	events := l.Events()
	e := events[len(events)/2]
	byTime := at(t, l, moment.Point{Time: time.Unix(0, e.Time)})
	last := e.Seq
	for _, x := range events {
		if x.Time <= e.Time {
			last = max(last, x.Seq)
		}
	}
	if byTime.Seq != last || byTime.Time == "" {
		t.Errorf("at the time of event %d it is event %d, want %d", e.Seq, byTime.Seq, last)
	}
	if s := at(t, l, moment.Point{Time: time.Unix(0, events[0].Time-1)}); s.Seq != 0 || s.Time != "" || len(s.Report.Peers) != 0 {
		t.Errorf("before the first event: %+v", s)
	}
}

func TestPointsAreReadStrictly(t *testing.T) {
	for _, s := range []string{"", "0", "-1", "yesterday", "2026-11-30"} {
		if _, err := moment.ParsePoint(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
	if p, err := moment.ParsePoint("12"); err != nil || p.Seq != 12 {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := moment.ParsePoint("2026-11-30T12:00:00Z"); err != nil || p.Time.Hour() != 12 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestAMomentBeyondTheEndIsRefused(t *testing.T) {
	l := replaytest.Small()
	if _, err := moment.At(t.Context(), l, moment.Point{Seq: int64(len(l.Rows)) + 1}); !errors.Is(err, moment.ErrBeyond) {
		t.Errorf("%v", err)
	}
	if _, _, err := moment.Two(t.Context(), l, moment.Point{Seq: 9}, moment.Point{Seq: 8}); err == nil || !strings.Contains(err.Error(), "exchange") {
		t.Errorf("%v", err)
	}
}

// What changed between two moments is empty for one and the same, names each owner that
// changed, and says the same backwards with before and after exchanged.
func TestADifferenceNamesWhatChanged(t *testing.T) {
	for name, l := range goodLogs(t) {
		n := int64(len(l.Rows))
		for seq := int64(1); seq < n; seq += 11 {
			before, after, err := moment.Two(t.Context(), l, moment.Point{Seq: seq}, moment.Point{Seq: n})
			if err != nil {
				t.Fatal(err)
			}
			if encoded(t, before) != encoded(t, at(t, l, moment.Point{Seq: seq})) || encoded(t, after) != encoded(t, at(t, l, moment.Point{})) {
				t.Fatalf("%s: read together, event %d or the end is another moment than alone", name, seq)
			}
			if d := moment.Diff(before, before); len(d) > 0 {
				t.Fatalf("%s: event %d differs from itself: %+v", name, seq, d)
			}
			there, back := moment.Diff(before, after), moment.Diff(after, before)
			if len(there) != len(back) {
				t.Fatalf("%s: %d changes, and %d back", name, len(there), len(back))
			}
			for i, c := range there {
				if c.Before != back[i].After || c.After != back[i].Before || c.Before == c.After {
					t.Errorf("%s: %+v and back %+v", name, c, back[i])
				}
			}
			owners(t, name, before, after, there)
		}
	}
}

// owners checks that every name with another owner is among the changes.
func owners(t *testing.T, name string, before, after moment.Sight, changes []moment.Change) {
	t.Helper()
	was := map[string]domain.Owner{}
	for _, s := range before.Spaces {
		for _, n := range s.Names {
			was[s.Context+" "+n.Canonical] = n.Owner
		}
	}
	for _, s := range after.Spaces {
		for _, n := range s.Names {
			old, known := was[s.Context+" "+n.Canonical]
			if known && old == n.Owner {
				continue
			}
			found := false
			for _, c := range changes {
				found = found || c.What == "name" && c.Context == s.Context && c.Subject == n.Canonical
			}
			if !found {
				t.Errorf("%s: %s has another owner, and that is not said", name, n.Canonical)
			}
		}
	}
}

// A call that is under way at a moment is seen, with where it went.
func TestCallsUnderWayAreSeen(t *testing.T) {
	seen := 0
	for name, l := range goodLogs(t) {
		open := map[string]domain.CallRouted{}
		for _, e := range l.Events() {
			switch d := e.Data.(type) {
			case domain.CallRouted:
				open[d.CallKey()] = d
			case domain.CallSettled:
				delete(open, d.CallKey())
			case domain.ServiceStarted:
				clear(open)
			default:
				continue
			}
			if _, ok := e.Data.(domain.CallRouted); !ok {
				continue
			}
			s := at(t, l, moment.Point{Seq: e.Seq})
			for _, c := range s.Calls {
				if d, ok := open[c.Call]; ok && c.State == "sent" && c.RequestID == d.RequestID && c.Peer == d.Peer && c.Local == d.Local {
					seen++
					delete(open, c.Call)
				}
			}
			if _, still := open[e.Call()]; still {
				t.Errorf("%s: the call that was routed in event %d is not seen: %+v", name, e.Seq, s.Calls)
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d calls were seen", seen)
	}
}
