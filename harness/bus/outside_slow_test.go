package bus

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"waybill/harness/bus/bustest"
)

// A host that reads nothing is cut off by the server, and loses its replies. The
// service stays connected, and another host has every one of its own meanwhile.
func TestAHostThatReadsNothingIsCutOffAlone(t *testing.T) {
	const answers, size = 64, 512 << 10
	keys, c := writeCredentials(t, "slow", "quick")
	dir := t.TempDir()
	file := filepath.Join(dir, "nats.conf")
	conf := "listen: \"127.0.0.1:-1\"\nwrite_deadline: \"1s\"\nmax_pending: 8MB\n" + bustest.Include(t, dir, filepath.Join(keys, AccountsFile))
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := must[*server.Options](t)(server.ProcessConfigFile(file))
	opts.NoSigs, opts.NoLog = true, true
	ns := must[*server.Server](t)(server.NewServer(opts))
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(patience) {
		t.Fatal("server not ready")
	}
	replier := connect(t, c.Replier(), Target{URL: ns.ClientURL()})
	service := must[*Service](t)(StartService(replier, ServiceConfig{Prefix: DefaultPrefix, LogID: testLog, Logger: quiet},
		Handlers{Call: func(r *Request) {
			body := []byte("done")
			if r.Host == "slow" {
				body = make([]byte, size)
			}
			if err := r.Respond(body, "", 0); err != nil {
				t.Error(err)
			}
		}}))
	t.Cleanup(service.Stop)
	wire := newWire(t, ns.ClientURL())
	slow := connect(t, must[Identity](t)(c.Host("slow")), Target{URL: wire.URL()})
	must[*nats.Subscription](t)(slow.SubscribeSync(InboxPrefix("slow") + ".>"))
	if err := slow.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	wire.Stall()
	for range answers {
		if err := slow.PublishRequest(RequestSubject(DefaultPrefix, CallVerb, "slow"), InboxPrefix("slow")+".x", nil); err != nil {
			t.Fatal(err)
		}
	}
	quick := must[*Client](t)(DialAs(testContext(t), must[Identity](t)(c.Host("quick")), Target{URL: ns.ClientURL(), Logger: quiet}, DefaultPrefix))
	t.Cleanup(quick.Close)
	longest := time.Duration(0)
	for ns.NumSlowConsumers() == 0 {
		begun := time.Now()
		if data, _, err := quick.Request(testContext(t), CallVerb, nil); err != nil || string(data) != "done" {
			t.Fatalf("the other host: %q, %v", data, err)
		}
		longest = max(longest, time.Since(begun))
	}
	t.Logf("the other host waited at most %v", longest)
	if n := replier.Stats().Reconnects; n != 0 || !replier.IsConnected() {
		t.Errorf("the service was cut off too, %d times", n)
	}
	wire.Cut()
	eventually(t, "the slow host is back", func() bool { return slow.Stats().Reconnects > 0 && slow.IsConnected() })
}
