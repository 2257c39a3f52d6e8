package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"waybill/store"
)

func TestReadStopsAtMaxAndGoesOnAfter(t *testing.T) {
	l := openLog(t, newLog(t))
	grow(t, l, 25, 25)
	for _, c := range []struct {
		after int64
		max   int
		first int64
		n     int
	}{{0, 10, 1, 10}, {10, 10, 11, 10}, {20, 10, 21, 5}, {25, 10, 0, 0}, {100, 10, 0, 0}, {0, 0, 0, 0}, {-5, 2, 1, 2}} {
		recs, err := l.Reader().Read(context.Background(), c.after, c.max)
		if err != nil || len(recs) != c.n {
			t.Errorf("%d after %d: %d events, %v", c.max, c.after, len(recs), err)
			continue
		}
		for i, rec := range recs {
			if rec.Seq != c.first+int64(i) {
				t.Errorf("%d after %d: seq %d at %d", c.max, c.after, rec.Seq, i)
			}
		}
	}
}

func TestByCallReturnsTheWholeStoryOfACallInOrder(t *testing.T) {
	ctx := context.Background()
	l := openLog(t, newLog(t))
	batch := entries(0, 30)
	for i := range batch {
		batch[i].Call = []string{"", "a", "b"}[i%3]
	}
	if _, err := l.Append(ctx, 0, batch); err != nil {
		t.Fatal(err)
	}
	recs, err := l.Reader().ByCall(ctx, "a")
	if err != nil || len(recs) != 10 {
		t.Fatalf("%d events, %v", len(recs), err)
	}
	for i, rec := range recs {
		if rec.Seq != int64(3*i+2) || rec.Call != "a" || string(rec.Bytes) != string(eventBytes(rec.Seq)) {
			t.Errorf("event %d is %+v", i, rec)
		}
	}
	for _, call := range []string{"", "c"} {
		if recs, err := l.Reader().ByCall(ctx, call); err != nil || len(recs) != 0 {
			t.Errorf("call %q has %d events, %v", call, len(recs), err)
		}
	}
}

