package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"waybill/store"
)

// checkpointed makes a closed log of 10 events with checkpoints at 4 and 8.
func checkpointed(t *testing.T) string {
	t.Helper()
	path := newLog(t)
	l := openLog(t, path)
	grow(t, l, 10, 2)
	for _, size := range []int64{4, 8} {
		if err := l.Checkpoint(context.Background(), size, fmt.Append(nil, "note ", size)); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, l)
	return path
}

// TestCheckpointsThatWereChangedAreReadAsTheyStand: to judge them takes the key,
// and that is a verifier's.
func TestCheckpointsThatWereChangedAreReadAsTheyStand(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{`UPDATE checkpoints SET note = CAST('other' AS BLOB) WHERE size = 4`, "4:other 8:note 8 "},
		{`UPDATE checkpoints SET size = 5 - size WHERE size = 8`, "-3:note 8 4:note 4 "},
		{`UPDATE checkpoints SET size = 900 WHERE size = 4`, "8:note 8 900:note 4 "},
		{`DELETE FROM checkpoints WHERE size = 8`, "4:note 4 "},
	} {
		path := checkpointed(t)
		outside(t, path, `DROP TRIGGER checkpoints_no_update`, `DROP TRIGGER checkpoints_no_delete`, c.query)
		r := openReader(t, path)
		all, err := r.Checkpoints(context.Background(), -1000, 10)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, row := range all {
			got += fmt.Sprintf("%d:%s ", row.Size, row.Note)
		}
		if got != c.want {
			t.Errorf("%s: read %q, want %q", c.query, got, c.want)
		}
		last, err := r.LastCheckpoint(context.Background())
		if end := all[len(all)-1]; err != nil || last.Size != end.Size || string(last.Note) != string(end.Note) {
			t.Errorf("%s: the last is %+v, %v", c.query, last, err)
		}
	}
}

func TestACheckpointAheadOfTheLogHoldsUpTheNextAndNoEvent(t *testing.T) {
	path := checkpointed(t)
	outside(t, path, `DROP TRIGGER checkpoints_in_order`, `INSERT INTO checkpoints VALUES (900, x'00')`,
		`CREATE TRIGGER checkpoints_in_order BEFORE INSERT ON checkpoints
			WHEN NEW.size <= (SELECT coalesce(max(size), -1) FROM checkpoints)
			BEGIN SELECT RAISE(ABORT, 'checkpoints: size must grow and be within the log'); END`)
	l := openLog(t, path)
	grow(t, l, 20, 5)
	wantText(t, l.Checkpoint(context.Background(), 20, []byte("note")), "size must grow")
	if head := grow(t, l, 30, 5); head.Root != newReference(t, 30).root(t, 30) {
		t.Error("the refusal left its mark on the tree")
	}
}

func TestNoCheckpointIsKeptWhileAnOutcomeIsUnknown(t *testing.T) {
	ctx := context.Background()
	l := openLog(t, newLog(t))
	grow(t, l, 5, 5)
	failAt(l, store.FaultCommitted)
	if _, err := l.Append(ctx, 5, entries(5, 2)); err == nil {
		t.Fatal("the fault did not strike")
	}
	l.SetFault(nil)
	wantErr(t, l.Checkpoint(ctx, 5, []byte("note")), store.ErrOutcomeUnknown)
	if _, err := l.Reread(ctx); err != nil {
		t.Fatal(err)
	}
	if err := l.Checkpoint(ctx, 7, []byte("note")); err != nil {
		t.Error(err)
	}
}

