package payloads

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkSave is what keeping costs before each append of the log: calls of 1 KiB,
// so many in one transaction.
func BenchmarkSave(b *testing.B) {
	for _, n := range []int{1, 16, 128} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p, err := Open(b.TempDir()+"/payloads.db", testLog)
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			arguments, seq := strings.Repeat("x", 1024), int64(0)
			for b.Loop() {
				batch := Batch{First: seq + 1, Events: event}
				for range n {
					seq++
					one := call(seq, "local", "c", arguments)
					batch.Stories = append(batch.Stories, one.Stories...)
					batch.Payloads = append(batch.Payloads, one.Payloads...)
				}
				if err := p.Save(ctx, batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(seq)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}
