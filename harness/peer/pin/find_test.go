package pin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// putFile writes a file and the folders above it, and returns its path.
func putFile(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	putFile(t, at("one/server"), "", 0o644)
	putFile(t, at("two/server"), "", 0o755)
	putFile(t, at("two/plain"), "", 0o644)
	putFile(t, at("two/folder/x"), "", 0o755)
	if err := os.Symlink("server", at("two/link")); err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{"", "two", at("none"), at("one"), at("two")}, ":")
	for _, c := range []struct{ name, command, path, want, err string }{
		{"searched, past a file that is not executable", "server", path, at("two/server"), ""},
		{"a link stays a link", "link", path, at("two/link"), ""},
		{"absolute", at("two/server"), "", at("two/server"), ""},
		{"beside the configuration", "two/server", "", at("two/server"), ""},
		{"beside the configuration, with a dot", "./two/server", "", at("two/server"), ""},
		{"not there", "nothing", path, "", "command nothing: not found on PATH: install it, or give its full path"},
		{"relative entries of PATH are passed over", "server", ":two:.", "", "not found on PATH"},
		{"no PATH", "server", "", "", "not found on PATH"},
		{"found but not executable", "plain", path, "", "run chmod +x"},
		{"a folder on PATH", "folder", path, "", "is a directory"},
		{"a folder", at("two"), "", "", "is a directory"},
		{"a path that is not there", "./nothing", "", "", "there is no file " + at("nothing")},
		{"a path that is not executable", "one/server", "", "", "is not executable"},
		{"empty", "", path, "", "the command is empty"},
		{"a NUL byte", "a\x00", path, "", "NUL"},
	} {
		got, err := Find(c.command, dir, c.path)
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: got %q, %v", c.name, got, err)
		}
		if err != nil && c.command != "" && !strings.Contains(c.command, "\x00") && !strings.Contains(err.Error(), c.command) {
			t.Errorf("%s: the error does not name the command: %v", c.name, err)
		}
	}
}
