package harness

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"waybill/store"
)

// TestMain lets the test binary be its own child, which holds the lock of a
// directory until its standard input ends.
func TestMain(m *testing.M) {
	dir, child := os.LookupEnv("HARNESS_HOLD")
	if !child {
		os.Exit(m.Run())
	}
	lock, err := DataDir(dir).Lock()
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	if os.Getenv("HARNESS_SERVES") != "" {
		if err := DataDir(dir).WriteRun(Run{PID: os.Getpid(), URL: "nats://127.0.0.1:1", Credentials: "nats", Log: testLog, Prefix: "waybill"}); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := lock.Release(); err != nil {
		os.Exit(1)
	}
}

// holder starts a process that holds the lock; end ends it.
func holder(t *testing.T, dir DataDir, env ...string) (pid int, end func()) {
	t.Helper()
	exe, err := os.Executable()
	noErr(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(append(os.Environ(), "HARNESS_HOLD="+string(dir)), env...)
	in, err := cmd.StdinPipe()
	noErr(t, err)
	out, err := cmd.StdoutPipe()
	noErr(t, err)
	noErr(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	return cmd.Process.Pid, func() {
		t.Helper()
		noErr(t, in.Close())
		noErr(t, cmd.Wait())
	}
}

// initialized makes a data directory.
func initialized(t *testing.T) (DataDir, string) {
	t.Helper()
	dir := DataDir(t.TempDir())
	id, _, err := dir.Init("local")
	noErr(t, err)
	return dir, id
}

// snapshot is every file of a directory with its mode and content.
func snapshot(t *testing.T, dir DataDir) map[string]string {
	t.Helper()
	out := map[string]string{}
	noErr(t, filepath.WalkDir(string(dir), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(string(dir), path)
		out[name] = fmt.Sprint(info.Mode(), info.ModTime(), string(b))
		return err
	}))
	return out
}

func names(m map[string]string) string { return strings.Join(slices.Sorted(maps.Keys(m)), " ") }

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got error %v, want one that says %q", err, text)
	}
}

func TestInitMakesALogWithItsKeysAndNamesThem(t *testing.T) {
	dir := DataDir(t.TempDir())
	if err := dir.Exists(); !errors.Is(err, ErrNoLog) {
		t.Errorf("an empty directory: %v", err)
	}
	id, made, err := dir.Init("local")
	noErr(t, err)
	noErr(t, dir.Exists())
	want := []string{dir.file("keys", "log.key"), dir.file("keys", "log.pub"), dir.file("keys", "payload.key"), dir.LogFile()}
	if !slices.Equal(made, want) {
		t.Errorf("made %v, want %v", made, want)
	}
	if got := names(snapshot(t, dir)); got != "keys/log.key keys/log.pub keys/payload.key log.db" {
		t.Errorf("files: %s", got)
	}
	public, err := dir.PublicKey()
	noErr(t, err)
	if !strings.HasPrefix(id, "local-") || len(id) != len("local-")+8 || !strings.HasPrefix(public, "waybill/"+id+"+") {
		t.Errorf("id is %q", id)
	}
	r, err := store.OpenReader(dir.LogFile())
	noErr(t, err)
	defer r.Close()
	if r.ID() != id || r.PublicKey() != public {
		t.Errorf("the log is %s under %s", r.ID(), r.PublicKey())
	}
}

