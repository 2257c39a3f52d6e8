package migrations_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"waybill/migrations"
)

// slow runs for hours, so that a process can be killed in the middle of it.
const slow = second + `
INSERT INTO b WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100000000000)
SELECT x FROM n WHERE x < 0;`

// TestMain lets the test binary be its own child: it applies the migrations
// that the environment names, once its standard input ends.
func TestMain(m *testing.M) {
	path := os.Getenv("APPLY_TO")
	if path == "" {
		os.Exit(m.Run())
	}
	sources := map[string][]string{"both": {first, second}, "slow": {first, slow}}
	os.Stdout.WriteString("ready\n")
	io.Copy(io.Discard, os.Stdin)
	if err := migrations.Apply(context.Background(), path, source(sources[os.Getenv("APPLY_SOURCE")]...)); err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

// child starts a process that is ready to apply a source; release sets it off.
func child(t *testing.T, path, name string) (cmd *exec.Cmd, release func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe)
	cmd.Env = append(os.Environ(), "APPLY_TO="+path, "APPLY_SOURCE="+name)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	return cmd, func() { stdin.Close() }
}

func TestProcessesThatApplyAtOnceAllSucceedAndMigrateOnce(t *testing.T) {
	for range 5 {
		path := emptyFile(t)
		var cmds []*exec.Cmd
		var releases []func()
		for range 6 {
			cmd, release := child(t, path, "both")
			cmds, releases = append(cmds, cmd), append(releases, release)
		}
		for _, release := range releases {
			release()
		}
		for _, cmd := range cmds {
			if err := cmd.Wait(); err != nil {
				t.Errorf("child: %v", err)
			}
		}
		wantSchema(t, path, "2", "a b")
		if _, err := os.Lstat(path + ".migrate"); err == nil {
			t.Error("the lock file was left")
		}
	}
}

func TestAMigrationKilledHalfWayIsRunAgain(t *testing.T) {
	path := emptyFile(t)
	cmd, release := child(t, path, "slow")
	release()
	db := openFile(t, path)
	eventually(t, "the second migration runs", func() bool {
		var version int
		err := db.QueryRow(`SELECT version FROM schema_migrations`).Scan(&version)
		return err == nil && version == 2
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	wantSchema(t, path, "2 dirty", "a")
	if err := migrations.Apply(context.Background(), path, source(first, second)); err != nil {
		t.Fatal(err)
	}
	wantSchema(t, path, "2", "a b")
}

func TestADirtyFileWhoseMigrationDidNotHappenGetsIt(t *testing.T) {
	for _, c := range []struct{ name, failed, before string }{
		{"the first", "1 dirty", ""},
		{"a later", "2 dirty", "a"},
	} {
		path := emptyFile(t)
		bad := source(broken)
		if c.name == "a later" {
			bad = source(first, broken)
		}
		if err := migrations.Apply(context.Background(), path, bad); err == nil {
			t.Fatalf("%s: the broken migration was applied", c.name)
		}
		wantSchema(t, path, c.failed, c.before)
		if err := migrations.Apply(context.Background(), path, source(first, second)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		wantSchema(t, path, "2", "a b")
	}
}

func TestADirtyFileWhoseMigrationDidHappenKeepsIt(t *testing.T) {
	path := emptyFile(t)
	if err := migrations.Apply(context.Background(), path, source(first, second)); err != nil {
		t.Fatal(err)
	}
	run(t, path, "INSERT INTO b VALUES (42)", "UPDATE schema_migrations SET dirty = 1")
	if err := migrations.Apply(context.Background(), path, source(first, second)); err != nil {
		t.Fatal(err)
	}
	wantSchema(t, path, "2", "a b")
	if got := ask(t, path, "SELECT x FROM b"); got != "42" {
		t.Errorf("table b has %q", got)
	}
}

func TestABrokenMigrationFailsAgainAndAgainUntilItIsMended(t *testing.T) {
	path := emptyFile(t)
	for range 3 {
		wantText(t, migrations.Apply(context.Background(), path, source(first, broken)), "no_such_table")
		wantSchema(t, path, "2 dirty", "a")
	}
}

func TestLockIsHeldByOneAtATimeAndLeavesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	const holders, rounds = 8, 50
	inside, done := make(chan struct{}, 1), make(chan error, holders)
	for range holders {
		go func() {
			for range rounds {
				release, err := migrations.Lock(path)
				if err != nil {
					done <- err
					return
				}
				select {
				case inside <- struct{}{}:
				default:
					t.Error("two held the lock at once")
				}
				<-inside
				if err := release(); err != nil {
					t.Error(err)
				}
			}
			done <- nil
		}()
	}
	for range holders {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the lock file was left")
	}
}

func TestALockFileLeftByACrashIsTakenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	release, err := migrations.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
}
