package heads

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"waybill/events/checkpoint"
	"waybill/harness"
	"waybill/migrations"
	"waybill/replay/replaytest"
	"waybill/store"
)

func TestWhereNothingWasSignedNothingIsChecked(t *testing.T) {
	w := newWorld(t)
	w.ok(w.check())
	l := w.open()
	w.grow(l, 5, "true")
	w.ok(l.Close())
	w.ok(w.check())
	if w.file() != "" {
		t.Errorf("a file was made: %s", w.file())
	}
	w.logs("")
}

func TestALogThatIsTheOneThatWasSignedIsTaken(t *testing.T) {
	w := newWorld(t)
	_, eight := w.signed()
	w.ok(w.check())
	if w.file() != string(eight) || w.lastStored() != string(eight) {
		t.Errorf("the file is %s", w.file())
	}
	w.logs("")
}

// TestACrashBetweenLogAndFileIsMadeUpFor is the one that leaves the file behind.
func TestACrashBetweenLogAndFileIsMadeUpFor(t *testing.T) {
	w := newWorld(t)
	four, eight := w.signed()
	w.write(four)
	w.ok(w.check())
	if w.file() != string(eight) {
		t.Errorf("the file is %s", w.file())
	}
	w.logs("")
}

func TestAMissingFileIsMadeAgainWithAWarning(t *testing.T) {
	w := newWorld(t)
	_, eight := w.signed()
	w.ok(os.Remove(w.dir.CheckpointFile()))
	w.ok(w.check())
	if w.file() != string(eight) {
		t.Errorf("the file is %s", w.file())
	}
	w.logs("the checkpoint beside the log is missing")
}

func (w *world) change(query string) {
	w.t.Helper()
	db, err := sql.Open("sqlite3", migrations.DSN(w.dir.LogFile(), "mode=rw"))
	w.ok(err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range []string{`DROP TRIGGER checkpoints_no_update`, `DROP TRIGGER checkpoints_no_delete`, query} {
		_, err := db.Exec(q)
		w.ok(err)
	}
}

func TestACheckpointThatWasTakenOutOfTheLogIsStoredAgainWithAWarning(t *testing.T) {
	for _, query := range []string{`DELETE FROM checkpoints WHERE size = 8`, `DELETE FROM checkpoints`} {
		w := newWorld(t)
		_, eight := w.signed()
		w.change(query)
		w.ok(w.check())
		if w.lastStored() != string(eight) || w.file() != string(eight) {
			t.Errorf("%s: stored is %s", query, w.lastStored())
		}
		w.logs("the log has lost the checkpoint beside it")
	}
}

// refused holds that a log is refused, and that nothing was changed by it.
func (w *world) refused(what, code string, says ...string) {
	w.t.Helper()
	before := w.file()
	err := w.check()
	var r *RefusedError
	if !errors.As(err, &r) || r.Code != code {
		w.t.Errorf("%s: got %v, want %s", what, err, code)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			w.t.Errorf("%s: %v does not say %q", what, err, s)
		}
	}
	if w.file() != before {
		w.t.Errorf("%s: the file was changed", what)
	}
}

func TestALogPutBackFromAnOlderBackupIsRefused(t *testing.T) {
	for _, size := range []int64{0, 3, 4, 7} {
		w := newWorld(t)
		four, eight := w.signed()
		w.begin(w.id) // the same history, as it was before
		l := w.open()
		w.grow(l, min(size, 4), "true")
		if size >= 4 {
			w.ok(l.Checkpoint(context.Background(), 4, four))
		}
		w.grow(l, size, "true")
		w.ok(l.Close())
		w.write(eight)
		first := map[int64]string{0: "Events 1 to 8", 3: "Events 4 to 8", 4: "Events 5 to 8", 7: "Events 8 to 8"}[size]
		w.refused("an older log", LogShorter, first, "begin a new log from it", "never edit")
	}
}

func TestALogWithAnotherHistoryIsRefused(t *testing.T) {
	for _, size := range []int64{8, 10, 300} {
		w := newWorld(t)
		_, eight := w.signed()
		w.begin(w.id)
		l := w.open()
		w.grow(l, 7, "true")
		w.grow(l, size, "forged")
		w.ok(l.Close())
		w.write(eight)
		w.refused("another history", LogDiffers, "the first 8 events", "waybill-audit verify")
	}
}

