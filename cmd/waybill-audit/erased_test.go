package main

import (
	"strings"
	"testing"
	"time"

	"waybill/replay/replaytest"
)

// What is shown of a call ends with who erased what was kept of it; the log alone
// says so.
func TestShowSaysWhoErasedWhatWasKeptOfACall(t *testing.T) {
	l := replaytest.Kept()
	path := file(t, l)
	for call, by := range map[string]struct {
		seq  int64
		name string
	}{
		"local/hung":    {38, "oncall"},
		"local/first":   {42, "oncall"},
		"local/asks":    {42, "oncall"},
		"local/second":  {54, "payload_retention"},
		"local/wb-late": {},
	} {
		out, _ := wants(t, 0, "show", "--call", call, path)
		if by.seq == 0 {
			if strings.Contains(out, "\nerased: ") {
				t.Errorf("%s:\n%s", call, out)
			}
			continue
		}
		at := time.Unix(0, l.Events()[by.seq-1].Time).UTC().Format(time.RFC3339Nano)
		want := "\nerased: what was kept of call " + call + ", at " + at + " by " + by.name + " (event " + itoa(by.seq) + ")\n"
		if !strings.HasSuffix(out, want) {
			t.Errorf("%s does not end with %s:\n%s", call, want, out)
		}
	}
	for _, args := range [][]string{{"--seq", "22"}, {"--seq", "25"}} {
		if out, _ := wants(t, 0, append(append([]string{"show"}, args...), path)...); !strings.Contains(out, "(event 42)") {
			t.Errorf("%v:\n%s", args, out)
		}
	}
	if out, _ := wants(t, 0, "show", "--json", "--call", "local/first", path); strings.Contains(out, "erased:") {
		t.Error("--json prints more than envelopes")
	}
	if out, _ := wants(t, 0, "show", "--call", "local/call-1", file(t, replaytest.Calls(60))); strings.Contains(out, "erased:") {
		t.Errorf("of a call that was never kept:\n%s", out)
	}
}
