package harness

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"waybill/domain"
	"waybill/store"
)

// bareLog is a log in memory that checks nothing.
type bareLog struct {
	*memLog
	commits int
}

func (b *bareLog) Append(_ context.Context, after int64, entries []store.Entry) (store.Head, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.commits++
	for i, e := range entries {
		b.records = append(b.records, store.Record{Seq: after + int64(i) + 1, Bytes: e.Bytes})
		for _, ev := range e.Evidence {
			b.evidence[ev.Digest] = ev.Bytes
		}
	}
	return store.Head{Size: int64(len(b.records))}, nil
}

// countedDisk counts the transactions of a real log.
type countedDisk struct {
	diskLog
	commits int
}

func (c *countedDisk) Append(ctx context.Context, after int64, entries []store.Entry) (store.Head, error) {
	c.commits++
	return c.diskLog.Append(ctx, after, entries)
}

// BenchmarkLoop measures calls a second when each caller waits for its reply
// before it sends the next, and peers answer at once. A call is four events.
func BenchmarkLoop(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("log=memory/callers=%d", callers), func(b *testing.B) {
			log := &bareLog{memLog: newMemLog(b)}
			benchmarkLoop(b, log, callers, func() int { return log.commits })
		})
		b.Run(fmt.Sprintf("log=disk/callers=%d", callers), func(b *testing.B) {
			log := &countedDisk{diskLog: openDisk(b, newLogFile(b))}
			benchmarkLoop(b, log, callers, func() int { return log.commits })
		})
	}
}

func benchmarkLoop(b *testing.B, log anyLog, callers int, commits func() int) {
	r := newRig(b, log)
	r.peers.quiet = true
	r.start("notes")
	var head, before int64
	var commitsBefore int
	look := func(to *int64, n *int) {
		if err := r.loop.Ask(context.Background(), func(s *domain.State) { *to, *n = s.Head, commits() }); err != nil {
			b.Fatal(err)
		}
	}
	look(&before, &commitsBefore)
	request := []byte(`{"tool":"notes","arguments":{"query":"tea","limit":10}}`)
	b.ResetTimer()
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			got := make(chan domain.Status, 1)
			for n := c; n < b.N; n += callers {
				r.loop.Submit("local", request, func(reply Reply) { got <- reply.Status })
				if s := <-got; s != domain.StatusComplete {
					b.Errorf("a call ended as %s", s)
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	var n int
	look(&head, &n)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64(head-before)/float64(max(n-commitsBefore, 1)), "events/commit")
	r.stop()
}

// BenchmarkFlood measures how long a quiet host waits for a call, alone and beside
// a host that has as many calls under way as it may and submits more all the time.
// Peers answer at once; the log is on disk.
func BenchmarkFlood(b *testing.B) {
	for _, share := range []int{8, 32, 128} {
		b.Run(fmt.Sprintf("share=%d", share), func(b *testing.B) { benchmarkFlood(b, share) })
	}
}

func benchmarkFlood(b *testing.B, share int) {
	r := newRig(b, openDisk(b, newLogFile(b)), func(c *Config) { c.Share = share })
	r.peers.quiet = true
	r.start("notes")
	quiet := func() (p50, p99 float64) {
		took := make([]time.Duration, b.N)
		for i := range took {
			begun := time.Now()
			if reply := r.reply(r.submit("quiet", `{"tool":"notes"}`)); reply.Status != domain.StatusComplete {
				b.Fatalf("a call ended as %s", reply.Encode())
			}
			took[i] = time.Since(begun)
		}
		slices.Sort(took)
		at := func(n int) float64 { return float64(took[(len(took)-1)*n/100].Microseconds()) / 1000 }
		return at(50), at(99)
	}
	b.ResetTimer()
	alone50, alone99 := quiet()
	stop := r.flood()
	beside50, beside99 := quiet()
	b.StopTimer()
	ended := stop()
	b.ReportMetric(alone50, "ms-alone-p50")
	b.ReportMetric(alone99, "ms-alone-p99")
	b.ReportMetric(beside50, "ms-beside-p50")
	b.ReportMetric(beside99, "ms-beside-p99")
	b.ReportMetric(beside50/alone50, "ratio-p50")
	b.ReportMetric(float64(ended), "flood-calls")
	r.stop()
}

// flood has one host call without end: twice as many calls at once as it has
// places for. stop ends that, and says how many were not turned away.
func (r *rig) flood() (stop func() int64) {
	var all sync.WaitGroup
	var over atomic.Bool
	var ended atomic.Int64
	caller := func() {
		got := make(chan domain.Status, 2)
		for !over.Load() {
			for range cap(got) {
				r.loop.Submit("flood", []byte(`{"tool":"notes"}`), func(reply Reply) { got <- reply.Status })
			}
			before := ended.Load()
			for range cap(got) {
				if <-got == domain.StatusComplete {
					ended.Add(1)
				}
			}
			if ended.Load() == before { // turned away at once: others have the places
				runtime.Gosched()
			}
		}
	}
	for range 256 {
		all.Go(caller)
	}
	return func() int64 {
		over.Store(true)
		all.Wait()
		return ended.Load()
	}
}
