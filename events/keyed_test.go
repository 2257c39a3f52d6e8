package events_test

import (
	"bytes"
	"strings"
	"testing"

	"waybill/domain"
	"waybill/events"
)

// TestWhatKeysAndTracesAddIsLeftOut where there is none, and stands where it always will
// where there is one.
func TestWhatKeysAndTracesAddIsLeftOut(t *testing.T) {
	id := domain.CallID{Host: "local", ID: "c"}
	for _, c := range []struct {
		plain, keyed domain.Data
		cause        int64
		adds         string
	}{
		{domain.CallReceived{CallID: id, Tool: "t"},
			domain.CallReceived{CallID: id, Tool: "t", Kept: true, OutcomeOnly: true, Key: "aa", Same: "bb", Trace: domain.Trace{Parent: "00-p", State: "a=b"}}, 0,
			`"kept":true,"idempotency_key":"aa","idempotency_call":"bb","outcome_only":true,"traceparent":"00-p","tracestate":"a=b"}}`},
		{domain.RetentionPassed{Calls: 1}, domain.RetentionPassed{Calls: 1, Outcomes: true}, 0, `"calls":1,"outcomes":true}}`},
		{domain.PayloadsErased{Before: 1}, domain.PayloadsErased{Before: 1, Outcomes: true}, 9, `"calls":0,"outcomes":true}}`},
	} {
		plain, keyed := sealed(t, c.plain, c.cause), sealed(t, c.keyed, c.cause)
		for _, word := range []string{"idempotency", "outcome", "trace"} {
			if bytes.Contains(plain, []byte(word)) {
				t.Errorf("%s has %s", plain, word)
			}
		}
		if !bytes.HasSuffix(keyed, []byte(c.adds)) {
			t.Errorf("%s does not end with %s", keyed, c.adds)
		}
	}
}

// TestAKeyedCallFits: of the longest words there are, in the most room that JSON can
// take for them, and all that follows from it.
func TestAKeyedCallFits(t *testing.T) {
	c := newCrowd(t)
	c.start(domain.Config{Node: "n", Collision: domain.PrefixOnCollision, Separator: "/", Inflight: 8, Peers: []domain.PeerConfig{peerOf("p")}, Partial: true})
	c.lists("p", "", public, tool(strings.Repeat("T", 128), ""))
	d := domain.CallReceived{CallID: domain.CallID{Host: long(1, 63), ID: long(1, 64)}, Tool: strings.Repeat("T", 128), Kept: true, OutcomeOnly: true,
		Key: strings.Repeat("k", 64), Same: strings.Repeat("s", 64), Capabilities: []byte(`{"x":"` + strings.Repeat("x", 2_000) + `"}`),
		Trace: domain.Trace{Parent: strings.Repeat("0", 55), State: strings.Repeat("s", 512)}}
	c.see(d, "")
	d.DuplicateOf, d.ID = d.ID, long(2, 64)
	c.see(d, "")
	d.Same, d.Tool, d.Problem = "", strings.Repeat("\x01", 256), strings.Repeat("\x01", 1_000)
	c.see(d, "")
	d.Problem = ""
	c.see(d, "")
	c.see(domain.RetentionPassed{Calls: 1 << 53, Outcomes: true}, "")
	c.largest("call.received", "call.joined", "call.refused", "payloads.erased", "retention.passed")
	if c.size["call.received"] < 9<<10 || c.size["call.joined"] < 400 || c.size["call.received"] > events.MaxSize/2 {
		t.Errorf("these are not the worst cases: %v", c.size)
	}
}
