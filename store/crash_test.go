package store_test

import (
	"context"
	"fmt"
	"testing"

	"waybill/store"
)

func TestNothingAcknowledgedIsLostWhenTheWriterIsKilled(t *testing.T) {
	path := newLog(t)
	var before int64
	for round := range 20 {
		c := startChild(t, "append", path)
		if got := c.number("acked"); got < before {
			t.Fatalf("round %d: opened at %d after %d was acknowledged", round, got, before)
		}
		acked := int64(0)
		for range 1 + round*3 {
			acked = c.number("acked")
		}
		acked = c.kill("acked", acked)
		r := openReader(t, path) // before any writer has mended the file
		if head, err := r.Head(context.Background()); err != nil || head.Size < acked {
			t.Fatalf("round %d: a reader sees %v, %v after %d was acknowledged", round, head, err, acked)
		}
		closed(t, r)
		before = wantWhole(t, path, acked)
	}
}

// wantWhole opens a log after a crash and reads all of it: at least what was
// acknowledged, every event in its place, its evidence with it, the right root.
func wantWhole(t *testing.T, path string, acked int64) int64 {
	t.Helper()
	l, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, l)
	head := l.Head()
	if head.Size < acked {
		t.Fatalf("the log has %d events, and %d were acknowledged", head.Size, acked)
	}
	if err := follow(l.Reader(), head.Size); err != nil {
		t.Fatal(err)
	}
	if head.Root != newReference(t, head.Size).root(t, head.Size) {
		t.Fatal("the root is not that of the events")
	}
	roots, err := l.Reader().Roots(context.Background(), 0, int(head.Size))
	if err != nil {
		t.Fatal(err)
	}
	after := int64(0)
	for _, r := range roots { // one for each batch, which carried one evidence
		ev := evidenceOf(fmt.Sprint("evidence of ", after+1))
		if _, err := l.Reader().Evidence(context.Background(), ev.Digest); err != nil {
			t.Fatal(err)
		}
		after = r.Size
	}
	return head.Size
}

func TestProcessesThatOpenAtOnceAllSeeTheSameLog(t *testing.T) {
	path := newLog(t)
	l := openLog(t, path)
	grow(t, l, 300, 100)
	closed(t, l)
	for range 3 {
		outside(t, path, `UPDATE schema_migrations SET dirty = 1`)
		var children []*child
		for range 4 {
			c := startChild(t, "open", path)
			c.line("ready")
			children = append(children, c)
		}
		for _, c := range children {
			c.stdin.Close()
		}
		for _, c := range children {
			if got := c.number("head"); got != 300 {
				t.Errorf("a child sees %d events", got)
			}
			c.wait()
		}
	}
	// Two that close at the same instant may each think that the other is still there.
	closed(t, openLog(t, path))
	if got := list(t, path); got != "log.db" {
		t.Errorf("the folder has %q", got)
	}
}
