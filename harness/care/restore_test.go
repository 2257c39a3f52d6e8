package care_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"waybill/domain"
	"waybill/events"
	"waybill/harness"
	"waybill/harness/care"
	"waybill/replay"
	"waybill/store"

	"waybill/cmd/waybill-audit/logfile"
)

// A restored directory has a new log under a new key, whose first event cites
// the other one with its checkpoint; both verify, and the new one replays.
func TestRestoreBeginsANewLogThatCitesTheOther(t *testing.T) {
	dir, old := newDir(t, 5, 4)
	key, err := dir.PublicKey()
	noErr(t, err)
	note, err := os.ReadFile(dir.CheckpointFile())
	noErr(t, err)
	backup := lost(t, dir)
	noErr(t, os.WriteFile(dir.PayloadsFile(), []byte("payloads"), 0o600))
	noErr(t, os.WriteFile(dir.PayloadsFile()+"-wal", []byte("more of them"), 0o600))
	got, err := care.Restore(t.Context(), restoring(dir, backup))
	noErr(t, err)

	e := first(t, dir)
	cites, ok := e.Data.(domain.LogRestored)
	if !ok || cites != got.Cites || cites.Log != old || cites.Size != 5 || cites.Signed != 4 || cites.Checkpoint != domain.RefTo(note) || cites.Beyond != 0 {
		t.Errorf("the first event is %+v", e.Data)
	}
	if e.Seq != 1 || e.Time != now.UnixNano() || e.IsDecision() {
		t.Errorf("the first event is %+v", e)
	}
	for _, path := range []string{got.Kept, dir.LogFile()} {
		noErr(t, verify(t.Context(), path))
	}
	l, err := logfile.Open(dir.LogFile())
	noErr(t, err)
	defer l.Close()
	r, err := replay.Replay(t.Context(), l)
	if err != nil || r.Size != 1 || r.Log == old || r.Log != got.Log || r.State.Head != 1 {
		t.Errorf("replayed %+v, %v", r, err)
	}
	digest, err := events.DigestOf(cites.Checkpoint)
	noErr(t, err)
	if kept, err := l.Reader.Evidence(t.Context(), digest); err != nil || string(kept) != string(note) {
		t.Errorf("the checkpoint is not in the new log: %q, %v", kept, err)
	}
	kept := harness.DataDir(filepath.Join(string(dir), "restored", old))
	for path, want := range map[string]string{kept.KeyFiles().Public: key + "\n", kept.CheckpointFile(): string(note),
		kept.PayloadsFile(): "payloads", kept.PayloadsFile() + "-wal": "more of them"} {
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("%s holds %q, %v", path, b, err)
		}
	}
	was, err := os.ReadFile(filepath.Join(kept.KeysDir(), "payload.key"))
	noErr(t, err)
	if is, err := os.ReadFile(filepath.Join(dir.KeysDir(), "payload.key")); err != nil || string(is) != string(was) {
		t.Errorf("payloads are named with another key now: %v", err)
	}
	if _, public, err := dir.Signer(got.Log); err != nil || public == cites.Key {
		t.Errorf("the new log signs with %s, %v", public, err)
	}
	if _, err := os.Stat(dir.PayloadsFile()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the payloads of the other log are still there: %v", err)
	}
	if _, err := os.Stat(dir.RestoreMark()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the mark is still there: %v", err)
	}
}

// What a newer checkpoint shows to be lost is in the citation.
func TestRestoreSaysWhatTheBackupLacks(t *testing.T) {
	dir, _ := newDir(t, 5, 3)
	backup := filepath.Join(t.TempDir(), "backup.db")
	_, err := store.Backup(t.Context(), dir.LogFile(), backup, nil, nil)
	noErr(t, err)
	l, err := store.Open(dir.LogFile())
	noErr(t, err)
	b, err := events.Seal(l.ID(), domain.Event{Seq: 6, Time: now.UnixNano(), Data: domain.ServiceStopped{Reason: "signal"}})
	noErr(t, err)
	_, err = l.Append(t.Context(), 5, []store.Entry{{Type: "service.stopped", Bytes: b}})
	noErr(t, err)
	sign(t, dir, l)
	noErr(t, l.Close())
	lost(t, dir)
	got, err := care.Restore(t.Context(), restoring(dir, backup))
	noErr(t, err)
	if got.Cites.Size != 5 || got.Cites.Signed != 3 || got.Cites.Beyond != 6 {
		t.Errorf("cites %+v, want 5 events of at least 6", got.Cites)
	}
}

// On a machine that has lost everything the backup alone is enough, also one that
// was never signed.
func TestRestoreIntoAnEmptyDirectory(t *testing.T) {
	old, _ := newDir(t, 2, 0)
	dir := harness.DataDir(t.TempDir())
	got, err := care.Restore(t.Context(), restoring(dir, old.LogFile()))
	noErr(t, err)
	if got.Cites.Size != 2 || got.Cites.Checkpoint != (domain.Ref{}) || first(t, dir).Data != domain.Data(got.Cites) {
		t.Errorf("cites %+v", got.Cites)
	}
	noErr(t, verify(t.Context(), dir.LogFile()))
}

