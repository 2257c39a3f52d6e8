package store_test

import (
	"bytes"
	"context"
	"fmt"
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
func commitGroups(write func([]store.Entry) error, requests <-chan request) {
	var entries []store.Entry
	var waiting []chan error
	for r := range requests {
		entries, waiting = append(entries[:0], r.entry), append(waiting[:0], r.done)
		for n := len(requests); n > 0 && len(entries) < 1024; n-- {
			r := <-requests
			entries, waiting = append(entries, r.entry), append(waiting, r.done)
		}
		err := write(entries)
		for _, w := range waiting {
			w <- err
		}
	}
}

// benchEntries are the events that producers take from.
func benchEntries() []store.Entry {
	out := make([]store.Entry, 20000)
	for i := range out {
		out[i] = benchEntry(i)
	}
	return out
}

// produce appends every step-th event from first until end.
func produce(b *testing.B, requests chan<- request, entries []store.Entry, first, end, step int) {
	done := make(chan error, 1)
	for n := first; n < end; n += step {
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
