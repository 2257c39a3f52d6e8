package store_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"waybill/migrations"
	"waybill/store"
)

const (
	logID = "local-0a1b2c3d"
	key   = "local-0a1b2c3d+12345678+AAAA"
)

// newLog makes a log in a folder of its own and returns its path.
func newLog(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.db")
	if err := store.Create(path, logID, key); err != nil {
		t.Fatal(err)
	}
	return path
}

// openLog opens a log until the test ends.
func openLog(t testing.TB, path string) *store.Log {
	t.Helper()
	l, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, l) })
	return l
}

func openReader(t testing.TB, path string) *store.Reader {
	t.Helper()
	r, err := store.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, r) })
	return r
}

func closed(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// eventBytes is the envelope of the event that a test gives the seq.
func eventBytes(seq int64) []byte {
	return fmt.Appendf(nil, `{"seq":%d,"type":"call.routed"}`, seq)
}

// entries returns n entries for the seqs after the given one.
func entries(after int64, n int) []store.Entry {
	out := make([]store.Entry, n)
	for i := range out {
		seq := after + int64(i) + 1
		out[i] = store.Entry{Type: "call.routed", Peer: "p", Call: fmt.Sprint("c", seq), Bytes: eventBytes(seq)}
	}
	return out
}

// grow appends entries until the log has the given size, at most max at a time.
func grow(t testing.TB, l *store.Log, size int64, max int) store.Head {
	t.Helper()
	for l.Head().Size < size {
		after := l.Head().Size
		n := min(int64(max), size-after)
		h, err := l.Append(context.Background(), after, entries(after, int(n)))
		if err != nil {
			t.Fatal(err)
		}
		if h.Size != after+n || h != l.Head() {
			t.Fatalf("append of %d after %d gave head %d, and Head says %d", n, after, h.Size, l.Head().Size)
		}
	}
	return l.Head()
}

// A reference is a second tree over the events of a test, made by tlog alone,
// with every hash kept.
type reference struct{ hashes []tlog.Hash }

func (r *reference) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		out[i] = r.hashes[x]
	}
	return out, nil
}

// newReference returns the tree over eventBytes(1) to eventBytes(size).
func newReference(t testing.TB, size int64) *reference {
	t.Helper()
	r := &reference{}
	for n := range size {
		hs, err := tlog.StoredHashes(n, eventBytes(n+1), r)
		if err != nil {
			t.Fatal(err)
		}
		r.hashes = append(r.hashes, hs...)
	}
	return r
}

func (r *reference) root(t testing.TB, size int64) [32]byte {
	t.Helper()
	h, err := tlog.TreeHash(size, r)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// outside runs SQL on the file as another program would, without the settings
// of this one.
func outside(t testing.TB, path string, queries ...string) {
	t.Helper()
	db, err := sql.Open("sqlite3", migrations.DSN(path, "mode=rw"))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, db)
	db.SetMaxOpenConns(1)
	for _, q := range queries {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

func evidenceOf(s string) store.Evidence {
	return store.Evidence{Digest: sha256.Sum256([]byte(s)), Bytes: []byte(s)}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want one that matches %q", err, want)
	}
}

func wantText(t testing.TB, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Fatalf("got error %v, want one that says %q", err, text)
	}
}
