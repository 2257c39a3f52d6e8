package web

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
)

// guard is called for every address that is dialled, after the name was resolved: what a name stands for is known only then, and
// may be another thing the next time.
func (o *Options) guard(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return failed(KindAddress, fmt.Errorf("an address that cannot be read: %w", err))
	}
	switch a := at.Addr(); {
	case o.RefusePrivate && !public(a):
		return failed(KindAddress, fmt.Errorf("the name stands for %s, which is not a public address, and this peer may reach public ones only", a))
	case o.Endpoint.Scheme == "http" && !o.AllowPlain && !loopback(a):
		return failed(KindAddress, fmt.Errorf("the name stands for %s, and http may reach loopback only; use https, or allow plain http for this peer", a))
	}
	return nil
}

func loopback(a netip.Addr) bool { return a.Unmap().IsLoopback() }

// special4 and special6 are the blocks of the IANA special-purpose registries, with multicast, that are not public. In 2001::/23
// single addresses are, but nobody serves from them; 6to4 and Teredo carry an IPv4 address and are no longer in use.
var (
	special4 = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4")
	special6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

	global6 = netip.MustParsePrefix("2000::/3") // all of IPv6 that has been given out as public unicast
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

// public tells whether an address is a public unicast one. An IPv4 address within an IPv6 one, mapped or behind a NAT64, is judged
// as itself.
func public(a netip.Addr) bool {
	a = a.Unmap()
	if a.WithZone("") != a {
		return false // a zone belongs to addresses of one link
	}
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if a.Is4() {
		return !inAny(a, special4)
	}
	return global6.Contains(a) && !inAny(a, special6)
}

func inAny(a netip.Addr, blocks []netip.Prefix) bool {
	for _, p := range blocks {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
