package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"waybill/events/checkpoint"
	"waybill/replay/replaytest"
)

// textFile writes a file for an argument and returns its path.
func textFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.txt")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// noteFile writes a checkpoint of a log.
func noteFile(t *testing.T, private string, h checkpoint.Head) string {
	t.Helper()
	return textFile(t, string(replaytest.SignHead(private, h)))
}

// where is what an alteration is said to concern.
func where(t *testing.T, out string) string {
	t.Helper()
	d := document[errorsDoc](t, out)
	if d.Error.Code != "altered" {
		t.Errorf("got %s", out)
	}
	if d.Error.Where == nil {
		return ""
	}
	return *d.Error.Where
}

func TestVerifySaysByWhomALogIsSigned(t *testing.T) {
	l := replaytest.Small()
	signed := file(t, l.Clone().Sign(5, 20))
	out, _ := wants(t, 0, "verify", "--json", signed)
	if d := document[verifyDoc](t, out); d.Checkpoints != 2 || d.Signed != 20 || d.Key != replaytest.Key {
		t.Errorf("got %+v", d)
	}
	out, _ = wants(t, 0, "verify", signed)
	if !strings.Contains(out, "2 checkpoints, the last of 20 events, signed by "+replaytest.Key+", which is the log's own word") {
		t.Errorf("printed %s", out)
	}
	underNode, err := checkpoint.PublicKey(replaytest.Key, "local")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{replaytest.Key, underNode, textFile(t, replaytest.Key+"\n"), textFile(t, underNode)} {
		out, _ = wants(t, 0, "verify", "--key", key, signed)
		if !strings.Contains(out, "signed by "+replaytest.Key+", which was kept elsewhere") {
			t.Errorf("with key %s: printed %s", key, out)
		}
	}
	if out, _ = wants(t, 0, "verify", file(t, l)); !strings.Contains(out, "no checkpoint is stored") {
		t.Errorf("printed %s", out)
	}
}

// TestTailThatIsGoneIsFoundByACheckpointKeptElsewhere names the first event that
// is missing. The log itself is whole.
func TestTailThatIsGoneIsFoundByACheckpointKeptElsewhere(t *testing.T) {
	l := replaytest.Small()
	kept, older := noteFile(t, replaytest.PrivateKey, l.HeadAt(28)), noteFile(t, replaytest.PrivateKey, l.HeadAt(5))
	wants(t, 0, "verify", "--checkpoint", kept, "--checkpoint", older, file(t, l))
	for _, h := range l.Heads[:len(l.Heads)-1] {
		path := file(t, l.Cut(h.Size))
		wants(t, 0, "verify", path)
		out, _ := wants(t, 20, "verify", "--json", "--checkpoint", kept, path)
		if got, want := where(t, out), fmt.Sprintf("event %d", h.Size+1); got != want {
			t.Errorf("cut at %d: named %s", h.Size, got)
		}
	}
}

func TestLogThatDoesNotFitWhatWasKeptExits20(t *testing.T) {
	l := replaytest.Small()
	path := file(t, l.Clone().Sign(20))
	forged := l.HeadAt(9)
	forged.Root[0] ^= 1
	elsewhere := l.HeadAt(9)
	elsewhere.Log = "other-00000000"
	for _, c := range []struct {
		name  string
		args  []string
		where string
	}{
		{"another key", []string{"--key", replaytest.OtherKey}, ""},
		{"another root", []string{"--checkpoint", noteFile(t, replaytest.PrivateKey, forged)}, "event 9"},
		{"signed by another key", []string{"--checkpoint", noteFile(t, replaytest.OtherPrivateKey, l.HeadAt(9))}, ""},
		{"of another log", []string{"--checkpoint", noteFile(t, replaytest.PrivateKey, elsewhere)}, ""},
	} {
		out, _ := wants(t, 20, append([]string{"verify", "--json", path}, c.args...)...)
		if got := where(t, out); got != c.where {
			t.Errorf("%s: named %q in %s", c.name, got, out)
		}
	}
}

func TestWhatIsNoKeyAndNoCheckpointExits2(t *testing.T) {
	path := file(t, replaytest.Small())
	text := textFile(t, "no key, no checkpoint\n")
	big := textFile(t, strings.Repeat("x", maxSmall+1))
	for _, args := range [][]string{
		{"--key", "nothing"}, {"--key", text}, {"--key", big}, {"--key", path}, {"--key", filepath.Dir(path)},
		{"--checkpoint", "nothing"}, {"--checkpoint", text}, {"--checkpoint", big}, {"--checkpoint", filepath.Dir(path)},
		{"--against", "nothing"}, {"--against", text}, {"--against", textFile(t, "")}, {"--against", filepath.Dir(path)},
	} {
		wants(t, 2, append([]string{"verify", path}, args...)...)
	}
}

// A key that was kept is there to show who wrote the log: nothing of it is shown
// where nothing is signed.
func TestALogInWhichNothingIsSignedIsNotThatOfAKey(t *testing.T) {
	bare := file(t, replaytest.Small())
	wants(t, 0, "verify", bare)
	out, _ := wants(t, 20, "verify", "--json", "--key", replaytest.Key, bare)
	if where(t, out) != "" || !strings.Contains(out, "nothing in it is signed") {
		t.Errorf("printed %s", out)
	}
}
