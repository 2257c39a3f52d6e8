package config

import (
	"crypto/x509"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"waybill/cmd/waybill/config/syntax"
	"waybill/cmd/waybill/config/yamldoc"
	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus/secure"
)

// HTTP is what a configuration says of a peer that is an endpoint and no process.
type HTTP struct {
	Endpoint string   // as written
	URL      *url.URL // the same

	// Contexts are the authorization contexts it is asked in, sorted; nil for the
	// default one alone. Credentials names the authorization of each of them; one
	// that has none is asked without.
	Contexts    []string
	Credentials map[string]string

	RootCAs       []byte // PEM, in place of the system's; nil for those
	AllowPlain    bool   // http beyond loopback
	RefusePrivate bool
	Proxy         *url.URL // nil for none
	Connections   int
	Connect       time.Duration
	Idle          time.Duration // 0: never
}

const (
	transportStdio = domain.TransportStdio
	transportHTTP  = domain.TransportHTTP
)

// ofProcesses and ofEndpoints are the keys that only one transport knows.
var (
	ofProcesses = []string{"command", "args", "env", "set", "secret_env", "cwd", "unpinned_code", "data_files", "shutdown_timeout"}
	ofEndpoints = []string{"endpoint", "authorization", "authorizations", "ca_file", "allow_http", "private_addresses", "proxy",
		"connections", "connect_timeout", "stream_idle"}
)

// transport reads the choice, and refuses the keys of the other.
func transport(s *yamldoc.Section) string {
	chosen := s.OneOf("transport", transportStdio, transportHTTP)
	if chosen == transportHTTP {
		for _, key := range ofProcesses {
			reason := "is about a process, and a peer over http is none: take it out, or write transport: stdio"
			if key == "secret_env" {
				reason = "is about a process, and a peer over http is none: name the variable with token_env, or under headers, of an authorization"
			}
			s.Refuse(key, reason)
		}
		return chosen
	}
	for _, key := range ofEndpoints {
		s.Refuse(key, "is about an endpoint, and this peer is a process: write transport: http, or take it out")
	}
	return chosen
}

func (r *reader) readHTTP(s *yamldoc.Section, p *Peer) *HTTP {
	h := &HTTP{Endpoint: s.Text("endpoint", "")}
	h.AllowPlain = s.Boolean("allow_http", false)
	h.readEndpoint(s)
	r.readCredentials(s, h)
	if p.AllowLegacy && len(h.Contexts) > 1 {
		s.Fail("allow_legacy", "a legacy session belongs to one credential, and this peer has %d contexts: give each a peer of its own", len(h.Contexts))
	}
	h.RootCAs = r.certificates(s)
	h.RefusePrivate = s.OneOf("private_addresses", "allowed", "refused") == "refused"
	if h.RefusePrivate && h.URL != nil && (h.URL.Scheme == "http" && !h.AllowPlain || secure.Loopback(h.URL.Hostname())) {
		s.Fail("private_addresses", "refused, and the endpoint is on this machine: nothing could be reached; take it out, or write the endpoint's public address")
	}
	h.readProxy(s)
	h.Connections = int(s.Number("connections", 16, 1, 1024))
	h.Connect = s.Duration("connect_timeout", 10*time.Second, 10*time.Minute)
	h.Idle = s.DurationOrNone("stream_idle", 30*time.Minute, time.Second, longest)
	return h
}

// readEndpoint leaves URL nil where the endpoint cannot be used.
func (h *HTTP) readEndpoint(s *yamldoc.Section) {
	n := s.Values["endpoint"].Value
	switch {
	case n == nil:
		s.Fail("endpoint", "missing: give the address of this peer, such as https://host/mcp")
		return
	case n.Kind != yamldoc.Text:
		return // reported already
	}
	u, reason := syntax.Address(h.Endpoint, "https", "http")
	switch {
	case reason != "":
		s.Fail("endpoint", "%s", reason)
	case u.Scheme == "http" && !h.AllowPlain && !secure.Loopback(u.Hostname()):
		s.Fail("endpoint", "http beyond this machine can be read and changed by anybody on the way: write https, or allow_http: true")
	default:
		h.URL = u
	}
}

