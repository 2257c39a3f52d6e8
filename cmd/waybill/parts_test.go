package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/domain"
	"waybill/harness"
	"waybill/replay/explain"
)

// A result that does not fit a message is fetched in parts, whole, as long as it is held;
// without it the outcome is told all the same. An explanation is told over NATS as it is
// from the log, to the host whose call it is alone.
func TestALargeResultIsFetchedInPartsAndACallIsExplained(t *testing.T) {
	w := newWorld(t, "hosts: {local: {}, bob: {}}\n", peerYAML{name: "a", mode: "modern"}).ready()
	s := w.serve()
	big := decode[reply](t, w.must(exitDone, "call", "--json", "--call-id", "large", "big"))
	if big.Code == nil || *big.Code != "result_too_large" {
		t.Fatalf("%+v", big)
	}
	whole := decode[reply](t, w.must(exitDone, "calls", "outcome", "large"))
	want := `{"resultType":"complete","content":[{"type":"text","text":"` + strings.Repeat("x", 2<<20) + `"}]}`
	if whole.Code != nil || whole.Size != 0 || whole.Status != "complete" || whole.CallID != "large" || string(whole.Result) != want {
		t.Errorf("code %v, size %d, status %s, %d bytes of %d", whole.Code, whole.Size, whole.Status, len(whole.Result), len(want))
	}
	live := decode[explain.Explanation](t, w.must(exitDone, "calls", "explain", "--json", "large"))
	if len(live.Sentences) < 5 || live.CallID != "large" || live.Outcome.Status != "complete" {
		t.Errorf("%+v", live)
	}
	if code, _, errs := w.run("calls", "explain", "--host", "bob", "large"); code != exitRefused || !strings.Contains(errs, "unknown_call") && !strings.Contains(errs, "no such call") {
		t.Errorf("another host's call is explained: exit %d, %s", code, errs)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	ended := decode[explain.Explanation](t, w.must(exitDone, "calls", "explain", "--json", "large"))
	if a, b := fmt.Sprint(live.Sentences), fmt.Sprint(ended.Sentences); a != b {
		t.Errorf("over NATS:\n%s\nfrom the log:\n%s", a, b)
	}
	s = w.serve() // it holds nothing of the life before
	code, out, errs := w.run("calls", "outcome", "large")
	left := decode[reply](t, out)
	if code != exitDone || left.Status != "complete" || string(left.Result) != "null" {
		t.Errorf("exit %d, %+v, %s", code, left, errs)
	}
	s.stop(syscall.SIGTERM)
}

// What is held of large results is bounded in bytes and in time.
func TestPartsAreBounded(t *testing.T) {
	now := time.Unix(0, 0)
	p := newParts()
	p.now = func() time.Time { return now }
	id := func(n int) domain.CallID { return domain.CallID{Host: "h", ID: fmt.Sprint(n)} }
	put := func(n, size int) { p.put(id(n), harness.Reply{Result: bytes.Repeat([]byte{'x'}, size)}) }
	held := func(n int) bool { _, ok := p.get(id(n)); return ok }
	put(0, partsBytes+1)
	for n := 1; n <= 10; n++ {
		put(n, partsBytes/8)
	}
	put(10, partsBytes/8) // again
	for n := range 11 {
		if want := n > 2; held(n) != want {
			t.Errorf("%d is held: %t", n, !want)
		}
	}
	if len(p.whole) != 8 || len(p.order) != 8 || p.size > partsBytes {
		t.Errorf("%d held, %d in order, %d bytes", len(p.whole), len(p.order), p.size)
	}
	other := domain.CallID{Host: "quiet", ID: "q"}
	p.put(other, harness.Reply{Result: []byte("small")})
	for n := 20; n < 40; n++ { // a host that holds much makes room by itself
		put(n, partsBytes/8)
	}
	if _, ok := p.get(other); !ok || !held(39) {
		t.Error("a host drove the result of another away")
	}
	p.drop(other)
	now = now.Add(partsTime + 1)
	if held(39) {
		t.Error("held beyond its time")
	}
	put(11, 1)
	if len(p.whole) != 1 || p.size != 1 {
		t.Errorf("%d held, %d bytes", len(p.whole), p.size)
	}
}

func TestReplyIsPutTogetherAsItWouldHaveBeen(t *testing.T) {
	r := harness.Reply{CallID: "x", Status: domain.StatusToolError, Code: domain.CodePeerError, Ran: domain.RanYes, Seqs: []int64{1}, Error: []byte(`{"code":1,"message":"m"}`)}
	for _, reply := range []harness.Reply{r, {CallID: "y", Status: domain.StatusComplete, Ran: domain.RanYes, Seqs: []int64{2}, Result: []byte(`{"n":9007199254740993}`)}} {
		x := largeOf(reply)
		got, err := withWhole(reply.TooLarge().Encode(), x.of, x.bytes)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := asMap(t, got), asMap(t, reply.Encode()); fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("%v\nwant %v", a, b)
		}
	}
}

func asMap(t *testing.T, b []byte) map[string]json.RawMessage {
	t.Helper()
	return decode[map[string]json.RawMessage](t, string(b))
}
