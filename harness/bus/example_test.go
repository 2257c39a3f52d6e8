package bus

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// The configuration of an outside server in the documentation is one that a server
// takes: with JetStream, our users and a certificate.
func TestTheDocumentedServerConfigurationIsOne(t *testing.T) {
	conf := must[[]byte](t)(os.ReadFile("../../docs/examples/nats-server.conf"))
	dir := t.TempDir()
	if _, err := WriteCredentials(filepath.Join(dir, ".waybill", "nats"), DefaultPrefix, testLog, []string{LocalHost}); err != nil {
		t.Fatal(err)
	}
	cert, key := writeCertificate(t)
	for from, to := range map[string]string{cert: "server.pem", key: "server.key"} {
		if err := os.WriteFile(filepath.Join(dir, to), must[[]byte](t)(os.ReadFile(from)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "nats-server.conf")
	if err := os.WriteFile(file, conf, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir) // the certificate is named beside it
	opts := must[*server.Options](t)(server.ProcessConfigFile(file))
	if !opts.JetStream || !opts.NoFastProducerStall || opts.TLSConfig == nil || len(opts.Accounts) < 5 || len(opts.Nkeys) < 7 {
		t.Errorf("jetstream %t, stall %t, %d accounts, %d users", opts.JetStream, !opts.NoFastProducerStall, len(opts.Accounts), len(opts.Nkeys))
	}
}
