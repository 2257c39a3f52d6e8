package store_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"waybill/migrations"
	"waybill/store"
)

// contents is everything that a log holds of its first size events.
type contents struct {
	records     []store.Record
	roots       []store.Head
	tiles       [2][]store.Tile
	checkpoints []store.Checkpoint
	digests     [][32]byte
}

func read(t *testing.T, path string, size int64) (c contents) {
	t.Helper()
	r, ctx := openReader(t, path), context.Background()
	var errs [6]error
	c.records, errs[0] = r.Read(ctx, 0, int(size))
	c.roots, errs[1] = r.Roots(ctx, 0, len(c.records))
	c.tiles[0], errs[2] = r.Tiles(ctx, 0, -1, int(size>>8))
	c.tiles[1], errs[3] = r.Tiles(ctx, 1, -1, int(size>>16))
	c.checkpoints, errs[4] = r.Checkpoints(ctx, -1, 100)
	c.digests, errs[5] = r.Digests(ctx, [32]byte{}, 100)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	for len(c.roots) > 0 && c.roots[len(c.roots)-1].Size > size {
		c.roots = c.roots[:len(c.roots)-1]
	}
	return c
}

// canFold reports whether the writer's own kind of checkpoint, with the
// -wal file emptied after it, can be done to the end: no read is open.
func canFold(t *testing.T, path string) bool {
	t.Helper()
	db, err := sql.Open("sqlite3", migrations.DSN(path, "mode=rw"))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, db)
	var busy, frames, moved int
	if err := db.QueryRow(`PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved); err != nil {
		t.Fatal(err)
	}
	return busy == 0
}

// A backup of a log that grows meanwhile is the log of the moment it began, and
// keeps nobody from folding the -wal file.
func TestBackupIsTheLogOfOneMoment(t *testing.T) {
	const size = 1500
	path := newLog(t)
	l := openLog(t, path)
	grow(t, l, size-1, 7)
	head, err := l.Append(t.Context(), size-1, []store.Entry{{Type: "catalog.listed", Bytes: eventBytes(size),
		Evidence: []store.Evidence{evidenceOf("a list"), evidenceOf("")}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Checkpoint(t.Context(), 900, []byte("the note")); err != nil {
		t.Fatal(err)
	}
	before := read(t, path, size)
	to, told, last := filepath.Join(t.TempDir(), "copy.db"), 0, int64(0)
	got, err := store.Backup(t.Context(), path, to, nil, func(copied, of int64) {
		if told++; of != size || copied <= last || !canFold(t, path) {
			t.Errorf("told of %d of %d after %d; want %d in all, and no read left open", copied, of, last, size)
		}
		last = copied
		after := l.Head().Size
		if _, err := l.Append(t.Context(), after, []store.Entry{{Type: "x", Bytes: eventBytes(after + 1),
			Evidence: []store.Evidence{evidenceOf(string(eventBytes(after)))}}}); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil || got != head || told < 2 || last != size {
		t.Fatalf("backed up %+v, want %+v, told %d times, error %v", got, head, told, err)
	}
	if after := read(t, to, size); !reflect.DeepEqual(after, before) {
		t.Errorf("the copy differs from the log as it was")
	}
	if files, _ := filepath.Glob(to + "*"); len(files) != 1 {
		t.Errorf("the copy is %q, want one file", files)
	}
	copied := openLog(t, to)
	if grown := grow(t, copied, size+300, 50); grown.Root != newReference(t, size+300).root(t, size+300) {
		t.Error("the copy does not grow into the tree of the log")
	}
}

func TestBackupOfAnEmptyLog(t *testing.T) {
	to := filepath.Join(t.TempDir(), "copy.db")
	if h, err := store.Backup(t.Context(), newLog(t), to, nil, nil); err != nil || h.Size != 0 {
		t.Fatal(h, err)
	}
	if r := openReader(t, to); r.ID() != logID || r.PublicKey() != key {
		t.Errorf("the copy is of log %s", r.ID())
	}
}

// A path that is taken is left as it is, and a copy that does not pass its check
// never gets a name.
func TestBackupNeverReplacesAndNeverKeepsWhatFails(t *testing.T) {
	path, to := newLog(t), filepath.Join(t.TempDir(), "copy.db")
	grow(t, openLog(t, path), 3, 3)
	bad := errors.New("not good enough")
	_, err := store.Backup(t.Context(), path, to, func(string) error { return bad }, nil)
	wantErr(t, err, bad)
	if left, _ := filepath.Glob(to + "*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if err := os.WriteFile(to+".waybill-unfinished", []byte("a crash left this"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Backup(t.Context(), path, to, nil, nil); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Backup(t.Context(), path, to, nil, nil)
	wantErr(t, err, fs.ErrExist)
	if after, err := os.ReadFile(to); err != nil || string(after) != string(before) {
		t.Errorf("the file was touched: %v", err)
	}
	_, err = store.Backup(t.Context(), filepath.Join(t.TempDir(), "none.db"), to+"2", nil, nil)
	wantErr(t, err, store.ErrMissing)
}

func TestBackupOfALogWithoutARowSaysSo(t *testing.T) {
	for what, query := range map[string]string{
		"an event": `DROP TRIGGER events_no_delete; DELETE FROM events WHERE seq = 5`,
		"a tile":   `DROP TRIGGER tiles_no_delete; DELETE FROM tiles`,
		"the root": `DROP TRIGGER roots_no_delete; DELETE FROM roots WHERE size = 300`,
	} {
		path := newLog(t)
		l, err := store.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		grow(t, l, 300, 10)
		closed(t, l)
		outside(t, path, query)
		if _, err := store.Backup(t.Context(), path, filepath.Join(t.TempDir(), "copy.db"), nil, nil); !errors.Is(err, store.ErrAltered) {
			t.Errorf("without %s: %v", what, err)
		}
	}
}

// A log that begins with events has them from the moment it has its name.
func TestCreateWithItsFirstEvents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	err := store.Create(path, logID, key, store.Entry{Type: "x", Bytes: make([]byte, store.MaxEvent+1)})
	wantText(t, err, "entry 0 (x) has")
	if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if err := store.Create(path, logID, key, entries(0, 2)...); err != nil {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(path + "*"); len(files) != 1 {
		t.Errorf("the log is %q, want one file", files)
	}
	h := openLog(t, path).Head()
	if h.Size != 2 || h.Root != newReference(t, 2).root(t, 2) {
		t.Errorf("the log begins with %+v", h)
	}
}
