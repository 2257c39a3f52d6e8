package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"waybill/replay/replaytest"
	"waybill/store"
)

// settled is the seq of a call.settled in Calls(600) that ends a transaction.
const settled = 102

// TestLogThatWasAlteredOnDiskExits20 alters a file by SQL, with the guards
// dropped, and looks for the event that is named.
func TestLogThatWasAlteredOnDiskExits20(t *testing.T) {
	l := replaytest.Calls(600)
	whole := bytesOf(t, l)
	if r := l.Rows[settled-1]; r.Type != "call.settled" || !slices.Contains(l.Sizes(), settled) {
		t.Fatalf("event %d is %s", settled, r.Type)
	}
	for _, c := range []struct {
		name, query string
		seq         int64 // 0: none is named
	}{
		{"a byte of an event", `UPDATE events SET bytes = CAST(replace(CAST(bytes AS TEXT), '"yes"', '"yet"') AS BLOB) WHERE seq = SETTLED`, settled},
		{"an event and its leaf hash", `UPDATE events SET (bytes, leaf) = (SELECT bytes, leaf FROM events WHERE seq = 4) WHERE seq = SETTLED`, settled},
		{"a leaf hash", `UPDATE events SET leaf = zeroblob(32) WHERE seq = SETTLED`, settled},
		{"a type", `UPDATE events SET type = 'call.refused' WHERE seq = SETTLED`, settled},
		{"a peer", `UPDATE events SET peer = 'wiki' WHERE seq = SETTLED`, settled},
		{"a call", `UPDATE events SET call = 'local/other' WHERE seq = SETTLED`, settled},
		{"an event that is gone", `DELETE FROM events WHERE seq = SETTLED`, settled},
		{"an event that is renumbered", `UPDATE events SET seq = 1000 WHERE seq = 600`, 600},
		{"an event put in below the first", `INSERT INTO events SELECT -5, type, peer, call, leaf, bytes FROM events WHERE seq = 100`, 1},
		{"an event put in behind the last", `INSERT INTO events SELECT 601, type, peer, call, leaf, bytes FROM events WHERE seq = 100`, 601},
		{"a tail that is gone", `DELETE FROM events WHERE seq > 590`, 591},
		{"a root", `UPDATE roots SET root = zeroblob(32) WHERE size = SETTLED`, settled},
		{"the last root", `UPDATE roots SET root = zeroblob(32) WHERE size = 600`, 600},
		{"the last root that is gone", `DELETE FROM roots WHERE size > 590`, 591},
		{"a tile", `UPDATE tiles SET hashes = zeroblob(8192) WHERE idx = 1`, 512},
		{"a tile that is gone", `DELETE FROM tiles WHERE idx = 0`, 256},
		{"a tile too much", `INSERT INTO tiles SELECT level, 2, hashes FROM tiles WHERE idx = 1`, 601},
		{"evidence", `UPDATE evidence SET bytes = CAST(bytes || ' ' AS BLOB) WHERE rowid = 1`, 2},
		{"evidence that is gone", `DELETE FROM evidence WHERE rowid = 1`, 2},
		{"evidence that nothing cites", `INSERT INTO evidence (digest, bytes) VALUES (x'0100000000000000000000000000000000000000000000000000000000000000', x'')`, 0},
		{"the id of the log", `UPDATE log SET id = 'other-00000000'`, 1},
		{"a leaf hash of another length", `UPDATE events SET leaf = x'00' WHERE seq = SETTLED`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := copyOf(t, whole)
			change(t, path, strings.ReplaceAll(c.query, "SETTLED", fmt.Sprint(settled)))
			out, _ := wants(t, 20, "verify", "--json", path)
			d := document[errorsDoc](t, out)
			where := fmt.Sprintf("event %d", c.seq)
			if named := d.Error.Where != nil; d.Error.Code != "altered" || named != (c.seq != 0) || named && *d.Error.Where != where {
				t.Errorf("got %s, want %s", out, where)
			}
			if out, errs := wants(t, 20, "verify", path); out != "" || !strings.Contains(errs, d.Error.Message) {
				t.Errorf("printed %q and %q", out, errs)
			}
		})
	}
}

