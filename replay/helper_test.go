package replay_test

import (
	"errors"
	"testing"

	"waybill/replay"
	"waybill/replay/replaytest"
)

// verified holds that a log is whole.
func verified(t testing.TB, src replay.Source) replay.Verified {
	t.Helper()
	v, err := replay.Verify(t.Context(), src)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	return v
}

// replayed holds that every decision of a log agrees.
func replayed(t testing.TB, src replay.Source) replay.Replayed {
	t.Helper()
	r, err := replay.Replay(t.Context(), src)
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	if r.Agreed != r.Decisions || r.State == nil || r.State.Head != r.Size {
		t.Fatalf("replay: %d of %d decisions agree, and the state is at %+v", r.Agreed, r.Decisions, r.State)
	}
	return r
}

// altered holds that an error names the event as altered.
func altered(t testing.TB, err error, seq int64) {
	t.Helper()
	var a *replay.AlteredError
	if !errors.As(err, &a) || a.Seq != seq {
		t.Fatalf("got %v, want altered at event %d", err, seq)
	}
}

// verifyFinds holds that Verify names the event as altered.
func verifyFinds(t testing.TB, src replay.Source, seq int64) {
	t.Helper()
	_, err := replay.Verify(t.Context(), src)
	altered(t, err, seq)
}

// diverged holds that a log verifies and that Replay names the event.
func diverged(t testing.TB, l *replaytest.Log, code string, seq int64) *replay.DivergedError {
	t.Helper()
	verified(t, l)
	return replayFinds(t, l, code, seq)
}

// replayFinds holds that Replay names the event.
func replayFinds(t testing.TB, l *replaytest.Log, code string, seq int64) *replay.DivergedError {
	t.Helper()
	r, err := replay.Replay(t.Context(), l)
	var d *replay.DivergedError
	if !errors.As(err, &d) || d.Code != code || d.Seq != seq {
		t.Fatalf("got %v, want a decision %s at event %d", err, code, seq)
	}
	if r.Size != seq-1 || r.State != nil {
		t.Errorf("replay came to %d events before the divergence at %d, state %v", r.Size, seq, r.State)
	}
	return d
}

// findKind returns the index of the first event of a kind.
func findKind(t testing.TB, l *replaytest.Log, kind string) int {
	t.Helper()
	for i, r := range l.Rows {
		if r.Type == kind {
			return i
		}
	}
	t.Fatalf("the log has no %s", kind)
	return 0
}
