package config

import (
	"maps"
	"os"
	"strings"
	"testing"

	"waybill/harness/peer/pin"
)

func TestALockOfEndpointsAndTokenCommandsIsReadBack(t *testing.T) {
	f, lookup := remote(t)
	lock, failed := f.Pin(lookup)
	if len(failed) > 0 {
		t.Fatal(failed)
	}
	if err := WriteLock(f.LockPath(), lock); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.LockPath())
	if err != nil {
		t.Fatal(err)
	}
	begin := `# made by waybill pin; review changes like code
version: 1
peers:
- name: open
  endpoint: http://127.0.0.1:8080/mcp?tenant=7
  allow_legacy: true
- name: work
  endpoint: https://mcp.example.org/mcp
  allow_legacy: false
authorizations:
- name: robot
  command: issue
  path: ` + f.Dir + "/bin/issue\n"
	if !strings.HasPrefix(string(text), begin) {
		t.Errorf("got\n%s\nwant it to begin\n%s", text, begin)
	}
	read, err := ReadLock(f.LockPath())
	if err != nil {
		t.Fatal(err)
	}
	same := func(a, b pin.Pin) bool { return a.Digest() == b.Digest() }
	if !maps.EqualFunc(read.Peers, lock.Peers, same) || !maps.EqualFunc(read.Authorizations, lock.Authorizations, same) {
		t.Errorf("read back as %+v", read)
	}
	if p := f.Domain(read, lookup).Peers; p[0].Refusal != "" || p[1].Refusal != "" {
		t.Errorf("refused: %+v", p)
	}
}
