package bus

import (
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
