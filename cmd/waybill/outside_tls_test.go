package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/harness/bus/bustest"
)

// authority makes certificates, and is itself ca.pem in its folder.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert, a.key = a.sign("ca", template, nil, nil)
	return a
}

// issue makes NAME.pem and NAME.key, good for an address or name.
func (a *authority) issue(name, host string) (cert, key string) {
	a.t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	a.sign(name, template, a.cert, a.key)
	return a.file(name + ".pem"), a.file(name + ".key")
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) sign(name string, template, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key := bustest.Must[*ecdsa.PrivateKey](a.t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	if parent == nil {
		parent, by = template, key
	}
	raw := bustest.Must[[]byte](a.t)(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by))
	secret := bustest.Must[[]byte](a.t)(x509.MarshalPKCS8PrivateKey(key))
	for file, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: raw}, ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(a.file(name+file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return bustest.Must[*x509.Certificate](a.t)(x509.ParseCertificate(raw)), key
}

// A server that wants encryption and a certificate of each client gets them from
// nats.tls, whichever scheme its address has; the commands do as the service does.
func TestAnOutsideServerWithTLS(t *testing.T) {
	f, a := newFar(t), newAuthority(t)
	cert, key := a.issue("server", "127.0.0.1")
	own, ownKey := a.issue("waybill", "waybill.example")
	server := f.one(stored(t) + fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }\n", cert, key, a.file("ca.pem")))
	host := strings.TrimPrefix(server.URL(), "nats://")
	for _, scheme := range []string{"nats://", "tls://"} {
		f.write(fmt.Sprintf("url: %q, tls: {ca: %q, cert: %q, key: %q}", scheme+host, a.file("ca.pem"), own, ownKey))
		s := f.serve()
		f.must(exitDone, "call", "echo", "{}")
		f.must(exitDone, "export", "--stream")
		f.copied()
		if code := s.stop(syscall.SIGTERM); code != exitDone {
			t.Errorf("%s: serve ended with %d", scheme, code)
		}
		f.must(exitDone, "export", "--stream") // by what the configuration says, with no service
	}
}

// A command says what about the encryption is not as it should be.
func TestWhatIsWrongWithTLSIsSaid(t *testing.T) {
	f, a, other := newFar(t), newAuthority(t), newAuthority(t)
	cert, key := a.issue("server", "127.0.0.1")
	named, namedKey := a.issue("named", "nats.example")
	start := func(tls string) string {
		dir := t.TempDir()
		return bustest.StartProcess(t, dir, bustest.Port(t), stored(t)+tls+f.accounts(dir)).URL()
	}
	plain := start("")
	encrypted := start(fmt.Sprintf("tls { cert_file: %q, key_file: %q }\n", cert, key))
	verifying := start(fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }\n", cert, key, a.file("ca.pem")))
	misnamed := start(fmt.Sprintf("tls { cert_file: %q, key_file: %q }\n", named, namedKey))
	for name, c := range map[string]struct{ url, ca, words string }{
		"no TLS there":           {plain, a.file("ca.pem"), "it offers no TLS, and nats.tls or a tls:// address asks for it"},
		"another authority":      {encrypted, other.file("ca.pem"), "name the file of its authority with nats.tls.ca"},
		"another name":           {misnamed, a.file("ca.pem"), "name it in nats.url as its certificate does"},
		"no client certificate":  {verifying, a.file("ca.pem"), "name one with nats.tls.cert and nats.tls.key"},
		"a certificate is asked": {encrypted, cert, ""},
	} {
		f.write(fmt.Sprintf("url: %q, tls: {ca: %q}", c.url, c.ca))
		code, _, errs := f.run("export", "--stream")
		want := exitNotRunning
		if c.words == "" {
			want = exitInternal // it got as far as asking for the stream, which is not there
		}
		if code != want || !strings.Contains(errs, c.words) {
			t.Errorf("%s: exit %d: %s", name, code, errs)
		}
	}
	// The service goes on trying, and says why it has to.
	f.write(fmt.Sprintf("url: %q, tls: {ca: %q}", encrypted, other.file("ca.pem")))
	s := f.serveUnreached()
	eventually(t, "the reason is said", func() bool {
		return strings.Contains(s.errs.String(), "name the file of its authority with nats.tls.ca")
	})
	s.stop(syscall.SIGKILL)
	f.write(fmt.Sprintf("url: %q", plain))
	f.swapKey("replier")
	s = f.serveUnreached()
	eventually(t, "the other reason is said", func() bool {
		return strings.Contains(s.errs.String(), "they were made after the server was started")
	})
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
}

// swapKey puts the key of another log in the place of a user's.
func (f *farNATS) swapKey(user string) {
	f.t.Helper()
	other := newWorld(f.t, "", peerYAML{name: "a", mode: "modern"}).ready()
	b := bustest.Must[[]byte](f.t)(os.ReadFile(filepath.Join(other.dir, ".waybill", "nats", user+".nk")))
	if err := os.WriteFile(filepath.Join(f.dir, ".waybill", "nats", user+".nk"), b, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// The embedded server beyond loopback is encrypted, and the commands on this machine
// know it by its very certificate, whatever name that is made out to.
func TestTheEmbeddedServerBeyondLoopback(t *testing.T) {
	f, a := newFar(t), newAuthority(t)
	f.write(`listen: "0.0.0.0:0"`)
	if code, _, errs := f.run("check"); code != exitConfig || !strings.Contains(errs, "nats.listen: 0.0.0.0:0 is not this machine alone") {
		t.Errorf("exit %d: %s", code, errs)
	}
	cert, key := a.issue("server", "waybill.example")
	f.write(fmt.Sprintf("listen: \"0.0.0.0:0\", tls: {cert: %q, key: %q}", cert, key))
	s := f.serve()
	f.must(exitDone, "call", "echo", "{}")
	f.must(exitDone, "export", "--stream")
	b := bustest.Must[[]byte](t)(os.ReadFile(filepath.Join(f.dir, ".waybill", "run.json")))
	if !strings.Contains(string(b), `"pin": "`) || strings.Contains(string(b), "server.key") {
		t.Errorf("run.json: %s", b)
	}
	// Another certificate under the same name is not the one it began with.
	pin := decode[struct{ TLS struct{ Pin string } }](t, string(b)).TLS.Pin
	forged := strings.Replace(string(b), pin, strings.Repeat("0", len(pin)), 1)
	if err := os.WriteFile(filepath.Join(f.dir, ".waybill", "run.json"), []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := f.run("call", "echo", "{}"); code != exitNotRunning || !strings.Contains(errs, "another certificate than the one it began with") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
}