func TestReadersInThisProcessFollowAWriter(t *testing.T) {
	const size = 20000
	l := openLog(t, newLog(t))
	results := make(chan error)
	for range 3 {
		go func() { results <- follow(l.Reader(), size) }()
	}
	grow(t, l, size, 37)
	for range 3 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

func TestAReaderInAnotherProcessFollowsAWriter(t *testing.T) {
	const size = 5000
	path := newLog(t)
	l := openLog(t, path)
	grow(t, l, 10, 10)
	c := startChild(t, "read", path)
	c.line("ready")
	fmt.Fprintln(c.stdin, size)
	grow(t, l, size, 7)
	if got := c.number("read"); got != size {
		t.Errorf("it read %d", got)
	}
	c.wait()
}

func TestAReaderOfALogAtRestFollowsAWriterThatComesLater(t *testing.T) {
	ctx := context.Background()
	path := newLog(t)
	r := openReader(t, path)
	for size := int64(300); size <= 900; size += 300 { // twice more at rest
		l, err := store.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		head := grow(t, l, size-100, 100)
		if got, err := r.Head(ctx); err != nil || got != head {
			t.Errorf("while the writer runs: %v, %v, want %v", got, err, head)
		}
		head = grow(t, l, size, 100)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Head(ctx); err != nil || got != head {
			t.Errorf("after the writer: %v, %v, want %v", got, err, head)
		}
		if err := follow(r, size); err != nil {
			t.Error(err)
		}
	}
}

func TestReadingALogAtRestLeavesNothingBehind(t *testing.T) {
	path := newLog(t)
	l := openLog(t, path)
	grow(t, l, 300, 100)
	closed(t, l)
	before := readFile(t, path)
	r := openReader(t, path)
	if err := follow(r, 300); err != nil {
		t.Fatal(err)
	}
	if got := list(t, path); got != "log.db" {
		t.Errorf("while reading, the folder has %q", got)
	}
	closed(t, r)
	if got := list(t, path); got != "log.db" || readFile(t, path) != before {
		t.Errorf("after reading, the folder has %q", got)
	}
}

// copyTo copies the files with these suffixes into a folder of its own.
func copyTo(t *testing.T, path string, suffixes ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "log.db")
	for _, s := range suffixes {
		if err := os.WriteFile(to+s, []byte(readFile(t, path+s)), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func TestACopyWithItsWALIsReadToTheEndAndNotTouched(t *testing.T) {
	path := newLog(t)
	l := openLog(t, path)
	head := grow(t, l, 500, 100) // still in the -wal file
	copied := copyTo(t, path, "", "-wal")
	before, wal := readFile(t, copied), readFile(t, copied+"-wal")
	r := openReader(t, copied)
	if got, err := r.Head(context.Background()); err != nil || got != head {
		t.Errorf("the head is %v, %v", got, err)
	}
	if err := follow(r, 500); err != nil {
		t.Error(err)
	}
	closed(t, r)
	if list(t, copied) != "log.db log.db-wal" || readFile(t, copied) != before || readFile(t, copied+"-wal") != wal {
		t.Errorf("the folder has %q", list(t, copied))
	}
}

// A -wal file that holds no whole transaction is what a crash at the very
// beginning leaves. It is not ours to remove.
func TestACopyWithAnUnreadableWALIsReadWithoutIt(t *testing.T) {
	path := newLog(t)
	l := openLog(t, path)
	head := grow(t, l, 50, 50)
	closed(t, l)
	for _, wal := range []string{"", "x", string(make([]byte, 40000))} {
		copied := copyTo(t, path, "")
		if err := os.WriteFile(copied+"-wal", []byte(wal), 0o600); err != nil {
			t.Fatal(err)
		}
		r := openReader(t, copied)
		if got, err := r.Head(context.Background()); err != nil || got != head {
			t.Errorf("the head is %v, %v", got, err)
		}
		closed(t, r)
		if list(t, copied) != "log.db log.db-wal" || readFile(t, copied+"-wal") != wal {
			t.Errorf("-wal of %d bytes: the folder has %q", len(wal), list(t, copied))
		}
	}
}

// readOnly makes the folder of path one that only its owner may write, reachable
// for everyone.
func readOnly(t *testing.T, path string) {
	t.Helper()
	dir := filepath.Dir(path)
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o755) })
	for up := filepath.Dir(dir); up != filepath.Clean(os.TempDir()) && up != "/"; up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACopyInAFolderThatCannotBeWrittenIsRead(t *testing.T) {
	path := newLog(t)
	l := openLog(t, path)
	grow(t, l, 500, 100)
	withWAL := copyTo(t, path, "", "-wal")
	withSHM := copyTo(t, path, "", "-wal", "-shm")
	closed(t, l)
	for name, copied := range map[string]string{
		"closed log": copyTo(t, path, ""), "with -wal": withWAL, "with -wal and -shm": withSHM,
	} {
		readOnly(t, copied)
		files := list(t, copied)
		c := startChild(t, "inspect", copied)
		if got := c.number("head"); got != 500 {
			t.Errorf("%s: the head is %d", name, got)
		}
		c.wait()
		if got := list(t, copied); got != files {
			t.Errorf("%s: the folder had %q and has %q", name, files, got)
		}
	}
}

func TestARunningLogIsReadByOneWhoMayNotWriteIt(t *testing.T) {
	path := newLog(t)
	l := openLog(t, path)
	grow(t, l, 200, 100)
	for _, s := range []string{"", "-wal", "-shm"} {
		if err := os.Chmod(path+s, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	readOnly(t, path)
	c := startChild(t, "inspect", path)
	if got := c.number("head"); got != 200 {
		t.Errorf("the head is %d", got)
	}
	c.wait()
	grow(t, l, 300, 100)
}
