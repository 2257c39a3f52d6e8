package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"waybill/migrations"
)

// powercut is a directory on a disk that keeps only what was synced: see
// testdata/powercut.c. What Go writes there, which is the checkpoint and the
// stream, is not seen by it: both are taken as if all of it had reached the disk,
// which is the worst for them, since neither may ever be ahead of the log; of the
// stream every second cut leaves nothing.
type powercut struct {
	t            *testing.T
	rand         *rand.Rand
	library      string
	data, shadow string
	cuts         int
	dropped      int64 // bytes that were written and not synced
}

func newPowercut(t *testing.T, r *rand.Rand, data string) *powercut {
	t.Helper()
	p := &powercut{t: t, rand: r, library: filepath.Join(t.TempDir(), "powercut.so"), data: data, shadow: t.TempDir()}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	build := exec.Command(cc, "-O2", "-shared", "-fPIC", "-o", p.library, filepath.Join("testdata", "powercut.c"), "-lpthread")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	return p
}

func (p *powercut) env() []string {
	return []string{"LD_PRELOAD=" + p.library, "POWERCUT_DIR=" + p.data, "POWERCUT_SHADOW=" + p.shadow}
}

// database reports whether a file is one of a database, which the disk keeps as
// far as it was synced.
func database(name string) bool {
	return strings.HasSuffix(name, ".db") || strings.HasSuffix(name, ".db-wal") || strings.HasSuffix(name, ".db-journal")
}

func (p *powercut) ok(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// read returns nothing for a file that is not there.
func (p *powercut) read(path string) []byte {
	p.t.Helper()
	b, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		p.ok(err)
	}
	return b
}

// arm begins with a disk that has all there is.
func (p *powercut) arm() {
	p.t.Helper()
	p.ok(os.RemoveAll(p.shadow))
	p.ok(os.Mkdir(p.shadow, 0o700))
	entries, err := os.ReadDir(p.data)
	p.ok(err)
	var names strings.Builder
	for _, e := range entries {
		fmt.Fprintln(&names, e.Name())
		if database(e.Name()) {
			p.ok(os.WriteFile(filepath.Join(p.shadow, e.Name()), p.read(filepath.Join(p.data, e.Name())), 0o600))
		}
	}
	p.ok(os.WriteFile(filepath.Join(p.shadow, ".names"), []byte(names.String()), 0o600))
}

// strike leaves what the disk has. Every second time some sectors that were not
// synced have reached it all the same.
func (p *powercut) strike() {
	p.t.Helper()
	p.cuts++
	names := map[string]bool{}
	for name := range strings.Lines(string(p.read(filepath.Join(p.shadow, ".names")))) {
		names[strings.TrimSpace(name)] = true
	}
	entries, err := os.ReadDir(p.data)
	p.ok(err)
	for _, e := range entries {
		names[e.Name()] = names[e.Name()] // also those that the disk does not have
	}
	for name, kept := range names {
		path := filepath.Join(p.data, name)
		switch {
		case strings.HasSuffix(name, ".db-shm"), database(name) && !kept:
			p.ok(os.RemoveAll(path))
		case database(name):
			p.ok(os.WriteFile(path, p.disk(name), 0o600))
		}
	}
	if p.cuts%4 < 2 {
		p.ok(os.RemoveAll(filepath.Join(p.data, "jetstream")))
	}
}

// disk is a file as the disk has it.
func (p *powercut) disk(name string) []byte {
	const sector = 512
	was, is := p.read(filepath.Join(p.shadow, name)), p.read(filepath.Join(p.data, name))
	out := append([]byte(nil), was...)
	for at := 0; at < len(is); at += sector {
		end := min(at+sector, len(is))
		if end <= len(was) && string(was[at:end]) == string(is[at:end]) {
			continue
		}
		if p.cuts%2 == 0 && p.rand.IntN(2) == 0 {
			out = append(out, make([]byte, max(0, end-len(out)))...)
			copy(out[at:end], is[at:end])
			continue
		}
		p.dropped += int64(end - at)
	}
	return out
}

// TestPowerCut cuts the power under a service that is called, and starts it again
// from what was synced. Nothing of which a host was told is lost, whatever ran is
// in the log, and no checkpoint and no stream is ahead of it.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	sum, r := totals{kills: map[string]int{}}, crashRand(t)
	var dropped int64
	for left := cuts(); left > 0; {
		c := newCrasher(t, r)
		c.cut = newPowercut(t, r, string(c.data()))
		plan := c.plan(min(left, crashPerLog), crashPoints)
		for _, p := range plan {
			c.live(p)
		}
		sum.add(c.finish())
		dropped, left = dropped+c.cut.dropped, left-len(plan)
	}
	t.Logf("power cuts, %d bytes never synced: %v", dropped, &sum)
	if sum.lost+sum.doubled > 0 || sum.acknowledged == 0 || dropped == 0 {
		t.Errorf("%d acknowledged, of them %d lost; %d doubled; %d bytes were never synced", sum.acknowledged, sum.lost, sum.doubled, dropped)
	}
}

// careless is a program that commits rows with a setting of synchronous, and says
// of each that it has.
func careless(args []string) int {
	db, err := sql.Open("sqlite3", migrations.DSN(args[0], "_journal_mode=WAL", "_synchronous="+args[1]))
	if err == nil {
		_, err = db.Exec(`CREATE TABLE t (n INTEGER PRIMARY KEY)`)
	}
	for n := 1; err == nil; n++ {
		if _, err = db.Exec(`INSERT INTO t VALUES (?)`, n); err == nil {
			fmt.Println(n)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// A power cut that takes nothing would show nothing: what a program did not sync
// is gone, and what it did is there.
func TestAPowerCutTakesWhatWasNotSynced(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for synchronous, lost := range map[string]bool{"NORMAL": true, "FULL": false} {
		data := t.TempDir()
		p := newPowercut(t, rand.New(rand.NewPCG(1, 1)), data)
		p.arm()
		cmd := exec.Command(self, "careless", filepath.Join(data, "t.db"), synchronous)
		cmd.Env = append(os.Environ(), p.env()...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		told := 0
		for lines := bufio.NewScanner(out); lines.Scan(); told++ {
			if told == 50 {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait()
		p.strike()
		n := 0
		db, err := sql.Open("sqlite3", migrations.DSN(filepath.Join(data, "t.db")))
		if err != nil {
			t.Fatal(err)
		}
		if err := db.QueryRowContext(context.Background(), `SELECT count(*) FROM t`).Scan(&n); err != nil && !lost {
			t.Error(err)
		}
		db.Close()
		if told < 50 || (n < told) != lost {
			t.Errorf("synchronous=%s: %d rows of %d are left", synchronous, n, told)
		}
	}
}
