package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A byte changed anywhere in the file gives what was written, or an error that
// says altered or no log: never another one, which a reader could take for a
// passing fault.
func TestAFlippedByteIsAlteredOrHarmless(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log.db")
	if err := Create(path, "n-00000000", "key"); err != nil {
		t.Fatal(err)
	}
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(context.Background(), 0, []Entry{{Type: "a.b", Bytes: []byte(`{"n":1}`)}, {Type: "a.b", Bytes: []byte(`{"n":2}`)}}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i := 0; i < len(whole); i += 97 {
		b := append([]byte(nil), whole...)
		b[i] ^= 0x41
		copyPath := filepath.Join(dir, "copy.db")
		if err := os.WriteFile(copyPath, b, 0o600); err != nil {
			t.Fatal(err)
		}
		switch err := readAll(copyPath); {
		case errors.Is(err, ErrAltered), errors.Is(err, ErrNotLog), errors.Is(err, ErrNewerSchema):
			found++
		case err != nil:
			t.Errorf("byte %d: %v", i, err)
		}
	}
	if found == 0 {
		t.Error("no flip was noticed")
	}
}

func readAll(path string) error {
	r, err := OpenReader(path)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := r.Head(context.Background()); err != nil {
		return err
	}
	if _, err := r.Read(context.Background(), 0, 10); err != nil {
		return err
	}
	_, err = r.Roots(context.Background(), 0, 10)
	return err
}
