package bench

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Measured is what callers saw of a time of calling.
type Measured struct {
	Callers int     `json:"callers"`
	Calls   int     `json:"calls"`
	Rate    float64 `json:"calls_per_second"`
	Mean    float64 `json:"mean_ms"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
}

// Call makes calls from n callers at once, each one call after the other, until d has
// passed, and returns when the last has had its answer. The first error of a call ends
// all and is returned. call gets the number of its caller.
func Call(ctx context.Context, n int, d time.Duration, call func(ctx context.Context, caller int) error) (Measured, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	took := make([][]time.Duration, n)
	begun := time.Now()
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			for ctx.Err() == nil && time.Since(begun) < d {
				at := time.Now()
				if err := call(ctx, i); err != nil {
					cancel(err)
					return
				}
				took[i] = append(took[i], time.Since(at))
			}
		})
	}
	wait.Wait()
	if err := context.Cause(ctx); err != nil {
		return Measured{}, err
	}
	return measured(n, time.Since(begun), slices.Concat(took...)), nil
}

func measured(n int, elapsed time.Duration, took []time.Duration) Measured {
	m := Measured{Callers: n, Calls: len(took), Rate: float64(len(took)) / elapsed.Seconds()}
	if len(took) == 0 {
		return m
	}
	slices.Sort(took)
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	m.Mean, m.P50, m.P99 = MS(sum)/float64(len(took)), MS(took[(len(took)-1)/2]), MS(took[(len(took)-1)*99/100])
	return m
}

// MS is a time in milliseconds.
func MS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
