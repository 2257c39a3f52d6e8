package events_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"waybill/domain"
	"waybill/events"
)

var gate = domain.At{Peer: "gate", Incarnation: 3}

// sealed is the envelope of an event, which must open to the same one.
func sealed(t *testing.T, d domain.Data, cause int64) []byte {
	t.Helper()
	b, err := events.Seal("local-0a1b2c3d", domain.Event{Seq: 24, Time: 1, Mono: 1, Cause: cause, Data: d})
	if err != nil {
		t.Fatal(err)
	}
	_, e, err := events.Open(b)
	if err != nil || fmt.Sprintf("%#v", e.Data) != fmt.Sprintf("%#v", d) {
		t.Fatalf("opened as %#v, error %v", e.Data, err)
	}
	return b
}

// TestEvidenceOfAProbeThatFailed is the body, where there was one.
func TestEvidenceOfAProbeThatFailed(t *testing.T) {
	d := domain.ProbeFailed{At: gate, RequestID: 2, Class: domain.ClassUnavailable, Status: 503, Reason: "no message in it", Frame: domain.RefTo([]byte("<html>"))}
	if ref, ok := events.EvidenceOf(d); !ok || ref != d.Frame {
		t.Errorf("%+v, %t", ref, ok)
	}
	if b := sealed(t, d, 0); !bytes.Contains(b, []byte(`"status":503`)) || !bytes.Contains(b, []byte(`"frame":{"digest"`)) {
		t.Errorf("%s", b)
	}
	d.Frame, d.Status = domain.Ref{}, 0
	if ref, ok := events.EvidenceOf(d); ok {
		t.Errorf("there was no body, and %+v is cited", ref)
	}
	if b := sealed(t, d, 0); bytes.Contains(b, []byte("frame")) || bytes.Contains(b, []byte("status")) {
		t.Errorf("%s", b)
	}
}

// TestWhatOnlyHTTPHasIsLeftOut: events of a process are written as they were before
// there were endpoints.
func TestWhatOnlyHTTPHasIsLeftOut(t *testing.T) {
	call := domain.CallID{Host: "local", ID: "c"}
	for _, c := range []struct {
		plain, http domain.Data
		cause       int64
		members     []string
	}{
		{domain.ExchangeFailed{At: gate, RequestID: 1, Written: "no", Code: domain.CodeTransportLost},
			domain.ExchangeFailed{At: gate, RequestID: 1, Call: call.CallKey(), Written: "no", Code: domain.CodeUnauthorized, Status: 401, Reason: "r"}, 0, []string{`"status"`, `"reason"`}},
		{domain.ProbeIssued{At: gate, Capabilities: []byte("{}")}, domain.ProbeIssued{At: gate, Capabilities: []byte("{}"), Context: "alice"}, 9, []string{`"context"`}},
		{domain.HealthRequested{At: gate, Capabilities: []byte("{}")}, domain.HealthRequested{At: gate, Capabilities: []byte("{}"), Context: "alice"}, 9, []string{`"context"`}},
	} {
		plain, http := sealed(t, c.plain, c.cause), sealed(t, c.http, c.cause)
		for _, m := range c.members {
			if bytes.Contains(plain, []byte(m)) || !bytes.Contains(http, []byte(m)) {
				t.Errorf("%s:\n%s\n%s", m, plain, http)
			}
		}
	}
}

// mostReason is what an observation over HTTP may say in words: whoever reports one
// keeps to less. A byte takes six in JSON at worst.
const mostReason = 9_000

// TestReasonsFit: the longest reasons that an observation can have, in the most room
// that JSON can take for them; and what is decided from them repeats only their
// beginning.
func TestReasonsFit(t *testing.T) {
	name := strings.Repeat("n", 63)
	reason := strings.Repeat("\x01", mostReason)
	c := newCrowd(t)
	p := peerOf(name)
	p.Transport, p.Endpoint, p.Attempts = domain.TransportHTTP, "https://n.example/mcp", 1
	c.start(domain.Config{Node: "n", Collision: domain.PrefixOnCollision, Separator: "/", Inflight: 8, Peers: []domain.PeerConfig{p}, Partial: true})
	at := domain.At{Peer: name, Incarnation: 1}
	fails := func(method string, code domain.Code, status int) {
		c.see(domain.ExchangeFailed{At: at, RequestID: c.last[name+"  "+method].RequestID, Written: "maybe", Code: code, Status: status, Reason: reason}, "")
	}
	fails(domain.MethodListen, domain.CodeHTTPStatus, 500)
	fails(domain.MethodList, domain.CodeTransportLost, 0)
	c.see(domain.ListDue{At: at}, "")
	c.now += 10_000_000_000
	c.see(domain.ToolsRead{Reads: 1}, "")
	fails(domain.MethodList, domain.CodeUnauthorized, 401)
	c.see(domain.PeerExited{At: at, Cause: "unreachable"}, "")
	for range 2 {
		at.Incarnation++
		c.see(domain.PeerSpawned{At: at}, "")
		x := c.last[name+"  "+domain.MethodDiscover]
		c.see(domain.ProbeFailed{At: x.At, RequestID: x.RequestID, Class: domain.ClassUnavailable, Status: 503, Reason: reason, Frame: domain.RefTo([]byte("x"))}, "x")
		c.see(domain.PeerExited{At: at, Cause: "stopped"}, "")
	}
	c.largest("exchange.failed", "subscription.closed", "catalog.refused", "probe.failed", "era.refused", "peer.restarted", "peer.quarantined")
	if c.size["probe.failed"] < 54_000 || c.size["exchange.failed"] < 54_000 {
		t.Errorf("these are not the worst cases: %v", c.size)
	}
	for _, kind := range []string{"subscription.closed", "catalog.refused", "era.refused", "peer.quarantined"} {
		if c.size[kind] < 6_000 || c.size[kind] > 12_000 {
			t.Errorf("%s has %d bytes", kind, c.size[kind])
		}
	}
}
