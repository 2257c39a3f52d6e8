package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"waybill/domain"
	"waybill/replay/moment"
	"waybill/replay/replaytest"
	"waybill/replay/whatif"
)

// seqOf is the seq of the n-th event of a kind, from 1.
func seqOf(t *testing.T, l *replaytest.Log, kind string, n int) int64 {
	t.Helper()
	for _, r := range l.Rows {
		if r.Type == kind {
			if n--; n == 0 {
				return r.Seq
			}
		}
	}
	t.Fatalf("not so many %s", kind)
	return 0
}

// How things stood at a moment is printed for people and for programs, and both say the
// digest that was recorded.
func TestAMomentIsPrinted(t *testing.T) {
	l := replaytest.Full()
	path := file(t, l)
	merged := seqOf(t, l, "namespace.merged", 1)
	var digest string
	for _, e := range l.Events() {
		if d, ok := e.Data.(domain.NamespaceMerged); ok && e.Seq == merged {
			digest = d.Digest
		}
	}
	at := fmt.Sprint(merged)
	out, _ := wants(t, 0, "namespace", "--at", at, path)
	if !strings.Contains(out, digest) || !strings.Contains(out, "after event "+at) {
		t.Errorf("%s", out)
	}
	doc := loosely[struct {
		Log, Time  string
		Seq        int64
		Namespaces []moment.Space
	}](t, first(wants(t, 0, "namespace", "--json", "--at", at, path)))
	if doc.Seq != merged || len(doc.Namespaces) != 1 || doc.Namespaces[0].Digest != digest || doc.Namespaces[0].Names[0].Canonical == "" {
		t.Errorf("%+v", doc)
	}
	peers := loosely[struct {
		Log, Time string
		Seq       int64
		Peers     []domain.PeerReport
	}](t, first(wants(t, 0, "peers", "--json", path)))
	out, _ = wants(t, 0, "peers", path)
	for _, p := range peers.Peers {
		if !strings.Contains(out, p.Name) {
			t.Errorf("no word of %s:\n%s", p.Name, out)
		}
	}
	routed := seqOf(t, l, "call.routed", 1)
	calls := loosely[struct {
		Log, Time string
		Seq       int64
		Calls     []domain.CallReport
	}](t, first(wants(t, 0, "calls", "--json", "--at", fmt.Sprint(routed), path)))
	if len(calls.Calls) != 1 || calls.Calls[0].State != "sent" {
		t.Errorf("%+v", calls)
	}
	if out, _ := wants(t, 0, "calls", "--at", fmt.Sprint(routed), path); !strings.Contains(out, calls.Calls[0].Call) {
		t.Errorf("%s", out)
	}
}

func first(out, _ string) string { return out }

// loosely reads what it knows of a JSON document.
func loosely[T any](t *testing.T, out string) (doc T) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &doc, json.MatchCaseInsensitiveNames(true)); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("%v in %s", err, out)
	}
	return doc
}

func TestWhatChangedIsPrinted(t *testing.T) {
	l := replaytest.Full()
	path := file(t, l)
	out, _ := wants(t, 0, "diff", "--from", "1", path)
	doc := loosely[struct {
		Log      string
		From, To int64
		Changes  []moment.Change
	}](t, first(wants(t, 0, "diff", "--json", "--from", "1", path)))
	if len(doc.Changes) == 0 || strings.Count(out, "\n") != len(doc.Changes)+1 || doc.To != int64(len(l.Rows)) {
		t.Errorf("%+v\n%s", doc, out)
	}
	for _, args := range [][]string{{"diff", path}, {"diff", "--from", "x", path}, {"diff", "--from", "9", "--to", "0", path}, {"peers", "--at", "99999", path}, {"calls", "--at", "noon", path}} {
		wants(t, exitUsage, args...)
	}
	if out, _ := wants(t, 0, "diff", "--json", "--from", "5", "--to", "5", path); !strings.Contains(out, `"changes":[]`) {
		t.Errorf("%s", out)
	}
}

