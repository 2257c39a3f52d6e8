package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"waybill/store"
)

func TestEventsAreReadBackExactlyInOrderWithoutAGap(t *testing.T) {
	ctx := context.Background()
	l := openLog(t, newLog(t))
	var want []store.Entry
	for i, n := range []int{1, 3, 300, 2} {
		batch := entries(l.Head().Size, n)
		batch[0] = store.Entry{Type: "era.determined", Bytes: []byte{0, byte(i), 0xff, '\n'}}
		if _, err := l.Append(ctx, l.Head().Size, batch); err != nil {
			t.Fatal(err)
		}
		want = append(want, batch...)
	}
	got, err := l.Reader().Read(ctx, 0, 1000)
	if err != nil || len(got) != len(want) {
		t.Fatalf("read %d events, want %d: %v", len(got), len(want), err)
	}
	for i, rec := range got {
		w := want[i]
		if rec.Seq != int64(i)+1 || rec.Type != w.Type || rec.Peer != w.Peer || rec.Call != w.Call ||
			!bytes.Equal(rec.Bytes, w.Bytes) || rec.Leaf != tlog.RecordHash(w.Bytes) {
			t.Fatalf("event %d is %+v, want seq %d and %+v", i, rec, i+1, w)
		}
	}
}

func TestAppendThatDoesNotFollowTheHeadIsAConflict(t *testing.T) {
	ctx := context.Background()
	l := openLog(t, newLog(t))
	head := grow(t, l, 10, 10)
	for _, after := range []int64{-1, 0, 9, 11} {
		_, err := l.Append(ctx, after, entries(after, 1))
		wantErr(t, err, store.ErrConflict)
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) || conflict.After != after || conflict.Size != 10 {
			t.Errorf("after %d: %#v", after, err)
		}
	}
	if l.Head() != head {
		t.Errorf("the head moved to %v", l.Head())
	}
	grow(t, l, 11, 1)
}

func TestASecondWriterGetsConflictsAndTheLogStaysWhole(t *testing.T) {
	ctx := context.Background()
	path := newLog(t)
	one, two := openLog(t, path), openLog(t, path)
	grow(t, one, 5, 5)
	_, err := two.Append(ctx, 0, entries(0, 1))
	wantErr(t, err, store.ErrConflict)
	wantText(t, err, "another process")
	head, err := two.Reread(ctx)
	if err != nil || head != one.Head() {
		t.Fatalf("read again: %v, %v", head, err)
	}
	if got := grow(t, two, 300, 100); got.Root != newReference(t, 300).root(t, 300) {
		t.Error("the root is not that of the events of both")
	}
}

func TestEntriesThatTheLogCannotHoldAreRefusedBeforeAnythingIsWritten(t *testing.T) {
	good := store.Entry{Type: "call.routed", Bytes: []byte("x")}
	l := openLog(t, newLog(t))
	for name, bad := range map[string]store.Entry{
		"no type":        {Bytes: []byte("x")},
		"no bytes":       {Type: "call.routed"},
		"too many bytes": {Type: "call.routed", Bytes: make([]byte, store.MaxEvent+1)},
		"false evidence": {Type: "call.routed", Bytes: []byte("x"), Evidence: []store.Evidence{{Bytes: []byte("y")}}},
	} {
		if _, err := l.Append(context.Background(), 0, []store.Entry{good, bad}); err == nil {
			t.Errorf("%s: it was appended", name)
		}
	}
	if _, err := l.Append(context.Background(), 0, nil); err == nil {
		t.Error("an append of nothing succeeded")
	}
	if head, err := l.Reader().Head(context.Background()); err != nil || head.Size != 0 {
		t.Errorf("the log has %v, %v", head, err)
	}
}

func TestTheLargestEventIsKept(t *testing.T) {
	ctx := context.Background()
	l := openLog(t, newLog(t))
	large := bytes.Repeat([]byte{7}, store.MaxEvent)
	if _, err := l.Append(ctx, 0, []store.Entry{{Type: "catalog.listed", Bytes: large}}); err != nil {
		t.Fatal(err)
	}
	got, err := l.Reader().Read(ctx, 0, 1)
	if err != nil || len(got) != 1 || !bytes.Equal(got[0].Bytes, large) {
		t.Errorf("read %d events: %v", len(got), err)
	}
}

