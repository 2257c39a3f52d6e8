package bus

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// writeCertificate makes a certificate for 127.0.0.1 that speaks for itself.
func writeCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	pair := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "waybill"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.ParseIP("127.0.0.1")}}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, template, &pair.PublicKey, pair))
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der},
		key:  {Type: "PRIVATE KEY", Bytes: must[[]byte](t)(x509.MarshalPKCS8PrivateKey(pair))},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestNothingIsServedBeyondLoopbackInTheOpen(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	for listen, open := range map[string]bool{
		"127.0.0.1:0": true, "localhost:0": true, "[::1]:0": true, "127.8.8.8:0": true,
		":0": false, "0.0.0.0:0": false, "[::]:0": false, "192.0.2.1:4222": false, "waybill.example:4222": false, "localhost.example:4222": false,
	} {
		cfg := serverConfig(c, t.TempDir())
		cfg.Listen = listen
		_, err := serverOptions(cfg)
		if open && err != nil {
			t.Errorf("%s: %v", listen, err)
		}
		if !open && (err == nil || !strings.Contains(err.Error(), "not a loopback address") || !strings.Contains(err.Error(), "nats.tls")) {
			t.Errorf("%s: %v", listen, err)
		}
	}
}

func TestConnectionsOverTheNetworkAreEncryptedWithACertificate(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	cfg := serverConfig(c, t.TempDir())
	cfg.Listen = "0.0.0.0:0"
	cfg.TLSCert, cfg.TLSKey = writeCertificate(t)
	s := must[*Server](t)(StartServer(cfg))
	defer s.Close()
	if !strings.HasPrefix(s.ClientURL(), "tls://127.0.0.1:") {
		t.Errorf("address %s", s.ClientURL())
	}
	service := c.Service()
	key := nats.Nkey(service.Public(), service.Sign)
	nc := must[*nats.Conn](t)(nats.Connect(s.ClientURL(), key, nats.RootCAs(cfg.TLSCert)))
	defer nc.Close()
	if state, err := nc.TLSConnectionState(); err != nil || !state.HandshakeComplete {
		t.Errorf("%+v, %v", state, err)
	}
	if open, err := nats.Connect(s.ClientURL(), key); err == nil {
		open.Close()
		t.Error("connected without knowing the certificate")
	}
	if inside := connect(t, service, Target{Server: s}); !inside.IsConnected() {
		t.Error("not connected inside the process")
	}
}

func TestACertificateThatCannotBeReadIsNamed(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	cert, key := writeCertificate(t)
	for name, change := range map[string]func(*ServerConfig){
		"no key":         func(cfg *ServerConfig) { cfg.TLSCert = cert },
		"no certificate": func(cfg *ServerConfig) { cfg.TLSKey = key },
		"not there":      func(cfg *ServerConfig) { cfg.TLSCert, cfg.TLSKey = "nowhere.pem", key },
		"swapped":        func(cfg *ServerConfig) { cfg.TLSCert, cfg.TLSKey = key, cert },
	} {
		cfg := serverConfig(c, t.TempDir())
		change(&cfg)
		if s, err := StartServer(cfg); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", name, err)
			if s != nil {
				s.Close()
			}
		}
	}
}
