package projections_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"waybill/domain"
	"waybill/events"
)

const logID = "local-0a1b2c3d"

var background = context.Background()

// history makes a log of three lives of a service in memory: what peers and
// hosts do is written here, what follows is decided by domain.
type history struct {
	t     testing.TB
	state *domain.State
	list  []domain.Event
	now   int64
	tools map[string][]string // what each peer lists
	sent  []domain.Send       // tool calls without an end
	mute  bool                // peers do not answer
	keeping
	reaching
}

// tell records an observation and what follows, and lets the peers answer.
func (h *history) tell(d domain.Data, evidence []byte) {
	h.t.Helper()
	h.now += 1_000_000_000
	steps := h.state.Step(domain.Event{Time: h.now, Mono: h.now, Data: d, Evidence: evidence})
	for _, e := range steps {
		h.list = append(h.list, h.sealed(e))
	}
	for _, e := range steps {
		for _, effect := range domain.Effects(e) {
			h.act(effect)
		}
	}
}

// sealed is the event as a reader of a log has it.
func (h *history) sealed(e domain.Event) domain.Event {
	h.t.Helper()
	b, err := events.Seal(logID, e)
	if err != nil {
		h.t.Fatal(err)
	}
	_, again, err := events.Open(b)
	if err != nil {
		h.t.Fatal(err)
	}
	again.Evidence = e.Evidence
	return again
}

func (h *history) act(effect domain.Effect) {
	if h.mute {
		return
	}
	switch x := effect.(type) {
	case domain.Launch:
		h.tell(domain.PeerSpawned{At: x.At, PID: h.pid(x.Peer)}, nil)
	case domain.Stop:
		if h.web[x.Peer] {
			h.tell(domain.PeerExited{At: x.At, Cause: "stopped"}, nil)
		}
	case domain.Send:
		switch x.Method {
		case domain.MethodDiscover:
			if h.fails(x) {
				return
			}
			f := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}}`, x.RequestID)
			h.tell(domain.ProbeAnswered{At: x.At, Frame: domain.RefTo(f)}, f)
		case "tools/list":
			f := h.listed(x)
			h.tell(domain.CatalogListed{At: x.At, Context: x.Context, RequestID: x.RequestID, Frame: domain.RefTo(f)}, f)
		case domain.MethodListen:
			h.acknowledge(x)
		case "tools/call":
			h.sent = append(h.sent, x)
		}
	}
}

func (h *history) listed(x domain.Send) []byte {
	if h.failing == x.Peer {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"no"}}`, x.RequestID)
	}
	var list []string
	for _, n := range h.tools[x.Peer+x.Context] {
		words := h.words[x.Peer]
		if words == "" {
			words = fmt.Sprintf("of %s %d", x.Peer, x.Incarnation)
		}
		list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"description":%q}`, n, words))
	}
	scope := domain.ScopePublic
	if h.private {
		scope = domain.ScopePrivate
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","tools":[%s],"ttlMs":0,"cacheScope":%q}}`,
		x.RequestID, strings.Join(list, ","), scope)
}

// start opens a life with the named peers.
func (h *history) start(policy string, peers ...string) {
	h.t.Helper()
	c := domain.Config{Node: "local", Collision: policy, Separator: "/", Inflight: 10, Partial: h.rules != nil, Hosts: h.hosts}
	for _, n := range peers {
		p := domain.PeerConfig{Name: n, Transport: "stdio", Command: n, Pin: "pinned", LegacyRevisions: []string{}, ProbeTimeout: 1000,
			LegacyProbeTimeout: 1000, CallTimeout: 1000, Capabilities: []byte("{}"), Repeatable: []string{}, Warnings: []string{"mind " + n}}
		if n == "unpinned" {
			p.Refusal, p.RefusalReason, p.Pin = domain.CodeNotPinned, "run waybill pin", ""
		}
		p.Lists, p.Contexts = h.rules, h.contexts[n]
		h.endpoint(&p)
		c.Peers = append(c.Peers, p)
	}
	b, err := domain.EncodeConfig(c)
	if err != nil {
		h.t.Fatal(err)
	}
	h.tell(domain.ServiceStarted{Version: "test", Rules: domain.RulesVersion}, nil)
	h.tell(domain.ConfigLoaded{Config: domain.RefTo(b), Peers: len(peers)}, b)
}

func (h *history) call(host, id, tool, problem string) {
	h.tell(domain.CallReceived{CallID: domain.CallID{Host: host, ID: id}, Tool: tool, Problem: problem,
		Arguments: domain.Payload{Size: 2, HMAC: "00"}}, nil)
}

