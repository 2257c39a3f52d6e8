package explain_test

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
	"waybill/replay/explain"
	"waybill/replay/replaytest"
)

// moved starts a service a second time, with a peer that takes a name over.
func moved() *replaytest.World {
	w := newWorld(nil, twoPeers(domain.PrefixOnCollision))
	s := twoPeers(domain.PrefixOnCollision)
	s.config = replaytest.Config(domain.PrefixOnCollision, "atlas", "notes", "wiki")
	s.peers["atlas"] = &replaytest.Peer{Modern: true, Pages: [][]string{{"search"}}}
	w.Start(s.config, s.peers)
	return w
}

// waitingForInput is a call that asks its host for something.
func waitingForInput() *replaytest.World {
	w := newWorld(func(c *domain.Config) {
		c.Peers[0].Capabilities, c.Peers[0].InputRounds, c.Peers[0].InputWindow = jsontext.Value(`{"elicitation":{}}`), 2, 60_000
	}, onePeer("notes", "search"))
	submit(w, "asks", "search", func(d *domain.CallReceived) { d.Capabilities = jsontext.Value(`{"elicitation":{}}`) })
	at, request, _ := sent(w, "local/asks")
	w.Observe(domain.CallAnswered{CallID: domain.CallID{Host: "local", ID: "asks"}, At: at, RequestID: request,
		Facts: domain.Facts{Kind: domain.FactResult, ResultType: "input_required", Asks: []string{"elicitation.form"}}}, nil)
	return w
}

func goesOnWith(id string, answers *domain.Payload) func(*domain.CallReceived) {
	return func(d *domain.CallReceived) {
		d.DuplicateOf, d.Input, d.RequestState = id, answers, &domain.Payload{Size: 1}
	}
}

// unready is a service none of whose peers has been started yet.
func unready() *replaytest.World {
	w := replaytest.NewWorld()
	begin(w, onePeer("notes", "search").config)
	return w
}

// unprobed is a service whose peer has a name, and has not answered its probe since it
// was started again.
func unprobed() *replaytest.World {
	w := newWorld(nil, onePeer("notes", "search"))
	begin(w, onePeer("notes", "search").config)
	step(w, domain.PeerSpawned{At: domain.At{Peer: "notes", Incarnation: 2}, PID: 7}, nil)
	return w
}

// begin starts a service whose peers do nothing.
func begin(w *replaytest.World, c domain.Config) {
	b, err := domain.EncodeConfig(c)
	if err != nil {
		panic(err)
	}
	step(w, domain.ServiceStarted{Version: "0.1", Rules: domain.RulesVersion}, nil)
	step(w, domain.ConfigLoaded{Config: domain.RefTo(b), Peers: len(c.Peers)}, b)
}

func step(w *replaytest.World, d domain.Data, evidence []byte) {
	e := domain.Event{Time: 1_785_240_000_000_000_000, Data: d, Evidence: evidence}
	if n := len(w.Events); n > 0 {
		e.Time = w.Events[n-1].Time
	}
	w.Events = append(w.Events, w.State.Step(e)...)
}

