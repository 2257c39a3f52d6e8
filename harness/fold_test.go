package harness

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"waybill/domain"
	"waybill/store"
)

// longLog has so many events that a fold reads it several times.
func longLog(t *testing.T) *memLog {
	log := newMemLog(t)
	log.others(5*foldBatch + 7)
	return log
}

func TestAFoldIsTheSameHoweverFarAheadItReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, s := longLog(t), domain.NewState()
		noErr(t, Fold(t.Context(), log, testLog, s))
		if want := int64(5*foldBatch + 7); s.Head != want {
			t.Errorf("the fold came to %d, want %d", s.Head, want)
		}
		noErr(t, Fold(t.Context(), log, testLog, s)) // nothing is left
		log.others(3)
		noErr(t, Fold(t.Context(), log, testLog, s))
		if want := int64(5*foldBatch + 10); s.Head != want {
			t.Errorf("the fold went on to %d, want %d", s.Head, want)
		}
	})
}

func TestAFoldAppliesWhatIsBeforeTheEventThatFailsAndNothingBehindIt(t *testing.T) {
	for _, bad := range []int64{1, foldBatch, foldBatch + 1, 3*foldBatch - 5} {
		synctest.Test(t, func(t *testing.T) {
			log, s := longLog(t), domain.NewState()
			log.records[bad-1].Bytes = []byte("{}")
			if err := Fold(t.Context(), log, testLog, s); err == nil {
				t.Errorf("event %d is none, and was folded", bad)
			}
			if s.Head != bad-1 {
				t.Errorf("the state is that of %d, want %d", s.Head, bad-1)
			}
		})
	}
}

// breaking is a log that cannot be read after a seq: fail says how.
type breaking struct {
	*memLog
	from int64
	fail func(ctx context.Context) error
}

func (b breaking) Read(ctx context.Context, after int64, most int) ([]store.Record, error) {
	if after >= b.from {
		return nil, b.fail(ctx)
	}
	return b.memLog.Read(ctx, after, most)
}

func TestAFoldOfALogThatCannotBeReadFurtherSaysFromWhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := domain.NewState()
		log := breaking{longLog(t), 2 * foldBatch, func(context.Context) error { return errDisk }}
		err := Fold(t.Context(), log, testLog, s)
		if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "after 2048") {
			t.Errorf("the fold ended with %v", err)
		}
		if s.Head != 2*foldBatch {
			t.Errorf("the state is that of %d, want %d", s.Head, 2*foldBatch)
		}
	})
}

// TestAFoldThatIsGivenUpLeavesNothingRunning: the bubble would not end with a
// goroutine that waits in it.
func TestAFoldThatIsGivenUpLeavesNothingRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		log := breaking{longLog(t), foldBatch, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		ended := make(chan error, 1)
		go func() { ended <- Fold(ctx, log, testLog, domain.NewState()) }()
		synctest.Wait() // it waits for the second stretch
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the fold ended with %v", err)
		}
	})
}
