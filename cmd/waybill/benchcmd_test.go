package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// waybill bench measures every way for every number of callers, and leaves nothing.
func TestBenchMeasuresAllWaysAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	var out, errs bytes.Buffer
	if code := run([]string{"bench", "--callers", "1,3", "--for", "100ms", "--rounds", "1", "--dir", dir, "--json"}, &out, &errs); code != exitDone {
		t.Fatalf("exit %d: %s%s", code, &out, &errs)
	}
	doc := decode[struct{ Rows []benchRow }](t, out.String())
	if len(doc.Rows) != 2 {
		t.Fatalf("%+v", doc)
	}
	for i, r := range doc.Rows {
		for way, m := range map[string]int{"bare": r.Bare.Calls, "in process": r.InProcess.Calls, "over TCP": r.OverTCP.Calls} {
			if m == 0 {
				t.Errorf("%d callers: nothing was called %s", r.Callers, way)
			}
		}
		s := r.Steps
		if r.Callers != []int{1, 3}[i] || s.Append <= 0 || s.Decide <= 0 || s.Commit < 2 || s.NATS+s.Decide+s.Append+s.Peer > 2*r.InProcess.Mean {
			t.Errorf("%+v", r)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestBenchRefusesWhatMeasuresNothing(t *testing.T) {
	for _, args := range [][]string{{"--callers", "0"}, {"--for", "1ms"}, {"--rounds", "0"}, {"--callers", "2000"}, {"--dir", "/nowhere/at/all"}} {
		var out, errs bytes.Buffer
		if code := run(append([]string{"bench"}, args...), &out, &errs); code != exitConfig || !strings.Contains(errs.String(), args[0]) && args[0] != "--dir" {
			t.Errorf("%q: exit %d, %s", args, code, &errs)
		}
	}
}
