package access

import (
	"os"
	"path/filepath"
	"testing"
)

const testLog = "node-0a1b2c3d"

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func writeCredentials(t testing.TB, hosts ...string) (string, Credentials) {
	t.Helper()
	dir := t.TempDir()
	must[[]string](t)(WriteCredentials(dir, DefaultPrefix, testLog, hosts))
	return dir, must[Credentials](t)(LoadCredentials(dir))
}

func baseNames(paths []string) []string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = filepath.Base(p)
	}
	return names
}

func readAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, path := range must[[]string](t)(filepath.Glob(filepath.Join(dir, "*"))) {
		files[filepath.Base(path)] = string(must[[]byte](t)(os.ReadFile(path)))
	}
	return files
}

func equalFiles(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, data := range a {
		if b[name] != data {
			return false
		}
	}
	return true
}
