package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"waybill/replay/explain"
	"waybill/replay/replaytest"
)

// TestExplainPrintsEachForm asks for one call in each way it is named, and printed.
func TestExplainPrintsEachForm(t *testing.T) {
	l := replaytest.Full()
	path := file(t, l)
	want, err := explain.Call(t.Context(), l, "local/again")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"local/again", "again", itoa(want.Outcome.Seq)} {
		if out, errs := wants(t, 0, "explain", name, path); out != want.Text() || errs != "" {
			t.Errorf("%s: printed\n%s%s", name, out, errs)
		}
	}
	if out, _ := wants(t, 0, "explain", "again", path, "--markdown"); out != want.Markdown() {
		t.Errorf("printed\n%s", out)
	}
	out, _ := wants(t, 0, "explain", "again", path, "--json")
	x := document[explain.Explanation](t, out)
	if x.Outcome != want.Outcome || len(x.Sentences) != len(want.Sentences) || len(x.Events) != len(want.Events) || x.Log != replaytest.ID {
		t.Errorf("printed %s", out)
	}
	for i, s := range x.Sentences {
		if s.Line() != want.Sentences[i].Line() || len(s.Facts) != len(want.Sentences[i].Facts) {
			t.Errorf("printed %+v", s)
		}
	}
}

func TestExplainOfWhatIsNotThere(t *testing.T) {
	path := file(t, replaytest.Full())
	for _, c := range []struct {
		exit int
		want string
		args []string
	}{
		{exitUsage, "no such call: no call \"local/none\" was received", []string{"explain", "local/none", path}},
		{exitUsage, "no host has a call with the id \"none\"", []string{"explain", "none", path}},
		{exitUsage, "event 2 (\"config.loaded\") belongs to none", []string{"explain", "2", path}},
		{exitUsage, "give --json or --markdown", []string{"explain", "first", path, "--json", "--markdown"}},
		{exitUsage, "give --json or --markdown", []string{"why-not", "search", path, "--json", "--markdown"}},
		{exitUsage, "neither a seq nor a time", []string{"why-not", "search", path, "--at", "noon"}},
		{exitUsage, "the log ends before this event", []string{"why-not", "search", path, "--at", "9999"}},
		{exitUsage, "no event up to that moment", []string{"why-not", "search", path, "--at", "1970-01-02T00:00:00Z"}},
		{exitNoLog, "", []string{"explain", "first", filepath.Join(t.TempDir(), "log.db")}},
		{exitNoLog, "", []string{"why-not", "search", filepath.Join(t.TempDir(), "log.db")}},
	} {
		out, errs := wants(t, c.exit, c.args...)
		if !strings.Contains(out+errs, c.want) {
			t.Errorf("%q: %s%s", c.args, out, errs)
		}
	}
}

// TestExplainProvesWhatItSays checks each proof with the program that a stranger has.
func TestExplainProvesWhatItSays(t *testing.T) {
	l := replaytest.Full()
	l.Sign(int64(len(l.Rows)))
	path, dir := file(t, l), filepath.Join(t.TempDir(), "proofs")
	out, _ := wants(t, 0, "explain", "again", path, "--json", "--prove", dir, "--key", replaytest.Key)
	x := document[explain.Explanation](t, out)
	seqs := explain.Seqs(x.Sentences)
	for _, seq := range seqs {
		name := filepath.Join(dir, fmt.Sprintf("%d.tlog-proof", seq))
		out, _ := wants(t, 0, "checkproof", name, "--key", replaytest.Key)
		if !strings.Contains(out, fmt.Sprintf("event %d is in log", seq)) || !strings.Contains(out, string(l.Rows[seq-1].Bytes)) {
			t.Errorf("event %d is proven as\n%s", seq, out)
		}
		proved, _ := wants(t, 0, "prove", path, itoa(seq))
		if written, err := os.ReadFile(name); err != nil || string(written) != proved {
			t.Errorf("event %d: not what prove writes: %v", seq, err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != len(seqs) || len(seqs) < 15 {
		t.Errorf("%d files for %d events: %v", len(files), len(seqs), err)
	}
	wants(t, exitUsage, "explain", "again", path, "--prove", dir) // never overwrites
	other := filepath.Join(t.TempDir(), "other")
	wants(t, exitAltered, "explain", "again", path, "--prove", other, "--key", replaytest.OtherKey)
	if _, err := os.Stat(other); err == nil {
		t.Error("proofs under another key were begun")
	}
}

// TestExplainProvesAllOrNothing wants a proof of an event that is not signed yet.
func TestExplainProvesAllOrNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "proofs")
	_, errs := wants(t, exitUsage, "explain", "again", file(t, replaytest.Full().Sign(50)), "--prove", dir)
	if _, err := os.Stat(dir); err == nil || !strings.Contains(errs, "not under the checkpoint") {
		t.Errorf("%v: %s", err, errs)
	}
}

func TestWhyNotPrintsEachForm(t *testing.T) {
	l := replaytest.Full()
	path := file(t, l)
	out, _ := wants(t, 0, "why-not", "search", path, "--json")
	w := document[explain.WhyNot](t, out)
	if w.Answer != "name_moved" || len(w.Events) == 0 { // what the service would have said before it stopped
		t.Errorf("printed %s", out)
	}
	text, _ := wants(t, 0, "why-not", "search", path)
	if text != w.Text() {
		t.Errorf("printed\n%s", text)
	}
	report, _ := wants(t, 0, "why-not", "search", path, "--markdown", "--at", "100")
	if !strings.HasPrefix(report, "# Why not search\n") || !strings.Contains(report, "after event 100") {
		t.Errorf("printed\n%s", report)
	}
	denied, _ := wants(t, 0, "why-not", "secret", file(t, replaytest.HTTP()), "--host", "ben", "--at", "200", "--json")
	if d := document[explain.WhyNot](t, denied); d.Answer != "not_allowed" || d.Context != "bob" || d.Host != "ben" {
		t.Errorf("printed %s", denied)
	}
}

func TestHelpOfExplain(t *testing.T) {
	for _, verb := range []string{"explain", "why-not"} {
		out, _ := wants(t, 0, verb, "--help")
		if !strings.Contains(out, "Example:\n\n    waybill-audit "+verb+" ") {
			t.Errorf("%s --help has no example:\n%s", verb, out)
		}
	}
}
