package config

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Collision policies are those of package domain; these are other fixed words.
const (
	transportStdio = "stdio"
	payloadsNone   = "none"
)

// A File is a configuration that holds to every rule. It has a value for each
// key, the default where the file gives none. It holds no values of our
// environment.
type File struct {
	Path string // as it was named
	Dir  string // absolute; relative paths of the file are below it

	Node            string
	Data            string // absolute
	Collision       string
	Separator       string
	ManyPeersReason string
	NATS            NATS
	Limits          Limits
	Payloads        string
	Peers           []Peer // sorted by name, at least one

	Warnings []string // nothing is wrong, but somebody should know
}

// NATS says which server carries calls and events.
type NATS struct {
	URL         string // empty: an embedded server
	Listen      string // host:port of the embedded server; port 0 is any free one
	Credentials string // absolute path, or empty
}

// Limits bounds what may be under way.
type Limits struct {
	Frame    int64 // bytes of one message of a peer
	Inflight int   // calls at once, all peers together
}

// A Peer is one MCP server of the configuration.
type Peer struct {
	Name               string
	Transport          string
	Command            string
	Args               []string
	Env                []string          // names, in the order of the file
	Set                map[string]string // never nil
	SecretEnv          []string          // names
	Cwd                string            // absolute
	Capabilities       jsontext.Value    // an object, keys sorted
	AllowLegacy        bool
	LegacyRevisions    []string
	ProbeTimeout       time.Duration
	LegacyProbeTimeout time.Duration
	CallTimeout        time.Duration
	UnpinnedCode       bool // accepted
	DataFiles          []string
	TrustHints         bool
	Repeatable         []string
}

// Peer returns the peer of that name, or nil.
func (f *File) Peer(name string) *Peer {
	for i := range f.Peers {
		if f.Peers[i].Name == name {
			return &f.Peers[i]
		}
	}
	return nil
}
