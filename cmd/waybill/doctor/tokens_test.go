package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFilesOfTokensAreLookedAt(t *testing.T) {
	for name, c := range map[string]struct {
		make func(path string) error
		want []string
	}{
		"as it should be": {func(path string) error { return os.WriteFile(path, []byte("secret\n"), 0o600) }, []string{}},
		"none":            {func(string) error { return nil }, []string{"warning token_missing"}},
		"empty":           {func(path string) error { return os.WriteFile(path, []byte(" \n"), 0o600) }, []string{"warning token_missing"}},
		"open to others":  {func(path string) error { return os.WriteFile(path, []byte("secret\n"), 0o644) }, []string{"warning permissions"}},
		"a directory":     {func(path string) error { return os.Mkdir(path, 0o700) }, []string{"error unreadable"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t, "authorizations: {a: {token_file: a.token}}")
			noErr(t, c.make(filepath.Join(filepath.Dir(p.File.Path), "a.token")))
			if got := codes(t, p); !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
