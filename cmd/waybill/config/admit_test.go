package config

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/domain"
)

// project makes a folder with a configuration of three peers: one that can be
// pinned, one without its program, and one behind a launcher.
func project(t *testing.T) (*File, func(string) (string, bool)) {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "bin/server"), "#!/bin/sh\nexec cat\n", 0o755)
	put(t, filepath.Join(dir, "bin/npx"), "#!/bin/sh\nexec cat\n", 0o755)
	put(t, filepath.Join(dir, "rules.txt"), "one\n", 0o644)
	path := put(t, filepath.Join(dir, "waybill.yaml"), `
peers:
  good:
    command: ./bin/server
    args: [rules.txt, --level, "3"]
    env: [HOME, LANG]
    set: {A: b}
    secret_env: [TOKEN, UNSET]
    call_timeout: 1s
    shutdown_timeout: 3s
  gone: {command: no-such-server}
  hidden: {command: npx, args: [-y, a-server]}
`, 0o644)
	lookup := environment(map[string]string{
		"PATH": filepath.Join(dir, "bin"), "HOME": "/home/x", "TOKEN": "0123456789", "OTHER": "x",
	})
	f, err := LoadWith(path, lookup)
	if err != nil {
		t.Fatal(err)
	}
	return f, lookup
}

func codes(c domain.Config) map[string]domain.Code {
	m := make(map[string]domain.Code)
	for _, p := range c.Peers {
		m[p.Name] = p.Refusal
	}
	return m
}

func TestAPeerWithoutALockIsNotPinned(t *testing.T) {
	f, lookup := project(t)
	lock, err := ReadLock(f.LockPath())
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]*Lock{"missing file": lock, "nil": nil} {
		c := f.Domain(l, lookup)
		got := codes(c)
		if got["good"] != domain.CodeNotPinned || got["gone"] != domain.CodeCommandMissing || got["hidden"] != domain.CodeUnpinnedCode {
			t.Errorf("%s: %v", name, got)
		}
		if reason := c.Peers[1].RefusalReason; !strings.Contains(reason, "run waybill pin -c "+f.Path) {
			t.Errorf("%s: the reason does not say what to do: %s", name, reason)
		}
	}
}

func TestAPinnedPeerIsAdmittedUntilItsFilesChange(t *testing.T) {
	f, lookup := project(t)
	lock, failed := f.Pin(lookup)
	if len(lock.Peers) != 1 || len(failed) != 2 {
		t.Fatalf("pinned %v, failed %v", lock.Peers, failed)
	}
	if err := WriteLock(f.LockPath(), lock); err != nil {
		t.Fatal(err)
	}
	read, err := ReadLock(f.LockPath())
	if err != nil {
		t.Fatal(err)
	}
	c := f.Domain(read, lookup)
	if c.Peers[1].Refusal != "" || c.Peers[1].Pin != lock.Peers["good"].Digest() || c.Peers[1].CallTimeout != 1000 {
		t.Fatalf("good: %+v", c.Peers[1])
	}
	good := f.Specs(read, lookup)["good"]
	if code, reason := good.Verify(); code != "" {
		t.Fatalf("verify: %s %s", code, reason)
	}
	if server := filepath.Join(f.Dir, "bin/server"); good.Path != server || good.Argv0 != server || good.Dir != f.Dir || good.Grace != 3*time.Second {
		t.Errorf("spec: %+v", good)
	}
	if got := good.Redact([]byte("a 0123456789 b")); string(got) != "a [redacted] b" {
		t.Errorf("redacted: %s", got)
	}
	put(t, filepath.Join(f.Dir, "rules.txt"), "two\n", 0o644)
	if code, reason := good.Verify(); code != domain.CodePinMismatch || !strings.Contains(reason, "argument 1 has changed") {
		t.Errorf("verify after a change: %q %q", code, reason)
	}
	if got := codes(f.Domain(read, lookup)); got["good"] != domain.CodePinMismatch {
		t.Errorf("after a change: %v", got)
	}
}

func TestTheConfigForDecisionsHoldsNoArgumentsAndNoValues(t *testing.T) {
	f, lookup := project(t)
	lock, _ := f.Pin(lookup)
	b, err := domain.EncodeConfig(f.Domain(&lock, lookup))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"rules.txt", "--level", "0123456789", "/home/x", "a-server"} {
		if strings.Contains(string(b), word) {
			t.Errorf("%q is in %s", word, b)
		}
	}
	if c, err := domain.DecodeConfig(b); err != nil || len(c.Peers) != 3 {
		t.Errorf("read back: %+v, %v", c, err)
	}
}

// The python of a virtual environment is a link, and goes by argv[0]. A shell
// shows it as $0.
func TestAVirtualEnvironmentSeesThePathItWasFoundBy(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "venv/bin/python")
	put(t, filepath.Join(dir, "elsewhere/x"), "", 0o644)
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/sh", link); err != nil {
		t.Fatal(err)
	}
	lookup := environment(map[string]string{"PATH": filepath.Dir(link)})
	for _, command := range []string{"python", "./venv/bin/python", link} {
		path := put(t, filepath.Join(dir, "waybill.yaml"), "peers:\n  a: {command: "+command+
			", args: [-c, echo $0], cwd: elsewhere, unpinned_code: accepted}\n", 0o644)
		f, err := LoadWith(path, lookup)
		if err != nil {
			t.Fatal(err)
		}
		lock, failed := f.Pin(lookup)
		s := f.Specs(&lock, lookup)["a"]
		if code, reason := s.Verify(); code != "" {
			t.Fatalf("%s: %s %s, %v", command, code, reason, failed)
		}
		out, err := (&exec.Cmd{Path: s.Path, Args: append([]string{s.Argv0}, s.Args...), Env: s.Env, Dir: s.Dir}).Output()
		if err != nil || strings.TrimSpace(string(out)) != link {
			t.Errorf("%s: sees %s, want %s (%v)", command, out, link, err)
		}
	}
}

