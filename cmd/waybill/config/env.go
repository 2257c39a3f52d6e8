package config

import (
	"maps"
	"slices"
	"strings"

	"waybill/harness"
)

// Env returns the whole environment of a peer, as NAME=VALUE and sorted: the
// variables it may copy, those with fixed values, and its secrets. A variable
// that lookup does not know is left out. It is nil for an unknown peer, and for one
// that is no process.
func (f *File) Env(name string, lookup func(string) (string, bool)) []string {
	p := f.Peer(name)
	if p == nil || p.HTTP != nil {
		return nil
	}
	return p.environment(lookup)
}

// Secrets returns, sorted and without repetitions, the value of every variable
// under secret_env of any peer and token command, and of what authorizations ask
// with: the variables of token_env, what is in the files of token_file now, and the
// values of headers. It is for redact.New and nothing else; AllSecrets has the keys
// too.
func (f *File) Secrets(lookup func(string) (string, bool)) []string {
	values := make(map[string]bool)
	add := func(names ...string) {
		for _, name := range names {
			if value, ok := lookup(name); ok && value != "" {
				values[value] = true
			}
		}
	}
	for _, p := range f.Peers {
		add(p.SecretEnv...)
	}
	for _, a := range f.Authorizations {
		if a.Command != nil {
			add(a.Command.SecretEnv...)
		}
		add(a.TokenEnv)
		for _, value := range a.fixed(lookup) {
			values[value] = true
		}
		// One that cannot be read is no token yet, and learned when it is.
		if b, err := harness.ReadSmall(a.TokenFile); a.TokenFile != "" && err == nil && len(b) > 0 {
			values[strings.TrimSpace(string(b))] = true
		}
	}
	delete(values, "")
	return slices.Sorted(maps.Keys(values))
}