func (h *HTTP) readProxy(s *yamldoc.Section) {
	address := s.Text("proxy", "")
	if n := s.Values["proxy"].Value; n == nil || n.Kind != yamldoc.Text {
		return
	}
	u, reason := syntax.Address(address, "http", "https", "socks5")
	switch {
	case reason != "":
		s.Fail("proxy", "%s", strings.Replace(reason, "name an authorization", "name a proxy that needs none", 1))
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery:
		s.Fail("proxy", "must be a host and a port, without a path and a query")
	case h.RefusePrivate:
		s.Fail("proxy", "a proxy finds addresses by itself, so that private_addresses: refused would not hold: keep one of the two")
	default:
		h.Proxy = u
	}
}

// certificates reads the authorities that a peer is trusted by.
func (r *reader) certificates(s *yamldoc.Section) []byte {
	path := s.Path("ca_file", "")
	if path == "" {
		if n := s.Values["ca_file"].Value; n != nil && n.Kind == yamldoc.Text {
			s.Fail("ca_file", "is empty: name a path, or take the key out")
		}
		return nil
	}
	b, err := harness.ReadSmall(r.beside(path))
	switch {
	case err != nil:
		s.Fail("ca_file", "cannot be read: %v", err)
	case !x509.NewCertPool().AppendCertsFromPEM(b):
		s.Fail("ca_file", "holds no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----")
	}
	return b
}

// readCredentials reads who the peer is asked as: one authorization for everybody, or
// one for each context.
func (r *reader) readCredentials(s *yamldoc.Section, h *HTTP) {
	one := s.Typed("authorization", yamldoc.Text)
	many := s.Value("authorizations")
	switch {
	case s.Has("authorization") && s.Has("authorizations"):
		s.Fail("authorizations", "is given beside authorization: keep one")
	case one != nil:
		h.Credentials = map[string]string{domain.DefaultContext: one.Text}
		r.use(h, one.Text, func(format string, v ...any) { s.Fail("authorization", format, v...) })
	case many == nil:
	case many.Kind != yamldoc.List && many.Kind != yamldoc.Mapping:
		s.Fail("authorizations", "must be a list of names, or a mapping of contexts to names, not %s", many.Kind)
	case len(many.Items)+len(many.Entries) == 0:
		s.Fail("authorizations", "is empty: name an authorization, or take the key out")
	default:
		h.Credentials = make(map[string]string)
		r.listed(s, h, many)
		r.mapped(s, h, many)
		h.Contexts = slices.Sorted(maps.Keys(h.Credentials))
	}
}

// listed reads contexts that are called as what they are asked with.
func (r *reader) listed(s *yamldoc.Section, h *HTTP, n *yamldoc.Node) {
	if n.Kind != yamldoc.List {
		return
	}
	names := s.Distinct("authorizations", func(string) bool { return true }, "")
	for i, name := range names {
		if h.Credentials[name] = name; len(names) == len(n.Items) {
			r.use(h, name, func(format string, v ...any) { s.FailItem("authorizations", i, format, v...) })
		}
	}
}

func (r *reader) mapped(s *yamldoc.Section, h *HTTP, n *yamldoc.Node) {
	if n.Kind != yamldoc.Mapping {
		return
	}
	contexts := s.Under("authorizations")
	for _, context := range contexts.Order {
		if !domain.ValidName(context) {
			contexts.Fail(context, "is no name of a context: %s", nameRule)
		}
		if name := contexts.Typed(context, yamldoc.Text); name != nil {
			h.Credentials[context] = name.Text
			r.use(h, name.Text, func(format string, v ...any) { contexts.Fail(context, format, v...) })
		}
	}
}

// use notes that an authorization goes to the origin of h, and to no other: whoever
// answers there may keep it.
func (r *reader) use(h *HTTP, name string, fail func(format string, v ...any)) {
	if r.Authorization(name) == nil {
		fail("%q is none of the authorizations of this file: name it there, with %s or headers", name, strings.Join(tokenKeys, ", "))
		return
	}
	r.used[name] = append(r.used[name], "")
	if h.URL == nil {
		return
	}
	here, first := syntax.Origin(h.URL), r.used[name][0]
	switch {
	case first == "":
		r.used[name][0] = here
	case first != here:
		fail("%s goes to %s already, and here it would go to %s: a credential goes to one origin only; make another authorization", name, first, here)
	}
}
