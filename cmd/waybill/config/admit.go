package config

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"waybill/cmd/waybill/config/redact"
	"waybill/domain"
	"waybill/harness/peer/pin"
)

// Domain returns what decisions rest on, with what is found on disk now: a peer
// whose program is missing, is an unaccepted launcher, has no pin or differs
// from its pin carries the refusal, and so does one over HTTP for its endpoint and
// for the commands of its authorizations. A nil lock is an empty one. It reads every
// pinned file, each once. The result holds no argument texts, no environment values
// and no credentials but by name.
func (f *File) Domain(lock *Lock, lookup func(string) (string, bool)) domain.Config {
	c := domain.Config{
		Node:      f.Node,
		Collision: f.Collision,
		Separator: f.Separator,
		Inflight:  f.Limits.Inflight,
		Retention: f.Retention.Milliseconds(),
		Partial:   true,
	}
	if f.MovedWindow != movedWindow {
		c.Moved = f.MovedWindow.Milliseconds()
	}
	if f.IdempotencyWindow != domain.IdempotencyWindow*time.Nanosecond {
		c.Idempotency = f.IdempotencyWindow.Milliseconds()
	}
	c.Hosts = f.Hosts
	redactor := redact.New(f.Secrets(lookup))
	clean := func(s string) string { return string(redactor.Redact([]byte(s))) }
	digests := pin.NewDigests()
	for i := range f.Peers {
		p := f.domainPeer(&f.Peers[i], lock, lookup, digests)
		p.Command, p.Endpoint, p.RefusalReason = clean(p.Command), clean(p.Endpoint), clean(p.RefusalReason)
		for i, w := range p.Warnings {
			p.Warnings[i] = clean(w)
		}
		c.Peers = append(c.Peers, p)
	}
	return c
}

func (f *File) domainPeer(p *Peer, lock *Lock, lookup func(string) (string, bool), digests *pin.Digests) domain.PeerConfig {
	c := domain.PeerConfig{
		Name:               p.Name,
		Transport:          p.Transport,
		Command:            p.Command,
		AllowLegacy:        p.AllowLegacy,
		LegacyRevisions:    p.LegacyRevisions,
		ProbeTimeout:       p.ProbeTimeout.Milliseconds(),
		LegacyProbeTimeout: p.LegacyProbeTimeout.Milliseconds(),
		CallTimeout:        p.CallTimeout.Milliseconds(),
		Capabilities:       p.Capabilities,
		TrustHints:         p.TrustHints,
		Repeatable:         p.Repeatable,
	}
	p.bound(&c)
	c.Lists = p.listRules()
	if p.HTTP != nil {
		c.Endpoint, c.Contexts, c.Credentials = p.HTTP.Endpoint, p.HTTP.Contexts, p.HTTP.Credentials
	}
	if pin, ok := lock.Pin(pin.Spec{Name: p.Name}); ok {
		c.Pin = pin.Digest()
	}
	specs, err := f.pinSpecs(p, lookup)
	if err != nil {
		c.Refusal, c.RefusalReason = domain.CodeCommandMissing, err.Error()
		return c
	}
	for i := range specs {
		specs[i].Digests = digests
	}
	if c.Refusal, c.RefusalReason = f.admitAll(specs, lock); c.Refusal == "" {
		c.Refusal, c.RefusalReason = f.credited(p, lookup)
	}
	if c.Refusal == "" {
		c.Warnings = warnings(specs, lock)
	}
	return c
}

// bound sets the limits of calls, input and recovery. Idle time that is no other
// than that of calls is left out: then a host's own timeout_ms counts after
// progress too.
func (p *Peer) bound(c *domain.PeerConfig) {
	c.ListTimeout = p.ListTimeout.Milliseconds()
	c.CallLimit = p.CallLimit.Milliseconds()
	if p.IdleTimeout != p.CallTimeout {
		c.IdleTimeout = p.IdleTimeout.Milliseconds()
	}
	c.Inflight, c.Resends = p.Inflight, p.Resends
	if len(p.Idempotency) > 0 {
		c.Idempotency = p.Idempotency
	}
	c.InputRounds, c.InputWindow = p.InputRounds, p.InputWindow.Milliseconds()
	c.RefuseOutput, c.Keep = p.RefuseOutput, p.Keep
	c.HungAfter = p.HungAfter
	if p.HealthInterval != 0 {
		c.HealthEvery, c.HealthWithin = p.HealthInterval.Milliseconds(), p.HealthTimeout.Milliseconds()
	}
	c.Attempts, c.Quarantine = p.Restarts, p.Quarantine.Milliseconds()
}

// listRules says how the lists of a peer are kept.
func (p *Peer) listRules() *domain.ListRules {
	r := &domain.ListRules{Interval: p.ListInterval.Milliseconds(), Refresh: p.ListRefresh.Milliseconds(),
		Stale: p.StaleLists.Milliseconds(), Hold: p.HoldChanged, Distrust: !p.SharePublic}
	if p.Subscribe {
		r.Listen = p.ListenTimeout.Milliseconds()
	}
	return r
}

// credited says why the requests of a peer could not be authorized.
func (f *File) credited(p *Peer, lookup func(string) (string, bool)) (domain.Code, string) {
	if p.HTTP == nil {
		return "", ""
	}
	for _, context := range slices.Sorted(maps.Keys(p.HTTP.Credentials)) {
		a := f.Authorization(p.HTTP.Credentials[context])
		if a == nil {
			continue
		}
		if name := a.unset(lookup); name != "" {
			return domain.CodeUnauthorized, fmt.Sprintf("authorization %s: the variable %s is not set: set it before the service is started", a.Name, name)
		}
	}
	return "", ""
}

