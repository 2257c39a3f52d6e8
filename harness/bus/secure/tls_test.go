package secure

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pair writes NAME.pem and NAME.key and returns the certificate.
func pair(t *testing.T, dir, name string) (raw []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name}}
	if raw, err = x509.CreateCertificate(rand.Reader, template, template, key.Public(), key); err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
	put(t, filepath.Join(dir, name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
	return raw
}

func put(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFaultsAreFoundInTheRightFile(t *testing.T) {
	dir := t.TempDir()
	pair(t, dir, "a")
	pair(t, dir, "b")
	put(t, filepath.Join(dir, "text"), []byte("text"))
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		tls           TLS
		which, reason string
	}{
		{TLS{}, "", ""},
		{TLS{Pin: "00"}, "", ""},
		{TLS{CA: at("a.pem"), Cert: at("b.pem"), Key: at("b.key")}, "", ""},
		{TLS{CA: at("gone")}, "ca", "cannot be read"},
		{TLS{CA: at("text")}, "ca", "no certificate in PEM"},
		{TLS{CA: at("a.key")}, "ca", "no certificate in PEM"},
		{TLS{Cert: at("a.pem")}, "cert", "without its key"},
		{TLS{Key: at("a.key")}, "key", "without its certificate"},
		{TLS{Cert: at("gone"), Key: at("a.key")}, "cert", "cannot be read"},
		{TLS{Cert: at("a.pem"), Key: at("gone")}, "key", "cannot be read"},
		{TLS{Cert: at("a.key"), Key: at("a.key")}, "cert", "no certificate in PEM"},
		{TLS{Cert: at("a.pem"), Key: at("b.key")}, "key", "not the key to cert"},
		{TLS{Cert: at("a.pem"), Key: at("text")}, "key", "not the key to cert"},
	} {
		which, reason := c.tls.Fault()
		if which != c.which || !strings.Contains(reason, c.reason) || (which == "") != (reason == "") {
			t.Errorf("%+v: %q %q", c.tls, which, reason)
		}
	}
}

// A digest is that of the first certificate, whatever else a file holds before it or
// after it.
func TestDigest(t *testing.T) {
	dir := t.TempDir()
	raw := pair(t, dir, "a")
	pair(t, dir, "b")
	var chain []byte
	for _, name := range []string{"a.key", "a.pem", "b.pem"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, b...)
	}
	put(t, filepath.Join(dir, "chain"), chain)
	want := sha256.Sum256(raw)
	for _, name := range []string{"a.pem", "chain"} {
		if got, err := Digest(filepath.Join(dir, name)); err != nil || got != hex.EncodeToString(want[:]) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for _, name := range []string{"a.key", "gone"} {
		if got, err := Digest(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A pin lets in the one certificate and no other, nor none at all.
func TestAPinIsOneCertificate(t *testing.T) {
	dir := t.TempDir()
	raw, other := pair(t, dir, "a"), pair(t, dir, "b")
	pin, err := Digest(filepath.Join(dir, "a.pem"))
	if err != nil {
		t.Fatal(err)
	}
	verify := pinned(pin).VerifyConnection
	shown := func(certs ...[]byte) (s tls.ConnectionState) {
		for _, b := range certs {
			s.PeerCertificates = append(s.PeerCertificates, &x509.Certificate{Raw: bytes.Clone(b)})
		}
		return s
	}
	if err := verify(shown(raw, other)); err != nil {
		t.Errorf("its own: %v", err)
	}
	for _, s := range []tls.ConnectionState{shown(), shown(other), shown(other, raw)} {
		if err := verify(s); !errors.Is(err, ErrOtherCertificate) {
			t.Errorf("%d others: %v", len(s.PeerCertificates), err)
		}
	}
}

// Anything but the zero TLS insists on encryption.
func TestOptions(t *testing.T) {
	dir := t.TempDir()
	pair(t, dir, "a")
	ca := filepath.Join(dir, "a.pem")
	for n, c := range map[int]TLS{0: {}, 1: {CA: ca}, 2: {CA: ca, Cert: ca, Key: filepath.Join(dir, "a.key")}} {
		if got := len(c.Options()); got != n {
			t.Errorf("%+v: %d options", c, got)
		}
	}
}