// TestReplayOfAnAlteredLogIsNoInternalError holds for what replay itself has to
// read, and for what it need not read.
func TestReplayOfAnAlteredLogIsNoInternalError(t *testing.T) {
	whole := bytesOf(t, replaytest.Calls(600))
	for _, c := range []struct {
		query string
		exit  int
	}{
		{`DELETE FROM events WHERE seq = 100`, 20},
		{`DELETE FROM evidence WHERE rowid = 2`, 20},
		{`UPDATE events SET peer = 'wiki' WHERE seq = SETTLED`, 20},
		{`UPDATE events SET bytes = CAST(replace(CAST(bytes AS TEXT), '"yes"', '"yet"') AS BLOB) WHERE seq = SETTLED`, 21},
		{`DELETE FROM events WHERE seq > 597`, 21}, // the end of a call is missing
		{`DELETE FROM events WHERE seq > 598`, 0},  // nothing follows from these: verify says that they are gone
		{`UPDATE tiles SET hashes = zeroblob(8192) WHERE idx = 1`, 0},
		{`UPDATE roots SET root = zeroblob(32) WHERE size = 600`, 0},
	} {
		path := copyOf(t, whole)
		change(t, path, strings.ReplaceAll(c.query, "SETTLED", fmt.Sprint(settled)))
		wants(t, c.exit, "replay", path)
	}
}

// TestFlippedByteInTheFileIsFound alters the file itself, inside the bytes of an
// event, wherever SQLite has left a copy of them.
func TestFlippedByteInTheFileIsFound(t *testing.T) {
	l := replaytest.Small()
	whole := bytesOf(t, l)
	path := copyOf(t, whole)
	for i, r := range l.Rows {
		flipped := bytes.Clone(r.Bytes)
		flipped[i*7%len(flipped)] ^= 0x04
		if err := os.WriteFile(path, bytes.ReplaceAll(whole, r.Bytes, flipped), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, errs := wants(t, 20, "verify", path); !strings.Contains(errs, fmt.Sprintf("event %d:", i+1)) {
			t.Errorf("event %d was altered: %s", i+1, errs)
		}
	}
}

// TestWriterBesideTheAuditorIsNoAlteration verifies and replays a log again and
// again while it is being written.
func TestWriterBesideTheAuditorIsNoAlteration(t *testing.T) {
	l := replaytest.Calls(1500)
	path := filepath.Join(t.TempDir(), "log.db")
	if err := store.Create(path, replaytest.ID, replaytest.Key); err != nil {
		t.Fatal(err)
	}
	f, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	var writer sync.WaitGroup
	writer.Go(func() { done <- l.Append(f) })
	defer writer.Wait()
	for runs, writing := 0, true; writing || runs < 4; runs++ {
		select {
		case err := <-done:
			if writing = false; err != nil {
				t.Fatal(err)
			}
		default:
		}
		wants(t, 0, "verify", path)
		wants(t, 0, "replay", path)
	}
	out, _ := wants(t, 0, "verify", "--json", path)
	if d := document[verifyDoc](t, out); d.Size != 1500 {
		t.Errorf("in the end there are %d events", d.Size)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCopyInAReadOnlyFolderIsReadAndLeftAlone looks at the folder afterwards,
// too: permissions do not hold back everybody.
func TestCopyInAReadOnlyFolderIsReadAndLeftAlone(t *testing.T) {
	path := file(t, replaytest.Full())
	dir := filepath.Dir(path)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(path, 0o400), os.Chmod(dir, 0o500)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Error(err)
		}
	})
	names := func() (out []string) {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			out = append(out, f.Name())
		}
		return out
	}
	had := names()
	for _, command := range []string{"verify", "replay", "show"} {
		wants(t, 0, command, path)
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed, error %v", err)
	}
	if got := names(); fmt.Sprint(got) != fmt.Sprint(had) {
		t.Errorf("the folder has %q and had %q", got, had)
	}
}
