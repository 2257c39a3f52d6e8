package names

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

var (
	verbs  = []string{"get", "list", "create", "update", "delete", "search", "export", "watch", "assign", "describe"}
	things = []string{"issue", "pull_request", "file", "branch", "project_item", "customer", "invoice", "calendar_event", "message", "deployment"}
)

// realistic returns the lists of many peers. Every tenth tool of a peer has a
// name that nine others have too.
func realistic(peers, tools int) []PeerTools {
	out := make([]PeerTools, peers)
	for i := range out {
		out[i].Peer = fmt.Sprintf("server-%03d", i)
		for j := range tools {
			name := verbs[j%10] + "_" + things[j/10%10]
			if j%10 == 0 {
				name += fmt.Sprintf("_%d", i/10)
			} else {
				name += fmt.Sprintf("_of_%03d", i)
			}
			if j >= 100 {
				name += fmt.Sprintf("_%d", j/100)
			}
			out[i].Tools = append(out[i].Tools, name)
		}
	}
	return out
}

func BenchmarkMerge(b *testing.B) {
	in := realistic(200, 100)
	b.ReportAllocs()
	for b.Loop() {
		if m := Merge(PrefixOnCollision, "/", in); len(m.Bindings) != 20000 {
			b.Fatalf("%d bindings", len(m.Bindings))
		}
	}
}

// BenchmarkTableBuild sets every peer, and takes the first digest.
func BenchmarkTableBuild(b *testing.B) {
	in := realistic(200, 100)
	for _, policy := range policies {
		b.Run(policy, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				table := tableOf(policy, "/", in)
				table.Digest()
				table.Settle()
			}
			before := heap()
			table := tableOf(policy, "/", in)
			table.Digest()
			table.Settle()
			b.ReportMetric(float64(heap()-before)/20000, "bytes/tool")
			runtime.KeepAlive(table)
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkTableChange changes one peer of 100 tools back and forth.
func BenchmarkTableChange(b *testing.B) {
	for _, peers := range []int{200, 20} {
		in := realistic(peers, 100)
		whole := in[peers/2]
		one := append([]string{"another"}, whole.Tools[1:]...)
		var all []string
		for _, name := range whole.Tools {
			all = append(all, strings.ToUpper(name))
		}
		for i, other := range [][]string{one, all} {
			b.Run(fmt.Sprintf("%s of %d peers", []string{"one tool", "all tools"}[i], peers), func(b *testing.B) {
				table := tableOf(PrefixOnCollision, "/", in)
				table.Digest()
				table.Settle()
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					table.Set(whole.Peer, [][]string{other, whole.Tools}[i%2])
					table.Touched()
					table.Digest()
					table.Settle()
				}
			})
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	table := tableOf(PrefixOnCollision, "/", realistic(200, 100))
	bindings := table.Bindings()
	for _, x := range []struct {
		name string
		ask  func(Binding)
	}{
		{"Lookup", func(x Binding) { table.Lookup(x.Canonical) }},
		{"Canonical", func(x Binding) { table.Canonical(x.Owner) }},
		{"ModelName", func(x Binding) { ModelName(x.Canonical) }},
		{"FromModel", func(x Binding) { table.FromModel(x.Canonical) }},
		{"Skeleton", func(x Binding) { Skeleton(x.Canonical) }},
		{"Alike", func(x Binding) { table.Alike(x.Canonical) }},
	} {
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				x.ask(bindings[i%len(bindings)])
			}
		})
	}
	b.Run("FromModel hashed", func(b *testing.B) {
		table := tableOf(PrefixAlways, "/", realistic(200, 100))
		var forms []string
		for _, x := range table.Bindings() {
			forms = append(forms, ModelName(x.Canonical))
		}
		for i := 0; b.Loop(); i++ {
			if _, ok := table.FromModel(forms[i%len(forms)]); !ok {
				b.Fatal("no such form")
			}
		}
	})
}
