package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"waybill/cmd/waybill/config/syntax"
	"waybill/cmd/waybill/config/yamldoc"
	"waybill/harness/bus/secure"
)

// mostServers bounds the addresses of nats.url.
const mostServers = 16

func (f *File) readNATS(s *yamldoc.Section) {
	n := &f.NATS
	n.URL = f.readServers(s)
	n.TLS = f.readTLS(s.Under("tls"), n.URL == "")
	n.Listen = s.Text("listen", "127.0.0.1:4222")
	switch {
	case !syntax.Listen(n.Listen):
		s.Fail("listen", "must be HOST:PORT such as 127.0.0.1:4222, with port 0 for any free one")
	case n.URL == "" && !syntax.ListensHere(n.Listen) && n.TLS.Cert == "":
		s.Fail("listen", "%s is not this machine alone, so what is said there must be encrypted: name a certificate and its key under nats.tls, or listen on 127.0.0.1", n.Listen)
	}
	if path := s.Path("credentials", ""); path != "" {
		n.Credentials = f.beside(path)
	}
	n.Replicas = int(s.Number("replicas", 1, 1, 5))
	if n.Replicas > 1 && n.URL == "" {
		s.Fail("replicas", "more than 1 needs a cluster: the embedded server is one, so name another with nats.url")
	}
	if n.MaxBytes = s.Size("max_bytes", 0, 0, 1<<50); n.MaxBytes != 0 && n.MaxBytes < 1<<20 {
		s.Fail("max_bytes", "must be 0 for no limit, or at least 1MiB")
	}
	n.MaxAge = s.DurationOrNone("max_age", 0, time.Hour, 100_000*time.Hour)
	n.MaxLag = s.Number("max_lag", 100_000, 0, 1_000_000_000)
	s.End()
	f.warnOpen()
}

// readServers reads one address, several with commas between them, or a list, and
// joins them by commas.
func (f *File) readServers(s *yamldoc.Section) string {
	n := s.Value("url")
	if n == nil {
		return ""
	}
	var servers []string
	fail := func(_ int, format string, v ...any) { s.Fail("url", format, v...) }
	switch n.Kind {
	case yamldoc.Text:
		if n.Text == "" {
			return ""
		}
		servers = strings.Split(n.Text, ",")
	case yamldoc.List:
		if servers = s.Texts("url", false); len(servers) != len(n.Items) {
			return ""
		}
		fail = func(i int, format string, v ...any) { s.FailItem("url", i, format, v...) }
		if len(servers) == 0 {
			s.Fail("url", "is an empty list: name a server, or take the key out for the embedded one")
		}
	default:
		s.Fail("url", "must be an address or a list of addresses, not %s", n.Kind)
		return ""
	}
	if len(servers) > mostServers {
		s.Fail("url", "names %d servers, more than %d: any of a cluster leads to the others", len(servers), mostServers)
	}
	for i, server := range servers {
		servers[i] = strings.TrimSpace(server)
		if reason := syntax.Server(servers[i]); reason != "" {
			fail(i, "%s", reason)
		} else if slices.Contains(servers[:i], servers[i]) {
			fail(i, "%s is named twice", servers[i])
		}
	}
	return strings.Join(servers, ",")
}

// readTLS reads what connections are encrypted with, and every file it names.
func (f *File) readTLS(s *yamldoc.Section, embedded bool) secure.TLS {
	var t secure.TLS
	for _, k := range []struct {
		key  string
		path *string
	}{{"ca", &t.CA}, {"cert", &t.Cert}, {"key", &t.Key}} {
		if *k.path = s.Path(k.key, ""); *k.path != "" {
			*k.path = f.beside(*k.path)
		} else if n := s.Values[k.key].Value; n != nil && n.Kind == yamldoc.Text {
			s.Fail(k.key, "is empty: name a path, or take the key out")
		}
	}
	if embedded && t.CA != "" {
		s.Fail("ca", "is about a server that nats.url names, and there is none: the embedded server needs cert and key alone")
	} else if key, reason := t.Fault(); key != "" {
		s.Fail(key, "%s", reason)
	}
	s.End()
	return t
}

// warnOpen tells of a way to another machine that need not be encrypted.
func (f *File) warnOpen() {
	if f.NATS.TLS != (secure.TLS{}) {
		return
	}
	for server := range strings.SplitSeq(f.NATS.URL, ",") {
		if u, reason := syntax.Address(server, "nats"); reason == "" && !secure.Loopback(u.Hostname()) {
			f.Warnings = append(f.Warnings, fmt.Sprintf("%s: nats.url: %s is another machine, and nothing says that the way there is encrypted: "+
				"write tls:// or name nats.tls.ca; keys are safe either way, what calls say is not", f.Path, u.Host))
		}
	}
}