// admitAll says whether a peer may start, by all that it is made of.
func (f *File) admitAll(specs []pin.Spec, lock *Lock) (domain.Code, string) {
	for _, spec := range specs {
		if code, reason := f.admit(spec, lock); code != "" {
			return code, of(spec) + reason
		}
	}
	return "", ""
}

// of begins what is said of a token command, among what is said of a peer.
func of(spec pin.Spec) string {
	if spec.TokenCommand {
		return "authorization " + spec.Name + ": "
	}
	return ""
}

// admit looks at one thing. What is missing is reported before the pin, because no
// pin could be made of it.
func (f *File) admit(spec pin.Spec, lock *Lock) (domain.Code, string) {
	if code, reason := spec.Admissible(); code != "" {
		return code, reason
	}
	pin, ok := lock.Pin(spec)
	if ok {
		return pin.Check(spec)
	}
	look := "look at what the peer runs"
	switch {
	case spec.TokenCommand:
		look = "look at what its token_command runs"
	case spec.Endpoint != "":
		look = "see that " + spec.Endpoint + " is the endpoint that is meant"
	}
	return domain.CodeNotPinned, fmt.Sprintf("no pin in %s: %s, then run waybill pin -c %s", LockName, look, f.Path)
}

func warnings(specs []pin.Spec, lock *Lock) []string {
	var said []string
	for _, spec := range specs {
		pin, _ := lock.Pin(spec)
		if name := spec.Launcher(); name != "" {
			said = append(said, fmt.Sprintf("%sunpinned code accepted: what %s runs is not covered by the pin", of(spec), name))
		} else if spec.OnlyInterpreter(pin) {
			said = append(said, fmt.Sprintf("%sonly the interpreter %s is pinned: no argument names a file", of(spec), spec.Command))
		}
	}
	return said
}

// pinSpecs gathers what the pins of a peer cover: itself, and the commands of its
// authorizations.
func (f *File) pinSpecs(p *Peer, lookup func(string) (string, bool)) ([]pin.Spec, error) {
	own, err := f.pinSpec(p, lookup)
	if err != nil || p.HTTP == nil {
		return []pin.Spec{own}, err
	}
	specs := []pin.Spec{own}
	for _, a := range f.authorizationsOf(p) {
		if a.Command == nil {
			continue
		}
		spec, err := f.tokenSpec(a, lookup)
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// authorizationsOf lists, by name, what a peer is asked with.
func (f *File) authorizationsOf(p *Peer) []*Authorization {
	var list []*Authorization
	for _, name := range slices.Compact(slices.Sorted(maps.Values(p.HTTP.Credentials))) {
		if a := f.Authorization(name); a != nil {
			list = append(list, a)
		}
	}
	return list
}

// pinSpec says what the pin of a peer covers, and finds its program.
func (f *File) pinSpec(p *Peer, lookup func(string) (string, bool)) (pin.Spec, error) {
	if p.HTTP != nil {
		return pin.Spec{Name: p.Name, Endpoint: p.HTTP.Endpoint, AllowLegacy: p.AllowLegacy}, nil
	}
	spec, err := f.programSpec(&p.Process, lookup)
	spec.Name, spec.DataFiles = p.Name, p.DataFiles
	spec.AllowLegacy, spec.UnpinnedCodeAccepted = p.AllowLegacy, p.UnpinnedCode
	return spec, err
}

// tokenSpec is pinSpec for the command of an authorization.
func (f *File) tokenSpec(a *Authorization, lookup func(string) (string, bool)) (pin.Spec, error) {
	spec, err := f.programSpec(&a.Command.Process, lookup)
	spec.Name, spec.TokenCommand = a.Name, true
	if err != nil {
		err = fmt.Errorf("authorization %s: %w", a.Name, err)
	}
	return spec, err
}

func (f *File) programSpec(p *Process, lookup func(string) (string, bool)) (pin.Spec, error) {
	ourPath, _ := lookup("PATH")
	found, err := pin.Find(p.Command, f.Dir, ourPath)
	return pin.Spec{
		Command:     p.Command,
		Path:        found,
		Args:        p.Args,
		EnvNames:    p.Env,
		Set:         p.Set,
		SecretNames: p.SecretEnv,
		Dir:         p.Cwd,
		PeerPath:    p.path(lookup),
	}, err
}

// Pin makes a pin for every peer and every token command, and returns the Lock of
// those that could be made, with one error for each of the others. A peer that is
// left out is refused until it is pinned.
func (f *File) Pin(lookup func(string) (string, bool)) (Lock, []error) {
	lock := Lock{Peers: make(map[string]pin.Pin), Authorizations: make(map[string]pin.Pin)}
	digests := pin.NewDigests()
	var failed []error
	add := func(to map[string]pin.Pin, spec pin.Spec, err error) {
		if err == nil {
			spec.Digests = digests
			to[spec.Name], err = pin.Make(spec)
		}
		if err != nil {
			delete(to, spec.Name)
			failed = append(failed, err)
		}
	}
	for i := range f.Peers {
		spec, err := f.pinSpec(&f.Peers[i], lookup)
		if err != nil {
			err = fmt.Errorf("peer %s: %w", spec.Name, err)
		}
		add(lock.Peers, spec, err)
	}
	for i := range f.Authorizations {
		if a := &f.Authorizations[i]; a.Command != nil {
			spec, err := f.tokenSpec(a, lookup)
			add(lock.Authorizations, spec, err)
		}
	}
	return lock, failed
}
