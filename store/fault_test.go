package store_test

import (
	"context"
	"errors"
	"testing"

	"waybill/store"
)

var errFault = errors.New("fault")

// failAt makes the next append of l fail at a point.
func failAt(l *store.Log, at string) {
	l.SetFault(func(point string) error {
		if point != at {
			return nil
		}
		return errFault
	})
}

func TestAnAppendThatFailsBeforeCommitIsKnownNotToHaveHappened(t *testing.T) {
	ctx := context.Background()
	for _, point := range []string{store.FaultBegin, store.FaultInsert} {
		path := newLog(t)
		l := openLog(t, path)
		head := grow(t, l, 250, 250)
		failAt(l, point)
		batch := entries(250, 20)
		batch[3].Evidence = []store.Evidence{evidenceOf("a list")}
		_, err := l.Append(ctx, 250, batch)
		wantErr(t, err, errFault)
		if errors.Is(err, store.ErrOutcomeUnknown) || l.Head() != head {
			t.Errorf("%s: error %v, head %v", point, err, l.Head())
		}
		if _, err := l.Reader().Evidence(ctx, batch[3].Evidence[0].Digest); !errors.Is(err, store.ErrNoEvidence) {
			t.Errorf("%s: the evidence was kept: %v", point, err)
		}
		l.SetFault(nil)
		if got := grow(t, l, 270, 20); got.Root != newReference(t, 270).root(t, 270) {
			t.Errorf("%s: the failed append has left its mark on the tree", point)
		}
	}
}

// The two ways in which a commit can fail: it did not happen, and it did. The
// batch completes a tile, so that the tree on disk moves or does not.
func TestAfterACommitOfUnknownOutcomeRereadTellsWhichItWas(t *testing.T) {
	ctx := context.Background()
	for point, want := range map[string]int64{store.FaultCommit: 250, store.FaultCommitted: 270} {
		l := openLog(t, newLog(t))
		head := grow(t, l, 250, 250)
		failAt(l, point)
		_, err := l.Append(ctx, 250, entries(250, 20))
		wantErr(t, err, store.ErrOutcomeUnknown)
		wantErr(t, err, errFault)
		if l.Head() != head {
			t.Errorf("%s: the head moved to %v", point, l.Head())
		}
		l.SetFault(nil)
		for _, after := range []int64{250, 270} {
			_, err = l.Append(ctx, after, entries(after, 1))
			wantErr(t, err, store.ErrOutcomeUnknown)
		}
		got, err := l.Reread(ctx)
		if err != nil || got.Size != want || got.Root != newReference(t, want).root(t, want) || got != l.Head() {
			t.Fatalf("%s: read again: %v, %v", point, got, err)
		}
		if end := grow(t, l, 600, 100); end.Root != newReference(t, 600).root(t, 600) {
			t.Errorf("%s: the log does not go on", point)
		}
	}
}

func TestTheOutcomeStaysUnknownWhileReadingAgainFails(t *testing.T) {
	l := openLog(t, newLog(t))
	failAt(l, store.FaultCommitted)
	if _, err := l.Append(context.Background(), 0, entries(0, 3)); err == nil {
		t.Fatal("the fault did not strike")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := l.Reread(ctx)
	wantErr(t, err, context.Canceled)
	_, err = l.Append(context.Background(), 0, entries(0, 1))
	wantErr(t, err, store.ErrOutcomeUnknown)
	if head, err := l.Reread(context.Background()); err != nil || head.Size != 3 {
		t.Errorf("read again: %v, %v", head, err)
	}
}

func TestRereadWithoutAFailureChangesNothing(t *testing.T) {
	l := openLog(t, newLog(t))
	for _, size := range []int64{0, 1, 256, 300} {
		head := grow(t, l, size, 100)
		if got, err := l.Reread(context.Background()); err != nil || got != head {
			t.Errorf("at %d: %v, %v", size, got, err)
		}
	}
}

// A full disk is a real failure: SQLite refuses to let the file grow.
func TestAFullDiskLosesTheBatchAndNothingElse(t *testing.T) {
	ctx := context.Background()
	path := newLog(t)
	l := openLog(t, path)
	head := grow(t, l, 100, 100)
	pages, err := l.Pragma("page_count")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Pragma("max_page_count = " + pages); err != nil {
		t.Fatal(err)
	}
	_, err = l.Append(ctx, 100, entries(100, 5000))
	wantText(t, err, "full")
	if l.Head() != head {
		t.Errorf("the head moved to %v", l.Head())
	}
	if _, err := l.Pragma("max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Reread(ctx); err != nil || got != head {
		t.Fatalf("read again: %v, %v", got, err)
	}
	if got := grow(t, l, 5100, 5000); got.Root != newReference(t, 5100).root(t, 5100) {
		t.Error("the log does not go on")
	}
}
