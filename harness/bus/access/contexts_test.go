package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

func TestEachPersonHasAContext(t *testing.T) {
	dir, c := writeCredentials(t, LocalHost)
	must[[]string](t)(AddUser(dir, DefaultPrefix, testLog, RoleAuditor, "ann"))
	made := must[[]string](t)(WriteContexts(dir, Reach{URL: "tls://a:1,tls://b:2", CA: "/ca.pem"}))
	want := []string{"operator.json", "host-local.json", "auditor.json", "auditor-ann.json", "dashboard.json"}
	slices.Sort(want)
	got := baseNames(made)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("made %v", got)
	}
	path := filepath.Join(dir, ContextDir, "host-local.json")
	var doc map[string]string
	data := must[[]byte](t)(os.ReadFile(path))
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	if doc["url"] != "tls://a:1,tls://b:2" || doc["ca"] != "/ca.pem" || doc["inbox_prefix"] != "_INBOX.local" || doc["nkey"] != filepath.Join(dir, "host-local.nk") {
		t.Errorf("%v", doc)
	}
	if _, err := os.Stat(doc["nkey"]); err != nil {
		t.Error(err)
	}
	if mode := must[fs.FileInfo](t)(os.Stat(path)).Mode().Perm(); mode != 0o600 {
		t.Errorf("mode %v", mode)
	}
	if made := must[[]string](t)(WriteContexts(dir, Reach{})); len(made) != 0 {
		t.Errorf("made %v again, where nothing is known", made)
	}
	moved := must[[]string](t)(WriteContexts(dir, Reach{URL: "tls://c:3", CA: "/ca.pem", Cert: "/cert.pem", Key: "/key.pem"}))
	var now map[string]string
	if err := json.Unmarshal(must[[]byte](t)(os.ReadFile(path)), &now); err != nil || len(moved) != len(want) {
		t.Fatalf("%v, wrote %v", err, moved)
	}
	if now["url"] != "tls://c:3" || now["cert"] != "/cert.pem" || now["key"] != "/key.pem" || now["nkey"] != doc["nkey"] {
		t.Errorf("moved to %v", now)
	}
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if made := must[[]string](t)(WriteContexts(dir, Reach{URL: "tls://c:3", CA: "/ca.pem", Cert: "/cert.pem", Key: "/key.pem"})); len(made) != 0 || string(must[[]byte](t)(os.ReadFile(path))) != "{}" {
		t.Errorf("made %v again, or wrote over an edited one", made)
	}
	hosts := must[[]UserInfo](t)(ListUsers(dir, RoleHost))
	local := must[Identity](t)(c.Host(LocalHost))
	if len(hosts) != 1 || hosts[0] != (UserInfo{RoleHost, LocalHost, local.Public(), filepath.Join(dir, "host-local.nk"), path, "_INBOX.local"}) {
		t.Errorf("%+v", hosts)
	}
	if list := must[[]UserInfo](t)(ListUsers(dir, RoleAuditor)); len(list) != 2 || list[0].Name != "auditor" || list[1].Name != "auditor-ann" {
		t.Errorf("%+v", list)
	}
}

func TestWhereTheEmbeddedServerIsReached(t *testing.T) {
	for _, tc := range []struct {
		listen      string
		certificate string
		want        string
	}{
		{"127.0.0.1:4222", "", "nats://127.0.0.1:4222"},
		{"localhost:1", "", "nats://localhost:1"},
		{"0.0.0.0:4222", "/c.pem", "tls://127.0.0.1:4222"},
		{":4222", "/c.pem", "tls://127.0.0.1:4222"},
		{"[::]:4222", "/c.pem", "tls://127.0.0.1:4222"},
		{"[::1]:4222", "", "nats://[::1]:4222"},
		{"example.org:4222", "/c.pem", "tls://example.org:4222"},
		{"127.0.0.1:0", "", ""},
		{"", "", ""},
	} {
		if got := ReachOf(tc.listen, tc.certificate); got.URL != tc.want || got.URL != "" && got.CA != tc.certificate {
			t.Errorf("%q: %q, want %q", tc.listen, got.URL, tc.want)
		}
	}
}

// Whoever adds a user adds it to those that another process adds meanwhile.
func TestUsersThatAreAddedAtOnceAreAllInTheConfiguration(t *testing.T) {
	dir, _ := writeCredentials(t, LocalHost)
	names := []string{"a", "b", "c", "d", "e", "f"}
	failed := make(chan error, len(names))
	for _, name := range names {
		go func() {
			_, err := AddUser(dir, DefaultPrefix, testLog, RoleHost, name)
			failed <- err
		}()
	}
	for range names {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if err := CheckAccounts(dir, DefaultPrefix, testLog); err != nil {
		t.Error(err)
	}
	if c := must[Credentials](t)(LoadCredentials(dir)); len(c.HostNames()) != 1+len(names) {
		t.Errorf("%v", c)
	}
}

// Whoever adds users at once gets all of their files.
func TestUsersCanBeAddedAtOnce(t *testing.T) {
	dir, _ := writeCredentials(t, LocalHost)
	const many = 12
	var all sync.WaitGroup
	errs := make([]error, many)
	for i := range many {
		all.Go(func() {
			_, made := AddUser(dir, DefaultPrefix, testLog, RoleHost, fmt.Sprint("h", i))
			_, wrote := WriteContexts(dir, Reach{URL: fmt.Sprintf("nats://127.0.0.1:%d", 4222+i)})
			errs[i] = errors.Join(made, wrote)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	for i := range many {
		path := filepath.Join(dir, ContextDir, fmt.Sprintf("host-h%d.json", i))
		if b := must[[]byte](t)(os.ReadFile(path)); !contextAsWritten(b) {
			t.Errorf("%s has %s", path, b)
		}
	}
	if left := must[[]string](t)(filepath.Glob(filepath.Join(dir, "*", "*.tmp"))); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}
