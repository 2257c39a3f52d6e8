package store_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"waybill/migrations"
	"waybill/store"
)

// list names the files in the folder of path.
func list(t testing.TB, path string) string {
	t.Helper()
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	return strings.Join(names, " ")
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCreateMakesOneFileWithTheIdentityAndTheEmptyTree(t *testing.T) {
	path := newLog(t)
	if got := list(t, path); got != "log.db" {
		t.Errorf("the folder has %q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	l := openLog(t, path)
	if l.ID() != logID || l.PublicKey() != key || l.Reader().ID() != logID || l.Reader().PublicKey() != key {
		t.Errorf("the identity is %q, %q", l.ID(), l.PublicKey())
	}
	if want := (store.Head{Root: newReference(t, 0).root(t, 0)}); l.Head() != want {
		t.Errorf("the head is %v", l.Head())
	}
}

func TestCreateRefusesAPathThatIsTakenAndTouchesNothing(t *testing.T) {
	for _, name := range []string{"log.db", "log.db-wal", "log.db-journal"} {
		path := filepath.Join(t.TempDir(), "log.db")
		taken := filepath.Join(filepath.Dir(path), name)
		if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := store.Create(path, logID, key)
		wantErr(t, err, store.ErrExists)
		wantErr(t, err, fs.ErrExist)
		if list(t, path) != name || readFile(t, taken) != "mine" {
			t.Errorf("the folder has %q", list(t, path))
		}
	}
}

func TestCreateRefusesAnEmptyIdentityAndAMissingFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	if store.Create(path, "", key) == nil || store.Create(path, logID, "") == nil {
		t.Error("an empty identity was taken")
	}
	wantErr(t, store.Create(filepath.Join(path, "log.db"), logID, key), fs.ErrNotExist)
	if got := list(t, path); got != "" {
		t.Errorf("the folder has %q", got)
	}
}

func TestCreatesAtOnceMakeOneLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	results := make(chan error)
	for range 8 {
		go func() { results <- store.Create(path, logID, key) }()
	}
	made := 0
	for range 8 {
		if err := <-results; err == nil {
			made++
		} else if !errors.Is(err, store.ErrExists) {
			t.Error(err)
		}
	}
	if made != 1 || list(t, path) != "log.db" {
		t.Errorf("%d were made, and the folder has %q", made, list(t, path))
	}
	openLog(t, path)
}

func TestWhatACrashInCreateLeavesIsNeverOpenedAndIsRemovedByTheNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	for _, suffix := range []string{"", "-wal", "-shm", ".migrate"} {
		if err := os.WriteFile(path+".new"+suffix, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := store.Open(path)
	wantErr(t, err, store.ErrMissing)
	if err := store.Create(path, logID, key); err != nil {
		t.Fatal(err)
	}
	if got := list(t, path); got != "log.db" {
		t.Errorf("the folder has %q", got)
	}
	grow(t, openLog(t, path), 3, 3)
}

func TestTheSecondNameThatACrashInCreateLeavesIsRemoved(t *testing.T) {
	path := newLog(t)
	if err := os.Link(path, path+".new"); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, path)
	closed(t, l)
	if got := list(t, path); got != "log.db" {
		t.Errorf("the folder has %q", got)
	}
}

func TestOpenNeverCreates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	_, err := store.Open(path)
	wantErr(t, err, store.ErrMissing)
	wantErr(t, err, fs.ErrNotExist)
	_, err = store.OpenReader(path)
	wantErr(t, err, store.ErrMissing)
	if got := list(t, path); got != "" {
		t.Errorf("the folder has %q", got)
	}
}

func TestWhatIsNotALogIsRefusedAndNotTouched(t *testing.T) {
	make := map[string]func(path string){
		"text":            func(path string) { os.WriteFile(path, []byte(strings.Repeat("text\n", 5000)), 0o600) },
		"empty":           func(path string) { os.WriteFile(path, nil, 0o600) },
		"another program": func(path string) { os.WriteFile(path, nil, 0o600); outside(t, path, `CREATE TABLE t (x)`) },
	}
	for name, f := range make {
		path := filepath.Join(t.TempDir(), "log.db")
		f(path)
		before := readFile(t, path)
		_, err := store.Open(path)
		wantErr(t, err, store.ErrNotLog)
		_, err = store.OpenReader(path)
		wantErr(t, err, store.ErrNotLog)
		if readFile(t, path) != before || list(t, path) != "log.db" {
			t.Errorf("%s: the file was touched; the folder has %q", name, list(t, path))
		}
	}
	_, err := store.Open(t.TempDir())
	wantErr(t, err, store.ErrNotLog)
}

func TestANewerSchemaIsRefusedAndSaysWhoCanReadIt(t *testing.T) {
	path := newLog(t)
	outside(t, path, `INSERT INTO migrations_done VALUES (7, '3.1')`, `UPDATE schema_migrations SET version = 7`)
	_, err := store.Open(path)
	wantErr(t, err, store.ErrNewerSchema)
	wantText(t, err, "release 3.1")
	_, err = store.OpenReader(path)
	wantErr(t, err, store.ErrNewerSchema)
	wantText(t, err, "release 3.1")
}

