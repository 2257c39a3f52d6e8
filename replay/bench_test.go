package replay_test

import (
	"sync"
	"testing"

	"waybill/replay"
	"waybill/replay/replaytest"
)

const benchSize = 100_000

// calls is a log of calls, made once.
var calls = sync.OnceValue(func() *replaytest.Log { return replaytest.Calls(benchSize) })

// BenchmarkVerify verifies a log of calls in memory. The metric is events a
// second.
func BenchmarkVerify(b *testing.B) {
	l := calls()
	for b.Loop() {
		if _, err := replay.Verify(b.Context(), l); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(benchSize*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkReplay decides a log of calls again.
func BenchmarkReplay(b *testing.B) {
	l := calls()
	for b.Loop() {
		if _, err := replay.Replay(b.Context(), l); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(benchSize*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
