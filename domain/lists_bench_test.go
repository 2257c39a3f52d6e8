package domain

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

const benchTools = 100 // of each peer

// benchNames are the tools of one peer, of which one in ten has a name that others
// have too.
func benchNames(peer, more int) []string {
	out := make([]string, 0, benchTools+more)
	for i := range benchTools {
		if i%10 == 0 {
			out = append(out, fmt.Sprint("common_tool_", i))
		} else {
			out = append(out, fmt.Sprintf("tool_%03d_of_server_%03d", i, peer))
		}
	}
	for i := range more {
		out = append(out, fmt.Sprintf("another_%d_of_server_%03d", i, peer))
	}
	return out
}

// benchPage lists them with definitions of some 600 bytes.
func benchPage(peer, more int) string {
	var defs []string
	for _, name := range benchNames(peer, more) {
		defs = append(defs, strings.Replace(tell(name, "what it does: "+strings.Repeat("d", 400)), `"type":"object"`,
			`"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]`, 1))
	}
	return told(cached(86_400_000, ScopePublic), defs...)
}

// benchState has so many modern peers, whose lists were asked for.
func benchState(b *testing.B, peers int) *keeper {
	var list []string
	for i := range peers {
		list = append(list, fmt.Sprintf("server%03d", i))
	}
	k := newKeeper(b)
	k.start(ruled(testConfig(PrefixOnCollision, list...)))
	for _, p := range list {
		k.rises(p, discoverNotices)
		k.acknowledges(p, "", true)
	}
	return k
}

func (k *keeper) benchList(pages []string) {
	for i, page := range pages {
		k.answered(fmt.Sprintf("server%03d", i), "", page)
	}
}

func benchPages(peers int) []string {
	var out []string
	for i := range peers {
		out = append(out, benchPage(i, 0))
	}
	return out
}

// BenchmarkNamesFromNothing is what 200 peers of 100 tools cost from their pages to
// the names in force, and what of that is the merge alone.
func BenchmarkNamesFromNothing(b *testing.B) {
	pages := benchPages(200)
	b.Run("from the pages", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			k := benchState(b, 200)
			b.StartTimer()
			k.benchList(pages)
			if n := k.s.space("").tools; n != 200*benchTools {
				b.Fatalf("%d names", n)
			}
		}
	})
	b.Run("the merge", func(b *testing.B) {
		k := benchState(b, 200)
		k.benchList(pages)
		for b.Loop() {
			k.s.chart()
			for _, d := range k.s.decideMerge() {
				k.s.Apply(Event{Seq: k.s.Head + 1, Cause: 1, Data: d})
			}
		}
		if n := k.s.space("").tools; n != 200*benchTools {
			b.Fatalf("%d names", n)
		}
	})
}

// BenchmarkOneListChanges is a notice, and the list of one peer that comes in with
// a tool more or less, among few peers and many: what others list besides has
// little part in it.
func BenchmarkOneListChanges(b *testing.B) {
	for _, peers := range []int{2, 20, 200} {
		b.Run(fmt.Sprint(peers*benchTools, " tools"), func(b *testing.B) {
			k := benchState(b, peers)
			k.benchList(benchPages(peers))
			pages := []string{benchPage(1, 1), benchPage(1, 0)}
			x := k.last("server001", "", MethodListen)
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				k.log, k.sends, k.dues = k.log[:0], k.sends[:0], nil
				k.pass(60_000)
				b.StartTimer()
				k.see(ListChanged{At: x.At, Subscription: x.RequestID, Count: 1})
				out := k.answered("server001", "", pages[i%2])
				if len(all[NamespaceMerged](out)) != 1 {
					b.Fatalf("%v", kinds(out))
				}
			}
		})
	}
}

// BenchmarkDecideCall is a call among 20,000 tools, by its name and by its name in
// the form of models.
func BenchmarkDecideCall(b *testing.B) {
	k := benchState(b, 200)
	k.benchList(benchPages(200))
	e := k.entry("", "server100/common_tool_50")
	for name, d := range map[string]CallReceived{
		"by name": {Tool: e.Canonical}, "by model name": {Tool: e.Model, Form: ModelForm}, "of nobody": {Tool: "nobody"},
	} {
		b.Run(name, func(b *testing.B) {
			d.CallID = CallID{Host: "local", ID: "bench"}
			o := Event{Time: k.now, Mono: k.mono(), Data: d}
			b.ReportAllocs()
			for b.Loop() {
				if len(k.s.decideCall(o, d)) == 0 {
					b.Fatal("nothing is decided")
				}
			}
		})
	}
}

// BenchmarkToolsOfManyPeers is a host's need of 200 lists that are fresh, and a page
// of a hundred of their tools.
func BenchmarkToolsOfManyPeers(b *testing.B) {
	k := benchState(b, 200)
	k.benchList(benchPages(200))
	b.Run("need", func(b *testing.B) {
		for b.Loop() {
			if out := k.s.decideRead(k.mono(), ToolsRead{Reads: 1}); len(out) != 1 {
				b.Fatal(out)
			}
		}
	})
	b.Run("page", func(b *testing.B) {
		for b.Loop() {
			if list := k.s.Tools("", "server100/", 100, k.mono()).Tools; len(list) != 100 {
				b.Fatal(len(list))
			}
		}
	})
}

// BenchmarkMemoryOfTools reports what a state of 20,000 tools takes for each,
// besides the bytes of their definitions.
func BenchmarkMemoryOfTools(b *testing.B) {
	pages := benchPages(200)
	var definitions, total uint64
	for b.Loop() {
		k := benchState(b, 200)
		k.log, k.sends = nil, k.sends[:0:0]
		for i := range pages {
			k.sends = append(k.sends, Send{At: k.at(fmt.Sprintf("server%03d", i)), RequestID: k.s.Peer(fmt.Sprintf("server%03d", i)).line("").fetch.id, Method: MethodList})
		}
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		k.benchList(pages)
		k.log = nil
		runtime.GC()
		runtime.ReadMemStats(&after)
		total, definitions = after.HeapAlloc-before.HeapAlloc, 0
		for _, p := range k.s.peers { // order-free: a sum
			for _, t := range p.line("").catalog.Tools {
				definitions += uint64(len(t.Definition))
			}
		}
		runtime.KeepAlive(k)
	}
	const tools = 200 * benchTools
	b.ReportMetric(float64(total-definitions)/tools, "bytes/tool")
	b.ReportMetric(float64(definitions)/tools, "definition-bytes/tool")
}
