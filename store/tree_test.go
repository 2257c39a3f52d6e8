package store_test

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"waybill/store"
)

// sizes are those at which a tile or a level begins or ends.
var sizes = []int64{0, 1, 2, 3, 7, 8, 255, 256, 257, 511, 512, 513, 1000, 65279, 65280, 65535, 65536, 65537, 65536 + 256, 66000}

func TestRootIsTheOneTlogComputesAcrossReopenings(t *testing.T) {
	path := newLog(t)
	ref := newReference(t, sizes[len(sizes)-1])
	for _, size := range sizes {
		l, err := store.Open(path)
		if err != nil {
			t.Fatalf("open before size %d: %v", size, err)
		}
		got := grow(t, l, size, 4000)
		if want := ref.root(t, size); got.Root != want {
			t.Errorf("root at size %d is %x, tlog says %x", size, got.Root, want)
		}
		closed(t, l)
		again, err := store.Open(path)
		if err != nil {
			t.Fatalf("open at size %d: %v", size, err)
		}
		if again.Head() != got {
			t.Errorf("head at size %d after opening again is %v, was %v", size, again.Head(), got)
		}
		closed(t, again)
	}
}

func TestRootDoesNotDependOnTheBatches(t *testing.T) {
	const size = 600
	want := newReference(t, size).root(t, size)
	for _, batch := range []int{1, 7, 255, 256, 257, size} {
		l := openLog(t, newLog(t))
		if got := grow(t, l, size, batch); got.Root != want {
			t.Errorf("root in batches of %d is %x, want %x", batch, got.Root, want)
		}
	}
}

func TestStoredTilesAreTheCompleteOnesOfTlog(t *testing.T) {
	const size = 65536 + 300
	l := openLog(t, newLog(t))
	grow(t, l, size, 5000)
	ref := newReference(t, size)
	for level := range 4 {
		tiles, err := l.Reader().Tiles(context.Background(), level, -1, size)
		if err != nil {
			t.Fatal(err)
		}
		if want := size >> (8 * (level + 1)); len(tiles) != want {
			t.Fatalf("level %d has %d tiles, want %d", level, len(tiles), want)
		}
		for i, tile := range tiles {
			want, err := tlog.ReadTileData(tlog.Tile{H: 8, L: level, N: int64(i), W: 256}, ref)
			if err != nil {
				t.Fatal(err)
			}
			if tile.Index != int64(i) || tile.Level != level || string(tile.Hashes) != string(want) {
				t.Fatalf("tile %d of level %d is not the one of tlog", i, level)
			}
		}
	}
}

func TestEveryTransactionStoresItsRoot(t *testing.T) {
	l := openLog(t, newLog(t))
	grow(t, l, 1000, 300)
	ref := newReference(t, 1000)
	roots, err := l.Reader().Roots(context.Background(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, r := range roots {
		got = append(got, r.Size)
		if r.Root != ref.root(t, r.Size) {
			t.Errorf("stored root at size %d is not the one of tlog", r.Size)
		}
	}
	if fmt.Sprint(got) != "[300 600 900 1000]" {
		t.Errorf("roots are stored at %v", got)
	}
}

func TestProofsHoldAtEverySize(t *testing.T) {
	const size = 700
	ctx := context.Background()
	l := openLog(t, newLog(t))
	now := grow(t, l, size, 100)
	r, ref := l.Reader(), newReference(t, size)
	for _, n := range []int64{1, 2, 255, 256, 257, 512, size} {
		root, err := r.RootAt(ctx, n, now)
		if err != nil || root != ref.root(t, n) {
			t.Fatalf("root at %d: %v", n, err)
		}
		head := store.Head{Size: n, Root: root}
		proof, err := r.ProveTree(ctx, n, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := tlog.CheckTree(proof, now.Size, now.Root, n, root); err != nil {
			t.Errorf("consistency from %d: %v", n, err)
		}
		for _, seq := range []int64{1, n/2 + 1, n} {
			proof, err := r.ProveRecord(ctx, seq, head)
			if err != nil {
				t.Fatal(err)
			}
			if err := tlog.CheckRecord(proof, n, root, seq-1, tlog.RecordHash(eventBytes(seq))); err != nil {
				t.Errorf("event %d in size %d: %v", seq, n, err)
			}
		}
	}
}

func TestProofForAHeadThatIsNotOfTheLogIsRefused(t *testing.T) {
	l := openLog(t, newLog(t))
	head := grow(t, l, 300, 300)
	head.Root[0] ^= 1
	if _, err := l.Reader().ProveRecord(context.Background(), 5, head); err == nil {
		t.Error("a proof was given for a root that the log never had")
	}
	if _, err := l.Reader().RootAt(context.Background(), 301, l.Head()); err == nil {
		t.Error("a root was given for a size that the log does not have")
	}
}
