package harness

import (
	"context"
	"time"
)

// Repeat calls f now and again after each pause, in the caller's goroutine, until f fails
// or ctx ends. That ctx has ended is no error, also where f failed of it.
func Repeat(ctx context.Context, pause time.Duration, f func() error) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		err := f()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
}
