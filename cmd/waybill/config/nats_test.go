package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/harness/bus/secure"
)

// badNATS are the mistakes of the section nats.
var badNATS = []mistake{
	{"nats is no mapping", "nats: here\n" + peers, 1, "nats", "must be a mapping, not text"},
	{"nats url", "nats: {url: 'http://x'}\n" + peers, 1, "nats.url", "must be like nats://"},
	{"nats url over websocket", "nats: {url: 'wss://x:443'}\n" + peers, 1, "nats.url", "must be like nats://HOST:PORT or tls://"},
	{"nats url without scheme", "nats: {url: 'x:4222'}\n" + peers, 1, "nats.url", "must be like nats://"},
	{"nats url with a password", "nats: {url: 'nats://u:p@x:1'}\n" + peers, 1, "nats.url", "use nats.credentials"},
	{"nats url with a password among others", "nats: {url: 'nats://a:1, nats://u:p@x:1'}\n" + peers, 1, "nats.url", "use nats.credentials"},
	{"nats url with a path", "nats: {url: 'nats://x:1/y'}\n" + peers, 1, "nats.url", "must end after the port"},
	{"nats url with a query", "nats: {url: 'nats://x:1?y'}\n" + peers, 1, "nats.url", "must end after the port"},
	{"nats url with nothing after a comma", "nats: {url: 'nats://x:1,'}\n" + peers, 1, "nats.url", "must be like nats://"},
	{"nats url is a number", "nats: {url: 4222}\n" + peers, 1, "nats.url", "an address or a list of addresses, not a whole number"},
	{"nats url is an empty list", "nats: {url: []}\n" + peers, 1, "nats.url", "is an empty list"},
	{"nats url twice", "nats:\n  url:\n  - nats://x:1\n  - nats://x:1\n" + peers, 4, "nats.url[1]", "named twice"},
	{"nats url in a list", "nats:\n  url:\n  - nats://x:1\n  - ftp://x:1\n" + peers, 4, "nats.url[1]", "must be like nats://"},
	{"nats urls in one item", "nats:\n  url:\n  - 'nats://x:1,nats://y:1'\n" + peers, 3, "nats.url[0]", "must be like"},
	{"a nats url is no text", "nats:\n  url: [4]\n" + peers, 2, "nats.url[0]", "must be text"},
	{"too many nats urls", "nats: {url: '" + manyServers(17) + "'}\n" + peers, 1, "nats.url", "names 17 servers, more than 16"},
	{"tls is no mapping", "nats: {tls: yes}\n" + peers, 1, "nats.tls", "must be a mapping"},
	{"tls ca is missing", "nats: {url: 'nats://x:1', tls: {ca: no-such.pem}}\n" + peers, 1, "nats.tls.ca", "cannot be read: open "},
	{"tls ca is empty", "nats: {url: 'nats://x:1', tls: {ca: ''}}\n" + peers, 1, "nats.tls.ca", "is empty: name a path"},
	{"tls ca is none", "nats: {url: 'nats://x:1', tls: {ca: waybill.yaml}}\n" + peers, 1, "nats.tls.ca", "holds no certificate in PEM"},
	{"tls ca of the embedded server", "nats: {tls: {ca: waybill.yaml}}\n" + peers, 1, "nats.tls.ca", "the embedded server needs cert and key alone"},
	{"tls cert without key", "nats: {tls: {cert: waybill.yaml}}\n" + peers, 1, "nats.tls.cert", "without its key"},
	{"tls key without cert", "nats: {tls: {key: waybill.yaml}}\n" + peers, 1, "nats.tls.key", "without its certificate"},
	{"tls cert is missing", "nats: {tls: {cert: no-such.pem, key: waybill.yaml}}\n" + peers, 1, "nats.tls.cert", "cannot be read"},
	{"tls key is missing", "nats: {tls: {cert: waybill.yaml, key: no-such.pem}}\n" + peers, 1, "nats.tls.key", "cannot be read"},
	{"tls cert is none", "nats: {tls: {cert: waybill.yaml, key: waybill.yaml}}\n" + peers, 1, "nats.tls.cert", "holds no certificate in PEM"},
	{"tls key unknown", "nats: {tls: {certs: x}}\n" + peers, 1, "nats.tls.certs", "did you mean cert?"},
	{"replicas of the embedded server", "nats: {replicas: 3}\n" + peers, 1, "nats.replicas", "nats.url"},
	{"too many replicas", "nats: {url: 'nats://x:1', replicas: 6}\n" + peers, 1, "nats.replicas", "from 1 to 5"},
	{"max_bytes below a message", "nats: {max_bytes: 4KiB}\n" + peers, 1, "nats.max_bytes", "at least 1MiB"},
	{"max_age of a moment", "nats: {max_age: 1s}\n" + peers, 1, "nats.max_age", "or 0 for none"},
	{"max_lag below zero", "nats: {max_lag: -1}\n" + peers, 1, "nats.max_lag", "must be a whole number"},
	{"listen without port", "nats:\n  listen: 127.0.0.1\n" + peers, 2, "nats.listen", "HOST:PORT"},
	{"listen with a bad port", "nats: {listen: 'localhost:70000'}\n" + peers, 1, "nats.listen", "HOST:PORT"},
	{"listen with a bad address", "nats: {listen: '127.0.0.300:1'}\n" + peers, 1, "nats.listen", "HOST:PORT"},
	{"listen everywhere without tls", "nats: {listen: '0.0.0.0:4222'}\n" + peers, 1, "nats.listen", "0.0.0.0:4222 is not this machine alone, so what is said there must be encrypted"},
	{"listen on another address without tls", "nats: {listen: '[2001:db8::1]:4222'}\n" + peers, 1, "nats.listen", "must be encrypted"},
	{"listen under a name without tls", "nats: {listen: 'example.org:4222'}\n" + peers, 1, "nats.listen", "must be encrypted"},
}

