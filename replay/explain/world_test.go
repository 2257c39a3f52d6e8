package explain_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
	"waybill/replay/replaytest"
)

// scene is what surrounds a service: a configuration, and peers for it.
type scene struct {
	config domain.Config
	peers  map[string]*replaytest.Peer
}

// newWorld starts a service; change may be nil.
func newWorld(change func(*domain.Config), s scene) *replaytest.World {
	w := replaytest.NewWorld()
	if change != nil {
		change(&s.config)
	}
	w.Start(s.config, s.peers)
	return w
}

func onePeer(name string, tools ...string) scene {
	return scene{replaytest.Config(domain.PrefixOnCollision, name), map[string]*replaytest.Peer{name: {Modern: true, Pages: [][]string{tools}}}}
}

// twoPeers both have a tool search.
func twoPeers(policy string) scene {
	return scene{replaytest.Config(policy, "notes", "wiki"), map[string]*replaytest.Peer{
		"notes": {Modern: true, Pages: [][]string{{"search"}}}, "wiki": {Modern: true, Pages: [][]string{{"search", "page"}}}}}
}

// submit is a call of the host local, with what its host says besides.
func submit(w *replaytest.World, id, tool string, change ...func(*domain.CallReceived)) {
	d := domain.CallReceived{CallID: domain.CallID{Host: "local", ID: id}, Tool: tool, Arguments: domain.Payload{Size: 2, HMAC: strings.Repeat("ab", 32)}}
	for _, f := range change {
		f(&d)
	}
	w.Observe(d, nil)
}

// sent is the exchange that a call waits for.
func sent(w *replaytest.World, key string) (at domain.At, request int64, ok bool) {
	for _, e := range w.Events {
		switch d := e.Data.(type) {
		case domain.CallRouted:
			if d.CallKey() == key {
				at, request = d.At, d.RequestID
			}
		case domain.CallResent:
			if d.CallKey() == key {
				at, request = d.At, d.RequestID
			}
		}
	}
	return at, request, request != 0
}

// story drives a service at random.
type story struct {
	*replaytest.World
	r     *rand.Rand
	scene scene
	calls []string
}

func randomLog(seed uint64, steps int) *replaytest.Log {
	s := &story{World: replaytest.NewWorld(), r: rand.New(rand.NewPCG(seed, 7))}
	s.restart()
	for range steps {
		s.step()
	}
	return replaytest.Make(s.Events)
}

func (s *story) pick(list ...string) string { return list[s.r.IntN(len(list))] }

func (s *story) chance(n int) bool { return s.r.IntN(n) == 0 }

var pool = []string{"search", "page", "add", "note.find", "wiki/search", "bad name", "Search"}

func (s *story) restart() {
	s.scene = scene{replaytest.Config(s.pick(domain.PrefixOnCollision, domain.PrefixOnCollision, domain.PrefixOnCollision, domain.PrefixOnCollision, domain.RejectOnCollision, domain.PrefixAlways), "archive", "notes", "wiki"),
		map[string]*replaytest.Peer{}}
	c := &s.scene.config
	c.Partial, c.Moved = s.chance(2), int64(s.r.IntN(2)*1_000)
	for i := range c.Peers {
		p := &c.Peers[i]
		p.Resends, p.InputRounds, p.InputWindow, p.HungAfter = s.r.IntN(3), s.r.IntN(3), 60_000, s.r.IntN(3)
		p.Capabilities, p.Inflight = jsontext.Value(`{"elicitation":{}}`), s.r.IntN(4)
		p.Repeatable, p.Attempts, p.Quarantine = pool[:s.r.IntN(3)], 1+s.r.IntN(3), 120_000
		if s.chance(2) {
			p.Lists = &domain.ListRules{Interval: 100, Stale: 5_000, Hold: s.chance(2)}
		}
		s.scene.peers[p.Name] = s.peer(p.Name)
	}
	if s.chance(3) {
		c.Hosts = []domain.HostConfig{{Name: "local", Context: domain.DefaultContext, Tools: []string{"s*", "wiki/*"}}, {Name: "other", Context: domain.DefaultContext, Peers: []string{"notes"}}}
	}
	s.Start(*c, s.scene.peers)
}

