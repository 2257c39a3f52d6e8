package harness

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What stands in the place of a small file is refused at once, and not waited for.
func TestOnlyASmallRegularFileIsRead(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	noErr(t, os.WriteFile(path("small"), []byte("a"), 0o600))
	noErr(t, os.WriteFile(path("large"), make([]byte, maxSmall+1), 0o600))
	noErr(t, os.WriteFile(path("fits"), make([]byte, maxSmall), 0o600))
	noErr(t, unix.Mkfifo(path("pipe"), 0o600))
	noErr(t, os.Symlink("/dev/zero", path("endless")))
	noErr(t, os.Mkdir(path("folder"), 0o700))
	for name, want := range map[string]string{"large": "has more than", "pipe": "no regular file", "endless": "no regular file", "folder": "no regular file"} {
		if b, err := ReadSmall(path(name)); err == nil || !strings.Contains(err.Error(), want) || len(b) != 0 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	if b, err := ReadSmall(path("small")); err != nil || string(b) != "a" {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := ReadSmall(path("fits")); err != nil || len(b) != maxSmall {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, err := ReadSmall(path("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
