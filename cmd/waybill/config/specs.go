package config

import (
	"waybill/cmd/waybill/config/redact"
	"waybill/domain"
	"waybill/harness/peer"
	"waybill/harness/peer/pin"
	"waybill/harness/peer/web"
)

// Bounds of what a peer over HTTP answers with.
const (
	maxHeader   = 64 << 10
	frameStream = 64 // times limits.frame, for all events of one stream
)

// Specs says, by name, how to start or reach each peer whose programs are found, the
// commands of its authorizations among them. It refuses nothing by itself: Domain
// says who may start, and Verify says so again right before each start, from the
// files as they are then. argv[0] is the path as found, links unresolved: an
// interpreter finds its virtual environment by it, also where the peer has another
// PATH or directory than the command was found by. Redact knows the secrets of all
// peers, and the tokens that any Learn is told of.
func (f *File) Specs(lock *Lock, lookup func(string) (string, bool)) map[string]peer.Spec {
	m := maker{f, lock, lookup, redact.New(f.Secrets(lookup))}
	specs := make(map[string]peer.Spec)
	for i := range f.Peers {
		p := &f.Peers[i]
		found, err := f.pinSpecs(p, lookup)
		if err != nil {
			continue
		}
		spec := peer.Spec{Name: p.Name, Verify: m.verify(found), Redact: m.redactor.Redact}
		if p.HTTP != nil {
			spec.Web = m.web(p)
		} else {
			spec.Path, spec.Argv0, spec.Args = found[0].Path, found[0].Path, p.Args
			spec.Env, spec.Dir, spec.Grace = f.Env(p.Name, lookup), p.Cwd, p.ShutdownTimeout
		}
		specs[p.Name] = spec
	}
	return specs
}

// maker is what specs are made with.
type maker struct {
	*File
	lock     *Lock
	lookup   func(string) (string, bool)
	redactor *redact.Redactor
}

func (m maker) verify(specs []pin.Spec) func() (domain.Code, string) {
	return func() (domain.Code, string) {
		code, reason := m.admitAll(specs, m.lock)
		return code, string(m.redactor.Redact([]byte(reason)))
	}
}

func (m maker) web(p *Peer) *peer.Web {
	w := &peer.Web{
		Options: web.Options{
			Endpoint: p.HTTP.URL, RootCAs: p.HTTP.RootCAs, AllowPlain: p.HTTP.AllowPlain, RefusePrivate: p.HTTP.RefusePrivate, Proxy: p.HTTP.Proxy,
			Connections: p.HTTP.Connections, Connect: p.HTTP.Connect, Idle: p.HTTP.Idle,
			MaxHeader: maxHeader, MaxBody: m.Limits.Frame, MaxStream: frameStream * m.Limits.Frame,
		},
		Credentials: make(map[string]peer.Credential),
		Learn:       m.redactor.Add,
	}
	for context, name := range p.HTTP.Credentials {
		if a := m.Authorization(name); a != nil {
			w.Credentials[context] = m.credential(a)
		}
	}
	return w
}

func (m maker) credential(a *Authorization) peer.Credential {
	c := peer.Credential{Name: a.Name, File: a.TokenFile, Scheme: a.Scheme, Fixed: a.fixed(m.lookup)}
	if a.TokenEnv != "" {
		c.Token, _ = m.lookup(a.TokenEnv)
	}
	if a.Command == nil {
		return c
	}
	spec, _ := m.tokenSpec(a, m.lookup) // one that has gone since it was looked for is refused by Verify
	c.Command = &peer.TokenCommand{
		Path:   spec.Path,
		Argv0:  spec.Path,
		Args:   a.Command.Args,
		Env:    a.Command.environment(m.lookup),
		Dir:    a.Command.Cwd,
		Limit:  a.Command.Timeout.Milliseconds(),
		Verify: m.verify([]pin.Spec{spec}),
	}
	return c
}
