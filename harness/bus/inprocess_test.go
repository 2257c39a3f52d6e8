package bus

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func bufferedPipe() (*bufferedConn, net.Conn) {
	near, far := net.Pipe()
	return newBuffered(near), far
}

// What is written comes out in order, whatever the pieces, in both directions at once.
func TestABufferedConnectionCarriesBothWays(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		near, far := bufferedPipe()
		want := make([]byte, 1<<20)
		for i := range want {
			want[i] = byte(rnd.Uint32())
		}
		pieces := func(w io.Writer, rnd *rand.Rand) {
			for rest := want; len(rest) > 0; {
				n := min(1+rnd.IntN(70_000), len(rest))
				if _, err := w.Write(rest[:n]); err != nil {
					t.Error(err)
					return
				}
				rest = rest[n:]
			}
		}
		var all sync.WaitGroup
		for _, way := range []struct {
			from io.Writer
			to   io.Reader
		}{{near, far}, {far, near}} {
			r := rand.New(rand.NewPCG(seed, rnd.Uint64()))
			all.Go(func() { pieces(way.from, r) })
			all.Go(func() {
				got := make([]byte, len(want))
				if _, err := io.ReadFull(way.to, got); err != nil || !bytes.Equal(got, want) {
					t.Errorf("seed %d: other bytes, %v", seed, err)
				}
			})
		}
		all.Wait()
		if err := errors.Join(near.Close(), far.Close()); err != nil {
			t.Error(err)
		}
	}
}

// A write does not wait for who reads, until the buffer is full; then it waits, or its
// deadline passes.
func TestAWriteWaitsForRoomAndNoLongerThanItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := bufferedPipe()
		piece := make([]byte, buffered)
		for range 2 { // one is on its way to the other side, one waits
			if n, err := near.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
			synctest.Wait()
		}
		_ = near.SetWriteDeadline(time.Now().Add(time.Minute))
		begun := time.Now()
		if _, err := near.Write(piece); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != time.Minute {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		_ = near.SetDeadline(time.Time{})
		_ = near.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := near.Read(piece); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		_ = far.Close()
		synctest.Wait()
		if _, err := near.Write(piece); err == nil {
			t.Error("written to who has closed")
		}
		_ = near.SetReadDeadline(time.Time{})
		if _, err := near.Read(piece); !errors.Is(err, io.EOF) {
			t.Errorf("read from who has closed: %v", err)
		}
		_ = near.Close()
	})
}

// What was written before a Close arrives, if the other side reads; if it does not, Close
// ends all the same.
func TestACloseSendsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := bufferedPipe()
		if _, err := near.Write([]byte("last words")); err != nil {
			t.Fatal(err)
		}
		go func() { _ = near.Close() }()
		if got, err := io.ReadAll(far); string(got) != "last words" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := near.Write(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("written after the close: %v", err)
		}
		near, _ = bufferedPipe()
		if _, err := near.Write([]byte("to nobody")); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _ = near.Close(); time.Since(begun) > lastWords {
			t.Errorf("Close took %v", time.Since(begun))
		}
	})
}
