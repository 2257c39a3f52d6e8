package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"waybill/domain"
	"waybill/harness"
)

type backupDoc struct {
	Log, File, Root string
	Bytes, Size     int64
	Signed          int64
}

// A backup that is taken while calls are under way is one file that verifies and
// replays by itself, without a key, a -wal or the directory it came from.
func TestBackupOfARunningServiceVerifiesByItself(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	s := w.serve()
	var wait sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 4 {
		wait.Go(func() {
			for ctx.Err() == nil {
				run([]string{"call", "-c", w.file, "--json", "echo"}, &bytes.Buffer{}, &bytes.Buffer{})
			}
		})
	}
	eventually(t, "a head was signed", func() bool { _, err := os.Stat(filepath.Join(w.dir, ".waybill", "checkpoint")); return err == nil })
	file := filepath.Join(t.TempDir(), "backup.db")
	doc := decode[backupDoc](t, w.must(exitDone, "backup", "--json", file))
	stop()
	wait.Wait()
	if doc.File != file || doc.Signed == 0 || doc.Signed > doc.Size || doc.Bytes == 0 {
		t.Errorf("%+v", doc)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if code, out, _ := w.run("backup", "--json", file); code != exitConfig || decode[failureDoc](t, out).Error.Code != "usage" {
		t.Errorf("a second backup to the same file: exit %d, %s", code, out)
	}
	if files, _ := filepath.Glob(file + "*"); len(files) != 1 {
		t.Errorf("the backup is %q", files)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	if err := os.RemoveAll(filepath.Join(w.dir, ".waybill")); err != nil {
		t.Fatal(err)
	}
	if state := auditLog(t, file); state.Head != doc.Size {
		t.Errorf("the backup ends at %d, and was said to end at %d", state.Head, doc.Size)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("reading changed the backup: %v", err)
	}
}

// A restored directory serves under a new log id whose first event cites the
// backup; both logs verify and replay.
func TestRestoreGoesOnUnderANewLog(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	s := w.serve()
	w.must(exitDone, "call", "--json", "--call-id", "mine", "echo")
	s.stop(syscall.SIGTERM)
	file := filepath.Join(t.TempDir(), "backup.db")
	old := decode[backupDoc](t, w.must(exitDone, "backup", "--json", file))
	if code, out, _ := w.run("restore", "--json", file); code != exitConfig || !strings.Contains(out, "there is a log here") {
		t.Errorf("restore over a log: exit %d, %s", code, out)
	}
	data := harness.DataDir(filepath.Join(w.dir, ".waybill"))
	if err := os.Remove(data.LogFile()); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := w.run("doctor", "--json"); code != exitInternal || !strings.Contains(out, `"log_missing"`) || !strings.Contains(out, "waybill restore") {
		t.Errorf("doctor, without the log: exit %d, %s", code, out)
	}
	type restoreDoc struct {
		Log, Kept string
		Cites     domain.LogRestored
	}
	doc := decode[restoreDoc](t, w.must(exitDone, "restore", "--json", file))
	if doc.Log == old.Log || doc.Cites.Log != old.Log || doc.Cites.Size != old.Size || doc.Cites.Root != old.Root || doc.Cites.Signed != old.Signed || doc.Cites.Beyond != 0 {
		t.Errorf("%+v after %+v", doc, old)
	}
	w.serve()
	if out := w.must(exitRefused, "calls", "outcome", "mine"); !strings.Contains(out, "unknown_call") {
		t.Errorf("a call of the other log is known here: %s", out)
	}
	w.must(exitDone, "call", "--json", "--call-id", "mine", "echo")
	if first := decode[struct{ Type string }](t, w.must(exitDone, "events", "--json", "--type", "log.restored")); first.Type != "log.restored" {
		t.Errorf("the new log has %+v", first)
	}
	if out, _, _ := strings.Cut(w.must(exitDone, "events", "--json"), "\n"); !strings.Contains(out, `"type":"log.restored"`) {
		t.Errorf("the new log begins with %s", out)
	}
	w.audit()
	if state := auditLog(t, doc.Kept); state.Head != old.Size {
		t.Errorf("the other log is kept with %d events, of %d", state.Head, old.Size)
	}
}

func TestStatusWithAndWithoutAService(t *testing.T) {
	w := newWorld(t, "limits: {log_size: 1KiB}", peerYAML{name: "a", mode: "modern"}).ready()
	type doc struct {
		Log      string
		PID      int
		LogSize  int64           `json:"log_size"`
		LogLimit int64           `json:"log_limit"`
		DiskFree int64           `json:"disk_free"`
		DaysLeft *float64        `json:"days_left"`
		Service  json.RawMessage `json:"service"`
		Files    []struct {
			Name  string
			Bytes int64
		}
	}
	d := decode[doc](t, w.must(exitDone, "status", "--json"))
	if d.PID != 0 || string(d.Service) != "null" || d.LogSize == 0 || d.LogLimit != 1024 || d.DiskFree == 0 || d.DaysLeft != nil || len(d.Files) < 3 {
		t.Errorf("without a service: %+v", d)
	}
	s := w.serve()
	d = decode[doc](t, w.must(exitDone, "status", "--json"))
	if d.PID != s.cmd.Process.Pid || !strings.Contains(string(d.Service), `"head":`) {
		t.Errorf("with a service: %+v, %s", d, d.Service)
	}
	code, out, errs := w.run("status")
	if code != exitDone || !strings.Contains(out, "log.db") || !strings.Contains(errs, "limits.log_size") {
		t.Errorf("for people: exit %d\n%s%s", code, out, errs)
	}
	if said := s.errs.String(); !strings.Contains(said, "warning: the log has") || !strings.Contains(said, "level=WARN") {
		t.Errorf("the service does not warn of a full log: %s", said)
	}
	w.must(exitDone, "call", "--json", "echo") // a limit warns and refuses nothing
}
