package domain

import (
	"slices"
	"strings"
)

// host returns what one host may use; false where the configuration names hosts
// and this is none of them.
func (c Config) host(name string) (HostConfig, bool) {
	if len(c.Hosts) == 0 {
		return HostConfig{Name: name, Context: DefaultContext}, true
	}
	i, ok := slices.BinarySearchFunc(c.Hosts, name, func(h HostConfig, name string) int { return strings.Compare(h.Name, name) })
	if !ok {
		return HostConfig{}, false
	}
	return c.Hosts[i], true
}

// ContextOf is the authorization context of a host, as events carry it.
func (c Config) ContextOf(host string) string {
	h, _ := c.host(host)
	return contextWord(contextKey(h.Context))
}

// reaches reports whether a host may use a peer at all.
func (h HostConfig) reaches(peer string) bool {
	return h.Peers == nil || slices.Contains(h.Peers, peer)
}

// uses reports whether a host may use a tool.
func (h HostConfig) uses(canonical, peer string) bool {
	if !h.reaches(peer) {
		return false
	}
	return h.Tools == nil || slices.ContainsFunc(h.Tools, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return canonical == pattern || open && strings.HasPrefix(canonical, prefix)
	})
}

// allows says why a host may not use a tool; "" where it may.
func (c Config) allows(host, canonical, peer string) (Code, string) {
	if h, ok := c.host(host); ok && h.uses(canonical, peer) {
		return "", ""
	}
	return CodeNotAllowed, "hosts: of the configuration does not let this host use this tool"
}

// stranger says why a host may use nothing at all.
func (c Config) stranger(d CallReceived) (Code, string) {
	switch _, ok := c.host(d.Host); {
	case !ok:
		return CodeNotAllowed, "hosts: of the configuration does not name this host"
	case len(c.Hosts) > 0 && d.Context != c.ContextOf(d.Host):
		return CodeNotAllowed, "the call came in another authorization context than that of its host"
	}
	return "", ""
}

// permits says why a call may not go to a tool: a call that was held may have
// come under another configuration.
func (c Config) permits(d CallReceived, canonical, peer string) (Code, string) {
	if code, reason := c.stranger(d); code != "" {
		return code, reason
	}
	return c.allows(d.Host, canonical, peer)
}

// ToolsFor is Tools for a host: of its context, and without what it may not use, or
// the peers that it may not.
func (s *State) ToolsFor(host, after string, most int, mono int64) ToolList {
	h, ok := s.Config.host(host)
	out := s.listTools(h.Context, after, most, mono, func(name string, o Owner) bool { return ok && h.uses(name, o.Peer) })
	strange := func(peer string) bool { return !ok || !h.reaches(peer) }
	out.Stale, out.Missing = slices.DeleteFunc(out.Stale, strange), slices.DeleteFunc(out.Missing, strange)
	for i, e := range out.Tools {
		out.Tools[i].Collided = slices.DeleteFunc(e.Collided, func(o Owner) bool { return strange(o.Peer) })
	}
	return out
}
