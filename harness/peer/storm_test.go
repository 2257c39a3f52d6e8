package peer

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"waybill/domain"
	"waybill/harness/peer/frame"
)

// reading is an incarnation without a process, which reads from in.
func reading(l *ledger, in io.Reader) *incarnation {
	m := &Manager{cfg: Config{FrameLimit: 1 << 20, Report: l.report, Digest: testDigest}}
	c := newIncarnation(newLane(m, "p"), at1)
	c.in = frame.NewReader(in, m.cfg.FrameLimit)
	c.table.selectEra(domain.EraModern)
	return c
}

// What is reported of each subscription is what a peer wrote of it, in its order, whatever it wrote between.
func TestEachSubscriptionIsReportedInTheOrderOfItsLines(t *testing.T) {
	lines := []func(id string) string{acknowledgement, changeNotice, changeNotice, changeNotice, changeNotice, gracefulEnd, cancelNotice,
		func(id string) string { return answerLine(id, "{}") }, func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":5}}` }}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 6))
		var stream strings.Builder
		want := map[int64]string{}
		over, known := map[int]bool{}, map[int]bool{}
		for range 60 {
			id, kind := 1+rng.IntN(4), rng.IntN(len(lines))
			stream.WriteString(lines[kind](fmt.Sprint(id)) + "\n")
			if over[id] || id == 4 || kind == 0 && known[id] {
				continue
			}
			known[id] = known[id] || kind == 0
			over[id] = kind > 4
			want[int64(id)] += []string{"acknowledged ", "+", "+", "+", "+", "answered", "cancelled", "broken", "error"}[kind]
		}
		l := newLedger()
		c := reading(l, strings.NewReader(stream.String()))
		for id := range int64(3) {
			subscribed(c.table, id+1, fmt.Sprint(id+1))
			if !over[int(id)+1] {
				want[id+1] += " lost"
			}
		}
		_ = c.readLines()
		c.table.fail(domain.CodeTransportLost)
		c.noise.close()
		if got := stories(t, l); !reflect.DeepEqual(got, want) {
			t.Errorf("seed %d: reported %v, want %v", seed, got, want)
		}
	}
}

// stories tells what was reported of each subscription, a mark for each notice.
func stories(t *testing.T, l *ledger) map[int64]string {
	told := map[int64]string{}
	for _, d := range l.data() {
		switch d := d.(type) {
		case domain.ListChanged:
			told[d.Subscription] += strings.Repeat("+", int(d.Count))
			if d.Context != fmt.Sprint(d.Subscription) {
				t.Errorf("%+v", d)
			}
		case domain.SubscriptionAcknowledged:
			told[d.RequestID] += "acknowledged "
		case domain.SubscriptionEnded:
			told[d.RequestID] += d.How
		case domain.ExchangeFailed:
			told[d.RequestID] += " lost"
		}
	}
	return told
}

// BenchmarkStorm is what a notice costs the reader of a peer that sends nothing else, and what is kept of all of them.
func BenchmarkStorm(b *testing.B) {
	for _, notice := range []struct{ name, line string }{{"taken", changeNotice("1")}, {"foreign", changeNotice("2")},
		{"unrelated", strings.Replace(changeNotice("1"), "tools", "other", 1)}} {
		b.Run(notice.name, func(b *testing.B) {
			line := []byte(notice.line + "\n")
			chunk := bytes.Repeat(line, 500)
			l := newLedger()
			c := reading(l, &repeated{chunk: chunk, left: b.N * len(line)})
			subscribed(c.table, 1, "c")
			b.ReportAllocs()
			b.ResetTimer()
			_ = c.readLines()
			b.StopTimer()
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapAlloc)/(1<<10), "KiB-live")
			c.table.fail(domain.CodeTransportLost)
			c.noise.close()
			b.ReportMetric(float64(len(l.data())), "reports")
		})
	}
}

type repeated struct {
	chunk []byte
	at    int
	left  int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.left)], r.chunk[r.at:])
	r.at = (r.at + n) % len(r.chunk)
	r.left -= n
	return n, nil
}