// TestAppendsAndCheckpointsTakeTurns runs both at once, as the service does.
func TestAppendsAndCheckpointsTakeTurns(t *testing.T) {
	const size = 400
	ctx := context.Background()
	l := openLog(t, newLog(t))
	grow(t, l, 1, 1)
	stop := make(chan struct{})
	var kept int64
	var signer sync.WaitGroup
	signer.Go(func() {
		for last := int64(0); ; {
			select {
			case <-stop:
				return
			default:
			}
			h := l.Head()
			if h.Size == last {
				continue
			}
			if err := l.Checkpoint(ctx, h.Size, h.Root[:]); err != nil {
				t.Error(err)
				return
			}
			last, kept = h.Size, kept+1
		}
	})
	grow(t, l, size, 1)
	close(stop)
	signer.Wait()
	all, err := l.Reader().Checkpoints(ctx, -1, size+1)
	if err != nil || int64(len(all)) != kept || kept == 0 {
		t.Fatalf("%d of %d checkpoints are there, %v", len(all), kept, err)
	}
	ref := newReference(t, size)
	for _, c := range all {
		if root := ref.root(t, c.Size); string(c.Note) != string(root[:]) {
			t.Errorf("the head of size %d was not a head", c.Size)
		}
	}
	if head, err := l.Reread(ctx); err != nil || head.Size != size || head.Root != ref.root(t, size) {
		t.Errorf("in the end the head is %v, %v", head, err)
	}
}

// TestAProofFromATreeThatWasChangedSaysSo, and no proof is given.
func TestAProofFromATreeThatWasChangedSaysSo(t *testing.T) {
	ctx := context.Background()
	for _, query := range []string{
		`UPDATE tiles SET hashes = zeroblob(8192) WHERE idx = 0`,
		`UPDATE tiles SET hashes = x'00' WHERE idx = 0`,
		`DELETE FROM tiles`,
		`UPDATE events SET leaf = zeroblob(32) WHERE seq = 600`,
		`UPDATE events SET leaf = x'00' WHERE seq = 600`,
		`DELETE FROM events WHERE seq = 600`,
	} {
		path := newLog(t)
		l := openLog(t, path)
		head := grow(t, l, 600, 100)
		closed(t, l)
		outside(t, path, `DROP TRIGGER tiles_no_update`, `DROP TRIGGER tiles_no_delete`, `DROP TRIGGER events_no_update`,
			`DROP TRIGGER events_no_delete`, `PRAGMA ignore_check_constraints = ON`, query)
		r := openReader(t, path)
		if _, err := r.ProveRecord(ctx, 7, head); !errors.Is(err, store.ErrAltered) {
			t.Errorf("%s: an inclusion proof: %v", query, err)
		}
		if _, err := r.ProveTree(ctx, 300, head); !errors.Is(err, store.ErrAltered) {
			t.Errorf("%s: a consistency proof: %v", query, err)
		}
		if _, err := r.RootAt(ctx, 300, head); !errors.Is(err, store.ErrAltered) {
			t.Errorf("%s: a root: %v", query, err)
		}
	}
}

func TestAProofThatCannotBeReadIsNotAltered(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	l := openLog(t, newLog(t))
	head := grow(t, l, 600, 100)
	cancel()
	_, record := l.Reader().ProveRecord(ctx, 7, head)
	_, tree := l.Reader().ProveTree(ctx, 300, head)
	_, root := l.Reader().RootAt(ctx, 300, head)
	for _, err := range []error{record, tree, root} {
		if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrAltered) {
			t.Errorf("got %v", err)
		}
	}
}

func TestWhatIsNotInTheTreeIsNotProven(t *testing.T) {
	ctx := context.Background()
	l := openLog(t, newLog(t))
	head := grow(t, l, 10, 10)
	for _, seq := range []int64{-1, 0, 11} {
		if p, err := l.Reader().ProveRecord(ctx, seq, head); err == nil || errors.Is(err, store.ErrAltered) {
			t.Errorf("event %d: %v, %v", seq, p, err)
		}
		if p, err := l.Reader().ProveTree(ctx, seq, head); err == nil || errors.Is(err, store.ErrAltered) {
			t.Errorf("size %d: %v, %v", seq, p, err)
		}
	}
	var none tlog.TreeProof
	if p, err := l.Reader().ProveTree(ctx, 10, head); err != nil || len(p) != len(none) {
		t.Errorf("a log continues itself by %v, %v", p, err)
	}
}
