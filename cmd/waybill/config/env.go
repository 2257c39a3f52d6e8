package config

import (
	"maps"
	"slices"
)

// Env returns the whole environment of a peer, as NAME=VALUE and sorted: the
// variables it may copy, those with fixed values, and its secrets. A variable
// that lookup does not know is left out. It is empty for an unknown peer.
func (f *File) Env(name string, lookup func(string) (string, bool)) []string {
	p := f.Peer(name)
	if p == nil {
		return nil
	}
	vars := maps.Clone(p.Set)
	for _, from := range slices.Concat(p.Env, p.SecretEnv) {
		if value, ok := lookup(from); ok {
			vars[from] = value
		}
	}
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// Secrets returns the value of every variable under secret_env of any peer,
// sorted and without repetitions. It is for redact.New and nothing else;
// AllSecrets has the keys too.
func (f *File) Secrets(lookup func(string) (string, bool)) []string {
	values := make(map[string]bool)
	for _, p := range f.Peers {
		for _, name := range p.SecretEnv {
			if value, ok := lookup(name); ok && value != "" {
				values[value] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(values))
}

// path returns the PATH that a peer sees.
func (p *Peer) path(lookup func(string) (string, bool)) string {
	if value, ok := p.Set["PATH"]; ok {
		return value
	}
	if slices.Contains(p.Env, "PATH") || slices.Contains(p.SecretEnv, "PATH") {
		value, _ := lookup("PATH")
		return value
	}
	return ""
}
