package explain_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"waybill/domain"
	"waybill/replay/explain"
	"waybill/replay/moment"
	"waybill/replay/replaytest"
)

func asked(t testing.TB, l *replaytest.Log, q explain.Question) explain.WhyNot {
	t.Helper()
	w, err := explain.AskWhyNot(t.Context(), l, q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	checkRests(t, l, w.Sentences, w.Events, map[string]bool{})
	return w
}

// TestWhyNot asks in the states that the refusals are made in.
func TestWhyNot(t *testing.T) {
	for _, c := range refusals {
		if c.with != nil || c.code == domain.CodeNotAllowed {
			continue // it turns on the submission
		}
		l := replaytest.Make(c.world().Events)
		w := asked(t, l, explain.Question{Tool: c.tool, At: moment.Point{Seq: int64(len(l.Rows))}}) // a stop of the service included
		if w.Answer != string(c.code) {
			t.Errorf("%s of %s: %s\n%s", c.tool, c.code, w.Answer, w.Text())
		}
		for _, code := range c.said {
			if !slices.ContainsFunc(w.Sentences, func(s explain.Sentence) bool { return s.Code == code }) {
				t.Errorf("%s: %s is not said:\n%s", c.code, code, w.Text())
			}
		}
	}
}

func TestWhyNotOfNamesThatWereGood(t *testing.T) {
	two := replaytest.Make(newWorld(nil, twoPeers(domain.PrefixOnCollision)).Events)
	always := replaytest.Make(newWorld(nil, twoPeers(domain.PrefixAlways)).Events)
	web := replaytest.HTTP()
	visible := moment.Point{Seq: explained(t, web, "ben/alice_only").Outcome.Seq}
	for _, c := range []struct {
		log                *replaytest.Log
		q                  explain.Question
		answer, peer, name string
	}{
		{two, explain.Question{Tool: "search"}, explain.Routable, "notes", ""},
		{two, explain.Question{Tool: "wiki/search"}, explain.Routable, "wiki", ""},
		{two, explain.Question{Tool: "wiki/page"}, explain.OtherName, "wiki", "page"},
		{two, explain.Question{Tool: "notes/search"}, explain.OtherName, "notes", "search"},
		{always, explain.Question{Tool: "page"}, explain.OtherName, "wiki", "wiki/page"},
		{two, explain.Question{Tool: "page", At: moment.Point{Seq: 3}}, "not_ready", "", ""},
		{two, explain.Question{Tool: "page", Context: "nobodys"}, "not_ready", "", ""},
		{web, explain.Question{Tool: "alice_only", Context: "alice", At: visible}, explain.Routable, "notes", ""},
		{web, explain.Question{Tool: "alice_only", Context: "bob", At: visible}, "unknown_tool", "", ""},
		{web, explain.Question{Tool: "secret", Host: "ben", At: visible}, "not_allowed", "", ""},
		{web, explain.Question{Tool: "secret", Host: "local", At: visible}, explain.Routable, "wiki", ""},
		{web, explain.Question{Tool: "secret", Host: "mallory", At: visible}, "not_allowed", "", ""},
	} {
		w := asked(t, c.log, c.q)
		if w.Answer != c.answer || w.Peer != c.peer || w.Name != c.name {
			t.Errorf("%+v: %s %s %s\n%s", c.q, w.Answer, w.Peer, w.Name, w.Text())
		}
	}
}

// TestWhyNotOfALocalNameThatLost names the collision that left a tool out.
func TestWhyNotOfALocalNameThatLost(t *testing.T) {
	w := newWorld(nil, twoPeers(domain.PrefixOnCollision))
	s := twoPeers(domain.PrefixOnCollision)
	s.config.Collision = domain.RejectOnCollision
	s.peers["wiki"].Pages = [][]string{{"page"}}
	w.Start(s.config, s.peers) // accepted: nothing meets
	s.peers["wiki"].Pages = [][]string{{"search", "page"}}
	w.Start(s.config, s.peers)
	x := asked(t, replaytest.Make(w.Events), explain.Question{Tool: "wiki/search"})
	if x.Answer != explain.NotInAnyWay || !slices.ContainsFunc(x.Sentences, func(s explain.Sentence) bool { return s.Code == "collision" }) {
		t.Errorf("%s:\n%s", x.Answer, x.Text())
	}
}

// TestWhyNotOfAToolLeftOut finds the event that says why.
func TestWhyNotOfAToolLeftOut(t *testing.T) {
	l := replaytest.Make(newWorld(nil, onePeer("notes", "bad name")).Events)
	for _, tool := range []string{"bad name", "notes/bad name"} {
		w := asked(t, l, explain.Question{Tool: tool})
		if !slices.ContainsFunc(w.Sentences, func(s explain.Sentence) bool {
			return s.Code == "left_out" && s.Facts["code"] == domain.CodeToolNameInvalid
		}) {
			t.Errorf("%q:\n%s", tool, w.Text())
		}
	}
}

func TestMomentsOfWhyNot(t *testing.T) {
	l := replaytest.Small()
	list := l.Events()
	end := asked(t, l, explain.Question{Tool: "search"})
	at := asked(t, l, explain.Question{Tool: "search", At: moment.Point{Time: time.Unix(0, list[9].Time)}})
	if end.Seq != int64(len(list)) || at.Seq < 10 || list[at.Seq-1].Time != list[9].Time || at.Seq < int64(len(list)) && list[at.Seq].Time <= list[9].Time {
		t.Errorf("the end is %d, the time of event 10 is %d", end.Seq, at.Seq)
	}
	_, err := explain.AskWhyNot(t.Context(), l, explain.Question{Tool: "search", At: moment.Point{Seq: 9999}})
	if !errors.Is(err, moment.ErrBeyond) {
		t.Error(err)
	}
	_, err = explain.AskWhyNot(t.Context(), l, explain.Question{Tool: "search", At: moment.Point{Time: time.Unix(1, 0)}})
	if !errors.Is(err, explain.ErrNoCall) {
		t.Error(err)
	}
}

// TestWhyNotIsWhatTheLogDecided is the property: asked for the moment before a call,
// the answer is what was decided of it. Between the two time goes by, which name_moved
// turns on.
func TestWhyNotIsWhatTheLogDecided(t *testing.T) {
	compared := map[string]int{}
	for seed := range uint64(16) {
		l := randomLog(seed, 60)
		list := l.Events()
		for i, e := range list[:len(list)-1] {
			d, ok := e.Data.(domain.CallReceived)
			if !ok || d.Generation != 0 || d.Problem != "" || d.Tool == "" {
				continue
			}
			want := "routable"
			switch next := list[i+1].Data.(type) {
			case domain.CallRefused:
				want = string(next.Code)
			case domain.CallHeld:
				want = string(next.Code)
			}
			w := asked(t, l, explain.Question{Tool: d.Tool, Host: d.Host, At: moment.Point{Seq: e.Seq - 1}})
			got := w.Answer
			if got == explain.OtherName {
				got = explain.NotInAnyWay
			}
			if want == string(domain.CodeDuplicateCall) || want == string(domain.CodeNameMoved) || got == string(domain.CodeNameMoved) {
				continue
			}
			if compared[want]++; got != want {
				t.Fatalf("seed %d: event %d, %s of %s: %s, decided %s\n%s", seed, e.Seq, d.Tool, d.Host, got, want, w.Text())
			}
		}
	}
	if t.Log(fmt.Sprint(compared)); len(compared) < 5 || compared["routable"] < 15 {
		t.Errorf("compared %v", compared)
	}
}

// At the end of a log whose service was stopped in good order, the answer is the one of
// before: that a stopped service calls nothing is no answer.
func TestWhyNotAtTheEndOfAStoppedLog(t *testing.T) {
	w := newWorld(nil, twoPeers(domain.PrefixOnCollision))
	before := asked(t, replaytest.Make(w.Events), explain.Question{Tool: "search"})
	w.Observe(domain.ServiceStopped{Reason: "signal"}, nil)
	l := replaytest.Make(w.Events)
	if x := asked(t, l, explain.Question{Tool: "search"}); x.Answer != explain.Routable || x.Seq != before.Seq {
		t.Errorf("%s after event %d, want that after %d\n%s", x.Answer, x.Seq, before.Seq, x.Text())
	}
	if x := asked(t, l, explain.Question{Tool: "search", At: moment.Point{Seq: int64(len(l.Rows))}}); x.Answer != "shutting_down" {
		t.Errorf("%s\n%s", x.Answer, x.Text())
	}
}
