package access

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAnotherUserComesIntoTheConfigurationByItself(t *testing.T) {
	dir, before := writeCredentials(t, LocalHost)
	path := filepath.Join(dir, AccountsFile)
	made := must[[]string](t)(WriteCredentials(dir, DefaultPrefix, testLog, []string{LocalHost, "second"}))
	if got := baseNames(made); !slices.Equal(got, []string{"host-second.nk", AccountsFile}) {
		t.Errorf("made %v", got)
	}
	for _, tc := range []struct {
		role Role
		name string
		file string
	}{{RoleHost, "third", "host-third.nk"}, {RoleAuditor, "ann", "auditor-ann.nk"}, {RoleDashboard, "hall", "dashboard-hall.nk"}} {
		made := must[[]string](t)(AddUser(dir, DefaultPrefix, testLog, tc.role, tc.name))
		if got := baseNames(made); !slices.Equal(got, []string{tc.file, AccountsFile}) {
			t.Errorf("made %v", got)
		}
		if again := must[[]string](t)(AddUser(dir, DefaultPrefix, testLog, tc.role, tc.name)); len(again) != 0 {
			t.Errorf("made %v again", again)
		}
	}
	after := must[Credentials](t)(LoadCredentials(dir))
	data := must[[]byte](t)(os.ReadFile(path))
	list, _ := layout(DefaultPrefix, testLog, after)
	users := 0
	for _, a := range list {
		for _, u := range a.users {
			if users++; !bytes.Contains(data, []byte(u.public)) {
				t.Errorf("%s is missing", u.name)
			}
		}
	}
	if users != 11 || len(list) != 7 || len(after.Readers()) != 4 || !slices.Equal(after.HostNames(), []string{LocalHost, "second", "third"}) {
		t.Errorf("%d users in %d accounts: %v", users, len(list), after)
	}
	if before.Service().Public() != after.Service().Public() {
		t.Error("the service has another key")
	}
	if err := CheckAccounts(dir, DefaultPrefix, testLog); err != nil {
		t.Error(err)
	}
	if mode := must[fs.FileInfo](t)(os.Stat(path)).Mode().Perm(); mode != 0o600 {
		t.Errorf("mode %v", mode)
	}
}

// What a person has written is never overwritten; it is looked at for what must be in
// it.
func TestAnEditedConfigurationIsLeftAlone(t *testing.T) {
	dir, _ := writeCredentials(t, LocalHost)
	path := filepath.Join(dir, AccountsFile)
	edited := append(must[[]byte](t)(os.ReadFile(path)), "# mine\n"...)
	if err := os.WriteFile(path, edited, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckAccounts(dir, DefaultPrefix, testLog); err != nil {
		t.Errorf("all is there: %v", err)
	}
	if made := must[[]string](t)(WriteCredentials(dir, DefaultPrefix, testLog, []string{LocalHost})); len(made) != 0 {
		t.Errorf("made %v", made)
	}
	made, err := AddUser(dir, DefaultPrefix, testLog, RoleHost, "second")
	if got := baseNames(made); !slices.Equal(got, []string{"host-second.nk"}) || !errors.Is(err, ErrStaleAccounts) ||
		!strings.Contains(err.Error(), "second") || !strings.Contains(err.Error(), "move it away and run waybill init") {
		t.Errorf("made %v, %v", got, err)
	}
	_, err = AddUser(dir, DefaultPrefix, testLog, RoleAuditor, "ann")
	if !errors.Is(err, ErrStaleAccounts) {
		t.Errorf("%v", err)
	}
	if now := must[[]byte](t)(os.ReadFile(path)); !bytes.Equal(now, edited) {
		t.Error("it was written anew")
	}
	// One of an older version has one account for all.
	if err := os.WriteFile(path, bytes.ReplaceAll(edited, []byte("WAYBILL_LOG {"), []byte("OTHER {")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckAccounts(dir, DefaultPrefix, testLog); !errors.Is(err, ErrStaleAccounts) || !strings.Contains(err.Error(), "WAYBILL_LOG") {
		t.Errorf("without an account: %v", err)
	}
	// Or it does not tell the keeper of a stream which reader asks.
	before := bytes.ReplaceAll(edited, []byte(".auditor.create"), []byte(".create"))
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckAccounts(dir, DefaultPrefix, testLog); !errors.Is(err, ErrStaleAccounts) || !strings.Contains(err.Error(), "WAYBILL_AUDITOR") || bytes.Equal(before, edited) {
		t.Errorf("without the reader's name: %v", err)
	}
}

func TestAConfigurationThatGivesAUserTooMuchIsStale(t *testing.T) {
	dir, _ := writeCredentials(t, LocalHost, "second")
	if err := os.Remove(filepath.Join(dir, "host-second.nk")); err != nil {
		t.Fatal(err)
	}
	if err := CheckAccounts(dir, DefaultPrefix, testLog); !errors.Is(err, ErrStaleAccounts) || !strings.Contains(err.Error(), "run waybill init") {
		t.Errorf("%v", err)
	}
	must[[]string](t)(WriteCredentials(dir, DefaultPrefix, testLog, []string{LocalHost}))
	if err := CheckAccounts(dir, DefaultPrefix, testLog); err != nil {
		t.Error(err)
	}
}

func TestBadNamesOfUsersAreRefused(t *testing.T) {
	dir, _ := writeCredentials(t, LocalHost)
	before := readAll(t, dir)
	for _, name := range []string{"", "A", "a.b", "a b", "-a", "../a", strings.Repeat("a", 64)} {
		for _, role := range []Role{RoleHost, RoleAuditor, RoleDashboard} {
			if made, err := AddUser(dir, DefaultPrefix, testLog, role, name); err == nil {
				t.Errorf("%s %q: made %v", role, name, made)
			}
		}
	}
	if made, err := AddUser(dir, DefaultPrefix, testLog, RoleHost, ReplierUser); err == nil {
		t.Errorf("made %v", made)
	}
	if made, err := AddUser(t.TempDir(), DefaultPrefix, testLog, RoleHost, "a"); err == nil || !strings.Contains(err.Error(), "run waybill init") {
		t.Errorf("in an empty directory: %v, %v", made, err)
	}
	if !equalFiles(before, readAll(t, dir)) {
		t.Error("a file was made or changed")
	}
	if _, err := LoadReader(dir, "service"); err == nil {
		t.Error("the service is no reader")
	}
	if id := must[Identity](t)(LoadReader(dir, "auditor")); id.Name() != "auditor" {
		t.Errorf("%v", id)
	}
}
