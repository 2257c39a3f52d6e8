package migrations_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"waybill/migrations"
)

// A look says what the file says, and leaves nothing beside it.
func TestLookChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.db")
	if _, err := migrations.Look(context.Background(), path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := migrations.Look(context.Background(), path); err != nil || s.Version != -1 || s.Done != -1 || s.Dirty {
		t.Errorf("an empty file: %+v, %v", s, err)
	}
	if err := migrations.Apply(context.Background(), path, migrations.Log); err != nil {
		t.Fatal(err)
	}
	newest, err := migrations.Newest(migrations.Log)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := migrations.Look(context.Background(), path); err != nil || s.Version != newest || s.Done != newest || s.Dirty {
		t.Errorf("a migrated file: %+v, %v", s, err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed: %v", err)
	}
	if files, _ := filepath.Glob(path + "*"); len(files) != 1 {
		t.Errorf("beside the file: %q", files)
	}
}
