package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/replay"
	"waybill/replay/replaytest"
)

// onDisk is a log file of which single bytes are changed in place.
type onDisk struct {
	t     *testing.T
	path  string
	whole []byte
	file  *os.File
}

func openOnDisk(t *testing.T, l *replaytest.Log) *onDisk {
	t.Helper()
	path := file(t, l)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &onDisk{t, path, whole, f}
}

// places finds content in the file, wherever SQLite has left a copy of it, but
// not before another content: the root of one event is its leaf hash, too.
func (d *onDisk) places(content, notBefore []byte) (out []int) {
	d.t.Helper()
	for i := 0; ; i++ {
		n := bytes.Index(d.whole[i:], content)
		if n < 0 {
			break
		}
		i += n
		if notBefore == nil || !bytes.HasPrefix(d.whole[i+len(content):], notBefore) {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		d.t.Fatalf("%.40q does not stand in the file", content)
	}
	return out
}

func (d *onDisk) write(places []int, offset int, b byte) {
	d.t.Helper()
	for _, at := range places {
		if _, err := d.file.WriteAt([]byte{b}, int64(at+offset)); err != nil {
			d.t.Fatal(err)
		}
	}
}

// verifiedFile verifies a file and returns what is altered, nil for nothing.
func verifiedFile(t *testing.T, path string) *replay.AlteredError {
	t.Helper()
	l, err := logfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = replay.Verify(t.Context(), l)
	var altered *replay.AlteredError
	if err != nil && !errors.As(err, &altered) {
		t.Fatal(err)
	}
	return altered
}

// flips changes one bit in every step-th byte of what stands at places in the
// file, each time another, and holds verify to name the event.
func (d *onDisk) flips(what string, places []int, content []byte, step int, seq int64) (n int) {
	d.t.Helper()
	for i := 0; i < len(content); i += step {
		d.write(places, i, content[i]^1<<(i/step%8))
		if got := verifiedFile(d.t, d.path); got == nil || got.Seq != seq {
			d.t.Errorf("byte %d of %s: found %v, want event %d", i, what, got, seq)
		}
		d.write(places, i, content[i])
		n++
	}
	return n
}

// TestEveryFlippedByteOnDiskIsFoundAndNamed goes through a whole small log file:
// every other byte of every event with its leaf hash, every byte of every root,
// checkpoint and piece of evidence. In memory, package replay goes through all.
func TestEveryFlippedByteOnDiskIsFoundAndNamed(t *testing.T) {
	l := replaytest.Small().Sign(5, 20, 28)
	d := openOnDisk(t, l)
	n := 0
	for i, r := range l.Rows {
		row := append(r.Leaf[:], r.Bytes...)
		n += d.flips(fmt.Sprint("event ", i+1), d.places(row, nil), row, 2, r.Seq)
	}
	for _, h := range l.Heads {
		n += d.flips(fmt.Sprint("root ", h.Size), d.places(h.Hash[:], l.Rows[0].Bytes[:10]), h.Hash[:], 1, h.Size)
	}
	for _, c := range l.Notes {
		n += d.flips(fmt.Sprint("checkpoint ", c.Size), d.places(c.Note, nil), c.Note, 1, c.Size)
	}
	seen := map[string]bool{}
	for _, e := range l.Events() {
		if e.Evidence == nil || seen[string(e.Evidence)] {
			continue
		}
		seen[string(e.Evidence)] = true
		n += d.flips(fmt.Sprint("evidence of ", e.Seq), d.places(e.Evidence, nil), e.Evidence, 1, e.Seq)
	}
	if got := verifiedFile(t, d.path); got != nil || n < 5_000 {
		t.Errorf("%d bytes were flipped, and in the end the log is %v", n, got)
	}
}

// TestHashesOfATileOnDiskAreHeldToTheEvents changes a bit in each of its hashes
// but the few in which SQLite goes on to another page.
func TestHashesOfATileOnDiskAreHeldToTheEvents(t *testing.T) {
	l := replaytest.Calls(300)
	d := openOnDisk(t, l)
	tile, n := l.Full[0].Hashes, 0
	for _, part := range [][]byte{tile[:28*32], tile[32*32:]} {
		n += d.flips("the tile", d.places(part, nil), part, 32, 256)
	}
	if n != 252 {
		t.Errorf("%d hashes were changed", n)
	}
}

// TestEveryRowThatIsMovedIsFoundAndNamed removes, repeats, exchanges and numbers
// anew each row of a whole small log file.
func TestEveryRowThatIsMovedIsFoundAndNamed(t *testing.T) {
	l := replaytest.Small().Sign(5, 20, 28)
	whole := bytesOf(t, l)
	const n = 28
	finds := func(what string, seq int64, queries ...string) {
		t.Helper()
		path := copyOf(t, whole)
		change(t, path, queries...)
		if got := verifiedFile(t, path); got == nil || got.Seq != seq {
			t.Errorf("%s: found %v, want event %d", what, got, seq)
		}
	}
	row := `type, peer, call, leaf, bytes FROM events WHERE seq = `
	for seq := int64(1); seq <= n; seq++ {
		is := func(format string, seqs ...any) string { return fmt.Sprintf(format, seqs...) }
		finds(is("%d gone", seq), seq, is(`DELETE FROM events WHERE seq = %d`, seq))
		finds(is("%d to the end", seq), seq, is(`UPDATE events SET seq = 1000 WHERE seq = %d`, seq))
		finds(is("%d to the front", seq), 1, is(`UPDATE events SET seq = -1 WHERE seq = %d`, seq))
		finds(is("%d and all after it numbered anew", seq), seq, is(`UPDATE events SET seq = -seq - 1000 WHERE seq >= %d`, seq),
			`UPDATE events SET seq = -seq WHERE seq < 0`)
		finds(is("%d again at the end", seq), n+1, is(`INSERT INTO events SELECT 29, `+row+`%d`, seq))
		if seq == n {
			continue
		}
		finds(is("%d again in place of the next", seq), seq+1, is(`DELETE FROM events WHERE seq = %d`, seq+1),
			is(`INSERT INTO events SELECT %d, `+row+`%d`, seq+1, seq))
		finds(is("%d exchanged with the next", seq), seq, is(`UPDATE events SET seq = -1 WHERE seq = %d`, seq),
			is(`UPDATE events SET seq = %d WHERE seq = %d`, seq, seq+1), is(`UPDATE events SET seq = %d WHERE seq = -1`, seq+1))
	}
	for _, h := range l.Heads {
		finds("a root", h.Size, fmt.Sprintf(`UPDATE roots SET root = zeroblob(32) WHERE size = %d`, h.Size))
		if h.Size < n && h.Size > 1 {
			finds("the size of a root", h.Size+1, fmt.Sprintf(`UPDATE roots SET size = %d WHERE size = %d`, h.Size+1, h.Size))
		}
	}
	for _, c := range l.Notes {
		finds("the size of a checkpoint", c.Size-1, fmt.Sprintf(`UPDATE checkpoints SET size = size - 1 WHERE size = %d`, c.Size))
		finds("no checkpoint", c.Size, fmt.Sprintf(`UPDATE checkpoints SET note = x'' WHERE size = %d`, c.Size))
	}
}

// TestRowsBeforeTheFirstAreFound adds a row where a reader that goes through the
// log from its first event never comes.
func TestRowsBeforeTheFirstAreFound(t *testing.T) {
	const least = "-9223372036854775808"
	for what, insert := range map[string]string{
		"event " + least:                   `INSERT INTO events VALUES (` + least + `, 'x', '', '', zeroblob(32), x'00')`,
		"a root of " + least:               `INSERT INTO roots VALUES (` + least + `, zeroblob(32))`,
		"a checkpoint of " + least:         `INSERT INTO checkpoints VALUES (` + least + `, x'00')`,
		"tile -1/0":                        `INSERT INTO tiles VALUES (-1, 0, zeroblob(8192))`,
		"tile 9/0":                         `INSERT INTO tiles VALUES (9, 0, zeroblob(8192))`,
		"tile 0/" + least:                  `INSERT INTO tiles VALUES (0, ` + least + `, zeroblob(8192))`,
		"evidence under a digest of zeros": `INSERT INTO evidence VALUES (zeroblob(32), x'00')`,
	} {
		path := file(t, replaytest.Small())
		change(t, path, insert)
		if a := verifiedFile(t, path); a == nil || !strings.HasPrefix(a.What, what) {
			t.Errorf("%s was added: %v", what, a)
		}
	}
}
