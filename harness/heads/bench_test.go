package heads

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"waybill/harness"
	"waybill/store"
)

// BenchmarkAppend measures durable events a second when each producer waits for
// its own event, without a Checkpointer and with one: the second must come near
// to the first.
func BenchmarkAppend(b *testing.B) {
	entry := store.Entry{Type: "call.routed", Peer: "peer-001", Call: "c-1", Bytes: bytes.Repeat([]byte("x"), 600)}
	for _, producers := range []int{1, 16, 64, 256} {
		for _, signs := range []bool{false, true} {
			b.Run(fmt.Sprintf("producers=%d/signed=%t", producers, signs), func(b *testing.B) {
				w := newWorld(b)
				l := w.open()
				feed := harness.NewFeed(0)
				stop := func() {}
				if signs {
					stop = w.signWhile(l, feed)
				}
				b.ResetTimer()
				produceAll(b, l, feed, entry, producers)
				b.StopTimer()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
				stop()
				w.ok(l.Close())
			})
		}
	}
}

// BenchmarkSign measures what signing takes out of each second: the signature,
// the row in the log, which appends wait for, and the file beside it.
func BenchmarkSign(b *testing.B) {
	w := newWorld(b)
	l := w.open()
	c, err := New(context.Background(), Config{Dir: w.dir, Log: l, Logger: w.logger()})
	w.ok(err)
	out := startOutlet(nil, time.Second, w.logger())
	for b.Loop() {
		b.StopTimer()
		w.grow(l, l.Head().Size+1, "true")
		b.StartTimer()
		w.ok(c.sign(context.Background(), out))
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*100, "%of-a-second")
	out.stop()
	w.ok(l.Close())
}

// signWhile runs a Checkpointer until the function that it returns is called.
func (w *world) signWhile(l *store.Log, feed *harness.Feed) (stop func()) {
	c, err := New(context.Background(), Config{Dir: w.dir, Log: l, Logger: w.logger()})
	w.ok(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, feed) }()
	return func() {
		cancel()
		w.ok(<-ended)
	}
}

// produceAll appends b.N events in group commits.
func produceAll(b *testing.B, l *store.Log, feed *harness.Feed, entry store.Entry, producers int) {
	requests := make(chan chan error, 4096)
	var writer, senders sync.WaitGroup
	writer.Go(func() { commitGroups(l, feed, entry, requests) })
	for p := range producers {
		senders.Go(func() {
			done := make(chan error, 1)
			for n := p; n < b.N; n += producers {
				requests <- done
				if err := <-done; err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	senders.Wait()
	close(requests)
	writer.Wait()
}

func commitGroups(l *store.Log, feed *harness.Feed, entry store.Entry, requests <-chan chan error) {
	for first := range requests {
		waiting, entries := []chan error{first}, []store.Entry{entry}
		for n := len(requests); n > 0 && len(entries) < 1024; n-- {
			waiting, entries = append(waiting, <-requests), append(entries, entry)
		}
		head, err := l.Append(context.Background(), l.Head().Size, entries)
		feed.Advance(head.Size)
		for _, w := range waiting {
			w <- err
		}
	}
}
