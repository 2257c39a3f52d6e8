package harness

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"waybill/store"
)

func tailEntries(after int64, n, size int) []store.Entry {
	out := make([]store.Entry, n)
	for i := range out {
		out[i] = store.Entry{Type: "t", Bytes: append(fmt.Appendf(nil, "event %d ", after+1+int64(i)), make([]byte, size)...)}
	}
	return out
}

// A tail answers with the newest events or with none, and holds no more than its bounds.
func TestTailIsTheEndOfTheLogWithinItsBounds(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		var tail Tail
		head := int64(0)
		for range 200 {
			if rnd.IntN(50) == 0 {
				head += int64(rnd.IntN(3)) // appended by another life
			}
			n := 1 + rnd.IntN(300)
			tail.add(head, tailEntries(head, n, rnd.IntN(8000)))
			head += int64(n)
			after := head - int64(rnd.IntN(10_000))
			got := tail.after(after, 1+rnd.IntN(500))
			for i, r := range got {
				if want := fmt.Sprintf("event %d ", after+1+int64(i)); r.Seq != after+1+int64(i) || !bytes.HasPrefix(r.Bytes, []byte(want)) {
					t.Fatalf("seed %d: after %d: %d-th is %d %.20q", seed, after, i, r.Seq, r.Bytes)
				}
			}
			if after == head && got != nil || after >= head-1 && after < head && len(got) != 1 {
				t.Fatalf("seed %d: %d of %d events after %d", seed, len(got), head-after, after)
			}
			if len(tail.records) > tailEvents || tail.size > tailBytes {
				t.Fatalf("seed %d: %d events, %d bytes", seed, len(tail.records), tail.size)
			}
		}
		size := 0
		for _, r := range tail.records {
			size += len(r.Bytes)
		}
		if size != tail.size {
			t.Fatalf("seed %d: %d bytes, counted as %d", seed, size, tail.size)
		}
	}
}

func TestTailIsReadWhileItGrows(t *testing.T) {
	var tail Tail
	var wait sync.WaitGroup
	wait.Go(func() {
		for head := int64(0); head < 20_000; head += 10 {
			tail.add(head, tailEntries(head, 10, 10))
		}
	})
	wait.Go(func() {
		for at := int64(0); at < 20_000; {
			got := tail.after(at, 100)
			if len(got) == 0 && at+1 < 20_000-tailEvents {
				at += 100 // it was cut off: the log has it
			}
			for _, r := range got {
				if at++; r.Seq != at {
					t.Errorf("event %d comes after %d", r.Seq, at-1)
					return
				}
			}
		}
	})
	wait.Wait()
}
