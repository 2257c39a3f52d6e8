package web

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
)

// check says what of the options cannot be kept, and by which name the operator finds it.
func (o *Options) check() error {
	if err := checkURL("Endpoint", o.Endpoint, "https", "http"); err != nil {
		return err
	}
	if o.Proxy != nil {
		if err := o.checkProxy(); err != nil {
			return err
		}
	}
	if err := o.checkPlain(); err != nil {
		return err
	}
	return o.checkLimits()
}

func refused(option, why string) error { return fmt.Errorf("%s: %s", option, why) }

func checkURL(option string, u *url.URL, schemes ...string) error {
	switch {
	case u == nil:
		return fmt.Errorf("%s: a URL is needed", option)
	case !slices.Contains(schemes, u.Scheme):
		return fmt.Errorf("%s: the scheme is %q, it may be one of %q", option, u.Scheme, schemes)
	case u.Opaque != "" || u.Hostname() == "":
		return fmt.Errorf("%s: the URL names no host", option)
	case u.Fragment != "" || u.RawFragment != "":
		return fmt.Errorf("%s: a fragment is never sent, leave out what follows the #", option)
	case u.User != nil && option != "Proxy":
		return fmt.Errorf("%s: a user or password in the URL would be logged with it, use a credential", option)
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("%s: %s is no port", option, p)
		}
	}
	return nil
}

// checkProxy refuses what a proxy would make a promise in words only: it resolves the endpoint's name where nobody here sees it.
func (o *Options) checkProxy() error {
	err := checkURL("Proxy", o.Proxy, "http", "https", "socks5", "socks5h")
	switch {
	case err != nil:
		return err
	case o.RefusePrivate:
		return refused("RefusePrivate", "cannot be kept with Proxy, which resolves the name of the endpoint itself; leave out one of them")
	case o.Endpoint.Scheme == "http" && !o.AllowPlain:
		return refused("Proxy", "what goes to it for an http endpoint leaves the machine in the clear; use https, or AllowPlain")
	}
	return nil
}

func (o *Options) checkPlain() error {
	if o.Endpoint.Scheme != "http" || o.AllowPlain {
		return nil
	}
	if o.RefusePrivate {
		return refused("RefusePrivate", "refuses loopback, and http without AllowPlain may go nowhere else; use https")
	}
	if a, err := netip.ParseAddr(o.Endpoint.Hostname()); err == nil && !loopback(a) {
		return refused("Endpoint", "http to "+a.String()+", which is not loopback; use https, or AllowPlain")
	}
	return nil
}

func (o *Options) checkLimits() error {
	for _, l := range []struct {
		option string
		value  int64
		least  int64
	}{
		{"Connections", int64(o.Connections), 1},
		{"Connect", int64(o.Connect), 1},
		{"Idle", int64(o.Idle), 0},
		{"MaxHeader", o.MaxHeader, 1},
		{"MaxBody", o.MaxBody, 1},
		{"MaxStream", o.MaxStream, 0},
	} {
		if l.value < l.least {
			return fmt.Errorf("%s: %d, it must be at least %d", l.option, l.value, l.least)
		}
	}
	return nil
}

// roots reads the certificates that are trusted in place of the system's, nil for those. It is stricter than the standard library,
// which passes over what it cannot read: one authority less is found out when the peer is renewed, by nobody who knows why.
func (o *Options) roots() (*x509.CertPool, error) {
	if o.RootCAs == nil {
		return nil, nil
	}
	pool, found := x509.NewCertPool(), 0
	for block, rest := pem.Decode(o.RootCAs); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("RootCAs: holds a %.40q, and may hold certificates only", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("RootCAs: certificate %d: %w", found+1, err)
		}
		pool.AddCert(cert)
		found++
	}
	if found == 0 {
		return nil, refused("RootCAs", "holds no certificate in PEM form")
	}
	return pool, nil
}
