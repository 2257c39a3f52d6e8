package replay_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"waybill/domain"
	"waybill/replay"
	"waybill/replay/replaytest"
)

// every returns all divergences of a log.
func every(t *testing.T, src replay.Source) ([]*replay.DivergedError, replay.Replayed, error) {
	t.Helper()
	var all []*replay.DivergedError
	r, err := replay.ReplayAll(t.Context(), src, func(d *replay.DivergedError) error {
		all = append(all, d)
		return nil
	})
	return all, r, err
}

// Going on after a divergence finds nothing in a log in which nothing diverges, begins
// where Replay ends, and goes on to the end.
func TestReplayAllFindsWhatReplayFindsAndGoesOn(t *testing.T) {
	files, err := filepath.Glob(logFile("*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d logs, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			_, l, err := replaytest.Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			compareAll(t, l)
		})
	}
}

func compareAll(t *testing.T, l *replaytest.Log) {
	t.Helper()
	one, err := replay.Replay(t.Context(), l)
	var first *replay.DivergedError
	diverges := errors.As(err, &first)
	all, r, allErr := every(t, l)
	switch {
	case !diverges && (len(all) > 0 || (err == nil) != (allErr == nil)):
		t.Errorf("replay says %v, and all of them are %v, %v", err, all, allErr)
	case !diverges && err == nil && (r.Root != one.Root || r.Agreed != one.Agreed || r.Decisions != one.Decisions):
		t.Errorf("%+v, want %+v", r, one)
	case diverges && (len(all) == 0 || all[0].Seq != first.Seq):
		t.Errorf("the first is %v, want %v", all, first)
	case diverges && allErr == nil && (r.Size != int64(len(l.Rows)) || r.State == nil):
		t.Errorf("it came to event %d of %d", r.Size, len(l.Rows))
	}
}

// Each forgery is one divergence: what is recorded after it is judged by itself.
func TestEachOfManyForgeriesIsFound(t *testing.T) {
	l := replaytest.Fire()
	var want []int64
	forged := l.Forge(func(list []domain.Event) []domain.Event {
		for i := range list {
			if d, ok := list[i].Data.(domain.CallSettled); ok {
				d.Ran = map[domain.Ran]domain.Ran{domain.RanYes: domain.RanMaybe, domain.RanMaybe: domain.RanNo, domain.RanNo: domain.RanYes}[d.Ran]
				list[i].Data = d
				want = append(want, list[i].Seq)
			}
		}
		return list
	})
	all, _, err := every(t, forged)
	if err != nil || len(want) < 3 {
		t.Fatalf("%d forged, %v", len(want), err)
	}
	found := map[int64]string{}
	for _, d := range all {
		found[d.Seq] += d.Code
	}
	for _, seq := range want {
		if found[seq] != replay.Different {
			t.Errorf("event %d is %q, want %s", seq, found[seq], replay.Different)
		}
	}
}

// An error of who is told ends it.
func TestReplayAllEndsWhenItIsToldTo(t *testing.T) {
	l := replaytest.Small().Forge(func(list []domain.Event) []domain.Event { return list[:len(list)-1] })
	stop := errors.New("enough")
	if _, err := replay.ReplayAll(t.Context(), l, func(d *replay.DivergedError) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}
