package stream

import (
	"bytes"
	"context"
	"fmt"
	"testing"
)

// BenchmarkPublish copies events of 600 bytes, so many on their way at once.
func BenchmarkPublish(b *testing.B) {
	for _, batch := range []int{1, 64, 512, maxBatch} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			_, _, nc := copyStage(b)
			cfg, log := publisherConfig(), newLog(b.N)
			cfg.Batch = batch
			body := bytes.Repeat([]byte("x"), 600)
			for i := range log.events {
				log.events[i].Bytes = body
			}
			b.ResetTimer()
			p := runPublisher(b, nc, cfg, log)
			if err := p.CaughtUp(context.Background(), int64(b.N)); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
