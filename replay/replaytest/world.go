package replaytest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"waybill/domain"
)

// A World is what surrounds a service in a test: peers that answer by script,
// and a clock that moves by a millisecond for each observation. What happens in
// it is recorded as it is in the service: each observation, and the decisions
// that the rules make of it.
type World struct {
	State  *domain.State
	Events []domain.Event

	peers   map[string]*Peer
	now     int64
	mono    int64
	effects []domain.Effect
	sent    map[string]domain.Send // to peers for calls, by key

	subscribed map[string]domain.Send // the last subscriptions/listen, by context
}

// A Peer is the script of one peer.
type Peer struct {
	Modern    bool
	Refuses   bool       // answers the first probe with -32022
	Stray     bool       // shows modern behaviour under an unknown id first
	Missing   bool       // cannot be started
	ListError bool       // answers tools/list with an error
	Mute      bool       // gives no sign of life
	Pages     [][]string // names of its tools
	probed    int

	Announces bool              // advertises notices of changed tools
	Grants    map[string]string // what it acknowledges, by context; nothing for one that is not in it
	Lists     listScript        // in the place of Pages
	read      map[string]int

	HTTP  bool
	Fails []Failure // what comes of its next probes, in order; a zero one is answered
}

// A Failure is an answer of HTTP to a probe that has no message in it, or none.
type Failure struct {
	Class  string
	Status int
}

const started = 1_785_240_000_000_000_000 // nanoseconds since 1970; some moment

// NewWorld returns a world in which nothing has happened.
func NewWorld() *World {
	return &World{State: domain.NewState(), now: started, sent: map[string]domain.Send{}, subscribed: map[string]domain.Send{}}
}

// Observe records an observation with what follows from it. Peers have then
// answered all that they were asked, calls excepted.
func (w *World) Observe(data domain.Data, evidence []byte) {
	w.step(data, evidence)
	for len(w.effects) > 0 {
		e := w.effects[0]
		w.effects = w.effects[1:]
		w.perform(e)
	}
}

func (w *World) step(data domain.Data, evidence []byte) {
	w.now += 1_000_001
	w.mono += 1_000_000
	for _, e := range w.State.Step(domain.Event{Time: w.now, Mono: w.mono, Evidence: evidence, Data: data}) {
		w.Events = append(w.Events, e)
		w.effects = append(w.effects, domain.Effects(e)...)
	}
}

// Start begins a life of the service with a configuration, and with these peers
// from now on.
func (w *World) Start(c domain.Config, peers map[string]*Peer) {
	w.peers, w.sent, w.mono = peers, map[string]domain.Send{}, 0
	w.Observe(domain.ServiceStarted{Version: "0.1", Rules: domain.RulesVersion}, nil)
	b, err := domain.EncodeConfig(c)
	if err != nil {
		panic(err)
	}
	w.Observe(domain.ConfigLoaded{Config: domain.RefTo(b), Peers: len(c.Peers)}, b)
}

// Call submits a call of the host "local". A generation of 0 names none.
func (w *World) Call(id, tool string, generation int64) {
	w.Observe(domain.CallReceived{CallID: callID(id), Tool: tool, Generation: generation, Arguments: payload(id)}, nil)
}

// Answer answers a call that was routed.
func (w *World) Answer(id string, facts domain.Facts) {
	s := w.request(id)
	w.Observe(domain.CallAnswered{CallID: callID(id), At: s.At, RequestID: s.RequestID, Result: payload("of " + id), Facts: facts}, nil)
}

// Expire lets the deadline of a call's request pass.
func (w *World) Expire(id string) {
	s := w.request(id)
	w.Observe(domain.DeadlinePassed{At: s.At, RequestID: s.RequestID}, nil)
}

// Lose ends the peer that a call was routed to before it has answered.
func (w *World) Lose(id string) {
	s := w.request(id)
	w.Observe(domain.ExchangeFailed{At: s.At, RequestID: s.RequestID, Written: "maybe", Code: domain.CodeTransportLost}, nil)
	w.Observe(domain.PeerExited{At: s.At, Status: 3, Cause: "exited", StderrSize: 42}, nil)
}

func (w *World) request(id string) domain.Send {
	s, ok := w.sent[callID(id).CallKey()]
	if !ok {
		panic("call " + id + " was not routed")
	}
	return s
}

func callID(id string) domain.CallID { return domain.CallID{Host: "local", ID: id} }

func payload(s string) domain.Payload {
	sum := sha256.Sum256([]byte(s))
	return domain.Payload{Size: int64(len(s)), HMAC: hex.EncodeToString(sum[:])}
}