func manyServers(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("nats://h%d:1", i))
	}
	return strings.Join(list, ",")
}

func TestServersAreReadAsOneOrMany(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"''", ""},
		{"nats://127.0.0.1:4222", "nats://127.0.0.1:4222"},
		{"'tls://a:1, tls://b:2,tls://[::1]:3'", "tls://a:1,tls://b:2,tls://[::1]:3"},
		{"[nats://localhost, 'nats://[::1]:4223']", "nats://localhost,nats://[::1]:4223"},
	} {
		f := mustLoad(t, "nats: {url: "+c.yaml+"}\n"+peers)
		if f.NATS.URL != c.want || len(f.Warnings) != 0 {
			t.Errorf("%s is read as %q, warnings %q", c.yaml, f.NATS.URL, f.Warnings)
		}
	}
}

func TestAPlainWayToAnotherMachineIsWarnedOf(t *testing.T) {
	f := mustLoad(t, "nats: {url: 'nats://localhost:1,nats://nats.example.org:4222,tls://b:2'}\n"+peers)
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "nats.url: nats.example.org:4222 is another machine") {
		t.Errorf("warnings %q", f.Warnings)
	}
}

// pair writes a certificate and its key into a folder.
func pair(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name}}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	put(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})), 0o644)
	put(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})), 0o600)
	return cert, key
}

func TestTLSOfNATS(t *testing.T) {
	dir := t.TempDir()
	cert, key := pair(t, dir, "a")
	pair(t, dir, "b")
	load := func(nats string) (*File, error) {
		return LoadWith(put(t, filepath.Join(dir, "waybill.yaml"), "nats: "+nats+"\n"+peers, 0o644), environment(nil))
	}
	for nats, want := range map[string]secure.TLS{
		"{url: 'nats://example.org:1', tls: {ca: a.pem}}":                         {CA: cert},
		"{url: 'tls://example.org:1', tls: {ca: a.pem, cert: a.pem, key: a.key}}": {CA: cert, Cert: cert, Key: key},
		"{listen: '0.0.0.0:4222', tls: {cert: a.pem, key: a.key}}":                {Cert: cert, Key: key},
	} {
		f, err := load(nats)
		if err != nil || f.NATS.TLS != want || len(f.Warnings) != 0 {
			t.Errorf("%s: %+v, %v", nats, f, err)
		}
	}
	if _, err := load("{tls: {cert: a.pem, key: b.key}}"); err == nil || !strings.Contains(err.Error(), "nats.tls.key") || !strings.Contains(err.Error(), "is not the key to cert") {
		t.Errorf("the key of another certificate: %v", err)
	}
	if _, err := load("{tls: {cert: a.pem, key: a.pem}}"); err == nil || !strings.Contains(err.Error(), "is not the key to cert") {
		t.Errorf("a certificate for a key: %v", err)
	}
}

// The key is one of the values that may be written nowhere, in each form in which
// somebody may write it.
func TestTheKeyOfTLSIsASecret(t *testing.T) {
	dir := t.TempDir()
	_, key := pair(t, dir, "a")
	f, err := LoadWith(put(t, filepath.Join(dir, "waybill.yaml"), "nats: {tls: {cert: a.pem, key: a.key}}\n"+peers, 0o644), environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := f.AllSecrets(environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(b)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	for _, form := range []string{strings.TrimSpace(string(b)), string(block.Bytes), strings.Join(lines[1:len(lines)-1], "")} {
		if !slices.Contains(secrets, form) {
			t.Errorf("not among the secrets: %q", form)
		}
	}
}