func TestALogWhoseMigrationWasInterruptedOpens(t *testing.T) {
	path := newLog(t)
	grow(t, openLog(t, path), 5, 5)
	outside(t, path, `UPDATE schema_migrations SET dirty = 1`)
	if l := openLog(t, path); l.Head().Size != 5 {
		t.Errorf("the head is %v", l.Head())
	}
}

// alterations are what a person with SQLite could do to a log of 600 events
// whose last batch began after 500, and what gives each away at once.
var alterations = map[string][]string{
	"bytes of a recent event":       {`UPDATE events SET bytes = x'00' WHERE seq = 550`},
	"leaf of a recent event":        {`UPDATE events SET leaf = zeroblob(32) WHERE seq = 550`},
	"leaf of a false length":        {`UPDATE events SET leaf = x'00' WHERE seq = 550`},
	"last event deleted":            {`DELETE FROM events WHERE seq = 600`},
	"last event and root deleted":   {`DELETE FROM events WHERE seq = 600`, `DELETE FROM roots WHERE size = 600`},
	"a recent event deleted":        {`DELETE FROM events WHERE seq = 550`},
	"an event added without a root": {`INSERT INTO events SELECT 601, type, peer, call, leaf, bytes FROM events WHERE seq = 600`},
	"last root":                     {`UPDATE roots SET root = zeroblob(32) WHERE size = 600`},
	"last root of a false length":   {`UPDATE roots SET root = x'00' WHERE size = 600`},
	"last root deleted":             {`DELETE FROM roots WHERE size = 600`},
	"all roots deleted":             {`DELETE FROM roots`},
	"all events deleted":            {`DELETE FROM events`},
	"an old tile":                   {`UPDATE tiles SET hashes = zeroblob(8192) WHERE idx = 0`},
	"an old tile deleted":           {`DELETE FROM tiles WHERE idx = 1`},
}

func TestAnAlteredLogIsRefusedAtOpen(t *testing.T) {
	for name, queries := range alterations {
		path := newLog(t)
		l := openLog(t, path)
		grow(t, l, 600, 500)
		closed(t, l)
		outside(t, path, append(disarm(t, path), queries...)...)
		_, err := store.Open(path)
		if !errors.Is(err, store.ErrAltered) {
			t.Errorf("%s: got error %v", name, err)
			continue
		}
		wantText(t, err, "waybill-audit verify")
	}
}

// disarm returns what takes the guards off, as anyone who can write a file can.
func disarm(t *testing.T, path string) []string {
	t.Helper()
	db, err := sql.Open("sqlite3", migrations.DSN(path, "mode=ro"))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, db)
	var drops string
	err = db.QueryRow(`SELECT group_concat('DROP TRIGGER ' || name, ';') FROM sqlite_schema WHERE type = 'trigger'`).Scan(&drops)
	if err != nil {
		t.Fatal(err)
	}
	return []string{drops, `PRAGMA ignore_check_constraints = ON`}
}

func TestAReaderNoticesEventsWithoutTheirRoot(t *testing.T) {
	path := newLog(t)
	l := openLog(t, path)
	grow(t, l, 10, 5)
	closed(t, l)
	outside(t, path, append(disarm(t, path), `DELETE FROM roots WHERE size = 10`)...)
	_, err := openReader(t, path).Head(context.Background())
	wantErr(t, err, store.ErrAltered)
}

func TestOpenReadsTheSameHeadAtAnySizeOfBatch(t *testing.T) {
	path := newLog(t)
	l := openLog(t, path)
	for _, n := range []int64{1, 255, 256, 257, 600} {
		head := grow(t, l, n, 1)
		closed(t, l)
		l = openLog(t, path)
		if l.Head() != head {
			t.Errorf("at %d the head is %v, was %v", n, l.Head(), head)
		}
	}
}

func TestCloseLeavesOneCompleteFile(t *testing.T) {
	path := newLog(t)
	l := openLog(t, path)
	grow(t, l, 1000, 100)
	if _, err := l.Reader().Read(context.Background(), 0, 10); err != nil {
		t.Fatal(err)
	}
	closed(t, l)
	if got := list(t, path); got != "log.db" {
		t.Errorf("the folder has %q", got)
	}
}

func TestPathsThatMeanSomethingInAURIAreTakenAsTheyAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a?mode=memory#50%41 b.db")
	if err := store.Create(path, logID, key); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, path)
	grow(t, l, 3, 3)
	closed(t, l)
	if got := list(t, path); got != filepath.Base(path) {
		t.Errorf("the folder has %q", got)
	}
	if head, err := openReader(t, path).Head(context.Background()); err != nil || head.Size != 3 {
		t.Errorf("the head is %v, %v", head, err)
	}
}
