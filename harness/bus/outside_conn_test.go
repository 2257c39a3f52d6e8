package bus

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"waybill/harness/bus/bustest"
	"waybill/harness/bus/secure"
)

// Any server of a list will do: those that are down, or do not know the key, are
// passed over.
func TestAnyOfSeveralServersWillDo(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	_, strangers := writeCredentials(t, LocalHost)
	ours, theirs := startServer(t, c), startServer(t, strangers)
	down := "nats://127.0.0.1:1"
	for _, list := range []string{ours.ClientURL(), down + "," + ours.ClientURL(), theirs.ClientURL() + ", " + ours.ClientURL(), ours.ClientURL() + "," + theirs.ClientURL() + "," + down} {
		for range 5 { // the order is random
			nc := connect(t, c.Service(), Target{URL: list})
			if nc.ConnectedUrl() != ours.ClientURL() {
				t.Errorf("%s: connected to %s", list, nc.ConnectedUrl())
			}
			nc.Close()
		}
	}
	for list, want := range map[string]error{down: ErrUnreachable, down + "," + down: ErrUnreachable, theirs.ClientURL(): ErrKeyRefused} {
		nc, err := Connect(c.Service(), Target{URL: list, Logger: quiet})
		if !errors.Is(err, want) || errors.Is(err, ErrUnreachable) == errors.Is(err, ErrKeyRefused) || !strings.Contains(err.Error(), list) {
			t.Errorf("%s: %v", list, err)
		}
		if nc != nil {
			nc.Close()
		}
	}
	missing := filepath.Join(t.TempDir(), "ca.pem")
	_, err := Connect(c.Service(), Target{URL: ours.ClientURL(), TLS: secure.TLS{CA: missing}})
	if err == nil || errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "nats.tls.ca cannot be read: open "+missing) {
		t.Errorf("without its file: %v", err)
	}
}

// A reply that is given while the connection of the replier is away arrives when it
// is back, after the subscriptions are; one for which there is no room is an error.
func TestRepliesWaitForTheConnection(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	s := startServer(t, c)
	wire := newWire(t, s.ClientURL())
	replier := connect(t, c.Replier(), Target{URL: wire.URL()})
	requests := make(chan *Request, 64)
	service := must[*Service](t)(StartService(replier, ServiceConfig{Prefix: DefaultPrefix, LogID: testLog, Logger: quiet},
		Handlers{Call: func(r *Request) { requests <- r }}))
	t.Cleanup(service.Stop)
	host := connect(t, must[Identity](t)(c.Host(LocalHost)), Target{URL: s.ClientURL()})
	replies := must[*nats.Subscription](t)(host.SubscribeSync(InboxPrefix(LocalHost) + ".>"))
	ask := func(id string) *Request {
		t.Helper()
		if err := host.PublishRequest(RequestSubject(DefaultPrefix, CallVerb, LocalHost), InboxPrefix(LocalHost)+"."+id, []byte(id)); err != nil {
			t.Fatal(err)
		}
		return receive(t, requests)
	}
	var waiting []*Request
	for range 12 {
		waiting = append(waiting, ask("x"))
	}
	wire.To("127.0.0.1:1")
	wire.Cut()
	eventually(t, "the connection is away", func() bool { return !replier.IsConnected() })
	sent := 0
	for _, r := range waiting {
		err := r.Respond(make([]byte, 1<<20-100), "", 0)
		if err == nil {
			sent++
		} else if !errors.Is(err, nats.ErrReconnectBufExceeded) {
			t.Errorf("no room is said as %v", err)
		}
	}
	if sent < 8 || sent == len(waiting) {
		t.Errorf("%d of %d replies were taken", sent, len(waiting))
	}
	wire.To(s.ClientURL())
	for range sent {
		if m, err := replies.NextMsg(bustest.Patience); err != nil || len(m.Data) != 1<<20-100 {
			t.Fatalf("a reply of the buffer: %v", err)
		}
	}
	if err := ask("again").Respond([]byte("y"), "", 0); err != nil { // the endpoints are there again
		t.Fatal(err)
	}
	if m, err := replies.NextMsg(bustest.Patience); err != nil || string(m.Data) != "y" {
		t.Errorf("after the outage: %v", err)
	}
}
