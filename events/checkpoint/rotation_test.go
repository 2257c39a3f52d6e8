package checkpoint

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

func pair(t *testing.T) (private, public string) {
	t.Helper()
	private, public, err := GenerateKey(rand.Reader, "local")
	if err != nil {
		t.Fatal(err)
	}
	return private, public
}

func TestRotationIsSignedByBothKeys(t *testing.T) {
	const id = "local-0a1b2c3d"
	oldPrivate, oldPublic := pair(t)
	newPrivate, newPublic := pair(t)
	other, otherPublic := pair(t)
	b, err := SignRotation(id, oldPrivate, newPrivate)
	if err != nil {
		t.Fatal(err)
	}
	to, err := OpenRotation(b, id, oldPublic)
	if err != nil || !SameKey(to, newPublic) {
		t.Fatalf("%s, %v", to, err)
	}
	signer, _, err := NewSigner(oldPrivate, id)
	if err != nil {
		t.Fatal(err)
	}
	want, err := PublicKey(newPublic, id)
	if err != nil {
		t.Fatal(err)
	}
	from, err := PublicKey(oldPublic, id)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := note.Sign(&note.Note{Text: rotationText(id, from, want)}, signer)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := SignRotation(id, other, newPrivate)
	if err != nil {
		t.Fatal(err)
	}
	same, err := SignRotation(id, oldPrivate, oldPrivate)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		b    []byte
		log  string
		from string
	}{
		"by the old key alone":  {alone, id, oldPublic},
		"by a foreign key":      {foreign, id, oldPublic},
		"of another log":        {b, "local-ffffffff", oldPublic},
		"from another key":      {b, id, otherPublic},
		"to the same key":       {same, id, oldPublic},
		"a line more":           {[]byte(strings.Replace(string(b), "\n\n", "\nx\n\n", 1)), id, oldPublic},
		"a letter changed":      {[]byte(strings.Replace(string(b), "/key\n", "/kez\n", 1)), id, oldPublic},
		"a signature cut off":   {b[:len(b)-30], id, oldPublic},
		"an empty note":         {nil, id, oldPublic},
		"the signatures gone":   {[]byte(rotationText(id, from, want) + "\n"), id, oldPublic},
		"one signature doubled": {append(alone, alone[strings.LastIndex(string(alone), "\u2014"):]...), id, oldPublic},
	} {
		if got, err := OpenRotation(c.b, c.log, c.from); !errors.Is(err, ErrRotation) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
