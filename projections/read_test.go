package projections_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"

	"waybill/domain"
	"waybill/projections"
)

func TestEachCallHasARowThatSaysHowItEnded(t *testing.T) {
	list := makeHistory(t)
	v := open(t, viewsFile(t), len(list))
	defer v.Close()
	feed(t, v, list, someAtOnce)
	calls, err := v.Calls(t.Context(), 100)
	noErr(t, err)
	var got []string
	for i, c := range calls {
		got = append(got, fmt.Sprintf("%s %s %s: %s %s %s, %s %s", c.Call, c.Host, c.Tool, c.Status, c.Code, c.Ran, c.Peer, c.Local))
		if i > 0 && c.ReceivedSeq >= calls[i-1].ReceivedSeq {
			t.Errorf("call %d was received at %d, the one before it at %d: want the newest first", i, c.ReceivedSeq, calls[i-1].ReceivedSeq)
		}
		end := list[c.SettledSeq-1]
		if kind := end.Data.Kind(); end.Call() != c.Call || kind != "call.settled" && kind != "call.refused" {
			t.Errorf("call %s ended at %d, which is %s of %s", c.Call, c.SettledSeq, kind, end.Call())
		}
	}
	want := []string{
		"stranger/h3 stranger sum: refused not_allowed no,  ", "local/h2 local sum: protocol_error unauthorized no, beta sum",
		"local/h1 local far: complete  yes, alpha far", "local/g local alpha/search: protocol_error peer_error maybe, alpha search",
		"local/c local sum: cancelled shutting_down maybe, beta sum",
		"local/f local search: refused name_moved no,  ",
		"local/e local alpha_only: lost service_restarted maybe, alpha alpha_only",
		"local/d local sum: lost transport_lost maybe, gamma sum",
		"local/wb-1 local : refused bad_request no,  ",
		"other/b other sum: timed_out timed_out maybe, gamma sum",
		"local/b local beta/search: tool_error tool_error yes, beta search",
		"local/a local search: complete  yes, alpha search",
		"local/early local search: refused overloaded no,  ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("calls are\n%q\nwant\n%q", got, want)
	}
	few, err := v.Calls(t.Context(), 2)
	noErr(t, err)
	if !slices.Equal(few, calls[:2]) {
		t.Errorf("the last two are %+v", few)
	}
}

func TestRowsOfCallsFollowTheirEvents(t *testing.T) {
	list := makeHistory(t)
	v := open(t, viewsFile(t), len(list))
	defer v.Close()
	want := map[string]projections.Call{}
	reused := 0
	for n, e := range list {
		feed(t, v, list[:n+1], oneByOne)
		c := want[e.Call()]
		switch d := e.Data.(type) {
		case domain.CallReceived:
			if c.Call != "" {
				reused++
			}
			c = projections.Call{Call: e.Call(), Host: d.Host, Tool: d.Tool, ReceivedSeq: e.Seq}
		case domain.CallRouted:
			c.Peer, c.Local = d.Peer, d.Local
		case domain.CallRefused:
			c.Status, c.Code, c.Ran, c.SettledSeq = "refused", string(d.Code), "no", e.Seq
		case domain.CallSettled:
			c.Status, c.Code, c.Ran, c.SettledSeq = string(d.Status), string(d.Code), string(d.Ran), e.Seq
		default:
			continue
		}
		want[e.Call()] = c
		calls, err := v.Calls(t.Context(), 100)
		noErr(t, err)
		if len(calls) != len(want) || !slices.Contains(calls, c) {
			t.Fatalf("after event %d (%s) the %d rows are %+v, want %d with %+v", e.Seq, e.Data.Kind(), len(calls), calls, len(want), c)
		}
	}
	if reused == 0 {
		t.Error("no id was used again after a refusal")
	}
}

func TestEmptyViewsHaveListsAndNoNulls(t *testing.T) {
	path := viewsFile(t)
	v := open(t, path, 0)
	defer v.Close()
	report, err := v.Report(t.Context())
	noErr(t, err)
	b, err := json.Marshal(report)
	noErr(t, err)
	if string(b) != `{"log":"`+logID+`","peers":[],"namespaces":[],"collisions":[]}` {
		t.Errorf("report is %s", b)
	}
	tools, err := v.Tools(t.Context(), "")
	noErr(t, err)
	if b, err = json.Marshal(tools); err != nil || string(b) != `{"Context":"default","Generation":0,"Digest":"","Tools":[],"Stale":[],"Missing":[]}` {
		t.Errorf("tools: %s, %v", b, err)
	}
	info, err := os.Stat(path)
	noErr(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v", info.Mode())
	}
}

// Whoever reads while batches are written sees the end of a batch, whole.
func TestReadersSeeWholeBatchesBesideTheWriter(t *testing.T) {
	list := makeHistory(t)
	whole := map[string]bool{}
	for n := 0; n <= len(list); n++ {
		b, err := json.Marshal(folded(list, n).Report(logID))
		noErr(t, err)
		whole[string(b)] = true
	}
	v := open(t, viewsFile(t), len(list))
	defer v.Close()
	written, readers := make(chan struct{}), make(chan error, 3)
	for range cap(readers) {
		go func() { readers <- readUntil(v, written, whole) }()
	}
	feed(t, v, list, oneByOne)
	close(written)
	for range cap(readers) {
		noErr(t, <-readers)
	}
}

func readUntil(v *projections.Views, written <-chan struct{}, whole map[string]bool) error {
	for done := false; !done; {
		select {
		case <-written:
			done = true // and look once more
		default:
		}
		r, err := v.Report(background)
		if err != nil {
			return err
		}
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if !whole[string(b)] {
			return fmt.Errorf("a reader saw %s, which the state never was", b)
		}
		if _, err := v.Tools(background, ""); err != nil {
			return err
		}
		if _, err := v.Calls(background, 5); err != nil {
			return err
		}
	}
	return nil
}

// Views that hold the whole log are read as they are: no command need fold it.
func TestViewsThatAreUpToDateNeedNoFold(t *testing.T) {
	list, path := makeHistory(t), viewsFile(t)
	last := int64(len(list))
	v := open(t, path, len(list))
	if v.Holds(1) {
		t.Error("empty views hold an event")
	}
	feed(t, v, list, allAtOnce)
	want, err := v.Report(t.Context())
	noErr(t, err)
	noErr(t, v.Close())
	again := open(t, path, len(list))
	defer again.Close()
	got, err := again.Report(t.Context())
	noErr(t, err)
	if !again.Holds(last) || again.Holds(last+1) || again.Position() != 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("holds %t, position %d: %+v", again.Holds(last), again.Position(), got)
	}
}