// Each refusal leaves the directory as it was, but for an empty folder.
func TestRestoreRefuses(t *testing.T) {
	other, _ := newDir(t, 2, 2)
	for _, c := range []struct {
		name, says string
		prepare    func(t *testing.T, dir harness.DataDir) (backup string)
	}{
		{"a directory with a log", "there is a log here", func(t *testing.T, dir harness.DataDir) string { return other.LogFile() }},
		{"a log of which the -wal is left", "log.db-wal", func(t *testing.T, dir harness.DataDir) string {
			noErr(t, os.WriteFile(dir.LogFile()+"-wal", []byte("x"), 0o600))
			return lost(t, dir)
		}},
		{"a backup of another log than the keys", "of another log", func(t *testing.T, dir harness.DataDir) string {
			lost(t, dir)
			noErr(t, os.Remove(dir.CheckpointFile()))
			return other.LogFile()
		}},
		{"a backup of another log than the checkpoint", "does not belong to the checkpoint", func(t *testing.T, dir harness.DataDir) string {
			lost(t, dir)
			noErr(t, os.RemoveAll(dir.KeysDir()))
			return other.LogFile()
		}},
		{"no backup", "no log there", func(t *testing.T, dir harness.DataDir) string {
			lost(t, dir)
			return filepath.Join(t.TempDir(), "none.db")
		}},
		{"a backup that is altered", "altered", func(t *testing.T, dir harness.DataDir) string {
			path := lost(t, dir)
			b, err := os.ReadFile(path)
			noErr(t, err)
			i := strings.LastIndex(string(b), `"count":3`)
			b[i+len(`"count":`)] = '9'
			noErr(t, os.WriteFile(path, b, 0o600))
			return path
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, _ := newDir(t, 5, 4)
			backup := c.prepare(t, dir)
			before := tree(t, dir)
			_, err := care.Restore(t.Context(), restoring(dir, backup))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
			if after := tree(t, dir); after != before {
				t.Errorf("the directory was changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}

// A restore that a crash ended half way goes on with the same backup, wherever it
// was; until then no other log can begin there.
func TestRestoreGoesOnAfterACrash(t *testing.T) {
	steps := []string{"keys", "checkpoint", "payload.key", "init"}
	for n := range len(steps) + 1 {
		t.Run(strings.Join(steps[:n], "+"), func(t *testing.T) {
			dir, id := newDir(t, 5, 4)
			other, _ := newDir(t, 1, 0)
			backup := lost(t, dir)
			old := harness.DataDir(filepath.Join(string(dir), "restored", id))
			noErr(t, os.MkdirAll(string(old), 0o700))
			_, err := store.Backup(t.Context(), backup, old.LogFile(), nil, nil)
			noErr(t, err)
			noErr(t, os.WriteFile(dir.RestoreMark(), []byte(id+"\n"), 0o600))
			for _, step := range steps[:n] {
				crashAfter(t, step, dir, old)
			}
			if _, _, err := dir.Init("local"); err == nil || !strings.Contains(err.Error(), "waybill restore") {
				t.Errorf("init says %v, want to hear of waybill restore", err)
			}
			if _, err := care.Restore(t.Context(), restoring(dir, other.LogFile())); err == nil || !strings.Contains(err.Error(), "has not finished") {
				t.Errorf("another backup: %v", err)
			}
			got, err := care.Restore(t.Context(), restoring(dir, backup))
			noErr(t, err)
			if got.Cites.Log != id || got.Cites.Signed != 4 || first(t, dir).Data != domain.Data(got.Cites) {
				t.Errorf("cites %+v", got.Cites)
			}
			for _, path := range []string{old.LogFile(), old.KeyFiles().Private, old.KeyFiles().Public, old.CheckpointFile()} {
				if _, err := os.Stat(path); err != nil {
					t.Error(err)
				}
			}
			noErr(t, verify(t.Context(), dir.LogFile()))
		})
	}
}

// crashAfter brings a directory to where a restore is after one step.
func crashAfter(t *testing.T, step string, dir, old harness.DataDir) {
	t.Helper()
	switch step {
	case "keys":
		noErr(t, os.Rename(dir.KeysDir(), old.KeysDir()))
	case "checkpoint":
		noErr(t, os.Rename(dir.CheckpointFile(), old.CheckpointFile()))
	case "payload.key":
		noErr(t, os.Mkdir(dir.KeysDir(), 0o700))
		noErr(t, os.Link(filepath.Join(old.KeysDir(), step), filepath.Join(dir.KeysDir(), step)))
	case "init":
		_, _, err := dir.InitWith("local", func(string) ([]store.Entry, error) { return nil, errors.New("a crash") })
		if err == nil {
			t.Fatal("it did not crash")
		}
	}
}