func (s *story) peer(name string) *replaytest.Peer {
	p := &replaytest.Peer{Modern: name != "archive" || s.chance(4), Refuses: s.chance(4), Stray: s.chance(4), Missing: s.chance(6), ListError: s.chance(6), Mute: s.chance(3)}
	p.Lists = func(string, int) string {
		var tools []string
		for _, tool := range pool[:1+s.r.IntN(len(pool))] {
			tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"v%d","inputSchema":{"type":"object"}}`, tool, s.r.IntN(2)))
		}
		head := ""
		if p.Modern {
			head = `"resultType":"complete","ttlMs":500,"cacheScope":"public",`
		}
		return head + `"tools":[` + strings.Join(tools, ",") + `]`
	}
	return p
}

func (s *story) step() {
	s.Pass(int64(s.r.IntN(200)))
	switch n := s.r.IntN(40); {
	case n < 14:
		s.call()
	case n < 27:
		s.answer()
	case n < 29:
		s.lose()
	case n < 31:
		s.expire()
	case n < 33:
		s.Observe(domain.CallCancelled{CallID: s.anyCall(), By: "host"}, nil)
	case n < 35:
		s.changed()
	case n < 37:
		s.operate()
	case n < 39:
		s.Observe(domain.WaitPassed{CallID: s.anyCall()}, nil)
	case s.chance(3):
		s.restart()
	}
}

func (s *story) anyCall() domain.CallID {
	if len(s.calls) == 0 {
		return domain.CallID{Host: "local", ID: "none"}
	}
	host, id, _ := strings.Cut(s.calls[s.r.IntN(len(s.calls))], "/")
	return domain.CallID{Host: host, ID: id}
}

func (s *story) call() {
	d := domain.CallReceived{CallID: domain.CallID{Host: s.pick("local", "local", "local", "other", "stranger"), ID: fmt.Sprint("c", len(s.calls))},
		Tool: s.pick(pool...), Arguments: domain.Payload{Size: 2}, Generation: int64(s.r.IntN(3)), Wait: int64(s.r.IntN(2) * 500), Kept: s.chance(4)}
	if s.chance(5) {
		d.Tool = s.pick("notes/search", "search_x", "notes__search", "\x1b[2J")
	}
	if s.chance(12) {
		d.Problem = "the request names no tool"
	}
	if s.chance(8) && len(s.calls) > 0 {
		d.CallID = s.anyCall() // taken, or perhaps not
	}
	s.calls = append(s.calls, d.CallKey())
	s.Observe(d, nil)
}

func (s *story) answer() {
	id := s.anyCall()
	at, request, ok := sent(s.World, id.CallKey())
	if !ok {
		return
	}
	facts := []domain.Facts{replaytest.Complete, replaytest.Complete, replaytest.ToolError, {Kind: domain.FactBroken}, {Kind: domain.FactError, ErrorCode: -32602},
		{Kind: domain.FactError, ErrorCode: -32022, Supported: "2026-07-28"}, {Kind: domain.FactResult, ResultType: "input_required"}, {Kind: domain.FactResult, ResultType: "?"},
		{Kind: domain.FactError, ErrorCode: -32020}}[s.r.IntN(9)]
	d := domain.CallAnswered{CallID: id, At: at, RequestID: request, Result: domain.Payload{Size: 1}, Facts: facts}
	if facts.ResultType == "input_required" {
		d.RequestState = &domain.Payload{Size: 9}
	}
	s.Observe(d, nil)
}

func (s *story) lose() {
	id := s.anyCall()
	at, request, ok := sent(s.World, id.CallKey())
	if !ok {
		return
	}
	d := domain.ExchangeFailed{At: at, RequestID: request, Written: s.pick("no", "maybe"), Code: domain.CodeTransportLost}
	if s.chance(2) {
		d.Call = id.CallKey()
	}
	s.Observe(d, nil)
	s.Observe(domain.PeerExited{At: at, Status: 3, Cause: "exited"}, nil)
}

func (s *story) expire() {
	id := s.anyCall()
	if at, request, ok := sent(s.World, id.CallKey()); ok {
		s.Observe(domain.DeadlinePassed{At: at, RequestID: request, Call: id.CallKey(), Silent: s.chance(2)}, nil)
	}
}

func (s *story) changed() {
	name := s.pick("archive", "notes", "wiki")
	p := s.State.Peer(name)
	at := domain.At{Peer: name, Incarnation: p.Incarnation}
	if s.chance(2) {
		s.Observe(domain.ListDue{At: at}, nil)
		return
	}
	s.Observe(domain.ListChanged{At: at, Count: 1}, nil)
	s.Observe(domain.ToolsRead{Reads: 1}, nil)
}

func (s *story) operate() {
	id := s.anyCall()
	switch s.r.IntN(3) {
	case 0:
		s.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbResend, Call: id.CallKey(), Arguments: &domain.Payload{Size: 2}}, nil)
	case 1:
		s.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbRevive, Peer: s.pick("archive", "notes", "wiki")}, nil)
	default:
		s.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbErase, Call: id.CallKey()}, nil)
	}
}

// TestEveryCallOfRandomLogsIsExplained is the property: whatever happened, every call
// has an explanation, and it ends as the log says.
func TestEveryCallOfRandomLogsIsExplained(t *testing.T) {
	calls, said := 0, map[string]bool{}
	for seed := range uint64(20) {
		calls += check(t, fmt.Sprint("seed ", seed), randomLog(seed, 120), said)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d calls, %d codes of sentences", calls, len(said))
	if calls < 600 {
		t.Errorf("%d calls", calls)
	}
}