func TestKeysCanBeReadByTheirOwnerOnly(t *testing.T) {
	dir := DataDir(t.TempDir())
	// What a crash left must not lend its mode.
	noErr(t, os.MkdirAll(dir.file("keys"), 0o700))
	for _, n := range []string{"log.key.new", "payload.key.new"} {
		noErr(t, os.WriteFile(dir.file("keys", n), []byte("x"), 0o666))
		noErr(t, os.Chmod(dir.file("keys", n), 0o666))
	}
	_, _, err := dir.Init("local")
	noErr(t, err)
	lock, err := dir.Lock()
	noErr(t, err)
	noErr(t, dir.WriteRun(Run{PID: os.Getpid()}))
	noErr(t, lock.Release())
	for _, name := range []string{"keys/log.key", "keys/payload.key", "log.db", "run.json", "lock"} {
		info, err := os.Stat(dir.file(name))
		noErr(t, err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	info, err := os.Stat(dir.file("keys"))
	noErr(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("keys has mode %v", info.Mode())
	}
}

func TestTheTwoHalvesOfTheKeyBelongTogether(t *testing.T) {
	dir, _ := initialized(t)
	private, err := os.ReadFile(dir.file("keys", "log.key"))
	noErr(t, err)
	public, err := dir.PublicKey()
	noErr(t, err)
	signer, err := note.NewSigner(strings.TrimSpace(string(private)))
	noErr(t, err)
	verifier, err := note.NewVerifier(public)
	noErr(t, err)
	signed, err := note.Sign(&note.Note{Text: "head\n"}, signer)
	noErr(t, err)
	if _, err := note.Open(signed, note.VerifierList(verifier)); err != nil {
		t.Error(err)
	}
	if strings.Contains(public, "PRIVATE") {
		t.Error("the public half holds the private one")
	}
}

func TestASecondInitTouchesNothing(t *testing.T) {
	dir, id := initialized(t)
	before := snapshot(t, dir)
	again, made, err := dir.Init("another-name")
	if err != nil || again != id || len(made) != 0 {
		t.Errorf("Init: %s, made %v, %v", again, made, err)
	}
	if after := snapshot(t, dir); !maps.Equal(before, after) {
		t.Errorf("files changed: %v, were %v", names(after), names(before))
	}
}

func TestInitAddsOnlyWhatIsMissing(t *testing.T) {
	dir, id := initialized(t)
	noErr(t, os.Remove(dir.file("keys", "payload.key")))
	before := snapshot(t, dir)
	again, made, err := dir.Init("local")
	if err != nil || again != id || !slices.Equal(made, []string{dir.file("keys", "payload.key")}) {
		t.Errorf("Init: %s, made %v, %v", again, made, err)
	}
	after := snapshot(t, dir)
	delete(after, "keys/payload.key")
	if !maps.Equal(before, after) {
		t.Error("Init touched what was there")
	}
}

func TestInitGoesOnWhereACrashLeftIt(t *testing.T) {
	for _, lost := range []string{"", "log.db", "log.db keys/payload.key", "log.db keys/payload.key keys/log.pub",
		"log.db keys/payload.key keys/log.pub keys/log.key", "log.db keys"} {
		dir, _ := initialized(t)
		for _, name := range strings.Fields(lost) {
			noErr(t, os.RemoveAll(dir.file(name)))
		}
		noErr(t, os.WriteFile(dir.file("init.partial"), nil, 0o600))
		kept := snapshot(t, dir)
		id, made, err := dir.Init("local")
		if err != nil {
			t.Errorf("without %q: %v", lost, err)
			continue
		}
		after := snapshot(t, dir)
		if after["init.partial"] != "" || names(after) != "keys/log.key keys/log.pub keys/payload.key log.db" {
			t.Errorf("without %q: files are %s", lost, names(after))
		}
		if kept["keys/log.pub"] != "" && (after["keys/log.pub"] != kept["keys/log.pub"] || after["keys/log.key"] != kept["keys/log.key"]) {
			t.Errorf("without %q: a whole key was made again", lost)
		}
		var changed []string
		for _, name := range slices.Sorted(maps.Keys(after)) {
			if after[name] != kept[name] {
				changed = append(changed, dir.file(name))
			}
		}
		if slices.Sort(made); !slices.Equal(made, changed) {
			t.Errorf("without %q: made %v, but %v are new", lost, made, changed)
		}
		again, _, err := dir.Init("local")
		if err != nil || again != id {
			t.Errorf("without %q: the id is %s, then %s, %v", lost, id, again, err)
		}
	}
}

func TestALostLogIsNotBegunAgainUnderItsKeys(t *testing.T) {
	for _, lost := range []string{"log.db", "log.db keys/log.pub", "log.db keys/log.key"} {
		dir, _ := initialized(t)
		for _, name := range strings.Fields(lost) {
			noErr(t, os.Remove(dir.file(name)))
		}
		before := snapshot(t, dir)
		_, _, err := dir.Init("local")
		wantError(t, err, "put the log back from a backup")
		if after := snapshot(t, dir); !maps.Equal(before, after) {
			t.Errorf("without %q: the refusal changed files: %s", lost, names(after))
		}
	}
}

func TestAnInitThatCrashedAtItsEndDoesNotLetALogBeBegunAgainLater(t *testing.T) {
	dir, _ := initialized(t)
	noErr(t, os.WriteFile(dir.file("init.partial"), nil, 0o600)) // the log was made, its mark not removed
	lock, err := dir.Lock()
	noErr(t, err)
	noErr(t, lock.Release()) // the service has run
	noErr(t, os.Remove(dir.LogFile()))
	_, _, err = dir.Init("local")
	wantError(t, err, "put the log back from a backup")
}

func TestTheLockKeepsTheMarkOfAnInitThatHasNoLogYet(t *testing.T) {
	dir := DataDir(t.TempDir())
	noErr(t, os.WriteFile(dir.file("init.partial"), nil, 0o600))
	lock, err := dir.Lock()
	noErr(t, err)
	defer lock.Release()
	if missing(dir.file("init.partial")) {
		t.Error("the mark is gone: an init could not go on")
	}
}

func TestKeysThatAreNotTheLogsAreRefused(t *testing.T) {
	other, _ := initialized(t)
	swap := func(dir DataDir, name string) {
		b, err := os.ReadFile(other.file("keys", name))
		noErr(t, err)
		noErr(t, os.WriteFile(dir.file("keys", name), b, 0o600))
	}
	for _, c := range []struct {
		name string
		harm func(dir DataDir)
		want string
	}{
		{"both halves of another", func(d DataDir) { swap(d, "log.key"); swap(d, "log.pub") }, "belongs to another key"},
		{"another public half", func(d DataDir) { swap(d, "log.pub") }, "not of one key"},
		{"another private half", func(d DataDir) { swap(d, "log.key") }, "not of one key"},
		{"no private half", func(d DataDir) { noErr(t, os.Remove(d.file("keys", "log.key"))) }, "put it back from a backup"},
		{"no public half", func(d DataDir) { noErr(t, os.Remove(d.file("keys", "log.pub"))) }, "put it back from a backup"},
		{"a broken private half", func(d DataDir) { noErr(t, os.WriteFile(d.file("keys", "log.key"), []byte("secret?"), 0o600)) }, "is no private key"},
		{"a broken public half", func(d DataDir) { noErr(t, os.WriteFile(d.file("keys", "log.pub"), []byte("x"), 0o600)) }, "is no public key"},
	} {
		dir, _ := initialized(t)
		c.harm(dir)
		before := snapshot(t, dir)
		_, made, err := dir.Init("local")
		if err == nil || !strings.Contains(err.Error(), c.want) || len(made) != 0 {
			t.Errorf("%s: made %v, %v", c.name, made, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret?") {
			t.Errorf("%s: the error prints a key: %v", c.name, err)
		}
		if after := snapshot(t, dir); !maps.Equal(before, after) {
			t.Errorf("%s: files were changed", c.name)
		}
	}
}

func TestTwoNodesOfOneNameHaveDifferentIDs(t *testing.T) {
	_, a := initialized(t)
	_, b := initialized(t)
	if a == b {
		t.Errorf("both are %s", a)
	}
}

func TestPayloadsAreNamedByAKeyedDigest(t *testing.T) {
	dir, _ := initialized(t)
	digest, err := dir.Digester()
	noErr(t, err)
	again, err := dir.Digester()
	noErr(t, err)
	other, _ := initialized(t)
	stranger, err := other.Digester()
	noErr(t, err)
	a := digest([]byte("42"))
	if a.Size != 2 || len(a.HMAC) != 64 || a != again([]byte("42")) || a == digest([]byte("43")) || a == stranger([]byte("42")) {
		t.Errorf("digest is %+v", a)
	}
	for _, bad := range []string{"", "00ff", "not hex, and long enough to be taken for a key of 32 bytes in hex"} {
		noErr(t, os.WriteFile(dir.file("keys", "payload.key"), []byte(bad), 0o600))
		if _, err := dir.Digester(); err == nil || (bad != "" && strings.Contains(err.Error(), bad)) {
			t.Errorf("key %q: %v", bad, err)
		}
	}
	noErr(t, os.Remove(dir.file("keys", "payload.key")))
	_, err = dir.Digester()
	wantError(t, err, "run waybill init")
}

func TestADirectoryIsHeldByOneProcess(t *testing.T) {
	dir, _ := initialized(t)
	pid, end := holder(t, dir)
	_, err := dir.Lock()
	var held *LockedError
	if !errors.As(err, &held) || held.PID != pid || held.Dir != string(dir) {
		t.Errorf("Lock: %v, want one held by %d", err, pid)
	}
	wantError(t, err, fmt.Sprintf("pid %d", pid))
	end()
	lock, err := dir.Lock()
	noErr(t, err)
	if _, err := dir.Lock(); !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Errorf("a second lock in this process: %v", err)
	}
	noErr(t, lock.Release())
}

func TestAMissingDirectoryCannotBeHeld(t *testing.T) {
	_, err := DataDir(filepath.Join(t.TempDir(), "none")).Lock()
	if !errors.Is(err, ErrNoLog) {
		t.Errorf("Lock: %v", err)
	}
}

func TestTheServiceIsFoundByTheLockAndNotByTheFile(t *testing.T) {
	dir, _ := initialized(t)
	want := func(when string, pid int, held bool) {
		t.Helper()
		run, err := dir.Running()
		var locked *LockedError
		switch {
		case held:
			if !errors.As(err, &locked) || locked.PID != pid {
				t.Errorf("%s: %+v, %v, want a lock held by %d", when, run, err, pid)
			}
		case err != nil || (run == nil) != (pid == 0) || run != nil && run.PID != pid:
			t.Errorf("%s: %+v, %v, want pid %d", when, run, err, pid)
		}
	}
	want("nothing was ever started", 0, false)
	pid, end := holder(t, dir)
	want("a lock without run.json", pid, true)
	end()
	want("the holder has ended", 0, false)
	pid, end = holder(t, dir, "HARNESS_SERVES=yes")
	want("a service runs", pid, false)
	end()
	want("run.json is left by a service that has ended", 0, false)
	pid, end = holder(t, dir)
	if !missing(dir.file("run.json")) {
		t.Error("the run.json of a service that is gone outlived the next lock")
	}
	noErr(t, dir.WriteRun(Run{PID: os.Getpid()}))
	want("run.json is of another process than the lock", pid, true)
	noErr(t, os.WriteFile(dir.file("run.json"), []byte("{"), 0o600))
	want("run.json is broken", pid, true)
	end()
	noErr(t, dir.RemoveRun())
	noErr(t, dir.RemoveRun())
	noErr(t, os.Remove(dir.LogFile()))
	if _, err := dir.Running(); !errors.Is(err, ErrNoLog) {
		t.Errorf("without a log: %v", err)
	}
}

func TestLookingForTheServiceDoesNotKeepOthersFromTheLock(t *testing.T) {
	dir, _ := initialized(t)
	done := make(chan error, 1)
	go func() {
		for range 300 {
			if run, err := dir.Running(); run != nil || err != nil && !errors.As(err, new(*LockedError)) {
				done <- fmt.Errorf("%+v, %w", run, err)
				return
			}
		}
		done <- nil
	}()
	for range 20 {
		lock, err := dir.Lock()
		noErr(t, err)
		noErr(t, lock.Release())
	}
	noErr(t, <-done)
}
