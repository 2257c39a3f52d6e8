package config

import (
	"fmt"
	"time"

	"waybill/domain"
	"waybill/harness/peer"
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
	}
	for i := range f.Peers {
		c.Peers = append(c.Peers, f.domainPeer(&f.Peers[i], lock, lookup))
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
		ProbeTimeout:       int64(p.ProbeTimeout / time.Millisecond),
		LegacyProbeTimeout: int64(p.LegacyProbeTimeout / time.Millisecond),
		CallTimeout:        int64(p.CallTimeout / time.Millisecond),
		Capabilities:       p.Capabilities,
		TrustHints:         p.TrustHints,
		Repeatable:         p.Repeatable,
	}
	if pin, ok := lock.pin(p.Name); ok {
		c.Pin = pin.Digest()
	}
	c.Refusal, c.RefusalReason = f.admit(p, lock, lookup)
	if c.Refusal == "" {
		c.Warnings = f.warnings(p, lock, lookup)
	}
	return c
}

// pin returns the entry of a peer. It may be called on nil.
func (l *Lock) pin(name string) (peer.Pin, bool) {
	if l == nil {
		return peer.Pin{}, false
	}
	pin, ok := l.Peers[name]
	return pin, ok
}

// admit says whether a peer may start. What is missing is reported before the
// pin, because no pin could be made of it.
func (f *File) admit(p *Peer, lock *Lock, lookup func(string) (string, bool)) (domain.Code, string) {
	spec, err := f.pinSpec(p, lookup)
	if err != nil {
		return domain.CodeCommandMissing, err.Error()
	}
	if code, reason := spec.Admissible(); code != "" {
		return code, reason
	}
	pin, ok := lock.pin(p.Name)
	if !ok {
		return domain.CodeNotPinned, fmt.Sprintf("no pin in %s: look at what the peer runs, then run waybill pin -c %s",
			LockName, f.Path)
	}
	return pin.Check(spec)
}

func (f *File) warnings(p *Peer, lock *Lock, lookup func(string) (string, bool)) []string {
	spec, err := f.pinSpec(p, lookup)
	if err != nil {
		return nil
	}
	if name := spec.Launcher(); name != "" {
		return []string{fmt.Sprintf("unpinned code accepted: what %s runs is not covered by the pin", name)}
	}
	pin, _ := lock.pin(p.Name)
	if spec.OnlyInterpreter(pin) {
		return []string{fmt.Sprintf("only the interpreter %s is pinned: no argument names a file", p.Command)}
	}
	return nil
}

// pinSpec finds the program of a peer and gathers what a pin covers.
func (f *File) pinSpec(p *Peer, lookup func(string) (string, bool)) (peer.PinSpec, error) {
	ourPath, _ := lookup("PATH")
	found, err := peer.Find(p.Command, f.Dir, ourPath)
	if err != nil {
		return peer.PinSpec{}, err
	}
	return peer.PinSpec{
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
	lock := Lock{Peers: make(map[string]peer.Pin)}
	var failed []error
	for i := range f.Peers {
		p := &f.Peers[i]
		pin, err := f.pinPeer(p, lookup)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		lock.Peers[p.Name] = pin
	}
	return lock, failed
}

func (f *File) pinPeer(p *Peer, lookup func(string) (string, bool)) (peer.Pin, error) {
	spec, err := f.pinSpec(p, lookup)
	if err != nil {
		return peer.Pin{}, fmt.Errorf("peer %s: %w", p.Name, err)
	}
	return peer.MakePin(spec)
}

// A Launch is what is needed to start one peer.
type Launch struct {
	Name  string
	Path  string   // the program as found, links unresolved
	Argv0 string   // the command as it was written
	Args  []string // without argv[0]
	Env   []string // the whole environment: secrets are in it
	Dir   string   // absolute

	// Verify checks the pin once more and is to be called right before the
	// start. It returns "" and "", or why the peer must not start.
	Verify func() (domain.Code, string)
}

// Specs returns a Launch for each peer whose program is found, sorted by name.
// It refuses nothing by itself: Domain says who may start, and Verify says so
// again.
func (f *File) Specs(lock *Lock, lookup func(string) (string, bool)) []Launch {
	var launches []Launch
	for i := range f.Peers {
		p := &f.Peers[i]
		spec, err := f.pinSpec(p, lookup)
		if err != nil {
			continue
		}
		launches = append(launches, Launch{
			Name:   p.Name,
			Path:   spec.Path,
			Argv0:  p.Command,
			Args:   p.Args,
			Env:    f.Env(p.Name, lookup),
			Dir:    p.Cwd,
			Verify: func() (domain.Code, string) { return f.admit(p, lock, lookup) },
		})
	}
	return launches
}
