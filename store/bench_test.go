package store_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"waybill/store"
)

// benchEntry is an event of about 600 bytes, the size of a routed call.
func benchEntry(n int) store.Entry {
	b := fmt.Appendf(nil, `{"specversion":"1.0","id":"%012d","type":"call.routed","pad":"`, n)
	b = append(append(b, bytes.Repeat([]byte("x"), 598-len(b))...), `"}`...)
	return store.Entry{Type: "call.routed", Peer: fmt.Sprintf("peer-%03d", n%100), Call: fmt.Sprintf("c-%012d", n), Bytes: b}
}

type request struct {
	entry store.Entry
	done  chan error
}

// commitGroups appends what has gathered, and answers, until the channel ends.
func commitGroups(l *store.Log, requests <-chan request) {
	var entries []store.Entry
	var waiting []chan error
	for r := range requests {
		entries, waiting = append(entries[:0], r.entry), append(waiting[:0], r.done)
		for n := len(requests); n > 0 && len(entries) < 1024; n-- {
			r := <-requests
			entries, waiting = append(entries, r.entry), append(waiting, r.done)
		}
		_, err := l.Append(context.Background(), l.Head().Size, entries)
		for _, w := range waiting {
			w <- err
		}
	}
}

// BenchmarkAppend measures durable events a second when each producer waits
// for its own event before it sends the next.
func BenchmarkAppend(b *testing.B) {
	entries := make([]store.Entry, 20000)
	for i := range entries {
		entries[i] = benchEntry(i)
	}
	for _, producers := range []int{1, 16, 64, 256, 1024} {
		b.Run(fmt.Sprintf("producers=%d", producers), func(b *testing.B) {
			l := openLog(b, newLog(b))
			requests := make(chan request, 4096)
			var writer, senders sync.WaitGroup
			writer.Go(func() { commitGroups(l, requests) })
			b.ResetTimer()
			for p := range producers {
				senders.Go(func() { produce(b, requests, entries, p, producers) })
			}
			senders.Wait()
			b.StopTimer()
			close(requests)
			writer.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

func produce(b *testing.B, requests chan<- request, entries []store.Entry, first, step int) {
	done := make(chan error, 1)
	for n := first; n < b.N; n += step {
		requests <- request{entries[n%len(entries)], done}
		if err := <-done; err != nil {
			b.Error(err)
			return
		}
	}
}

// BenchmarkRead measures a reader that goes through a whole log.
func BenchmarkRead(b *testing.B) {
	const size = 50000
	l := openLog(b, newLog(b))
	for l.Head().Size < size {
		batch := make([]store.Entry, 1000)
		for i := range batch {
			batch[i] = benchEntry(int(l.Head().Size) + i)
		}
		if _, err := l.Append(context.Background(), l.Head().Size, batch); err != nil {
			b.Fatal(err)
		}
	}
	read := 0
	for b.Loop() {
		for after := int64(0); after < size; {
			recs, err := l.Reader().Read(context.Background(), after, 1000)
			if err != nil {
				b.Fatal(err)
			}
			after += int64(len(recs))
			read += len(recs)
		}
	}
	b.ReportMetric(float64(read)/b.Elapsed().Seconds(), "events/s")
}
