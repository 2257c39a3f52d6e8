package harness

import (
	"context"
	"fmt"
	"sync"
	"testing"

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
