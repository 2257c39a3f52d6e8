package lockfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"waybill/cmd/waybill/config/yamldoc"
)

func put(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), Name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestABadLockIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		line    int
	}{
		"no YAML":      {"version: [", 1},
		"other keys":   {"version: 1\npeers:\n- name: a\n  sha1: x\n", 4},
		"other types":  {"version: 1\npeers: 3\n", 2},
		"version":      {"version: 2\npeers: []\n", 0},
		"an alias":     {"version: 1\npeers: &a []\n", 2},
		"twice a peer": {"version: 1\npeers:\n- name: a\n- name: a\n", 0},
		"empty":        {"", 0},
	} {
		_, err := Read(put(t, c.content))
		var all yamldoc.Errors
		if !errors.As(err, &all) || all[0].Line != c.line {
			t.Errorf("%s: got %v, want an error in line %d", name, err, c.line)
		}
	}
}

// oldLock is a lock file from before there were endpoints.
const oldLock = `# made by waybill pin; review changes like code
version: 1
peers:
- name: archive
  command: /usr/bin/archive
  path: /usr/bin/archive
  sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  args: 37517e5f3dc66819f61f5a7bb8ace1921282415f10551d2defa5c3eb0985b570
  env: 4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865
  set: 53c234e5e8472b6ac51c1ae1cab3fe06fad053beb8ebfd8977b010655bfdd3c3
  directory: b6d58dfa2c9b4b6d2c4e3b6f2a6e2c7a2f8e0a1f9d1b3c5e7f9a0b1c2d3e4f50
  data_files: 0e3d7b5a1c9f8e6d4b2a0f1e3c5d7b9a8f6e4d2c0b1a3f5e7d9c8b6a4f2e0d1c
  allow_legacy: true
- name: notes
  command: ./server
  path: /srv/notes/server
  sha256: 60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752
  interpreters:
  - path: /usr/bin/env
    sha256: fd61a03af4f77d870fc21e05e7e80678095c92d808cfb3b5c279ee04c74aca13
  files:
  - argument: 1
    sha256: a665a45920422f9d417e4867efdc4fb8a04a1f3fff1fa07e998e86f7f7a27ae3
  args: 37517e5f3dc66819f61f5a7bb8ace1921282415f10551d2defa5c3eb0985b570
  env: 4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865
  set: 53c234e5e8472b6ac51c1ae1cab3fe06fad053beb8ebfd8977b010655bfdd3c3
  directory: b6d58dfa2c9b4b6d2c4e3b6f2a6e2c7a2f8e0a1f9d1b3c5e7f9a0b1c2d3e4f50
  data_files: 0e3d7b5a1c9f8e6d4b2a0f1e3c5d7b9a8f6e4d2c0b1a3f5e7d9c8b6a4f2e0d1c
  allow_legacy: false
`

// Digests of its entries, as logs hold them.
var oldDigests = map[string]string{
	"archive": "ec3b09f3a436fc1138ed10f5abfded5fc98d77246a9295cd54c571e62ec30543",
	"notes":   "024eea1b483a427a6756e45b3171b111bfa5f76a5db461a0fd413ec52f5b7b86",
}

func TestALockFromBeforeEndpointsIsTheSameToTheByte(t *testing.T) {
	path := put(t, oldLock)
	lock, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range oldDigests {
		if got := lock.Peers[name].Digest(); got != want {
			t.Errorf("%s has the digest %s, want %s", name, got, want)
		}
	}
	if err := Write(path, *lock); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != oldLock {
		t.Errorf("written again:\n%s%v", got, err)
	}
}

func TestAnAuthorizationTwiceInALockIsRefused(t *testing.T) {
	content := "version: 1\npeers: []\nauthorizations:\n- name: a\n- name: a\n"
	_, err := Read(put(t, content))
	if err == nil || !strings.Contains(err.Error(), `authorizations: "a" is there twice`) {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("version: 1\npeers:\n- name: a\n  path: /x\n  allow_legacy: true\n  files:\n  - argument: 1\n    sha256: ab\n")
	f.Add("version: 1\npeers: []\n")
	f.Fuzz(func(t *testing.T, content string) {
		lock, err := Read(put(t, content))
		if (lock == nil) == (err == nil) {
			t.Fatalf("lock %v with error %v", lock, err)
		}
	})
}