// perform plays the world's part in an effect.
func (w *World) perform(e domain.Effect) {
	switch e := e.(type) {
	case domain.Launch:
		if e.Delay >= 60_000 {
			return // the story ends before
		}
		if w.peers[e.Peer].Missing {
			w.step(domain.SpawnFailed{At: e.At, Code: domain.CodeSpawnFailed, Reason: "fork: no more processes"}, nil)
			return
		}
		if w.peers[e.Peer].HTTP {
			w.step(domain.PeerSpawned{At: e.At}, nil)
			return
		}
		w.step(domain.PeerSpawned{At: e.At, PID: 4000 + len(w.Events)}, nil)
	case domain.Stop:
		if w.peers[e.Peer].HTTP {
			w.step(domain.PeerExited{At: e.At, Cause: "stopped"}, nil)
			return
		}
		w.step(domain.PeerExited{At: e.At, Status: -1, Signal: "terminated", Cause: "stopped"}, nil)
	case domain.Send:
		w.send(w.peers[e.Peer], e)
	}
}

func (w *World) send(p *Peer, s domain.Send) {
	switch s.Method {
	case "tools/call":
		w.sent[s.Call] = s
	case "tools/list":
		frame := p.list(s)
		w.step(domain.CatalogListed{At: s.At, Context: s.Context, RequestID: s.RequestID, Frame: domain.RefTo(frame)}, frame)
	case domain.MethodListen:
		w.subscribed[s.Context] = s
		if types, ok := p.Grants[s.Context]; ok {
			frame := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%d},"notifications":{%s}}}`,
				s.RequestID, types)
			w.step(domain.SubscriptionAcknowledged{At: s.At, Context: s.Context, RequestID: s.RequestID, Frame: domain.RefTo(frame)}, frame)
		}
	case domain.MethodPing:
		w.alive(p, s)
	default:
		if s.Era != domain.EraUnknown {
			w.alive(p, s)
			return
		}
		if w.fails(p, s) {
			return
		}
		for _, frame := range p.probe(s) {
			w.step(domain.ProbeAnswered{At: s.At, Frame: domain.RefTo(frame)}, frame)
		}
	}
}

// alive answers a request for a sign of life, or lets its deadline pass.
func (w *World) alive(p *Peer, s domain.Send) {
	if p.Mute {
		w.step(domain.DeadlinePassed{At: s.At, RequestID: s.RequestID, Silent: true}, nil)
		return
	}
	w.step(domain.HealthAnswered{At: s.At, RequestID: s.RequestID}, nil)
}

const discovered = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],` +
	`"capabilities":{"tools":{}},"ttlMs":60000,"cacheScope":"private"}}`

func (p *Peer) probe(s domain.Send) [][]byte {
	p.probed++
	head := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, s.RequestID)
	switch {
	case s.Method == domain.MethodInitialize:
		return frames(head + `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"archive","version":"1.4"}}}`)
	case !p.Modern:
		return frames(head + `"error":{"code":-32601,"message":"Method not found"}}`)
	case p.Refuses && p.probed == 1:
		return frames(head + `"error":{"code":-32022,"message":"Unsupported","data":{"supported":["2026-07-28","2025-11-25"]}}}`)
	case p.Stray:
		return frames(`{"jsonrpc":"2.0","id":"x",`+discovered, head+discovered)
	}
	if p.Announces {
		return frames(head + strings.Replace(discovered, `"tools":{}`, `"tools":{"listChanged":true}`, 1))
	}
	return frames(head + discovered)
}

func frames(list ...string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

func (p *Peer) list(s domain.Send) []byte {
	head := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, s.RequestID)
	if p.Lists != nil {
		if p.read == nil {
			p.read = map[string]int{}
		}
		p.read[s.Context]++
		return []byte(head + `"result":{` + p.Lists(s.Context, p.read[s.Context]) + `}}`)
	}
	if p.ListError {
		return []byte(head + `"error":{"code":-32603,"message":"Internal error"}}`)
	}
	page := 0
	if s.Cursor != nil {
		page = int((*s.Cursor)[len(*s.Cursor)-1] - '0')
	}
	var tools []string
	for _, name := range p.Pages[page] {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
	}
	body := head + `"result":{`
	if p.Modern {
		body += `"resultType":"complete","ttlMs":60000,"cacheScope":"public",`
	}
	if page+1 < len(p.Pages) {
		body += fmt.Sprintf(`"nextCursor":"page-%d",`, page+1)
	}
	return []byte(body + `"tools":[` + strings.Join(tools, ",") + `]}}`)
}
