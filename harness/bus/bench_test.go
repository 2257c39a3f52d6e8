package bus

import (
	"bytes"
	"context"
	"fmt"
	"testing"
)

// BenchmarkRoundTrip is one request of a host and its reply, through the
// permissions and the micro service, with nothing behind it.
func BenchmarkRoundTrip(b *testing.B) {
	for _, way := range []string{"in process", "socket"} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", way, callers), func(b *testing.B) {
				st := startStage(b, serviceConfig(), echo())
				to := Target{Server: st.server, Logger: quiet}
				if way == "socket" {
					to = Target{URL: st.server.ClientURL(), Logger: quiet}
				}
				id := must[Identity](b)(st.c.Host(LocalHost))
				client := must[*Client](b)(DialAs(testContext(b), id, to, DefaultPrefix))
				defer client.Close()
				body := make([]byte, 300)
				roundTrips(b, client, body, callers)
			})
		}
	}
}

func roundTrips(b *testing.B, client *Client, body []byte, callers int) {
	b.SetParallelism(callers)
	ask := func() {
		if _, _, err := client.Request(context.Background(), CallVerb, body); err != nil {
			b.Error(err)
		}
	}
	if callers == 1 {
		for b.Loop() {
			ask()
		}
		return
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			ask()
		}
	})
}

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
