package care_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"waybill/domain"
	"waybill/events"
	"waybill/events/checkpoint"
	"waybill/harness"
	"waybill/harness/care"
	"waybill/replay"
	"waybill/store"

	"waybill/cmd/waybill-audit/logfile"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func noErr(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newDir makes a data directory with a log of events, one an hour up to now, the
// first signed ones of which a checkpoint covers, in the log and beside it.
func newDir(t *testing.T, size, signed int) (dir harness.DataDir, id string) {
	t.Helper()
	dir = harness.DataDir(t.TempDir())
	id, _, err := dir.Init("local")
	noErr(t, err)
	l, err := store.Open(dir.LogFile())
	noErr(t, err)
	for i := range size {
		at := now.Add(-time.Duration(size-i-1) * time.Hour)
		data := domain.Data(domain.IntakeShed{Count: int64(i) + 1, Code: domain.CodeOverloaded})
		b, err := events.Seal(id, domain.Event{Seq: int64(i) + 1, Time: at.UnixNano(), Data: data})
		noErr(t, err)
		_, err = l.Append(t.Context(), int64(i), []store.Entry{{Type: data.Kind(), Bytes: b}})
		noErr(t, err)
		if i+1 == signed {
			sign(t, dir, l)
		}
	}
	noErr(t, l.Close())
	return dir, id
}

// sign signs the head of a log as the service does.
func sign(t *testing.T, dir harness.DataDir, l *store.Log) {
	t.Helper()
	signer, _, err := dir.Signer(l.ID())
	noErr(t, err)
	head := l.Head()
	note, err := checkpoint.Sign(signer, checkpoint.Head{Log: l.ID(), Size: head.Size, Root: head.Root})
	noErr(t, err)
	noErr(t, l.Checkpoint(t.Context(), head.Size, note))
	noErr(t, os.WriteFile(dir.CheckpointFile(), note, 0o644))
}

func verify(ctx context.Context, path string) error {
	l, err := logfile.Open(path)
	if err != nil {
		return err
	}
	_, err = replay.Verify(ctx, l)
	return errors.Join(err, l.Close())
}

func restoring(dir harness.DataDir, backup string) care.Restoring {
	return care.Restoring{Dir: dir, Node: "local", Backup: backup, Now: now, Verify: verify}
}

// lost takes the log away from its directory and returns where it is.
func lost(t *testing.T, dir harness.DataDir) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "kept.db")
	noErr(t, os.Rename(dir.LogFile(), path))
	return path
}

// tree lists what is in a directory, with the content of each file.
func tree(t *testing.T, dir harness.DataDir) string {
	t.Helper()
	out := ""
	noErr(t, filepath.WalkDir(string(dir), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		out += fmt.Sprintf("%s %x\n", path, b)
		return err
	}))
	return out
}

// first returns the event that a log begins with.
func first(t *testing.T, dir harness.DataDir) domain.Event {
	t.Helper()
	r, err := store.OpenReader(dir.LogFile())
	noErr(t, err)
	defer r.Close()
	records, err := r.Read(t.Context(), 0, 1)
	noErr(t, err)
	log, e, err := events.Open(records[0].Bytes)
	noErr(t, err)
	if log != r.ID() {
		t.Errorf("the event is of log %s, in %s", log, r.ID())
	}
	return e
}
