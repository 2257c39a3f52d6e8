package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWriteCredentialsMakesWhatIsMissingAndNothingElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	made := must[[]string](t)(WriteCredentials(dir, DefaultPrefix, testLog, []string{LocalHost}))
	want := []string{"service.nk", "replier.nk", "curator.nk", "operator.nk", "auditor.nk", "dashboard.nk", "host-local.nk", AccountsFile}
	if got := baseNames(made); !slices.Equal(got, want) {
		t.Fatalf("made %v, want %v", got, want)
	}
	before := readAll(t, dir)
	made = must[[]string](t)(WriteCredentials(dir, DefaultPrefix, testLog, []string{LocalHost}))
	if len(made) != 0 || !equalFiles(before, readAll(t, dir)) {
		t.Fatalf("the second call made %v or changed a file", made)
	}
	if err := os.Remove(filepath.Join(dir, AccountsFile)); err != nil {
		t.Fatal(err)
	}
	made = must[[]string](t)(WriteCredentials(dir, DefaultPrefix, testLog, []string{LocalHost}))
	if got := baseNames(made); !slices.Equal(got, []string{AccountsFile}) || !equalFiles(before, readAll(t, dir)) {
		t.Fatalf("made %v, want the same configuration again", got)
	}
}

func TestWriteCredentialsSurvivesACrashBetweenWritingAndLinking(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "service.nk.tmp"), []byte("SUA"), 0o644); err != nil {
		t.Fatal(err)
	}
	must[[]string](t)(WriteCredentials(dir, DefaultPrefix, testLog, []string{LocalHost}))
	must[Credentials](t)(LoadCredentials(dir))
	if left := must[[]string](t)(filepath.Glob(filepath.Join(dir, "*.tmp"))); len(left) != 0 {
		t.Fatalf("left %v", left)
	}
}

func TestSeedsCanBeReadByTheirOwnerOnly(t *testing.T) {
	dir, _ := writeCredentials(t, LocalHost)
	for _, path := range must[[]string](t)(filepath.Glob(filepath.Join(dir, "*"))) {
		if mode := must[fs.FileInfo](t)(os.Stat(path)).Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %v", path, mode)
		}
	}
}

func TestPrintedCredentialsShowNoSeed(t *testing.T) {
	dir, c := writeCredentials(t, LocalHost)
	id := must[Identity](t)(c.Host(LocalHost))
	shown := fmt.Sprintf("%v %+v %#v %s %v %+v %#v", c, c, c, c, id, id, id)
	shown += readAll(t, dir)[AccountsFile]
	shown += fmt.Sprintf("%+v %#v", struct{ C Credentials }{c}, struct{ C Credentials }{c})
	for name, data := range readAll(t, dir) {
		if strings.HasSuffix(name, ".nk") && strings.Contains(shown, strings.TrimSpace(data)) {
			t.Errorf("the seed of %s is shown in %s", name, shown)
		}
	}
	if !strings.Contains(shown, id.Public()) {
		t.Errorf("the public key is not shown in %s", shown)
	}
}

func TestBadNamesAreRefusedBeforeAnythingIsWritten(t *testing.T) {
	for _, tc := range []struct{ prefix, log, host string }{
		{"waybill", testLog, "Upper"},
		{"waybill", testLog, "a.b"},
		{"waybill", testLog, "*"},
		{"waybill", testLog, ""},
		{"waybill", testLog, "service"},
		{"waybill", testLog, "replier"},
		{"waybill", testLog, "operator"},
		{"waybill", testLog, strings.Repeat("a", 64)},
		{"way bill", testLog, "a"},
		{"_INBOX", testLog, "a"},
		{"$JS", testLog, "a"},
		{"waybill.", testLog, "a"},
		{"waybill", "a.b", "a"},
		{"waybill", "", "a"},
	} {
		dir := filepath.Join(t.TempDir(), "keys")
		if _, err := WriteCredentials(dir, tc.prefix, tc.log, []string{tc.host}); err == nil {
			t.Errorf("%+v was accepted", tc)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: the directory was made", tc)
		}
	}
	if _, err := WriteCredentials(t.TempDir(), "waybill", testLog, []string{"a", "b", "a"}); err == nil {
		t.Error("a host named twice was accepted")
	}
}

func TestLoadingMissingOrBadCredentialsSaysWhatToDo(t *testing.T) {
	dir, _ := writeCredentials(t, LocalHost, "second")
	expect := func(what string, err error, words ...string) {
		t.Helper()
		for _, word := range words {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: error %v does not say %q", what, err, word)
			}
		}
	}
	_, err := LoadHost(dir, "third")
	expect("unknown host", err, `"third"`, "--host", "local, second")
	_, err = LoadHost(t.TempDir(), LocalHost)
	expect("empty directory", err, "host-local.nk", "run waybill init")
	_, err = LoadCredentials(t.TempDir())
	expect("empty directory", err, "service.nk", "run waybill init")
	if err := os.WriteFile(filepath.Join(dir, "replier.nk"), []byte("SUABC\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = LoadCredentials(dir)
	expect("damaged seed", err, "replier.nk", "run waybill init")
}

func TestAKeyThatTwoUsersHaveIsRefusedWithBothFiles(t *testing.T) {
	for _, pair := range [][2]string{{"host-local", "host-second"}, {"service", "host-local"}, {"replier", "curator"}, {"auditor", "dashboard"}, {"operator", "auditor-ann"}} {
		dir, _ := writeCredentials(t, LocalHost, "second")
		must[[]string](t)(AddUser(dir, DefaultPrefix, testLog, RoleAuditor, "ann"))
		from, to := filepath.Join(dir, pair[0]+".nk"), filepath.Join(dir, pair[1]+".nk")
		if err := os.WriteFile(to, must[[]byte](t)(os.ReadFile(from)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := LoadCredentials(dir)
		if err == nil || !strings.Contains(err.Error(), from) || !strings.Contains(err.Error(), to) {
			t.Errorf("%v: %v", pair, err)
		}
	}
}
