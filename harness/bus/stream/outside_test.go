package stream

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/harness/bus"
	"waybill/harness/bus/bustest"
)

// another starts a server as an operator configures one: with the file of accounts
// that init writes, which change may alter, and with lines of its own.
func another(t *testing.T, lines string, change func(accounts string) string) (*nats.Conn, bus.Credentials) {
	t.Helper()
	keys, dir := t.TempDir(), t.TempDir()
	must[[]string](t)(bus.WriteCredentials(keys, bus.DefaultPrefix, testLog, []string{bus.LocalHost}))
	accounts := string(must[[]byte](t)(os.ReadFile(filepath.Join(keys, bus.AccountsFile))))
	if change != nil {
		changed := change(accounts)
		if changed == accounts {
			t.Fatal("the accounts are as they were")
		}
		accounts = changed
	}
	file := filepath.Join(dir, "nats.conf")
	for path, text := range map[string]string{filepath.Join(dir, "accounts.conf"): accounts, file: "listen: \"127.0.0.1:-1\"\n" + lines + "\ninclude accounts.conf\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opts := must[*server.Options](t)(server.ProcessConfigFile(file))
	opts.NoSigs, opts.NoLog, opts.StoreDir = true, true, t.TempDir()
	ns := must[*server.Server](t)(server.NewServer(opts))
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(bustest.Patience) {
		t.Fatal("server not ready")
	}
	creds := must[bus.Credentials](t)(bus.LoadCredentials(keys))
	return connect(t, creds.Service(), bus.Target{URL: ns.ClientURL()}), creds
}

// What the server lacks is said with what to do about it; the publisher goes on
// trying, since it may be put right while the service runs.
func TestWhatAServerLacksIsSaid(t *testing.T) {
	const large = "jetstream { max_memory_store: 1MB, max_file_store: 1GB }"
	instead := func(old, with string) func(string) string {
		return func(accounts string) string { return strings.Replace(accounts, old, with, 1) }
	}
	for name, c := range map[string]struct {
		lines  string
		change func(string) string
		config func(*PublisherConfig)
		events int
		words  string
		api    jetstream.ErrorCode // of JetStream's words, which stand behind ours; 0 for none of them
	}{
		"no JetStream":                {words: "it is not enabled on the server (jetstream in its configuration)"},
		"none in the account":         {lines: large, change: instead("    jetstream: enabled\n", ""), words: "not enabled for the account of the service: include nats-accounts.conf as waybill init wrote it", api: 10039},
		"the account is full":         {lines: large, change: instead("jetstream: enabled", "jetstream: { max_file: 20KB }"), events: 2000, words: "the account of the service has no room left in JetStream", api: 10002},
		"the server is full":          {lines: "jetstream { max_memory_store: 1MB, max_file_store: 20KB }", events: 2000, words: "JetStream has no room left: raise max_file_store of the server", api: 10023},
		"no room for the stream":      {lines: "jetstream { max_memory_store: 1MB, max_file_store: 4MB }", config: func(c *PublisherConfig) { c.MaxBytes = 8 << 20 }, words: "has no room for a stream of 8388608 bytes: lower nats.max_bytes", api: 10047},
		"the stream is full":          {lines: large, config: func(c *PublisherConfig) { c.MaxBytes = 1 << 20 }, events: 20000, words: "the stream is full: nats.max_bytes is 1048576; enlarge it", api: 10077},
		"small messages only":         {lines: large + "\nmax_payload: 128", words: "its max_payload must be 1MB"},
		"replicas of a single server": {lines: large, config: func(c *PublisherConfig) { c.Replicas = 3 }, words: "nats.replicas is 3, and the server is not a cluster of that many", api: 10074},
	} {
		t.Run(name, func(t *testing.T) {
			nc, _ := another(t, c.lines, c.change)
			cfg := publisherConfig()
			cfg.AckWait = 5 * time.Second
			if c.config != nil {
				c.config(&cfg)
			}
			log := newLog(max(c.events, 1))
			p := runPublisher(t, nc, cfg, log)
			eventually(t, c.words, func() bool { err := p.Err(); return err != nil && strings.Contains(err.Error(), c.words) })
			h := p.Health(log.head())
			if h.State != StateBehind || !strings.Contains(h.Error, c.words) || h.Lag == 0 {
				t.Errorf("health %+v", h)
			}
			var api *jetstream.APIError
			if errors.As(p.Err(), &api) != (c.api != 0) || api != nil && api.ErrorCode != c.api {
				t.Errorf("the words of JetStream are %v", api)
			}
		})
	}
}

// A stream that holds our subjects is somebody's: only a person can move it.
func TestAStreamThatIsInTheWayIsNamed(t *testing.T) {
	nc, _ := another(t, "jetstream { max_memory_store: 1MB, max_file_store: 1GB }", nil)
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	must[jetstream.Stream](t)(js.CreateStream(testContext(t), jetstream.StreamConfig{Name: "ELSE", Subjects: []string{bus.EventRoot(bus.DefaultPrefix, testLog) + "call.>"}}))
	err := runPublisher(t, nc, publisherConfig(), newLog(1)).ended(t)
	var settings *SettingsError
	if !errors.As(err, &settings) || !strings.Contains(err.Error(), "another stream, ELSE, holds its subjects") {
		t.Errorf("ended with %v", err)
	}
}

// Words that are not JetStream's: of the connection, or of nothing we know.
func TestExplain(t *testing.T) {
	odd := errors.New("odd")
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{odd, "odd"},
		{fmt.Errorf("send: %w", nats.ErrReconnectBufExceeded), "the connection to NATS is away and tried again: send: "},
		{nats.ErrTimeout, "NATS gives no answer in time: "},
		{&jetstream.APIError{ErrorCode: 10071, Description: "wrong last sequence: 7"}, "nats: API error: code=0 err_code=10071"},
		{&jetstream.APIError{ErrorCode: 10077, Description: "no space left on device"}, "the server cannot store the message: "},
		{&jetstream.APIError{ErrorCode: 10005, Description: "no suitable peers for placement"}, "nats.replicas is 3, and the server is not a cluster of that many, with room on each: "},
	} {
		got := explain(c.err, jetstream.StreamConfig{Replicas: 3, MaxBytes: 5})
		if c.err == nil {
			if got != nil {
				t.Errorf("nothing is explained as %v", got)
			}
			continue
		}
		if !errors.Is(got, c.err) || !strings.HasPrefix(got.Error(), c.want) {
			t.Errorf("%v is explained as %v", c.err, got)
		}
	}
}