// An export stands for its log: it verifies, replays and proves the same, and what is
// altered in it is found.
func TestAnExportStandsForItsLog(t *testing.T) {
	for name, l := range map[string]*replaytest.Log{"full": replaytest.Full(), "lists": replaytest.Lists()} {
		path := file(t, l)
		whole, _ := wants(t, 0, "export", "--whole", path)
		export := filepath.Join(t.TempDir(), "log.jsonl")
		if err := os.WriteFile(export, []byte(whole), 0o400); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"verify", "replay", "peers", "namespace", "calls", "export"} {
			a, _ := wants(t, 0, verb, path)
			if b, _ := wants(t, 0, verb, export); a != b {
				t.Errorf("%s: %s of the export:\n%.800s\nof the log:\n%.800s", name, verb, b, a)
			}
		}
		if again, _ := wants(t, 0, "export", "--whole", export); again != whole {
			t.Errorf("%s: an export of the export is another", name)
		}
		for from, to := range map[string]string{`"ran":"yes"`: `"ran":"no"`, `"specversion"`: `"specversiom"`, `"waybill_export":1`: `"waybill_export":2`} {
			changed := copyOf(t, []byte(strings.Replace(whole, from, to, 1)))
			if exit, out, _ := audit("verify", changed); exit == 0 && strings.Contains(whole, `{"checkpoint"`) {
				t.Errorf("%s: %s in the place of %s was not found\n%s", name, to, from, out)
			}
			if exit, out, _ := audit("replay", changed); exit == 0 {
				t.Errorf("%s: %s in the place of %s agrees\n%s", name, to, from, out)
			}
		}
		wants(t, exitUsage, "verify", copyOf(t, []byte(whole[:len(whole)-5])))
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "waybill-audit-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// --all prints every divergence, and exits as one does.
func TestEveryDivergenceIsPrinted(t *testing.T) {
	forged := replaytest.Fire().Forge(func(list []domain.Event) []domain.Event {
		for i := range list {
			if d, ok := list[i].Data.(domain.CallSettled); ok {
				d.Ran += "!"
				list[i].Data = d
			}
		}
		return list
	})
	path := file(t, forged)
	out, _ := wants(t, exitDiverged, "replay", "--all", path)
	n := strings.Count(out, "diverged at event")
	if n < 3 || !strings.Contains(out, fmt.Sprintf("%d divergences", n)) {
		t.Errorf("%d in\n%.500s", n, out)
	}
	doc := loosely[struct {
		Diverged    int64
		Divergence  divergence
		Divergences []divergence
	}](t, first(wants(t, exitDiverged, "replay", "--all", "--json", path)))
	if len(doc.Divergences) != n || doc.Diverged != int64(n) || doc.Divergence.Seq != doc.Divergences[0].Seq {
		t.Errorf("%d divergences, %d", len(doc.Divergences), doc.Diverged)
	}
	if out, _ := wants(t, 0, "replay", "--all", file(t, replaytest.Fire())); !strings.Contains(out, "agree") {
		t.Errorf("%s", out)
	}
}

// --what-if prints a table of what would have come out otherwise.
func TestWhatWouldHaveComeOutOtherwise(t *testing.T) {
	path := file(t, replaytest.Small())
	out, _ := wants(t, 0, "replay", "--what-if", "collision=prefix-always", path)
	if !strings.Contains(out, "refused unknown_tool") || !strings.Contains(out, "among them 1 calls") {
		t.Errorf("%s", out)
	}
	doc := loosely[struct {
		whatif.Found
		WhatIf []string `json:"what_if"`
		Rows   []whatif.Row
	}](t, first(wants(t, 0, "replay", "--json", "--what-if", "collision=prefix-always", "--what-if", "trust_hints.notes=true", path)))
	if len(doc.Rows) != int(doc.Otherwise) || len(doc.WhatIf) != 2 {
		t.Errorf("%+v", doc)
	}
	wants(t, exitUsage, "replay", "--what-if", "weather=fine", path)
	wants(t, exitUsage, "replay", "--all", "--what-if", "collision=prefix-always", path)
}
