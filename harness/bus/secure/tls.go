package secure

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
)

// TLS names the files that connections are encrypted with, and holds no secret. The
// zero TLS leaves it to the server: what a server demands, or a tls:// address,
// is done with the authorities of the system. Any other one insists: a server that
// offers no encryption is not spoken to. Its JSON form is part of run.json.
type TLS struct {
	CA   string `json:"ca,omitzero"`   // file of the authorities that may vouch for a server, in PEM; "": those of the system
	Cert string `json:"cert,omitzero"` // file of the certificate that the client shows, in PEM; "": none
	Key  string `json:"key,omitzero"`  // file of the key to it

	// Pin is the digest of the one certificate that the server may show, under
	// whatever name, as Digest makes it; "" for any that an authority vouches for.
	Pin string `json:"pin,omitzero"`
}

// ErrOtherCertificate says that a server showed another certificate than the one
// that is pinned.
var ErrOtherCertificate = errors.New("the server shows another certificate than the one it began with")

// Fault reads every file and says which of "ca", "cert" and "key" is no good, and
// why; "" if all are.
func (t TLS) Fault() (which, reason string) {
	if t.CA != "" {
		b, err := os.ReadFile(t.CA)
		switch {
		case err != nil:
			return "ca", fmt.Sprintf("cannot be read: %v", err)
		case !x509.NewCertPool().AppendCertsFromPEM(b):
			return "ca", "holds no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----"
		}
	}
	switch {
	case t.Cert == "" && t.Key == "":
		return "", ""
	case t.Key == "":
		return "cert", "is of no use without its key: name it, too"
	case t.Cert == "":
		return "key", "is of no use without its certificate: name it with cert, too"
	}
	return t.pair()
}

func (t TLS) pair() (which, reason string) {
	cert, err := os.ReadFile(t.Cert)
	if err != nil {
		return "cert", fmt.Sprintf("cannot be read: %v", err)
	}
	key, err := os.ReadFile(t.Key)
	if err != nil {
		return "key", fmt.Sprintf("cannot be read: %v", err)
	}
	if first, _ := pem.Decode(cert); first == nil || first.Type != "CERTIFICATE" {
		return "cert", "holds no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----"
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		return "key", fmt.Sprintf("is not the key to cert: %v", err) // the error speaks of kinds and never of what a key holds
	}
	return "", ""
}

// Options make a client do as t says. The files are read again for each connection,
// so that one that was renewed is used without a restart.
func (t TLS) Options() []nats.Option {
	var opts []nats.Option
	if t.Pin != "" {
		opts = append(opts, nats.Secure(pinned(t.Pin)))
	}
	if t.CA != "" {
		opts = append(opts, nats.RootCAs(t.CA))
	}
	if t.Cert != "" {
		opts = append(opts, nats.ClientCert(t.Cert, t.Key))
	}
	return opts
}

// pinned trusts one certificate and no other. Neither its name nor who vouches for
// it matters then: it is known byte for byte.
func pinned(pin string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection does more: it takes one certificate only
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || sum(s.PeerCertificates[0].Raw) != pin {
				return ErrOtherCertificate
			}
			return nil
		},
	}
}

// Digest is the SHA-256, in hex, of the first certificate in a file, which is the
// one that a server with this file shows.
func Digest(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the certificate: %w", err)
	}
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return sum(block.Bytes), nil
		}
	}
	return "", fmt.Errorf("%s holds no certificate in PEM", file)
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
