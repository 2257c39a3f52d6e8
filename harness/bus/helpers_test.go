package bus

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"waybill/harness/bus/bustest"
)

const (
	testLog  = "node-0a1b2c3d"
	patience = bustest.Patience
)

var quiet = slog.New(slog.DiscardHandler)

// TestMain fails the run if code of this package is still running at its end.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leftovers(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leftovers waits for the goroutines of this package to end and returns those
// that do not.
func leftovers() string {
	var left string
	poll(5*time.Second, func() bool {
		left = bustest.Running("waybill/harness/bus.", "bus.TestMain")
		return left == ""
	})
	return left
}

func writeCredentials(t testing.TB, hosts ...string) (string, Credentials) {
	t.Helper()
	dir := t.TempDir()
	must[[]string](t)(WriteCredentials(dir, DefaultPrefix, testLog, hosts))
	return dir, must[Credentials](t)(LoadCredentials(dir))
}

func serverConfig(c Credentials, store string) ServerConfig {
	return ServerConfig{
		Listen:      "127.0.0.1:0",
		StoreDir:    store,
		Credentials: c,
		Prefix:      DefaultPrefix,
		LogID:       testLog,
		Logger:      quiet,
	}
}

func startServer(t testing.TB, c Credentials) *Server {
	t.Helper()
	s := must[*Server](t)(StartServer(serverConfig(c, t.TempDir())))
	t.Cleanup(s.Close)
	return s
}

func connect(t testing.TB, id Identity, to Target) *nats.Conn {
	t.Helper()
	if to.Logger == nil {
		to.Logger = quiet
	}
	nc := must[*nats.Conn](t)(Connect(id, to))
	t.Cleanup(nc.Close)
	return nc
}

func dial(t testing.TB, c Credentials, s *Server, host string) *Client {
	t.Helper()
	id := must[Identity](t)(c.Host(host))
	client := must[*Client](t)(DialAs(testContext(t), id, Target{Server: s, Logger: quiet}, DefaultPrefix))
	t.Cleanup(client.Close)
	return client
}

var (
	poll            = bustest.Poll
	eventually      = bustest.Eventually
	testContext     = bustest.Context
	startOpenServer = bustest.OpenServer
	newWire         = bustest.NewWire
)

func must[T any](t testing.TB) func(v T, err error) T { return bustest.Must[T](t) }

func receive[T any](t testing.TB, ch <-chan T) T { t.Helper(); return bustest.Receive(t, ch) }

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
