package checkpoint_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/transparency-dev/formats/log"
	"golang.org/x/mod/sumdb/note"

	"waybill/events/checkpoint"
)

// seed makes the same keys in each run.
type seed byte

func (s seed) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(s) + byte(i)
	}
	return len(b), nil
}

// oldKey is a pair of keys under the name of the node.
func oldKey(t *testing.T, s seed) (private, public string) {
	t.Helper()
	private, public, err := note.GenerateKey(s, "waybill/local")
	if err != nil {
		t.Fatal(err)
	}
	return private, public
}

func signed(t *testing.T, private string, h checkpoint.Head) []byte {
	t.Helper()
	s, _, err := checkpoint.NewSigner(private, h.Log)
	if err != nil {
		t.Fatal(err)
	}
	b, err := checkpoint.Sign(s, h)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var head = checkpoint.Head{Log: "local-283bcd91", Size: 48, Root: [32]byte{0xd5, 0x2e, 31: 0x07}}

// TestCheckpointIsWhatItHasAlwaysBeen compares with a file that was written once.
func TestCheckpointIsWhatItHasAlwaysBeen(t *testing.T) {
	private, public := oldKey(t, 1)
	path := filepath.Join("testdata", "v1.checkpoint")
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := signed(t, private, head); !bytes.Equal(got, want) {
		t.Errorf("signed:\n%s\nwant:\n%s", got, want)
	}
	if got, err := checkpoint.Open(want, public); err != nil || got != head {
		t.Errorf("opened: %+v, %v", got, err)
	}
}

// TestOtherToolsOpenOurCheckpoints uses the C2SP library with nothing of ours
// but the public key.
func TestOtherToolsOpenOurCheckpoints(t *testing.T) {
	old, public := oldKey(t, 1)
	renamed, err := checkpoint.PublicKey(public, head.Log)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(renamed)
	if err != nil {
		t.Fatal(err)
	}
	c, rest, n, err := log.ParseCheckpoint(signed(t, old, head), "waybill/local-283bcd91", verifier)
	if err != nil || len(rest) != 0 || c.Size != 48 || !bytes.Equal(c.Hash, head.Root[:]) {
		t.Fatalf("parsed %+v, %q, %v", c, rest, err)
	}
	if n.Sigs[0].Name != c.Origin {
		t.Errorf("signed by %s, but the origin is %s", n.Sigs[0].Name, c.Origin)
	}
}

func TestOneKeyUnderAllItsNames(t *testing.T) {
	old, public := oldKey(t, 1)
	renamed, err := checkpoint.PublicKey(public, head.Log)
	if err != nil || renamed == public || !strings.HasPrefix(renamed, "waybill/local-283bcd91+") {
		t.Fatalf("renamed %s, %v", renamed, err)
	}
	_, other := oldKey(t, 2)
	if !checkpoint.SameKey(public, renamed) || checkpoint.SameKey(public, other) || checkpoint.SameKey("", "") {
		t.Error("keys are not told apart by the key alone")
	}
	_, signs, err := checkpoint.NewSigner(old, head.Log)
	if err != nil || signs != renamed {
		t.Errorf("the signer verifies with %s, %v", signs, err)
	}
	for _, key := range []string{public, renamed} {
		id, err := checkpoint.LogID("local", key)
		if err != nil || id != "local-"+id[len(id)-8:] {
			t.Errorf("id %s, %v", id, err)
		}
		if got, err := checkpoint.Open(signed(t, old, head), key); err != nil || got != head {
			t.Errorf("opened with %s: %+v, %v", key, got, err)
		}
	}
}

func TestANewKeyHasTheNameOfItsLog(t *testing.T) {
	private, public, err := checkpoint.GenerateKey(rand.Reader, "local")
	if err != nil {
		t.Fatal(err)
	}
	id, err := checkpoint.LogID("local", public)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(public)
	if err != nil {
		t.Fatal(err)
	}
	if signer.Name() != "waybill/"+id || verifier.Name() != signer.Name() || verifier.KeyHash() != signer.KeyHash() {
		t.Errorf("the log is %s, the keys are of %s and %s", id, signer.Name(), verifier.Name())
	}
	h := checkpoint.Head{Log: id, Size: 1}
	if got, err := checkpoint.Open(signed(t, private, h), public); err != nil || got != h {
		t.Errorf("opened: %+v, %v", got, err)
	}
}

func TestNoHeadIsSignedForAnotherLog(t *testing.T) {
	private, _ := oldKey(t, 1)
	s, _, err := checkpoint.NewSigner(private, head.Log)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []checkpoint.Head{{Log: "local-00000000", Size: 1}, {Log: head.Log, Size: -1}} {
		if b, err := checkpoint.Sign(s, h); err == nil {
			t.Errorf("signed %s", b)
		}
	}
}

// TestAnyChangedByteIsRefused goes through every bit.
func TestAnyChangedByteIsRefused(t *testing.T) {
	private, public := oldKey(t, 1)
	b := signed(t, private, head)
	for at := range b {
		for bit := range 8 {
			b[at] ^= 1 << bit
			if h, err := checkpoint.Open(b, public); err == nil {
				t.Errorf("bit %d of byte %d changed, opened %+v", bit, at, h)
			}
			b[at] ^= 1 << bit
		}
	}
	for n := range b {
		if h, err := checkpoint.Open(b[:n], public); err == nil {
			t.Errorf("cut to %d bytes, opened %+v", n, h)
		}
	}
}

func TestNothingBesideTheOneSignatureIsTaken(t *testing.T) {
	private, public := oldKey(t, 1)
	stranger, _ := oldKey(t, 2)
	signer, _, err := checkpoint.NewSigner(private, head.Log)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(text string) []byte {
		b, err := note.Sign(&note.Note{Text: text}, signer)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := string(signed(t, private, head))
	text, sig, _ := strings.Cut(good, "\n\n")
	root := base64.StdEncoding.EncodeToString(head.Root[:])
	for _, c := range []struct {
		name string
		b    string
		want error
	}{
		{"another key", string(signed(t, stranger, head)), checkpoint.ErrSignature},
		{"another key besides", good + strings.SplitAfter(string(signed(t, stranger, head)), "\n\n")[1], checkpoint.ErrMalformed},
		{"the signature twice", good + sig, checkpoint.ErrMalformed},
		{"the signature of another head", text[:len(text)-4] + "AAA=\n\n" + sig, checkpoint.ErrSignature},
		{"no signature", text + "\n", checkpoint.ErrMalformed},
		{"nothing", "", checkpoint.ErrMalformed},
		{"an extension", string(sign("waybill/local-283bcd91\n48\n" + root + "\nmore\n")), checkpoint.ErrMalformed},
		{"a blank line in the text", string(sign("waybill/local-283bcd91\n48\n" + root + "\n\nmore\n")), checkpoint.ErrMalformed},
		{"a leading zero", string(sign("waybill/local-283bcd91\n048\n" + root + "\n")), checkpoint.ErrMalformed},
		{"a size without end", string(sign("waybill/local-283bcd91\n9223372036854775808\n" + root + "\n")), checkpoint.ErrMalformed},
		{"a negative size", string(sign("waybill/local-283bcd91\n-1\n" + root + "\n")), checkpoint.ErrMalformed},
		{"a short root", string(sign("waybill/local-283bcd91\n48\nAAAA\n")), checkpoint.ErrMalformed},
		{"a long root", string(sign("waybill/local-283bcd91\n48\n" + base64.StdEncoding.EncodeToString(make([]byte, 33)) + "\n")), checkpoint.ErrMalformed},
		{"another origin", string(sign("example.com/log\n48\n" + root + "\n")), checkpoint.ErrMalformed},
		{"no log", string(sign("waybill/\n48\n" + root + "\n")), checkpoint.ErrMalformed},
		{"a log that cannot be", string(sign("waybill/a b\n48\n" + root + "\n")), checkpoint.ErrMalformed},
		{"another log", string(sign("waybill/local-00000000\n48\n" + root + "\n")), checkpoint.ErrSignature},
	} {
		if h, err := checkpoint.Open([]byte(c.b), public); !errors.Is(err, c.want) {
			t.Errorf("%s: opened %+v, %v; want %v", c.name, h, err, c.want)
		}
	}
}

func TestKeysThatAreNoneAreRefusedAndNotPrinted(t *testing.T) {
	private, public := oldKey(t, 1)
	for _, bad := range []string{"", "x", public[:len(public)-4], private, strings.Replace(public, "local", "other", 1)} {
		_, err := checkpoint.Open(signed(t, private, head), bad)
		if err == nil || errors.Is(err, checkpoint.ErrSignature) || errors.Is(err, checkpoint.ErrMalformed) {
			t.Errorf("public key %q: %v", bad, err)
		}
		if _, err := checkpoint.LogID("local", bad); err == nil {
			t.Errorf("public key %q has an id", bad)
		}
	}
	for _, bad := range []string{"", "secret", public, private[:len(private)-4], strings.Replace(private, "local", "other", 1)} {
		_, _, err := checkpoint.NewSigner(bad, "local")
		if err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("private key: %v", err)
		}
	}
	if _, _, err := checkpoint.NewSigner(private, "a b"); err == nil || strings.Contains(err.Error(), private) {
		t.Errorf("a log that cannot be: %v", err)
	}
}