var refusals = []struct {
	code  domain.Code
	world func() *replaytest.World
	tool  string
	with  func(*domain.CallReceived)
	said  []string // sentences that say where to look
}{
	{domain.CodeBadRequest, moved, "search", func(d *domain.CallReceived) { d.Problem = "the request names no tool" }, nil},
	{domain.CodeUnknownTool, moved, "Search", nil, []string{"near", "listed"}},
	{domain.CodeNameMoved, moved, "search", nil, []string{"moved", "owner_since", "owner_before"}},
	{domain.CodeStaleRoute, moved, "search", func(d *domain.CallReceived) { d.Generation = 1 }, []string{"moved", "owner_since"}},
	{domain.CodeUnknownGen, moved, "search", func(d *domain.CallReceived) { d.Generation = 9 }, []string{"generation"}},
	{domain.CodeDuplicateCall, waitingForInput, "search", func(d *domain.CallReceived) { d.ID, d.DuplicateOf = "wb-1", "asks" }, []string{"renamed", "earlier_call"}},
	{domain.CodeInputMismatch, waitingForInput, "page", goesOnWith("asks", &domain.Payload{Size: 1}), []string{"renamed", "earlier_call"}},
	{domain.CodeNotWaiting, waitingForInput, "search", goesOnWith("nobody", &domain.Payload{Size: 1}), nil},
	{domain.CodeInputExpired, func() *replaytest.World { w := waitingForInput(); w.Pass(120_000); return w }, "search", goesOnWith("asks", &domain.Payload{Size: 1}), []string{"earlier_call"}},
	{domain.CodeAmbiguousOwner, func() *replaytest.World {
		return newWorld(nil, scene{replaytest.Config(domain.PrefixOnCollision, "notes", "wiki", "x"), map[string]*replaytest.Peer{
			"notes": {Modern: true, Pages: [][]string{{"a"}}}, "wiki": {Modern: true, Pages: [][]string{{"a"}}}, "x": {Modern: true, Pages: [][]string{{"wiki/a"}}}}})
	}, "wiki/a", nil, []string{"collision"}},
	{domain.CodePeerUnavailable, func() *replaytest.World {
		w := newWorld(func(c *domain.Config) { c.Peers[0].Attempts, c.Peers[0].Quarantine = 1, 120_000 }, onePeer("notes", "search"))
		w.Observe(domain.PeerExited{At: domain.At{Peer: "notes", Incarnation: 1}, Status: 3, Cause: "exited"}, nil)
		w.Observe(domain.PeerExited{At: domain.At{Peer: "notes", Incarnation: 2}, Status: 3, Cause: "exited"}, nil)
		return w
	}, "search", nil, []string{"owner", "peer_ended", "peer_quarantined", "peer_retry"}},
	{domain.CodeEraUnknown, unprobed, "search", nil, []string{"owner", "peer_starting"}},
	{domain.CodeToolQuarantined, quarantined, "search", nil, []string{"owner", "tool_changed"}},
	{domain.CodeNotAllowed, func() *replaytest.World {
		return newWorld(func(c *domain.Config) {
			c.Hosts = []domain.HostConfig{{Name: "local", Context: domain.DefaultContext, Tools: []string{"a*"}}}
		}, onePeer("notes", "search"))
	}, "search", nil, []string{"host", "owner"}},
	{domain.CodeOverloaded, func() *replaytest.World {
		w := newWorld(func(c *domain.Config) { c.Peers[0].Inflight = 1 }, onePeer("notes", "search"))
		submit(w, "before", "search")
		return w
	}, "search", nil, []string{"room", "room_at_peer"}},
	{domain.CodeNotReady, unready, "search", nil, []string{"no_names", "peer_starting"}},
	{domain.CodeShuttingDown, func() *replaytest.World {
		w := moved()
		w.Observe(domain.ServiceStopped{Reason: "interrupt"}, nil)
		return w
	}, "search", nil, []string{"service_stopped"}},
	{domain.CodeCollisionReject, func() *replaytest.World { return newWorld(nil, twoPeers(domain.RejectOnCollision)) }, "search", nil, []string{"config_rejected", "collision"}},
}

// quarantined is a tool that is not what it was.
func quarantined() *replaytest.World {
	n := 0
	s := onePeer("notes")
	s.peers["notes"].Lists = func(string, int) string {
		n++
		return `"resultType":"complete","ttlMs":500,"cacheScope":"private","tools":[{"name":"search","description":"v` + string(rune('0'+n)) + `","inputSchema":{"type":"object"}}]`
	}
	w := newWorld(func(c *domain.Config) { c.Peers[0].Lists = &domain.ListRules{Interval: 1, Stale: 60_000, Hold: true} }, s)
	w.Pass(1_000)
	w.Observe(domain.ToolsRead{Reads: 1}, nil)
	return w
}

// TestEveryRefusalSaysWhereToLook makes each code of a refusal that the rules give.
func TestEveryRefusalSaysWhereToLook(t *testing.T) {
	for _, c := range refusals {
		t.Run(string(c.code), func(t *testing.T) {
			w := c.world()
			submit(w, "it", c.tool, func(d *domain.CallReceived) {
				if c.with != nil {
					c.with(d)
				}
			})
			l := replaytest.Make(w.Events)
			seq := int64(0)
			for _, r := range l.Rows {
				if r.Type == "call.received" {
					seq = r.Seq
				}
			}
			x := explained(t, l, itoa(seq))
			if x.Outcome.Kind != explain.Refused || x.Outcome.Code != c.code {
				t.Fatalf("outcome %+v\n%s", x.Outcome, x.Text())
			}
			said := map[string]bool{}
			checkRests(t, l, x.Sentences, x.Events, said)
			for _, code := range append(c.said, "refused", "not_sent", "asked") {
				if !said[code] {
					t.Errorf("%s is not said:\n%s", code, x.Text())
				}
			}
		})
	}
}

// TestEveryCodeOfARefusalIsMade keeps the table whole: these are all that routing can
// give.
func TestEveryCodeOfARefusalIsMade(t *testing.T) {
	var made []domain.Code
	for _, c := range refusals {
		made = append(made, c.code)
	}
	for _, code := range []domain.Code{domain.CodeBadRequest, domain.CodeDuplicateCall, domain.CodeOverloaded, domain.CodeNotReady, domain.CodeUnknownTool,
		domain.CodeAmbiguousOwner, domain.CodeStaleRoute, domain.CodeNameMoved, domain.CodeUnknownGen, domain.CodePeerUnavailable, domain.CodeEraUnknown, domain.CodeToolQuarantined,
		domain.CodeNotAllowed, domain.CodeNotWaiting, domain.CodeInputMismatch, domain.CodeInputExpired, domain.CodeShuttingDown, domain.CodeCollisionReject} {
		if !slices.Contains(made, code) {
			t.Errorf("no refusal with %s is made", code)
		}
	}
}
