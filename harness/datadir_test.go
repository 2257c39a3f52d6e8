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
	if !strings.HasPrefix(id, "local-") || len(id) != len("local-")+8 || id != logID("local", public) {
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
		if len(made) != len(strings.Fields(strings.ReplaceAll(lost, "log.db keys", "a b c d")))+bothHalves(lost) && lost != "log.db keys" {
			t.Errorf("without %q: made %v", lost, made)
		}
		again, _, err := dir.Init("local")
		if err != nil || again != id {
			t.Errorf("without %q: the id is %s, then %s, %v", lost, id, again, err)
		}
	}
}