// next takes the oldest tool call that has no end.
func (h *history) next() domain.Send {
	h.t.Helper()
	if len(h.sent) == 0 {
		h.t.Fatal("no call was sent")
	}
	s := h.sent[0]
	h.sent = h.sent[1:]
	return s
}

func (h *history) answer(f domain.Facts) {
	s := h.next()
	host, id, _ := strings.Cut(s.Call, "/")
	h.tell(domain.CallAnswered{CallID: domain.CallID{Host: host, ID: id}, At: s.At, RequestID: s.RequestID, Facts: f,
		Result: domain.Payload{Size: 2, HMAC: "00"}}, nil)
}

// makeHistory makes the log that the tests share: collisions that come and go,
// names that move, peers that leave the configuration or end, calls of each
// outcome, a crash, lists that change while the service is at work, tools in
// quarantine, contexts, and a configuration that is rejected.
func makeHistory(t testing.TB) []domain.Event {
	t.Helper()
	h := &history{t: t, state: domain.NewState(), now: 1_700_000_000_000_000_000,
		tools: map[string][]string{"alpha": {"search", "alpha_only"}, "beta": {"search", "beta_only"}, "gamma": {"sum"}}}
	h.call("local", "early", "search", "")
	h.start(domain.PrefixOnCollision, "alpha", "beta", "gamma", "unpinned")
	h.call("local", "a", "search", "")
	h.answer(domain.Facts{Kind: domain.FactResult, ResultType: "complete"})
	h.call("local", "b", "beta/search", "")
	h.call("other", "b", "sum", "")
	h.answer(domain.Facts{Kind: domain.FactResult, ResultType: "complete", IsError: true})
	s := h.next()
	h.tell(domain.DeadlinePassed{At: s.At, RequestID: s.RequestID}, nil)
	h.call("local", "c", "none", "")
	h.call("local", "wb-1", "", "the request names no tool")
	h.call("local", "d", "sum", "")
	s = h.next()
	h.tell(domain.ExchangeFailed{At: s.At, RequestID: s.RequestID, Written: "maybe", Code: domain.CodeTransportLost}, nil)
	h.tell(domain.PeerExited{At: s.At, Status: 3, Cause: "exited"}, nil)
	h.tell(domain.IntakeShed{Count: 4, Code: domain.CodeOverloaded}, nil)
	h.call("local", "e", "alpha_only", "") // under way when the service dies
	h.sent = nil

	h.tools["beta"] = []string{"search", "sum"}
	h.start(domain.PrefixOnCollision, "beta", "gamma") // alpha is gone: search moves
	h.call("local", "f", "search", "")
	h.now += domain.MovedWindow
	h.call("local", "c", "sum", "") // refused before, so the id is free
	h.tell(domain.NoiseCounted{At: domain.At{Peer: "beta", Incarnation: 2}, Kinds: []domain.NoiseCount{{What: "blank", Count: 1, Bytes: 2}}}, nil)
	h.sent = nil
	h.tell(domain.ServiceStopped{Reason: "test"}, nil)

	h.tools["gamma"] = nil
	h.start(domain.PrefixAlways, "alpha", "beta", "gamma")
	h.call("local", "g", "alpha/search", "")
	h.answer(domain.Facts{Kind: domain.FactError, ErrorCode: -32000})
	h.tell(domain.ServiceStopped{Reason: "test"}, nil)
	h.keepLists()
	h.endpoints()
	h.mute = true
	h.start(domain.PrefixOnCollision, "gamma") // whose peer never answers
	h.mute = false
	h.start(domain.RejectOnCollision, "alpha", "beta")
	h.wantAll()
	return h.list
}

// wantAll holds the history to its purpose: it has what views are made from.
func (h *history) wantAll() {
	h.t.Helper()
	got := map[string]bool{}
	for _, e := range h.list {
		got[e.Data.Kind()] = true
	}
	for _, kind := range []string{"namespace.merged", "collision.decided", "name.moved", "config.rejected", "peer.refused", "catalog.accepted",
		"call.routed", "call.refused", "call.settled", "call.abandoned", "peer.exited", "service.stopped", "intake.shed", "noise.counted",
		"cache.decided", "list.changed", "list.deferred", "list.due", "tools.read", "tool.changed", "tool.approved", "subscription.requested",
		"subscription.opened", "subscription.closed", "catalog.refused", "name.flagged", "probe.failed", "era.refused", "peer.restarted",
		"call.held", "call.resent", "tool.rejected"} {
		if !got[kind] {
			h.t.Fatalf("the history has no %s", kind)
		}
	}
	if !slices.IsSortedFunc(h.list, func(a, b domain.Event) int { return int(a.Seq - b.Seq) }) || h.list[len(h.list)-1].Seq != int64(len(h.list)) {
		h.t.Fatal("the history is no log")
	}
}