func TestVerifyRefusesAProgramThatIsNotThePinnedOne(t *testing.T) {
	f, lookup := project(t)
	lock, _ := f.Pin(lookup)
	good := f.Specs(&lock, lookup)["good"]
	pin := lock.Peers["good"]
	pin.Path = filepath.Join(f.Dir, "bin/other")
	lock.Peers["good"] = pin
	code, reason := good.Verify()
	if code != domain.CodePinMismatch || !strings.Contains(reason, "pinned is "+pin.Path) {
		t.Errorf("got %q %q", code, reason)
	}
}

func TestAnAcceptedLauncherIsWarnedOf(t *testing.T) {
	f, lookup := project(t)
	f.Peer("hidden").UnpinnedCode = true
	lock, failed := f.Pin(lookup)
	if len(failed) != 1 {
		t.Fatalf("failed: %v", failed)
	}
	c := f.Domain(&lock, lookup)
	if p := c.Peers[2]; p.Refusal != "" || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "npx") {
		t.Errorf("hidden: %+v", p)
	}
	f.Peer("hidden").UnpinnedCode = false
	if got := codes(f.Domain(&lock, lookup)); got["hidden"] != domain.CodeUnpinnedCode {
		t.Errorf("no longer accepted: %v", got)
	}
}

func TestAnInterpreterWithoutAFileIsWarnedOf(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "python3.12"), "not really\n", 0o755)
	put(t, filepath.Join(dir, "src/__main__.py"), "", 0o644)
	path := put(t, filepath.Join(dir, "waybill.yaml"), "peers:\n  a: {command: ./python3.12, args: [src]}\n", 0o644)
	lookup := environment(nil)
	f, err := LoadWith(path, lookup)
	if err != nil {
		t.Fatal(err)
	}
	lock, failed := f.Pin(lookup)
	c := f.Domain(&lock, lookup)
	if len(failed) > 0 || len(c.Peers[0].Warnings) != 1 || !strings.Contains(c.Peers[0].Warnings[0], "only the interpreter") {
		t.Errorf("failed %v, peer %+v", failed, c.Peers[0])
	}
}

func TestTheEnvironmentIsTheAllowlistAlone(t *testing.T) {
	f, lookup := project(t)
	if got, want := f.Env("good", lookup), []string{"A=b", "HOME=/home/x", "TOKEN=0123456789"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := f.Env("gone", lookup); got == nil || len(got) != 0 {
		t.Errorf("a peer with no variables gets %q, want an empty environment", got)
	}
	if got := f.Env("nobody", lookup); got != nil {
		t.Errorf("an unknown peer gets %q", got)
	}
	if got := f.Secrets(lookup); !slices.Equal(got, []string{"0123456789"}) {
		t.Errorf("secrets %q", got)
	}
}

func TestALockIsWrittenTheSameEachTime(t *testing.T) {
	f, lookup := project(t)
	f.Peer("hidden").UnpinnedCode = true
	lock, _ := f.Pin(lookup)
	var before []byte
	for range 5 {
		if err := WriteLock(f.LockPath(), lock); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(f.LockPath())
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && string(data) != string(before) {
			t.Fatalf("got\n%s\nthen\n%s", before, data)
		}
		before = data
	}
	if !strings.HasPrefix(string(before), "# made by waybill pin; review changes like code\nversion: 1\npeers:\n- name: good\n") {
		t.Errorf("the file begins:\n%s", before)
	}
	read, err := ReadLock(f.LockPath())
	if err != nil {
		t.Fatal(err)
	}
	for name, pin := range lock.Peers {
		if read.Peers[name].Digest() != pin.Digest() {
			t.Errorf("%s is read back as %+v", name, read.Peers[name])
		}
	}
}

func TestAFailedWriteLeavesTheOldLock(t *testing.T) {
	f, lookup := project(t)
	lock, _ := f.Pin(lookup)
	if err := WriteLock(f.LockPath(), lock); err != nil {
		t.Fatal(err)
	}
	// A folder with something in it stands where the new file must be written.
	put(t, filepath.Join(f.LockPath()+".new", "x"), "", 0o644)
	if err := WriteLock(f.LockPath(), Lock{}); err == nil || !strings.Contains(err.Error(), f.LockPath()) {
		t.Errorf("got %v", err)
	}
	if read, err := ReadLock(f.LockPath()); err != nil || len(read.Peers) != 1 {
		t.Errorf("the lock now holds %v, %v", read, err)
	}
}

// A secret that is also a part of a path is in no reason that is recorded.
func TestReasonsHoldNoSecrets(t *testing.T) {
	dir := t.TempDir()
	lookup := environment(map[string]string{"TOKEN": "s3cretvalue"})
	for _, peer := range []string{
		"command: /nowhere/s3cretvalue/server", "command: /bin/cat, cwd: /nowhere/s3cretvalue", "command: s3cretvalue-server",
	} {
		path := put(t, filepath.Join(dir, "waybill.yaml"), "peers:\n  a: {"+peer+", secret_env: [TOKEN]}\n", 0o644)
		f, err := LoadWith(path, lookup)
		if err != nil {
			t.Fatal(err)
		}
		lock, _ := f.Pin(lookup)
		b, err := domain.EncodeConfig(f.Domain(&lock, lookup))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "s3cretvalue") || !strings.Contains(string(b), "[redacted]") {
			t.Errorf("%s: %s", peer, b)
		}
	}
}
