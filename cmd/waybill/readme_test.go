package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"waybill/domain"
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
		{`/\S*?/?waybill-demo[-\d]*`, "DIR"}, {`waybill/local\+\S+`, "KEY"}, {`wb-\w{22}`, "ID"}, {`local-[0-9a-f]{8}`, "LOG"},
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

// Each promise of the README names a test that is there.
func TestReadmePromisesNameTheirTests(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| .+ \\| (`.+)\\|$").FindAllStringSubmatch(between(t, readme(t), "## What is promised", "## Getting started"), -1)
	if len(rows) < 5 {
		t.Fatalf("%d promises found", len(rows))
	}
	for _, row := range rows {
		words := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1)
		dir := "."
		if last := words[len(words)-1][1]; !strings.HasPrefix(last, "Test") && !strings.HasPrefix(last, "Fuzz") {
			dir, words = last, words[:len(words)-1]
		}
		for _, w := range words {
			if !testExists(t, filepath.Join("..", "..", dir), w[1]) {
				t.Errorf("%s has no %s", dir, w[1])
			}
		}
	}
}

func testExists(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "func "+name+"(") {
			return true
		}
	}
	return false
}
