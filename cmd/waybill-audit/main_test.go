package main

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
	"waybill/migrations"
	"waybill/replay/replaytest"
	"waybill/store"
)

// audit runs the program.
func audit(args ...string) (exit int, out, errs string) {
	var o, e bytes.Buffer
	exit = run(args, &o, &e)
	return exit, o.String(), e.String()
}

// wants runs the program and holds it to an exit code.
func wants(t *testing.T, want int, args ...string) (out, errs string) {
	t.Helper()
	exit, out, errs := audit(args...)
	if exit != want {
		t.Fatalf("%q: exit %d, want %d\n%s%s", args, exit, want, out, errs)
	}
	return out, errs
}

// file makes a log file and returns its path.
func file(t *testing.T, l *replaytest.Log) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.db")
	l.Write(t, path)
	return path
}

// bytesOf makes a log file and returns what is in it, for copies to be altered.
func bytesOf(t *testing.T, l *replaytest.Log) []byte {
	t.Helper()
	b, err := os.ReadFile(file(t, l))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// copyOf writes a copy of a log file and returns its path.
func copyOf(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// document reads a JSON document and holds it to be one line.
func document[T any](t *testing.T, out string) (doc T) {
	t.Helper()
	if strings.Count(out, "\n") != 1 || !strings.HasSuffix(out, "\n") {
		t.Fatalf("not one line:\n%s", out)
	}
	if err := json.Unmarshal([]byte(out), &doc, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return doc
}

// change runs SQL on a log file as somebody would who means to alter it: the
// guards are dropped first, and the file is complete by itself afterwards.
func change(t *testing.T, path string, queries ...string) {
	t.Helper()
	db, err := sql.Open("sqlite3", migrations.DSN(path, "mode=rw"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	rows, err := db.Query(`SELECT name FROM sqlite_schema WHERE type = 'trigger'`)
	if err != nil {
		t.Fatal(err)
	}
	drop := []string{"PRAGMA writable_schema = ON", "PRAGMA ignore_check_constraints = ON"}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		drop = append(drop, "DROP TRIGGER "+name)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	for _, q := range drop {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	for _, q := range queries {
		done, err := db.Exec(q)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		if n, err := done.RowsAffected(); n == 0 || err != nil {
			t.Fatalf("%s: changed %d rows, error %v", q, n, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

type verifyDoc struct {
	Log      string `json:"log"`
	Size     int64  `json:"size"`
	Root     string `json:"root"`
	HeadSeq  int64  `json:"head_seq"`
	Evidence int64  `json:"evidence"`

	Checkpoints int64   `json:"checkpoints"`
	Signed      int64   `json:"signed"`
	Key         string  `json:"key"`
	Copy        *copied `json:"copy"`
}

type replayDoc struct {
	Log        string `json:"log"`
	Size       int64  `json:"size"`
	Root       string `json:"root"`
	HeadSeq    int64  `json:"head_seq"`
	Decisions  int64  `json:"decisions"`
	Agreed     int64  `json:"agreed"`
	Diverged   int64  `json:"diverged"`
	Divergence *struct {
		Kind        string         `json:"kind"`
		Seq         int64          `json:"seq"`
		Recorded    jsontext.Value `json:"recorded"`
		Redecided   jsontext.Value `json:"redecided"`
		Observation jsontext.Value `json:"observation"`
	} `json:"divergence"`
}

type errorsDoc struct {
	Error struct {
		Code    string  `json:"code"`
		Message string  `json:"message"`
		Where   *string `json:"where"`
	} `json:"error"`
}

func decisionsOf(l *replaytest.Log) (n int64) {
	for _, e := range l.Events() {
		if e.IsDecision() {
			n++
		}
	}
	return n
}

func TestWholeLogVerifiesAndReplays(t *testing.T) {
	for _, l := range []*replaytest.Log{replaytest.Small(), replaytest.Full(), replaytest.Rejected(), replaytest.Calls(600)} {
		path := file(t, l)
		head := l.Heads[len(l.Heads)-1]
		root, n := hex.EncodeToString(head.Hash[:]), decisionsOf(l)

		out, _ := wants(t, 0, "verify", "--json", path)
		if got, want := document[verifyDoc](t, out), (verifyDoc{Log: replaytest.ID, Size: head.Size, Root: root, HeadSeq: head.Size, Evidence: int64(len(l.Kept)), Key: replaytest.Key}); got != want {
			t.Errorf("verify: got %+v, want %+v", got, want)
		}
		out, _ = wants(t, 0, "replay", path, "--json")
		if got, want := document[replayDoc](t, out), (replayDoc{Log: replaytest.ID, Size: head.Size, Root: root, HeadSeq: head.Size, Decisions: n, Agreed: n}); got != want {
			t.Errorf("replay: got %+v, want %+v", got, want)
		}

		verified, _ := wants(t, 0, "verify", path)
		replayed, _ := wants(t, 0, "replay", path)
		tail := fmt.Sprintf("head %d, root %s\n", head.Size, root)
		if !strings.HasSuffix(verified, tail) || !strings.HasSuffix(replayed, tail) {
			t.Errorf("verify and replay do not end with %q:\n%s%s", tail, verified, replayed)
		}
		if want := fmt.Sprintf("%d decisions decided again, %d agree", n, n); !strings.Contains(replayed, want) {
			t.Errorf("replay says %q, want %q", replayed, want)
		}
	}
}

func TestEmptyLogVerifiesAndReplays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	if err := store.Create(path, replaytest.ID, replaytest.Key); err != nil {
		t.Fatal(err)
	}
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	verified, _ := wants(t, 0, "verify", "--json", path)
	replayed, _ := wants(t, 0, "replay", "--json", path)
	if v, r := document[verifyDoc](t, verified), document[replayDoc](t, replayed); v.Root != empty || r.Root != empty || v.Size+r.Size != 0 {
		t.Errorf("verify %+v, replay %+v", v, r)
	}
	if out, _ := wants(t, 0, "show", path); out != "" {
		t.Errorf("show prints %q", out)
	}
}

func TestForgedDecisionExits21WithBothSides(t *testing.T) {
	good := replaytest.Full()
	at := 0
	forged := good.Forge(func(list []domain.Event) []domain.Event {
		for i, e := range list {
			if d, ok := e.Data.(domain.CallRouted); ok {
				at, d.Peer = i, "wiki"
				list[i].Data = d
				break
			}
		}
		return list
	})
	path := file(t, forged)
	wants(t, 0, "verify", path)
	out, errs := wants(t, 21, "replay", "--json", path)
	d := document[replayDoc](t, out)
	if errs != "" || d.Diverged != 1 || d.Size != int64(at) || d.HeadSeq != d.Size || d.Agreed != d.Decisions-1 || d.Divergence == nil {
		t.Fatalf("got %+v and %q", d, errs)
	}
	p := d.Divergence
	cause := good.Events()[at].Cause
	if p.Kind != "different" || p.Seq != int64(at+1) || string(p.Recorded) != string(forged.Rows[at].Bytes) ||
		string(p.Redecided) != string(good.Rows[at].Bytes) || string(p.Observation) != string(good.Rows[cause-1].Bytes) {
		t.Errorf("got %+v", p)
	}
	out, errs = wants(t, 21, "replay", path)
	for _, want := range []string{fmt.Sprintf("diverged at event %d: different", at+1), string(p.Recorded), string(p.Redecided), string(p.Observation)} {
		if out != "" || !strings.Contains(errs, want) {
			t.Errorf("no %q in %q, and %q on standard output", want, errs, out)
		}
	}
}

func TestWhatANewerWaybillWroteExits22(t *testing.T) {
	l := replaytest.Small()
	for _, to := range []string{`"type":"call.teleported"`, `"type":"call.routed","rules":"2"`} {
		b := bytes.Replace(l.Rows[23].Bytes, []byte(`"type":"call.routed"`), []byte(to), 1)
		if strings.Contains(to, "rules") {
			b = bytes.Replace(l.Rows[23].Bytes, []byte(`"rules":"1"`), []byte(`"rules":"2"`), 1)
		}
		path := file(t, l.Rewrite(24, b))
		for _, command := range []string{"verify", "replay"} {
			out, _ := wants(t, 22, command, "--json", path)
			if d := document[errorsDoc](t, out); d.Error.Code != "undecidable" || d.Error.Where == nil || *d.Error.Where != "event 24" {
				t.Errorf("%s: got %s", command, out)
			}
		}
		if out, _ := wants(t, 0, "show", "--seq", "24", "--json", path); out != string(b)+"\n" {
			t.Errorf("show prints %q", out)
		}
	}
	path := file(t, l)
	change(t, path, `INSERT INTO migrations_done (version, release) VALUES (99, '9.9')`)
	for _, command := range []string{"verify", "replay", "show"} {
		if _, errs := wants(t, 22, command, path); !strings.Contains(errs, "9.9") {
			t.Errorf("%s does not name the release that can read it: %s", command, errs)
		}
	}
}

func TestMissingLogExits9AndIsNotMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	for _, command := range []string{"verify", "replay", "show", "export"} {
		out, errs := wants(t, 9, command, "--json", path)
		if d := document[errorsDoc](t, out); d.Error.Code != "not_initialised" || d.Error.Where != nil || errs != "" {
			t.Errorf("%s: got %s and %q", command, out, errs)
		}
		if _, errs := wants(t, 9, command, path); !strings.Contains(errs, path) {
			t.Errorf("%s does not name the file: %s", command, errs)
		}
	}
	wants(t, 9, "prove", path, "1")
	if _, err := os.Stat(path); err == nil {
		t.Error("a log was made")
	}
}

func TestWrongUseExits2(t *testing.T) {
	path := file(t, replaytest.Small())
	text := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("no log at all\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{}, {"verify"}, {"frobnicate", path}, {"verify", path, path}, {"verify", "--fast", path},
		{"verify", text}, {"replay", filepath.Dir(text)},
		{"show", "--seq", "0", path}, {"show", "--seq", "-3", path}, {"show", "--seq", "29", path}, {"show", "--seq", "x", path},
		{"show", "--call", "local/never", path}, {"show", "--seq", "1", "--call", "local/first", path},
		{"show", "--json", "--evidence", path},
	} {
		if out, errs := wants(t, 2, args...); out != "" && !strings.HasPrefix(out, "{") || errs == "" && out == "" {
			t.Errorf("%q: printed %q and %q", args, out, errs)
		}
	}
}

func TestHelpHasAnExampleOfEachCommand(t *testing.T) {
	out, _ := wants(t, 0, "--help")
	for _, command := range []string{"verify", "replay", "show", "export", "prove", "checkproof"} {
		if !strings.Contains(out, command) {
			t.Errorf("--help does not name %s:\n%s", command, out)
		}
		help, errs := wants(t, 0, command, "--help")
		if !strings.Contains(help, "Example:") || !strings.Contains(help, "waybill-audit "+command+" ") || errs != "" {
			t.Errorf("%s --help has no example:\n%s%s", command, help, errs)
		}
	}
}
