package syntax

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"waybill/harness/bus/secure"
)

// maxAddress is in bytes.
const maxAddress = 2048

// Address reads an absolute URL of one of the schemes. It says what is wrong with an address, without repeating it: people put
// secrets there.
func Address(address string, schemes ...string) (*url.URL, string) {
	if len(address) > maxAddress {
		return nil, "is longer than " + strconv.Itoa(maxAddress) + " bytes"
	}
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, "holds a blank or another character that no address has: write it percent-encoded, and a host in its ASCII form"
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Opaque != "" || !slices.Contains(schemes, u.Scheme) || !validAuthority(u):
		return nil, "must be like " + strings.Join(schemes, "://HOST:PORT or ") + "://HOST:PORT, where :PORT may be left out"
	case u.User != nil:
		return nil, "must hold no user or password: name an authorization"
	case strings.Contains(address, "#"):
		return nil, "must hold no fragment: take out what begins with #"
	}
	return u, ""
}

func validAuthority(u *url.URL) bool {
	host := u.Hostname()
	if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) || strings.HasSuffix(u.Host, ":") {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return Host(strings.ReplaceAll(strings.TrimSuffix(host, "."), "_", "-"))
}

// Server says what is wrong with the address of a NATS server, without repeating it;
// "" if nothing is.
func Server(address string) string {
	u, reason := Address(address, "nats", "tls")
	switch {
	case strings.Contains(reason, "user or password"):
		return "must hold no user or password: use nats.credentials"
	case reason != "":
		return reason
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery:
		return "must end after the port: nats://HOST:PORT or tls://HOST:PORT"
	}
	return ""
}

// ListensHere is true of an address with a port, as Listen knows it, that only this
// machine reaches.
func ListensHere(listen string) bool {
	host := listen[:max(strings.LastIndexByte(listen, ':'), 0)]
	return secure.Loopback(strings.Trim(host, "[]"))
}

// Origin is where a credential may go: scheme, host and port.
func Origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// Listen is true of a host or an address with a port.
func Listen(address string) bool {
	if ap, err := netip.ParseAddrPort(address); err == nil {
		return ap.IsValid()
	}
	i := strings.LastIndexByte(address, ':')
	if i < 1 {
		return false
	}
	_, err := strconv.ParseUint(address[i+1:], 10, 16)
	return err == nil && Host(address[:i])
}

// Host is true of a host name. One that ends in a number is a mistyped
// address.
func Host(host string) bool {
	labels := strings.Split(host, ".")
	for _, label := range labels {
		plain := strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
		if label == "" || len(label) > 63 || !plain {
			return false
		}
	}
	_, err := strconv.Atoi(labels[len(labels)-1])
	return len(host) <= 253 && err != nil
}
