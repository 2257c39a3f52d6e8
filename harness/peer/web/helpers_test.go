package web

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

var quiet = log.New(io.Discard, "", 0)

// settings returns options that let everything through which a test does not ask to refuse.
func settings(t *testing.T, endpoint string) Options {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Endpoint: u, Connections: 4, Connect: 30 * time.Second, MaxHeader: 64 << 10, MaxBody: 1 << 20}
}

func client(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func post(body string) Request {
	return Request{Method: http.MethodPost, Header: []Header{{"Content-Type", "application/json"}}, Body: []byte(body)}
}

// exchange sends a request and reads the whole answer.
func exchange(t *testing.T, c *Client, r Request) (*Answer, string) {
	t.Helper()
	a, err := c.Do(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	body, err := a.Body()
	if err != nil {
		t.Fatal(err)
	}
	return a, string(body)
}

// wantFailure holds an error to its kind and to whether bytes may have left.
func wantFailure(t *testing.T, err error, kind string, sent bool) *Failure {
	t.Helper()
	var f *Failure
	if !errors.As(err, &f) {
		t.Fatalf("%v is no failure, want %s", err, kind)
	}
	if f.Kind != kind || f.Sent != sent {
		t.Fatalf("%s, sent %v: %v; want %s, %v", f.Kind, f.Sent, f, kind, sent)
	}
	return f
}

// raw serves connections of a protocol that the test speaks itself, one after the other or at once, and gives the address.
func raw(t *testing.T, serve func(n int, c net.Conn, in *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(n, c, bufio.NewReader(c))
			}()
		}
	}()
	return l.Addr().String()
}

// readRequest takes one request, its body included.
func readRequest(in *bufio.Reader) (*http.Request, error) {
	r, err := http.ReadRequest(in)
	if err != nil {
		return nil, err
	}
	_, err = in.Discard(int(r.ContentLength))
	return r, err
}

// authority makes a certificate of one's own for the hosts, and gives it as PEM and as a server uses it.
func authority(t *testing.T, hosts ...string) ([]byte, tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// secure starts a server with TLS, and HTTP/2 if it is told so, and gives options that trust it.
func secure(t *testing.T, http2 bool, h http.Handler) Options {
	t.Helper()
	if http2 {
		return secureWith(t, &http.HTTP2Config{}, h)
	}
	return secureWith(t, nil, h)
}

func secureWith(t *testing.T, http2 *http.HTTP2Config, h http.Handler) Options {
	t.Helper()
	ca, cert := authority(t, "127.0.0.1")
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2, s.Config.HTTP2 = http2 != nil, http2
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.Config.ErrorLog = quiet
	s.StartTLS()
	t.Cleanup(s.Close)
	o := settings(t, s.URL)
	o.RootCAs = ca
	return o
}

// soon is a context whose end a test waits for.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
