package store_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
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

// BenchmarkMillion appends a million events in groups and holds the log to its
// promise that memory does not grow with it: heap is what is live after a
// collection, resident what the process has, with what SQLite keeps outside the heap.
func BenchmarkMillion(b *testing.B) {
	const (
		size, group   = 1_000_000, 250
		mostHeap      = 1 << 20 // that a log may grow by after its first tenth, in bytes
		mostResident  = 16 << 20
		tenth, middle = size / 10, size / 2
	)
	for b.Loop() {
		l := openLog(b, newLog(b))
		batch := make([]store.Entry, group)
		used := map[int64]memory{}
		for after := int64(0); after < size; after += group {
			for i := range batch {
				batch[i] = benchEntry(int(after) + i)
			}
			if _, err := l.Append(context.Background(), after, batch); err != nil {
				b.Fatal(err)
			}
			if at := after + group; at == tenth || at == middle || at == size {
				used[at] = measureMemory(b)
				used[at].report(b, fmt.Sprintf("-at-%d%%", at*100/size))
			}
		}
		first, last := used[tenth], used[size]
		if last.heap > first.heap+mostHeap || last.resident > first.resident+mostResident {
			b.Errorf("memory grew from %+v to %+v bytes", first, last)
		}
	}
	b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "events/s")
}

// memory is in bytes.
type memory struct{ heap, resident uint64 }

func measureMemory(b *testing.B) memory {
	b.Helper()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Fatal(err)
	}
	var total, resident uint64 // pages
	if _, err := fmt.Sscan(string(statm), &total, &resident); err != nil {
		b.Fatal(err)
	}
	return memory{stats.HeapAlloc, resident * uint64(os.Getpagesize())}
}

func (m memory) report(b *testing.B, when string) {
	b.ReportMetric(float64(m.heap)/(1<<20), "heap-MiB"+when)
	b.ReportMetric(float64(m.resident)/(1<<20), "resident-MiB"+when)
}
