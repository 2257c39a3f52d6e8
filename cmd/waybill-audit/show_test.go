package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
	"waybill/replay/replaytest"
)

func TestShowPrintsTheExactEnvelopesAsJSON(t *testing.T) {
	l := replaytest.Calls(1200) // more than it reads at once
	path := file(t, l)
	var all, first, call bytes.Buffer
	for i, r := range l.Rows {
		all.Write(append(bytes.Clone(r.Bytes), '\n'))
		if i == 8 {
			first.Write(append(bytes.Clone(r.Bytes), '\n'))
		}
		if r.Call == "local/call-7" {
			call.Write(append(bytes.Clone(r.Bytes), '\n'))
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, all.String()},
		{[]string{"--seq", "9"}, first.String()},
		{[]string{"--call", "local/call-7"}, call.String()},
	} {
		if out, errs := wants(t, 0, append([]string{"show", "--json", path}, c.args...)...); out != c.want || errs != "" {
			t.Errorf("%q: %d bytes are printed, want %d; %s", c.args, len(out), len(c.want), errs)
		}
	}
	if n := strings.Count(call.String(), "\n"); n != 4 {
		t.Errorf("a call has %d events", n)
	}
}

func TestShowIndentsForPeople(t *testing.T) {
	l := replaytest.Small()
	out, _ := wants(t, 0, "show", file(t, l))
	dec := jsontext.NewDecoder(strings.NewReader(out))
	for _, r := range l.Rows {
		v, err := dec.ReadValue()
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Compact(); err != nil || !bytes.Equal(v, r.Bytes) {
			t.Errorf("printed %s, error %v", v, err)
		}
	}
	if !strings.Contains(out, "\n  \"type\": \"era.determined\"") {
		t.Errorf("not indented:\n%.300s", out)
	}
}

func TestShowPrintsTheEvidenceAnEventCites(t *testing.T) {
	l := replaytest.Small()
	path := file(t, l)
	for _, e := range l.Events() {
		out, _ := wants(t, 0, "show", "--evidence", "--seq", itoa(e.Seq), path)
		if e.Evidence == nil {
			d, rests := e.Data.(domain.EraDetermined)
			if strings.Contains(out, "evidence "+d.Evidence+":\n{") != rests || !rests && strings.Contains(out, "evidence ") {
				t.Errorf("event %d rests on evidence: %t:\n%s", e.Seq, rests, out)
			}
			continue
		}
		if want := "evidence " + domain.RefTo(e.Evidence).Digest + ":\n" + string(e.Evidence) + "\n"; !strings.HasSuffix(out, want) {
			t.Errorf("event %d does not end with %s:\n%s", e.Seq, want, out)
		}
	}
}

func itoa(n int64) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// TestShowKeepsATerminalSafe shows evidence that a peer wrote to do more than be
// read.
func TestShowKeepsATerminalSafe(t *testing.T) {
	for _, bad := range []string{"\x1b]0;gone\x07", "\u009b2J", "\xff\xfe", "a\rb"} {
		l := replaytest.Small().Forge(func(list []domain.Event) []domain.Event {
			for i, e := range list {
				if d, ok := e.Data.(domain.ProbeAnswered); ok {
					d.Frame = domain.RefTo([]byte(bad))
					list[i].Data, list[i].Evidence = d, []byte(bad)
				}
				if d, ok := e.Data.(domain.EraDetermined); ok {
					d.Evidence = domain.RefTo([]byte(bad)).Digest
					list[i].Data = d
				}
			}
			return list
		})
		out, _ := wants(t, 0, "show", "--evidence", file(t, l))
		if strings.Contains(out, bad) || !strings.Contains(out, "evidence "+domain.RefTo([]byte(bad)).Digest+":\n\"") {
			t.Errorf("%q is not quoted", bad)
		}
	}
}

// TestShowOfWhatIsAlteredSaysSo is not verify's work, but must not pass for an
// internal error.
func TestShowOfWhatIsAlteredSaysSo(t *testing.T) {
	l := replaytest.Small()
	for _, query := range []string{
		`DELETE FROM evidence`,
		`UPDATE events SET bytes = CAST(replace(CAST(bytes AS TEXT), '"digest":"', '"digest":"0') AS BLOB) WHERE seq = 2`,
		`UPDATE events SET bytes = x'7b' WHERE seq = 2`,
		`UPDATE events SET bytes = x'7b7d' WHERE seq = 2`,
	} {
		path := file(t, l)
		change(t, path, query)
		wants(t, 20, "show", "--evidence", "--seq", "2", path)
	}
}