func TestEvidenceIsKeptOncePerDigest(t *testing.T) {
	ctx := context.Background()
	path := newLog(t)
	l := openLog(t, path)
	shared, empty := evidenceOf("a list"), evidenceOf("")
	empty.Bytes = nil
	for i := range 3 {
		batch := entries(l.Head().Size, 2)
		batch[0].Evidence = []store.Evidence{shared, evidenceOf(fmt.Sprint("own ", i)), shared}
		batch[1].Evidence = []store.Evidence{empty, shared}
		if _, err := l.Append(ctx, l.Head().Size, batch); err != nil {
			t.Fatal(err)
		}
	}
	for _, ev := range []store.Evidence{shared, empty, evidenceOf("own 0"), evidenceOf("own 2")} {
		if b, err := l.Reader().Evidence(ctx, ev.Digest); err != nil || !bytes.Equal(b, ev.Bytes) {
			t.Errorf("evidence %q is %q, %v", ev.Bytes, b, err)
		}
	}
	digests, err := l.Reader().Digests(ctx, [32]byte{}, 100)
	if err != nil || len(digests) != 5 {
		t.Errorf("there are %d digests, want 5: %v", len(digests), err)
	}
	_, err = l.Reader().Evidence(ctx, evidenceOf("own 3").Digest)
	wantErr(t, err, store.ErrNoEvidence)
}

func TestDigestsAreListedInPagesWithoutGapOrRepeat(t *testing.T) {
	ctx := context.Background()
	l := openLog(t, newLog(t))
	batch := entries(0, 10)
	for i := range batch {
		batch[i].Evidence = []store.Evidence{evidenceOf(fmt.Sprint(i))}
	}
	if _, err := l.Append(ctx, 0, batch); err != nil {
		t.Fatal(err)
	}
	all, err := l.Reader().Digests(ctx, [32]byte{}, 100)
	if err != nil || len(all) != 10 {
		t.Fatalf("%d digests, %v", len(all), err)
	}
	var paged [][32]byte
	for after := ([32]byte{}); len(paged) < 10; after = paged[len(paged)-1] {
		page, err := l.Reader().Digests(ctx, after, 3)
		if err != nil || len(page) == 0 {
			t.Fatalf("page of %d, %v", len(page), err)
		}
		paged = append(paged, page...)
	}
	if !slices.Equal(paged, all) {
		t.Error("the pages are not the whole")
	}
}

func TestContextIsLookedAtBeforeTheTransactionAndNeverCancelsIt(t *testing.T) {
	l := openLog(t, newLog(t))
	ctx, cancel := context.WithCancel(context.Background())
	l.SetFault(func(point string) error {
		if point == store.FaultBegin {
			cancel()
		}
		return nil
	})
	if _, err := l.Append(ctx, 0, entries(0, 50)); err != nil {
		t.Fatalf("cancelled half way: %v", err)
	}
	_, err := l.Append(ctx, 50, entries(50, 1))
	wantErr(t, err, context.Canceled)
	if head, err := l.Reader().Head(context.Background()); err != nil || head != l.Head() || head.Size != 50 {
		t.Errorf("the head is %v, %v", head, err)
	}
}

func TestCheckpointsAreKeptInOrderAndWithinTheLog(t *testing.T) {
	ctx := context.Background()
	l := openLog(t, newLog(t))
	_, err := l.Reader().LastCheckpoint(ctx)
	wantErr(t, err, store.ErrNoCheckpoint)
	grow(t, l, 10, 10)
	for _, size := range []int64{0, 4, 10} {
		if err := l.Checkpoint(ctx, size, fmt.Append(nil, "note ", size)); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int64{3, 10, 11} {
		if err := l.Checkpoint(ctx, size, []byte("other")); err == nil {
			t.Errorf("a checkpoint for %d was kept", size)
		}
	}
	last, err := l.Reader().LastCheckpoint(ctx)
	if err != nil || last.Size != 10 || string(last.Note) != "note 10" {
		t.Errorf("the last is %v, %v", last, err)
	}
	all, err := l.Reader().Checkpoints(ctx, 0, 10)
	if err != nil || len(all) != 2 || all[0].Size != 4 || string(all[0].Note) != "note 4" {
		t.Errorf("after 0 there are %v, %v", all, err)
	}
}

func TestAClosedLogRefusesEverything(t *testing.T) {
	ctx := context.Background()
	l := openLog(t, newLog(t))
	grow(t, l, 3, 3)
	closed(t, l)
	closed(t, l)
	_, err := l.Append(ctx, 3, entries(3, 1))
	wantErr(t, err, store.ErrClosed)
	_, err = l.Reread(ctx)
	wantErr(t, err, store.ErrClosed)
	wantErr(t, l.Checkpoint(ctx, 3, nil), store.ErrClosed)
	_, err = l.Reader().Read(ctx, 0, 1)
	wantErr(t, err, store.ErrClosed)
}
