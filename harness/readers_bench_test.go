package harness

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"waybill/domain"
)

// manyPeers is an engine of peers with a hundred tools each, whose lists are fresh
// for ttl ms and never come a second time.
func manyPeers(b *testing.B, n, ttl int) (*rig, *Engine) {
	feed := NewFeed(0)
	r := newRig(b, newMemLog(b), func(c *Config) { c.OnCommit = feed.Advance })
	r.peers.quiet = true
	given := map[string]bool{}
	r.peers.answer = func(x domain.Effect, a []byte) {
		s, ok := x.(domain.Send)
		if !ok || s.Method != domain.MethodList {
			r.echo(x, a)
			return
		}
		if given[s.Peer] {
			return
		}
		given[s.Peer] = true
		var tools []string
		for i := range 100 {
			tools = append(tools, fmt.Sprintf("%s_tool_%d", s.Peer, i))
		}
		f := []byte(strings.Replace(string(listed(s.RequestID, tools...)), `"ttlMs":0`, fmt.Sprintf(`"ttlMs":%d`, ttl), 1))
		r.tell(domain.CatalogListed{At: s.At, RequestID: s.RequestID, Frame: domain.RefTo(f)}, f, nil)
	}
	var peers []string
	for i := range n {
		peers = append(peers, fmt.Sprintf("p%03d", i))
	}
	r.configure(listConfig(rules(), nil, peers...))
	r.run()
	r.settle()
	return r, &Engine{Loop: r.loop, Feed: feed, logger: quietLogger(), loopDone: r.ended}
}

// BenchmarkReaders has a thousand hosts read 20,000 tools at once.
func BenchmarkReaders(b *testing.B) {
	r, e := manyPeers(b, 200, 3_600_000)
	for b.Loop() {
		for _, got := range readAllAtOnce(b, e, 1000, "") {
			if got.err != nil {
				b.Error(got.err)
			}
		}
	}
	r.stop()
}

// BenchmarkCallsWhileReadersWait makes calls, one after the other, while hosts wait
// for 200 peers that do not list again.
func BenchmarkCallsWhileReadersWait(b *testing.B) {
	for _, readers := range []int{0, 1000} {
		b.Run(fmt.Sprint("readers=", readers), func(b *testing.B) {
			r, e := manyPeers(b, 200, 0)
			calls, busy := 0, time.Duration(0)
			for b.Loop() {
				var wait sync.WaitGroup
				for range readers {
					wait.Go(func() { _, _ = e.ReadTools(b.Context(), "", "", 10) })
				}
				<-time.After(2 * readPause)
				for begun := time.Now(); time.Since(begun) < readPatience/2; calls++ {
					from := time.Now()
					r.reply(r.submit("local", `{"tool":"p000_tool_0"}`))
					busy += time.Since(from)
				}
				wait.Wait()
			}
			b.ReportMetric(float64(calls)/busy.Seconds(), "calls/s")
			r.stop()
		})
	}
}
