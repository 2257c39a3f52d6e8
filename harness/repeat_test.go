package harness

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestRepeatPausesUntilItIsToldToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begun, times := time.Now(), []time.Duration{}
		err := Repeat(ctx, time.Second, func() error {
			if times = append(times, time.Since(begun)); len(times) == 3 {
				cancel()
				return ctx.Err()
			}
			return nil
		})
		if err != nil || len(times) != 3 || times[0] != 0 || times[2] != 2*time.Second {
			t.Errorf("%v, %v", times, err)
		}
		broken := errors.New("broken")
		if err := Repeat(t.Context(), time.Second, func() error { return broken }); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
	})
}
