package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/domain"
	"waybill/events"
	"waybill/replay/explain"
)

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// between returns the part of the README between two marks.
func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, from)
	part, _, closed := strings.Cut(rest, to)
	if !found || !closed {
		t.Fatalf("the README has no part between %q and %q", from, to)
	}
	return part
}

func TestReadmeListsEveryCode(t *testing.T) {
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.+) \\|$").FindAllStringSubmatch(between(t, readme(t), "### Codes", "## What is recorded"), -1) {
		got = append(got, m[1])
	}
	var want []string
	for _, c := range domain.Codes() {
		want = append(want, string(c))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the README lists\n%v\nthe program has\n%v", got, want)
	}
}

// normal takes out of a transcript what differs between two runs.
func normal(s string) string {
	for _, r := range []struct{ from, to string }{
		{`/\S*?/?waybill-demo[-\d]*`, "DIR"}, {`waybill/local\S*\+\S+`, "KEY"}, {`wb-\w{22}`, "ID"}, {`local-[0-9a-f]{8}`, "LOG"},
		{`[0-9a-f]{64}`, "HMAC"}, {`[0-9a-f]{16}\.\.\.`, "ROOT"}, {`\([0-9a-f]{12}\)`, "PIN"}, {`\d+`, "N"}, {` +`, " "},
	} {
		s = regexp.MustCompile(r.from).ReplaceAllString(s, r.to)
	}
	return strings.TrimSpace(s)
}

// The first screen of the README is what the demo prints.
func TestReadmeTranscriptIsTheDemo(t *testing.T) {
	want := between(t, readme(t), "<!-- demo -->\n```\n", "\n```\n<!-- /demo -->")
	var out, errs syncBuffer
	if code := run([]string{"demo"}, &out, &errs); code != exitDone {
		t.Fatalf("exit %d\n%s", code, errs.String())
	}
	got, wanted := strings.Split(normal(out.String()), "\n"), strings.Split(normal(want), "\n")
	for i := range max(len(got), len(wanted)) {
		if i >= len(got) || i >= len(wanted) || got[i] != wanted[i] {
			t.Fatalf("line %d differs; put this into the README:\n%s", i+1, out.String())
		}
	}
}

// The explanation in the README is what is said of that call.
func TestReadmeExplainsACallOfTheDemo(t *testing.T) {
	want := between(t, readme(t), "<!-- explain -->\n```\n", "\n```\n<!-- /explain -->")
	var out, errs syncBuffer
	dir := t.TempDir()
	if code := run([]string{"demo", "--dir", dir}, &out, &errs); code != exitDone {
		t.Fatalf("exit %d\n%s", code, errs.String())
	}
	call := between(t, out.String(), "waybill events --call ", ")")
	l, err := logfile.Open(filepath.Join(dir, ".waybill", "log.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	x, err := explain.Call(t.Context(), l, call)
	if err != nil {
		t.Fatal(err)
	}
	same := func(s string) string {
		s = regexp.MustCompile(`the command \S+ `).ReplaceAllString(s, "the command COMMAND ")
		return normal(regexp.MustCompile(`\b[0-9a-f]{12}\b`).ReplaceAllString(s, "DIGEST"))
	}
	if got := same(x.Text()); got != same(want) {
		t.Errorf("put this into the README:\n%s", x.Text())
	}
}

// Each promise of the README, and each row of what happens when something fails,
// names a test that is there: in the folder it names, or anywhere.
func TestReadmePromisesNameTheirTests(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| .+ \\| (`.+)\\|$").FindAllStringSubmatch(between(t, readme(t), "## What is promised", "## Words"), -1)
	if len(rows) < 5 {
		t.Fatalf("%d promises found", len(rows))
	}
	all := testsBelow(t, filepath.Join("..", ".."))
	for _, row := range rows {
		words := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1)
		tests, where := all, "."
		if last := words[len(words)-1][1]; !strings.HasPrefix(last, "Test") && !strings.HasPrefix(last, "Fuzz") {
			tests, where, words = testsBelow(t, filepath.Join("..", "..", last)), last, words[:len(words)-1]
		}
		for _, w := range words {
			if !strings.Contains(tests, "func "+w[1]+"(") {
				t.Errorf("there is no %s in %s", w[1], where)
			}
		}
	}
}

// testsBelow is the text of all tests in and below a folder.
func testsBelow(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		text.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// What is recorded is every kind of event there is.
func TestReadmeListsEveryKindOfEvent(t *testing.T) {
	table := between(t, readme(t), "## What is recorded", "\n\n")
	table += between(t, readme(t), "| observations: what the world said", "\n\n")
	for _, kind := range events.Kinds() {
		if !strings.Contains(table, "`"+kind+"`") {
			t.Errorf("%s is not listed", kind)
		}
	}
}
