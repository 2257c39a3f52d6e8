package secure

import (
	"net/netip"
	"strings"
)

// Loopback reports a host that is this machine by its very name: no other reaches what
// listens there. A name is asked for nowhere, so of names only localhost is taken for
// what it says.
func Loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}
