package config

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAllSecretsHoldsTheKeysAsTextAndAsBytes(t *testing.T) {
	dir := t.TempDir()
	f := &File{Data: filepath.Join(dir, "da[t]a"), Peers: []Peer{{Process: Process{SecretEnv: []string{"TOKEN", "UNSET"}}}}}
	for name, text := range map[string]string{
		"nats/service.nk":  "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n",
		"keys/payload.key": strings.Repeat("ab", 32) + "\n",
		"keys/log.key":     "PRIVATE+KEY+waybill/local+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz\n",
		"keys/log.pub":     "no secret at all",
	} {
		path := filepath.Join(f.Data, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := f.AllSecrets(func(name string) (string, bool) { return "value of TOKEN", name == "TOKEN" })
	if err != nil {
		t.Fatal(err)
	}
	raw := 0
	for _, s := range got {
		if len(s) == 32 {
			raw++
		}
	}
	for _, want := range []string{"value of TOKEN", strings.Repeat("ab", 32), strings.Repeat("\xab", 32), "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY",
		"AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz", "PRIVATE+KEY+waybill/local+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if raw != 3 || len(got) != 8 {
		t.Errorf("%d values, %d of 32 bytes: %q", len(got), raw, hex.EncodeToString([]byte(strings.Join(got, "|"))))
	}
}
