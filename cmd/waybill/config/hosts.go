package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"waybill/cmd/waybill/config/yamldoc"
	"waybill/domain"
)

// localHost is who the commands of this machine call as.
const localHost = "local"

// readHosts is for when the peers are read.
func (r *reader) readHosts(s *yamldoc.Section) {
	all := s.Under("hosts")
	for _, name := range all.Order {
		if !domain.ValidName(name) {
			all.Doc.Fail(all.Values[name].Line, all.Values[name].Column, yamldoc.Join(all.Key, name), "%s", nameRule)
		}
		h := domain.HostConfig{Name: name, Context: domain.DefaultContext}
		if n := all.Values[name].Value; n.Kind != yamldoc.Null { // nothing is said, and nothing is held back
			r.readHost(&h, all.Doc.Section(n, yamldoc.Join(all.Key, name)))
		}
		r.Hosts = append(r.Hosts, h)
	}
	slices.SortFunc(r.Hosts, func(a, b domain.HostConfig) int { return strings.Compare(a.Name, b.Name) })
	isLocal := func(h domain.HostConfig) bool { return h.Name == localHost }
	if len(r.Hosts) > 0 && !slices.ContainsFunc(r.Hosts, isLocal) {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s: hosts: names nobody called %s, as which the commands of this machine call: "+
			"they may use nothing; add it if they should", r.Path, localHost))
	}
}

func (r *reader) readHost(h *domain.HostConfig, s *yamldoc.Section) {
	h.Context = s.Text("context", domain.DefaultContext)
	if n := s.Values["context"].Value; n != nil && n.Kind == yamldoc.Text && !r.asks(h.Context) {
		s.Fail("context", "no peer is asked in the context %q: name one under authorizations of a peer, or leave it out", h.Context)
	}
	peer := func(name string) bool { return r.Peer(name) != nil }
	h.Peers = r.allowed(s, "peers", peer, "a peer of this file")
	h.Tools = r.allowed(s, "tools", validPattern, "the name of a tool, or the beginning of names followed by *")
	s.End()
}

// allowed is nil for everything, and never for nothing.
func (r *reader) allowed(s *yamldoc.Section, key string, valid func(string) bool, want string) []string {
	names := s.Distinct(key, valid, want)
	if n := s.Values[key].Value; n != nil && n.Kind == yamldoc.List && len(n.Items) == 0 {
		s.Fail(key, "is empty: a host that may use nothing is one that is left out; to allow all, take the key out")
	}
	slices.Sort(names)
	return names
}

// asks reports a context that some peer is asked in.
func (r *reader) asks(context string) bool {
	return context == domain.DefaultContext || slices.ContainsFunc(r.Peers, func(p Peer) bool {
		return p.HTTP != nil && slices.Contains(p.HTTP.Contexts, context)
	})
}

// validPattern is true of a canonical name, or of a beginning of one before a star.
func validPattern(name string) bool {
	bare := strings.TrimSuffix(name, "*")
	return name != "" && len(name) <= 256 && utf8.ValidString(name) && !strings.Contains(bare, "*")
}