func TestACheckpointOfAnotherLogOrKeyIsRefused(t *testing.T) {
	w := newWorld(t)
	w.signed()
	l := w.open()
	head := checkpoint.Head{Log: w.id, Size: 8, Root: l.Head().Root}
	w.ok(l.Close())
	w.write(replaytest.SignHead(otherKey, head))
	w.refused("another key", KeyDiffers, "belong together")

	private, err := os.ReadFile(filepath.Join(string(w.dir), "keys", "log.key"))
	w.ok(err)
	head.Log = "other-00000000"
	w.write(replaytest.SignHead(strings.TrimSpace(string(private)), head))
	w.refused("another log", KeyDiffers, "other-00000000", w.id)

	for _, b := range []string{"", "nothing", w.lastStored() + "\n"} {
		w.write([]byte(b))
		w.refused("no checkpoint", CheckpointUnreadable, "move it away")
	}
}

func TestAStoredCheckpointThatWasChangedIsRefused(t *testing.T) {
	for query, code := range map[string]string{
		`UPDATE checkpoints SET note = x'00' WHERE size = 8`:                                         CheckpointUnreadable,
		`UPDATE checkpoints SET size = 9 WHERE size = 8`:                                             LogDiffers,
		`UPDATE checkpoints SET note = CAST(replace(CAST(note AS TEXT), x'0a38', x'0a39') AS BLOB)`:  KeyDiffers,
		`UPDATE checkpoints SET note = (SELECT note FROM checkpoints WHERE size = 4) WHERE size = 8`: LogDiffers,
	} {
		w := newWorld(t)
		w.signed()
		w.change(query)
		w.refused(query, code)
	}
}

// TestTheSigningKeyMustBeTheLogs is about the key file. Keys that were made under
// the name of the node are as good.
func TestTheSigningKeyMustBeTheLogs(t *testing.T) {
	w := newWorld(t)
	w.signed()
	l := w.open()
	defer l.Close()
	keyFile := filepath.Join(string(w.dir), "keys", "log.key")
	opens := func() error {
		_, err := New(context.Background(), Config{Dir: w.dir, Log: l, Logger: w.logger()})
		return err
	}
	w.ok(opens())
	w.ok(os.WriteFile(keyFile, []byte(otherKey+"\n"), 0o600))
	var r *RefusedError
	if err := opens(); !errors.As(err, &r) || r.Code != KeyDiffers {
		t.Errorf("another key: %v", err)
	}
	w.ok(os.WriteFile(keyFile, []byte("secret"), 0o600))
	if err := opens(); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a broken key: %v", err)
	}
	w.ok(os.Remove(keyFile))
	if err := opens(); err == nil || !strings.Contains(err.Error(), "backup") {
		t.Errorf("no key: %v", err)
	}
}

// TestAKeyUnderTheNameOfItsNodeSignsAsWell is what older key files hold.
func TestAKeyUnderTheNameOfItsNodeSignsAsWell(t *testing.T) {
	w := &world{t: t, dir: harness.DataDir(t.TempDir())}
	w.ok(os.Mkdir(filepath.Join(string(w.dir), "keys"), 0o700))
	private, public, err := note.GenerateKey(rand.Reader, "waybill/local")
	w.ok(err)
	w.ok(os.WriteFile(filepath.Join(string(w.dir), "keys", "log.key"), []byte(private+"\n"), 0o600))
	w.ok(os.WriteFile(filepath.Join(string(w.dir), "keys", "log.pub"), []byte(public+"\n"), 0o644))
	w.id, err = checkpoint.LogID("local", public)
	w.ok(err)
	w.ok(store.Create(w.dir.LogFile(), w.id, public))
	again, _, err := w.dir.Init("local") // makes what else is missing
	if err != nil || again != w.id {
		t.Fatalf("the log is %s, was %s, %v", again, w.id, err)
	}
	_, eight := w.signed()
	w.ok(w.check())
	if h, err := checkpoint.Open(eight, public); err != nil || h.Log != w.id {
		t.Errorf("signed %+v, %v", h, err)
	}
}
