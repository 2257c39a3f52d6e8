package bus

import (
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

func TestConnectionsWithoutAKeyAreRefused(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	s := startServer(t, c)
	for name, opts := range map[string][]nats.Option{
		"nothing":     nil,
		"password":    {nats.UserInfo("service", "service")},
		"unknown key": {strangerKey(t)},
		"public key only": {nats.Nkey(c.Service().Public(), func([]byte) ([]byte, error) {
			return make([]byte, 64), nil
		})},
	} {
		nc, err := nats.Connect(s.ClientURL(), opts...)
		if !errors.Is(err, nats.ErrAuthorization) {
			nc.Close()
			t.Errorf("%s: error %v, want an authorization violation", name, err)
		}
	}
}

func TestConnectionsInTheProcessNeedAKeyToo(t *testing.T) {
	_, c := writeCredentials(t)
	opts := must[*server.Options](t)(serverOptions(serverConfig(c, t.TempDir())))
	opts.WriteDeadline = 100 * time.Millisecond // how long a refused pipe stays open
	ns := must[*server.Server](t)(server.NewServer(opts))
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if nc, err := nats.Connect("", nats.InProcessServer(ns)); err == nil {
		nc.Close()
		t.Error("connected without a key")
	}
	connect(t, c.Service(), Target{Server: &Server{ns: ns}})
}

func strangerKey(t *testing.T) nats.Option {
	pair := must[nkeys.KeyPair](t)(nkeys.CreateUser())
	return nats.Nkey(must[string](t)(pair.PublicKey()), pair.Sign)
}

func TestCredentialsOfAnotherDirectoryAreRefusedInPlainWords(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	_, other := writeCredentials(t, LocalHost)
	s := startServer(t, c)
	_, err := Connect(other.Service(), Target{URL: s.ClientURL(), Logger: quiet})
	if !errors.Is(err, nats.ErrAuthorization) || !strings.Contains(err.Error(), "another data directory") {
		t.Fatalf("error %v", err)
	}
}

func TestAServerThatCannotStartSaysWhyAtOnce(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	taken := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	defer taken.Close()
	for name, change := range map[string]func(*ServerConfig){
		taken.Addr().String(): func(cfg *ServerConfig) { cfg.Listen = taken.Addr().String() },
		"host:port":           func(cfg *ServerConfig) { cfg.Listen = "4222" },
		"65535":               func(cfg *ServerConfig) { cfg.Listen = "127.0.0.1:70000" },
		"run waybill init":    func(cfg *ServerConfig) { cfg.Credentials = Credentials{} },
		"JetStream":           func(cfg *ServerConfig) { cfg.StoreDir = "" },
		"largest message":     func(cfg *ServerConfig) { cfg.MaxPayload = MaxMessage + 1 },
		"subject prefix":      func(cfg *ServerConfig) { cfg.Prefix = "a b" },
	} {
		cfg := serverConfig(c, t.TempDir())
		change(&cfg)
		s, err := StartServer(cfg)
		if err == nil {
			s.Close()
			t.Errorf("%s: started", name)
			continue
		}
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q does not say %q", err, name)
		}
	}
}

func TestAServerWithoutAnAddressServesTheProcessOnly(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	cfg := serverConfig(c, t.TempDir())
	cfg.Listen = ""
	s := must[*Server](t)(StartServer(cfg))
	defer s.Close()
	if url := s.ClientURL(); url != "" {
		t.Errorf("listens at %s", url)
	}
	if nc := connect(t, c.Service(), Target{Server: s}); !nc.IsConnected() {
		t.Error("not connected")
	}
}

func TestAPatientConnectionFindsItsServerLater(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	w := newWire(t, "127.0.0.1:1") // nothing listens there
	nc := connect(t, c.Service(), Target{URL: w.URL(), KeepTrying: true})
	if nc.IsConnected() {
		t.Fatal("connected to nothing")
	}
	w.To(startServer(t, c).ClientURL())
	eventually(t, "connected", nc.IsConnected)
	if _, err := Connect(c.Service(), Target{URL: "nats://127.0.0.1:1", Logger: quiet}); err == nil {
		t.Fatal("an impatient connection to nothing did not fail")
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	lifecycle := func() {
		s := must[*Server](t)(StartServer(serverConfig(c, t.TempDir())))
		defer s.Close()
		replier := must[*nats.Conn](t)(Connect(c.Replier(), Target{Server: s, Logger: quiet}))
		defer replier.Close()
		service := must[*Service](t)(StartService(replier, serviceConfig(), echo()))
		publisher := must[*nats.Conn](t)(Connect(c.Service(), Target{Server: s, Logger: quiet}))
		defer publisher.Close()
		client := dial(t, c, s, LocalHost)
		must2(t)(client.Request(testContext(t), CallVerb, []byte("x")))
		client.Close()
		service.Stop()
		service.Stop()
	}
	lifecycle() // what the libraries start once and keep
	before := runtime.NumGoroutine()
	lifecycle()
	eventually(t, "as few goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
}
