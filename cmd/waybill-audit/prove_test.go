package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tlog "github.com/transparency-dev/formats/log"
	tlogproof "github.com/transparency-dev/formats/proof"
	merkle "github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"

	"waybill/events/checkpoint"
	"waybill/replay/replaytest"
)

// stranger opens a checkpoint with the public key and nothing of ours.
func stranger(t *testing.T, b []byte) *tlog.Checkpoint {
	t.Helper()
	v, err := note.NewVerifier(replaytest.Key)
	if err != nil {
		t.Fatal(err)
	}
	c, _, _, err := tlog.ParseCheckpoint(b, "waybill/"+replaytest.ID, v)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestStrangerChecksInclusion verifies proofs with other libraries: the C2SP
// formats, and a second implementation of the tree.
func TestStrangerChecksInclusion(t *testing.T) {
	l := replaytest.Calls(700).Sign(1, 255, 256, 257, 600)
	path := file(t, l)
	for _, size := range []int64{1, 255, 256, 257, 600} {
		under := noteFile(t, replaytest.PrivateKey, l.HeadAt(size))
		for _, seq := range []int64{1, size/2 + 1, size} {
			out, _ := wants(t, 0, "prove", path, itoa(seq), "--checkpoint", under)
			var p tlogproof.TLogProof
			if err := p.Unmarshal([]byte(out)); err != nil {
				t.Fatal(err)
			}
			if string(p.ExtraData) != string(l.Rows[seq-1].Bytes) || p.Index != uint64(seq-1) {
				t.Errorf("the proof of event %d is of index %d with %s", seq, p.Index, p.ExtraData)
			}
			c := stranger(t, p.Checkpoint)
			var hashes [][]byte
			for _, h := range p.Hashes {
				hashes = append(hashes, h[:])
			}
			leaf := rfc6962.DefaultHasher.HashLeaf(p.ExtraData)
			if err := merkle.VerifyInclusion(rfc6962.DefaultHasher, p.Index, c.Size, leaf, hashes, c.Hash); err != nil || c.Size != uint64(size) {
				t.Errorf("event %d of %d: %v", seq, size, err)
			}
		}
	}
	out, _ := wants(t, 0, "prove", path, "600", "--key", replaytest.Key)
	if !strings.HasSuffix(out, string(l.Notes[4].Note)) {
		t.Errorf("not proven under the last checkpoint:\n%s", out)
	}
}

func TestStrangerChecksConsistency(t *testing.T) {
	l := replaytest.Calls(700).Sign(600)
	path := file(t, l)
	for _, sizes := range [][2]int64{{0, 1}, {0, 600}, {1, 600}, {255, 256}, {256, 257}, {256, 600}, {599, 600}, {600, 600}} {
		old, now := l.HeadAt(sizes[0]), l.HeadAt(sizes[1])
		out, _ := wants(t, 0, "prove", path, "--from", noteFile(t, replaytest.PrivateKey, old), "--to", noteFile(t, replaytest.PrivateKey, now))
		front, signed, _ := strings.Cut(out, "\n\n")
		lines := strings.Split(front, "\n")
		if lines[0] != fmt.Sprintf("old %d", old.Size) || signed != string(replaytest.SignHead(replaytest.PrivateKey, now)) {
			t.Fatalf("the proof is\n%s", out)
		}
		var hashes [][]byte
		for _, line := range lines[1:] {
			h, err := base64.StdEncoding.DecodeString(line)
			if err != nil {
				t.Fatal(err)
			}
			hashes = append(hashes, h)
		}
		c := stranger(t, []byte(signed))
		if err := merkle.VerifyConsistency(rfc6962.DefaultHasher, uint64(old.Size), c.Size, hashes, old.Root[:], c.Hash); err != nil {
			t.Errorf("%d to %d: %v", old.Size, c.Size, err)
		}
	}
	out, _ := wants(t, 0, "prove", path, "--from", noteFile(t, replaytest.PrivateKey, l.HeadAt(7)))
	if !strings.HasSuffix(out, string(l.Notes[0].Note)) {
		t.Errorf("not proven to the last checkpoint:\n%s", out)
	}
}

// TestProofNeedsNoLibrary checks a proof with what the standard library has, as
// anybody can in any language.
func TestProofNeedsNoLibrary(t *testing.T) {
	l := replaytest.Calls(600).Sign(600)
	out, _ := wants(t, 0, "prove", file(t, l), "300")
	front, signed, _ := strings.Cut(out, "\n\n")
	text, signature, _ := strings.Cut(signed, "\n\n")
	sig, err := base64.StdEncoding.DecodeString(strings.TrimSpace(signature[strings.LastIndexByte(signature, ' ')+1:]))
	if err != nil {
		t.Fatal(err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.SplitN(replaytest.Key, "+", 3)[2])
	if err != nil {
		t.Fatal(err)
	}
	if !ed25519.Verify(key[1:], []byte(text+"\n"), sig[4:]) {
		t.Error("the signature is not of the three lines")
	}
	h := rfc6962.DefaultHasher.HashLeaf(l.Rows[299].Bytes)
	n, last := 299, 599
	for _, line := range strings.Split(front, "\n")[3:] {
		p, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		for n%2 == 0 && n == last {
			n, last = n/2, last/2
		}
		if n%2 == 1 || n == last {
			h = rfc6962.DefaultHasher.HashChildren(p, h)
		} else {
			h = rfc6962.DefaultHasher.HashChildren(h, p)
		}
		n, last = n/2, last/2
	}
	if root := strings.Split(text, "\n")[2]; root != base64.StdEncoding.EncodeToString(h) {
		t.Errorf("the hashes lead to another root than %s", root)
	}
}

func TestProofsAreWrittenAndChecked(t *testing.T) {
	l := replaytest.Calls(600).Sign(300, 600)
	path := file(t, l)
	older := noteFile(t, replaytest.PrivateKey, l.HeadAt(300))
	one, two := filepath.Join(t.TempDir(), "a.tlog-proof"), filepath.Join(t.TempDir(), "b")
	out, _ := wants(t, 0, "prove", path, "7", "-o", one)
	if !strings.Contains(out, "wrote "+one+": event 7 is in log "+replaytest.ID+", under its checkpoint of 600 events\n") || !strings.Contains(out, replaytest.Key) {
		t.Errorf("printed %s", out)
	}
	out, _ = wants(t, 0, "prove", path, "--from", older, "-o", two, "--json")
	d := document[proofDoc](t, out)
	written, err := os.ReadFile(two)
	if err != nil || d.Proof != string(written) || d.File != two || d.Kind != "consistency" || *d.OldSize != 300 || d.Size != 600 || d.Key != replaytest.Key {
		t.Errorf("got %s, %v", out, err)
	}
	out, _ = wants(t, 0, "checkproof", one, "--key", replaytest.Key)
	if want := "event 7 is in log " + replaytest.ID + ", under its checkpoint of 600 events, signed by " + replaytest.Key + "\n" + string(l.Rows[6].Bytes) + "\n"; out != want {
		t.Errorf("printed %s", out)
	}
	out, _ = wants(t, 0, "checkproof", two, "--key", textFile(t, replaytest.Key+"\n"), "--from", older)
	if !strings.HasPrefix(out, "log "+replaytest.ID+" with 600 events continues what it was with 300, signed by ") {
		t.Errorf("printed %s", out)
	}
	out, _ = wants(t, 0, "checkproof", one, "--key", replaytest.Key, "--json")
	if d := document[proofDoc](t, out); d.Kind != "inclusion" || d.Seq != 7 || d.Event != string(l.Rows[6].Bytes) || d.Proof != "" {
		t.Errorf("got %s", out)
	}
	wants(t, 20, "checkproof", one, "--key", replaytest.OtherKey)
	wants(t, 20, "checkproof", two, "--key", replaytest.Key, "--from", noteFile(t, replaytest.PrivateKey, l.HeadAt(299)))
	wants(t, 2, "prove", path, "8", "-o", one) // nothing is ever replaced
	wants(t, 2, "prove", path, "8", "-o", path)
	wants(t, 2, "checkproof", two, "--key", replaytest.Key)
	wants(t, 2, "checkproof", one, "--key", replaytest.Key, "--from", older)
	wants(t, 2, "checkproof", one)
	wants(t, 2, "checkproof", older, "--key", replaytest.Key)
	wants(t, 2, "checkproof", path, "--key", replaytest.Key)
}

// TestAnyFlippedByteOfAProofIsFound goes through every byte of both kinds. One
// that is no longer a proof at all is no alteration.
func TestAnyFlippedByteOfAProofIsFound(t *testing.T) {
	l := replaytest.Small().Sign(28)
	path, older := file(t, l), noteFile(t, replaytest.PrivateKey, l.HeadAt(11))
	for _, args := range [][]string{{"prove", path, "9"}, {"prove", path, "--from", older}} {
		out, _ := wants(t, 0, args...)
		check := []string{"checkproof", "--key", replaytest.Key}
		if args[2] == "--from" {
			check = append(check, "--from", older)
		}
		for at := range out {
			b := []byte(out)
			b[at] ^= 1 << (at % 7)
			if exit, said, _ := audit(append(check, textFile(t, string(b)))...); exit != 20 && exit != 2 {
				t.Errorf("byte %d of %q: exit %d, %s", at, args, exit, said)
			}
		}
	}
}

// TestNothingIsProvenOfWhatWasAltered names the event where it is known.
func TestNothingIsProvenOfWhatWasAltered(t *testing.T) {
	l := replaytest.Calls(600).Sign(300, 600)
	whole := bytesOf(t, l)
	older := noteFile(t, replaytest.PrivateKey, l.HeadAt(300))
	forged := l.HeadAt(300)
	forged.Root[3] ^= 1
	for _, c := range []struct {
		name, query string
		args        []string
		where       string
	}{
		{"the event", `UPDATE events SET bytes = CAST(bytes || ' ' AS BLOB) WHERE seq = 7`, []string{"7"}, "event 7"},
		{"the event is gone", `DELETE FROM events WHERE seq = 7`, []string{"7"}, "event 7"},
		{"a leaf", `UPDATE events SET leaf = zeroblob(32) WHERE seq = 599`, []string{"600"}, ""},
		{"a tile", `UPDATE tiles SET hashes = zeroblob(8192) WHERE idx = 1`, []string{"--from", older}, ""},
		{"the checkpoint", `UPDATE checkpoints SET note = CAST(note || x'0a' AS BLOB) WHERE size = 600`, []string{"7"}, "event 600"},
		{"the size of the checkpoint", `UPDATE checkpoints SET size = 599 WHERE size = 600`, []string{"7"}, "event 599"},
		{"the tail", `DELETE FROM roots WHERE size > 590`, []string{"7"}, ""},
		{"nothing, but the key is another", "", []string{"7", "--key", replaytest.OtherKey}, ""},
		{"nothing, but the older checkpoint is forged", "", []string{"--from", noteFile(t, replaytest.PrivateKey, forged)}, "event 300"},
		{"nothing, but the checkpoint is forged", "", []string{"7", "--checkpoint", noteFile(t, replaytest.PrivateKey, forged)}, ""},
		{"nothing, but the checkpoint is of another key", "", []string{"7", "--checkpoint", noteFile(t, replaytest.OtherPrivateKey, l.HeadAt(300))}, ""},
		{"nothing, but the checkpoint is of a longer log", "", []string{"7", "--checkpoint",
			noteFile(t, replaytest.PrivateKey, checkpoint.Head{Log: replaytest.ID, Size: 601})}, "event 601"},
	} {
		path := copyOf(t, whole)
		if c.query != "" {
			change(t, path, c.query)
		}
		out, _ := wants(t, 20, append([]string{"prove", "--json", path}, c.args...)...)
		if got := where(t, out); got != c.where {
			t.Errorf("%s: named %q in %s", c.name, got, out)
		}
	}
}

func TestWhatCannotBeProvenExits2(t *testing.T) {
	l := replaytest.Small()
	unsigned, signed := file(t, l), file(t, l.Clone().Sign(20))
	note := noteFile(t, replaytest.PrivateKey, l.HeadAt(20))
	later := noteFile(t, replaytest.PrivateKey, l.HeadAt(25))
	for _, args := range [][]string{
		{unsigned, "1"}, {signed}, {signed, "21"}, {signed, "0"}, {signed, "x"}, {signed, "1", "--from", note}, {signed, "--to", note},
		{signed, "1", "--to", note}, {signed, "--from", later}, {signed, "--from", note, "--checkpoint", note},
		{signed, "--from", textFile(t, "nothing")}, {signed, "1", "--checkpoint", textFile(t, "nothing")}, {signed, "1", "--key", "nothing"},
		{signed, "1", "-o", filepath.Join(filepath.Dir(signed), "none", "file")},
	} {
		if _, errs := wants(t, 2, append([]string{"prove"}, args...)...); errs == "" {
			t.Errorf("%q says nothing", args)
		}
	}
}

// TestLargeEventIsProven holds for what readers of lines may find too long.
func TestLargeEventIsProven(t *testing.T) {
	l := replaytest.Small()
	big := append([]byte(`{"id":"28","pad":"`), []byte(strings.Repeat("x", 60_000)+`"}`)...)
	l = l.Rewrite(28, big).Sign(28)
	out := filepath.Join(t.TempDir(), "big.tlog-proof")
	wants(t, 0, "prove", file(t, l), "28", "-o", out)
	wants(t, 0, "checkproof", out, "--key", replaytest.Key)
}
