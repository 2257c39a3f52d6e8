package access

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The accounts of a directory fit one log; what an outside server must not be
// given is named.
func TestCheckAccounts(t *testing.T) {
	dir, _ := writeCredentials(t, LocalHost)
	if err := CheckAccounts(dir, DefaultPrefix, testLog); err != nil {
		t.Errorf("as they were made: %v", err)
	}
	if err := CheckAccounts(dir, DefaultPrefix, "other-00000000"); !errors.Is(err, ErrStaleAccounts) || !strings.Contains(err.Error(), "other-00000000") {
		t.Errorf("for another log: %v", err)
	}
	if _, err := createSeed(filepath.Join(dir, "host-second.nk")); err != nil {
		t.Fatal(err)
	}
	if err := CheckAccounts(dir, DefaultPrefix, testLog); !errors.Is(err, ErrStaleAccounts) || !strings.Contains(err.Error(), "second") {
		t.Errorf("without a host: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, AccountsFile)); err != nil {
		t.Fatal(err)
	}
	if err := CheckAccounts(dir, DefaultPrefix, testLog); err != nil {
		t.Errorf("without the file: %v", err)
	}
	if err := CheckAccounts(t.TempDir(), DefaultPrefix, testLog); err == nil || errors.Is(err, ErrStaleAccounts) {
		t.Errorf("without credentials: %v", err)
	}
}
