package config

import (
	"fmt"

	"waybill/cmd/waybill/config/redact"
	"waybill/domain"
	"waybill/harness/peer"
	"waybill/harness/peer/pin"
)

// Domain returns what decisions rest on, with what is found on disk now: a peer
// whose program is missing, is an unaccepted launcher, has no pin or differs
// from its pin carries the refusal. A nil lock is an empty one. It reads every
// pinned file. The result holds no argument texts and no environment values.
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
	clean := redact.New(f.Secrets(lookup)).Redact
	for i := range f.Peers {
		p := f.domainPeer(&f.Peers[i], lock, lookup)
		p.Command, p.RefusalReason = string(clean([]byte(p.Command))), string(clean([]byte(p.RefusalReason)))
		for i, w := range p.Warnings {
			p.Warnings[i] = string(clean([]byte(w)))
		}
		c.Peers = append(c.Peers, p)
	}
	return c
}

func (f *File) domainPeer(p *Peer, lock *Lock, lookup func(string) (string, bool)) domain.PeerConfig {
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
	if pin, ok := lock.pin(p.Name); ok {
		c.Pin = pin.Digest()
	}
	spec, err := f.pinSpec(p, lookup)
	if err != nil {
		c.Refusal, c.RefusalReason = domain.CodeCommandMissing, err.Error()
		return c
	}
	c.Refusal, c.RefusalReason = f.admit(spec, lock)
	if c.Refusal == "" {
		c.Warnings = warnings(spec, lock)
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

// pin returns the entry of a peer. It may be called on nil.
func (l *Lock) pin(name string) (pin.Pin, bool) {
	if l == nil {
		return pin.Pin{}, false
	}
	pin, ok := l.Peers[name]
	return pin, ok
}

// admit says whether a peer may start. What is missing is reported before the
// pin, because no pin could be made of it.
func (f *File) admit(spec pin.Spec, lock *Lock) (domain.Code, string) {
	if code, reason := spec.Admissible(); code != "" {
		return code, reason
	}
	pin, ok := lock.pin(spec.Name)
	if !ok {
		return domain.CodeNotPinned, fmt.Sprintf("no pin in %s: look at what the peer runs, then run waybill pin -c %s",
			LockName, f.Path)
	}
	return pin.Check(spec)
}

func warnings(spec pin.Spec, lock *Lock) []string {
	if name := spec.Launcher(); name != "" {
		return []string{fmt.Sprintf("unpinned code accepted: what %s runs is not covered by the pin", name)}
	}
	if pin, _ := lock.pin(spec.Name); spec.OnlyInterpreter(pin) {
		return []string{fmt.Sprintf("only the interpreter %s is pinned: no argument names a file", spec.Command)}
	}
	return nil
}

// pinSpec finds the program of a peer and gathers what a pin covers.
func (f *File) pinSpec(p *Peer, lookup func(string) (string, bool)) (pin.Spec, error) {
	ourPath, _ := lookup("PATH")
	found, err := pin.Find(p.Command, f.Dir, ourPath)
	if err != nil {
		return pin.Spec{}, err
	}
	return pin.Spec{
		Name:                 p.Name,
		Command:              p.Command,
		Path:                 found,
		Args:                 p.Args,
		EnvNames:             p.Env,
		Set:                  p.Set,
		SecretNames:          p.SecretEnv,
		Dir:                  p.Cwd,
		PeerPath:             p.path(lookup),
		DataFiles:            p.DataFiles,
		AllowLegacy:          p.AllowLegacy,
		UnpinnedCodeAccepted: p.UnpinnedCode,
	}, nil
}

// Pin makes a pin for every peer and returns the Lock of those that could be
// made, with one error for each of the others. A peer that is left out is
// refused until it is pinned.
func (f *File) Pin(lookup func(string) (string, bool)) (Lock, []error) {
	lock := Lock{Peers: make(map[string]pin.Pin)}
	var failed []error
	for i := range f.Peers {
		p := &f.Peers[i]
		spec, err := f.pinSpec(p, lookup)
		if err != nil {
			failed = append(failed, fmt.Errorf("peer %s: %w", p.Name, err))
			continue
		}
		pin, err := pin.Make(spec)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		lock.Peers[p.Name] = pin
	}
	return lock, failed
}

// Specs says, by name, how to start each peer whose program is found. It
// refuses nothing by itself: Domain says who may start, and Verify says so again
// right before each start. argv[0] is the path as found, links unresolved: an
// interpreter finds its virtual environment by it, also where the peer has
// another PATH or directory than the command was found by. Redact knows the
// secrets of all peers.
func (f *File) Specs(lock *Lock, lookup func(string) (string, bool)) map[string]peer.Spec {
	redactor := redact.New(f.Secrets(lookup))
	specs := make(map[string]peer.Spec)
	for i := range f.Peers {
		p := &f.Peers[i]
		found, err := f.pinSpec(p, lookup)
		if err != nil {
			continue
		}
		specs[p.Name] = peer.Spec{
			Name:  p.Name,
			Path:  found.Path,
			Argv0: found.Path,
			Args:  p.Args,
			Env:   f.Env(p.Name, lookup),
			Dir:   p.Cwd,
			Grace: p.ShutdownTimeout,
			Verify: func() (domain.Code, string) {
				code, reason := f.admit(found, lock)
				return code, string(redactor.Redact([]byte(reason)))
			},
			Redact: redactor.Redact,
		}
	}
	return specs
}
