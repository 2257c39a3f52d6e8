package contract_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"waybill/harness/bus/contract"
	"waybill/harness/bus/contract/contracttest"
)

const docs = root + "/docs"

// fence is one block of code of a page: what is said of it, what is in it, and the line
// of text before it.
type fence struct{ info, content, before string }

func fences(t testing.TB, page string) (out []fence) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(docs, page))
	if err != nil {
		t.Fatal(err)
	}
	var f *fence
	before := ""
	for line := range strings.Lines(string(b)) {
		info, mark := strings.CutPrefix(line, "```")
		switch {
		case mark && f == nil:
			f = &fence{info: strings.TrimSpace(info), before: before}
		case mark:
			out, f = append(out, *f), nil
		case f != nil:
			f.content += line
		case strings.TrimSpace(line) != "":
			before = strings.TrimSpace(line)
		}
	}
	if f != nil {
		t.Fatalf("%s: a block of code has no end", page)
	}
	return out
}

var named = regexp.MustCompile(`^\[(examples/[^\]]+)\]\((examples/[^)]+)\):$`)

// Every block is the text of a file that is run, or a message that is checked.
func TestEveryBlockOfThePageIsAFileOrAMessage(t *testing.T) {
	shown := map[string]bool{"examples/gohost/doc.go": true, "examples/goevents/doc.go": true}
	messages := 0
	for _, f := range fences(t, "nats.md") {
		if kind, ok := strings.CutPrefix(f.info, "json "); ok {
			contracttest.Check(t, contracttest.Closed(t, schemaOf(t, kind)), kind, []byte(f.content))
			messages++
			continue
		}
		m := named.FindStringSubmatch(f.before)
		if m == nil || m[1] != m[2] {
			t.Errorf("a block of %q has no file: before it is %q", f.info, f.before)
			continue
		}
		content, err := os.ReadFile(filepath.Join(docs, m[1]))
		if err != nil || string(content) != f.content {
			t.Errorf("docs/nats.md does not show %s as it is (%v)", m[1], err)
		}
		shown[m[1]] = true
	}
	if messages < 6 {
		t.Errorf("only %d messages", messages)
	}
	err := filepath.WalkDir(filepath.Join(docs, "examples"), func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(docs, path)
		if err == nil && !d.IsDir() && !shown[filepath.ToSlash(name)] {
			t.Errorf("docs/nats.md does not show %s", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// schemaOf finds the schema of what a block is said to be: VERB.request, VERB.reply,
// progress or the kind of an event.
func schemaOf(t testing.TB, kind string) []byte {
	t.Helper()
	verb, side, _ := strings.Cut(kind, ".")
	s := contract.Event(kind)
	switch {
	case kind == "progress":
		s = contract.Progress()
	case side == "request":
		s = contract.Request(verb)
	case side == "reply":
		s = contract.Reply(verb)
	}
	if s == nil {
		t.Fatalf("there is no message %q", kind)
	}
	return s
}

func TestThePageListsEveryVerbAndOrder(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(docs, "nats.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| [^|]+ \\| ([^|]+) \\|$").FindAllStringSubmatch(string(b), -1) {
		if m[2] != contract.Description(m[1]) {
			t.Errorf("%s: the page says %q, the contract %q", m[1], m[2], contract.Description(m[1]))
		}
		got = append(got, m[1])
	}
	if want := append(contract.Verbs(), contract.Orders()...); !slices.Equal(got, want) {
		t.Errorf("the page lists %v, the contract has %v", got, want)
	}
}
