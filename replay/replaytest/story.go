package replaytest

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

// Config returns a configuration with peers of these names, given sorted.
func Config(policy string, peers ...string) domain.Config {
	c := domain.Config{Node: "local", Collision: policy, Separator: "/", Inflight: 1024}
	for _, name := range peers {
		p := domain.PeerConfig{Name: name, Transport: "stdio", Command: name + "-server", Pin: payload(name).HMAC,
			LegacyRevisions: domain.LegacyRevisions, ProbeTimeout: 10_000, LegacyProbeTimeout: 5_000, CallTimeout: 60_000,
			Capabilities: jsontext.Value("{}"), Repeatable: []string{}, AllowLegacy: name == "archive"}
		if name == "ghost" {
			p.Pin, p.Refusal, p.RefusalReason = "", domain.CodeNotPinned, "peer ghost is not in waybill.lock; run waybill pin"
		}
		c.Peers = append(c.Peers, p)
	}
	return c
}

// Facts of answers.
var (
	Complete  = domain.Facts{Kind: domain.FactResult, ResultType: "complete"}
	ToolError = domain.Facts{Kind: domain.FactResult, ResultType: "complete", IsError: true}
)

func library() map[string]*Peer {
	return map[string]*Peer{
		"archive": {Pages: [][]string{{"find"}}},
		"notes":   {Modern: true, Pages: [][]string{{"search"}, {"add"}}},
		"stray":   {},
		"wiki":    {Modern: true, Refuses: true, Pages: [][]string{{"page", "search", "bad name"}}},
	}
}

// Small is a short log: two modern peers that share a tool, and a few calls.
func Small() *Log {
	w := NewWorld()
	w.Start(Config(domain.PrefixOnCollision, "notes", "wiki"), map[string]*Peer{
		"notes": {Modern: true, Pages: [][]string{{"search"}}},
		"wiki":  {Modern: true, Pages: [][]string{{"search"}}},
	})
	w.Call("first", "search", 0)
	w.Answer("first", Complete)
	w.Call("nothing", "nosuch", 0)
	return Make(w.Events)
}

// Rejected is the log of a service whose configuration was rejected.
func Rejected() *Log {
	w := NewWorld()
	w.Start(Config(domain.RejectOnCollision, "notes", "wiki"), library())
	w.Observe(domain.ServiceStopped{Reason: "config.rejected"}, nil)
	return Make(w.Events)
}

// Full is a log of two lives of a service in which every kind of decision is
// made, but for config.rejected.
func Full() *Log {
	w := NewWorld()
	w.firstLife()
	w.secondLife()
	return Make(w.Events)
}

// firstLife ends in a crash, with a call under way.
func (w *World) firstLife() {
	w.Start(Config(domain.PrefixOnCollision, "archive", "ghost", "notes", "stray", "wiki"), library())
	w.Call("first", "search", 0)
	w.Call("second", "wiki/search", 1)
	w.Answer("second", ToolError)
	w.Answer("first", Complete)
	w.Call("first", "search", 0) // taken
	w.Call("nothing", "nosuch", 0)
	w.Call("slow", "page", 0)
	w.Expire("slow")
	w.Answer("slow", Complete) // too late
	w.Call("ended", "find", 0)
	w.Lose("ended")
	w.Call("closed", "find", 0)
	w.Observe(domain.NoiseCounted{At: domain.At{Peer: "wiki", Incarnation: 1}, Kinds: []domain.NoiseCount{{What: "notification", Count: 2, Bytes: 120}}}, nil)
	w.Observe(domain.IntakeShed{Count: 7, Code: domain.CodeOverloaded}, nil)
	w.Call("crossing", "add", 0)
}

func (w *World) secondLife() {
	peers := library()
	peers["archive"].Missing = true
	peers["atlas"] = &Peer{Modern: true, Pages: [][]string{{"search"}}}
	peers["notes"].ListError = true
	peers["wiki"] = &Peer{Modern: true, Stray: true, Pages: [][]string{{"page", "search"}}}
	w.Start(Config(domain.PrefixOnCollision, "archive", "atlas", "notes", "wiki"), peers)
	w.Call("moved", "search", 0)
	w.Call("again", "search", 2)
	w.Answer("again", Complete)
	w.Call("lost", "page", 0)
	peers["wiki"].Missing = true
	w.Lose("lost") // and the peer does not come back
	w.Call("last", "add", 0)
	w.Observe(domain.ServiceStopped{Reason: "interrupt"}, nil)
}

// Calls is a log of exactly size events, nearly all of them of calls that are
// answered. Size must be at least that of the start, some 30.
func Calls(size int) *Log {
	w := NewWorld()
	w.Start(Config(domain.PrefixOnCollision, "archive", "ghost", "notes", "stray", "wiki"), library())
	for i := 0; len(w.Events)+4 <= size; i++ {
		id := fmt.Sprintf("call-%d", i)
		w.Call(id, "wiki/search", 0)
		w.Answer(id, Complete)
	}
	for len(w.Events) < size {
		w.Observe(domain.IntakeShed{Count: 1, Code: domain.CodeOverloaded}, nil)
	}
	if len(w.Events) != size {
		panic(fmt.Sprintf("the start alone has %d events", len(w.Events)))
	}
	return Make(w.Events)
}
