package explain_test

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"waybill/domain"
	"waybill/replay/explain"
	"waybill/replay/moment"
	"waybill/replay/replaytest"
)

var record = flag.Bool("record", false, "write the texts of testdata anew")

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// goldens are texts that a person has read: one for each kind of story.
var goldens = []struct {
	name string
	log  func() *replaytest.Log
	call string
}{
	{"collision-and-moved", replaytest.Full, "local/again"},
	{"refused-name-moved", replaytest.Full, "local/moved"},
	{"refused-unknown-tool", replaytest.Full, "local/nothing"},
	{"legacy-lost-by-restart", replaytest.Full, "local/closed"},
	{"lost", replaytest.Full, "local/lost"},
	{"late-answer", replaytest.Full, "local/slow"},
	{"last-good-list", replaytest.Full, "local/last"},
	{"resent-by-rule", replaytest.Fire, "local/unwritten"},
	{"resent-by-operator", replaytest.Fire, "local/hung"},
	{"input-required", replaytest.Fire, "local/asks"},
	{"rounds", replaytest.Fire, "local/states"},
	{"held-and-refused", replaytest.Fire, "local/waits"},
	{"held-and-sent", replaytest.Fire, "local/later"},
	{"erased", replaytest.Kept, "local/first"},
	{"quarantined", replaytest.Lists, "local/held"},
	{"approved", replaytest.Lists, "local/approved"},
	{"http-session", replaytest.HTTP, "local/session"},
	{"http-status", replaytest.HTTP, "local/unauthorized"},
	{"http-headers", replaytest.HTTP, "local/headers"},
	{"not-allowed", replaytest.HTTP, "ben/secret"},
	{"other-context", replaytest.HTTP, "ben/alice_only"},
	{"keyed", replaytest.Keys, "local/first"},
	{"keyed-lost", replaytest.Keys, "local/crossing"},
	{"joined", replaytest.Keys, "local/wb-retry"},
	{"joined-held", replaytest.Keys, "local/waits"},
	{"key-conflict", replaytest.Keys, "local/other"},
	{"key-expired", replaytest.Keys, "local/expired"},
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *record {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; it is now\n%s", path, got)
	}
}

func TestTextsOfTestdata(t *testing.T) {
	for _, g := range goldens {
		golden(t, g.name+".txt", explained(t, g.log(), g.call).Text())
	}
	golden(t, "report.md", explained(t, replaytest.Full(), "local/again").Markdown())
	last := explained(t, replaytest.Full(), "local/last")
	w, err := explain.AskWhyNot(t.Context(), replaytest.Full(), explain.Question{Tool: "page", At: moment.Point{Seq: last.Sentences[0].Seqs[0] - 1}})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "why-not.md", w.Markdown())
}

// TestTextOnlyPrints submits names that would do more to a terminal, or to a report,
// than be read.
func TestTextOnlyPrints(t *testing.T) {
	w := newWorld(nil, onePeer("notes", "search"))
	submit(w, "bad", "\x1b]0;gone\x07 <b>|`*_ \u202e \xff")
	x := explained(t, replaytest.Make(w.Events), "bad")
	for _, text := range []string{x.Text(), x.Markdown()} {
		if strings.ContainsAny(text, "\x1b\x07\u202e") || strings.Contains(text, "\xff") || !strings.Contains(text, "gone") {
			t.Errorf("%q", text)
		}
	}
	if strings.Contains(x.Markdown(), "<b>") || !strings.Contains(x.Markdown(), "&lt;b&gt;\\|\\`\\*\\_") {
		t.Errorf("%s", x.Markdown())
	}
}

// TestNoEvidenceIsQuoted looks for what a peer wrote, which only show prints.
func TestNoEvidenceIsQuoted(t *testing.T) {
	l := replaytest.Lists()
	for _, r := range l.Rows {
		if r.Type != "call.received" {
			continue
		}
		text := explained(t, l, itoa(r.Seq)).Markdown()
		for _, secret := range []string{"Sends a mail", "Does what it says", "supportedVersions", "inputSchema", "serverInfo"} {
			if strings.Contains(text, secret) {
				t.Errorf("event %d: the text has %q", r.Seq, secret)
			}
		}
	}
}

// TestWordsForEveryCode keeps a code of an end from being explained by itself.
func TestWordsForEveryCode(t *testing.T) {
	said := map[domain.Code]string{}
	for _, log := range logs {
		l := log()
		for _, r := range l.Rows {
			if r.Type != "call.received" {
				continue
			}
			x := explained(t, l, itoa(r.Seq))
			if strings.Contains(x.Text(), "because code ") || strings.Contains(x.Text(), ": code ") {
				t.Errorf("%+v is explained by itself", x.Outcome)
			}
			said[x.Outcome.Code] = x.Call
		}
	}
	if len(said) < 20 {
		t.Errorf("%d codes: %v", len(said), said)
	}
}
