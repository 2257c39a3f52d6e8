package main

import (
	"fmt"
	"strings"
	"testing"

	"waybill/replay/replaytest"
)

func TestExportWritesTheExactBytes(t *testing.T) {
	l := replaytest.Calls(1200) // more than are read at once
	path := file(t, l)
	var want strings.Builder
	for _, r := range l.Rows {
		fmt.Fprintf(&want, "%s\n", r.Bytes)
	}
	for _, args := range [][]string{{"export", path}, {"export", "--json", path}} {
		if out, errs := wants(t, 0, args...); out != want.String() || errs != "" {
			t.Errorf("%q: %d bytes, want %d; %s", args, len(out), want.Len(), errs)
		}
	}
	change(t, path, `UPDATE events SET bytes = CAST(bytes || x'0a' AS BLOB) WHERE seq = 7`)
	out, errs := wants(t, 20, "export", path)
	if strings.Count(out, "\n") != 6 || !strings.Contains(errs, "event 7") {
		t.Errorf("%d lines, %s", strings.Count(out, "\n"), errs)
	}
}

// linesOf is the export of a log.
func linesOf(l *replaytest.Log) (out []string) {
	for _, r := range l.Rows {
		out = append(out, string(r.Bytes)+"\n")
	}
	return out
}

func TestCopyThatIsTheSameMayBeginLateAndEndEarly(t *testing.T) {
	l := replaytest.Calls(1200)
	path, lines := file(t, l), linesOf(l)
	for _, c := range []struct {
		from, to int
		says     string
	}{
		{1, 1200, "events 1 to 1200 are the same\n"},
		{700, 1200, "events 700 to 1200 are the same; those before 700 are not in it, as when the head of a stream aged out\n"},
		{1, 1190, "events 1 to 1190 are the same; it ends 10 events before the log\n"},
		{1200, 1200, "events 1200 to 1200 are the same; those before 1200"},
	} {
		copied := textFile(t, strings.Join(lines[c.from-1:c.to], ""))
		out, _ := wants(t, 0, "verify", "--against", copied, path)
		if !strings.Contains(out, c.says) {
			t.Errorf("%d to %d: printed %s", c.from, c.to, out)
		}
		out, _ = wants(t, 0, "verify", "--json", "--against", copied, path)
		d := document[verifyDoc](t, out).Copy
		if d == nil || d.First != int64(c.from) || d.Last != int64(c.to) || d.Behind != int64(1200-c.to) {
			t.Errorf("%d to %d: %+v", c.from, c.to, d)
		}
	}
	wants(t, 0, "verify", "--against", textFile(t, strings.TrimSuffix(strings.Join(lines, ""), "\n")), path)
}

// TestCopyThatDiffersNamesTheFirstEvent changes a copy in every place, in every
// way.
func TestCopyThatDiffersNamesTheFirstEvent(t *testing.T) {
	l := replaytest.Small()
	path, lines := file(t, l), linesOf(l)
	finds := func(what string, seq int, lines ...string) {
		t.Helper()
		out, _ := wants(t, 20, "verify", "--json", "--against", textFile(t, strings.Join(lines, "")), path)
		if got := where(t, out); got != fmt.Sprintf("event %d", seq) {
			t.Errorf("%s %d: %s", what, seq, out)
		}
	}
	with := func(i int, line ...string) []string {
		return append(append(append([]string{}, lines[:i]...), line...), lines[i+1:]...)
	}
	for i, line := range lines {
		finds("changed", i+1, with(i, strings.Replace(line, `"specversion":"1.0"`, `"specversion":"1.1"`, 1))...)
		finds("no event", i+2, with(i, line, "gone\n")...)
		finds("twice", i+2, with(i, line, line)...)
		finds("carriage return", i+1, with(i, strings.TrimSuffix(line, "\n")+"\r\n")...)
		finds("too long", i+1, with(i, strings.TrimSuffix(line, "\n")+strings.Repeat(" ", 70_000)+"\n")...)
		if i > 0 && i < len(lines)-1 {
			finds("missing", i+1, with(i)...)
		}
	}
	l = replaytest.Small()
	path = file(t, l.Cut(20))
	finds("more than the log", int(l.Cut(20).Heads[len(l.Cut(20).Heads)-1].Size)+1, lines...)
	wants(t, 20, "verify", "--against", textFile(t, strings.Join(linesOf(replaytest.Calls(600)), "")), path) // another history
}
