package config

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
	"waybill/harness/bus/secure"
)

// Collision policies are those of package domain; these are other fixed words.
const (
	payloadsNone = "none"
	payloadsFull = "full"
)

// A File is a configuration that holds to every rule. It has a value for each
// key, the default where the file gives none. It holds no values of our
// environment.
type File struct {
	Path string // as it was named
	Dir  string // absolute; relative paths of the file are below it

	Node              string
	Data              string // absolute
	Collision         string
	Separator         string
	ManyPeersReason   string
	NATS              NATS
	Limits            Limits
	Payloads          string              // none or full, where a peer does not say
	Retention         time.Duration       // of kept payloads; 0: until they are erased
	MovedWindow       time.Duration       // how long a name is held that has another owner
	IdempotencyWindow time.Duration       // how long a host gets the outcome of its first call under an idempotency key
	Peers             []Peer              // sorted by name, at least one
	Authorizations    []Authorization     // sorted by name
	Hosts             []domain.HostConfig // sorted by name; nil: every host may use everything

	Warnings []string // nothing is wrong, but somebody should know
}

// NATS says which server carries calls and events.
type NATS struct {
	URL         string     // of one server, or of several joined by commas; empty: an embedded server
	TLS         secure.TLS // absolute paths, or empty; without URL the certificate and key are the embedded server's own
	Listen      string     // host:port of the embedded server; port 0 is any free one
	Credentials string     // absolute path, or empty

	Replicas int           // of the streams
	MaxBytes int64         // of the stream of events, which is then full; 0: no limit of its own
	MaxAge   time.Duration // after which events leave the stream; 0: never
	MaxLag   int64         // events that the stream may be behind before calls are refused; 0: any number
}

// Limits bounds what may be under way.
type Limits struct {
	Frame        int64         // bytes of one message of a peer
	Inflight     int           // calls at once, all peers together
	HostInflight int           // calls of one host at once
	HostRate     float64       // calls of one host a second; 0: no limit
	Drain        time.Duration // what calls under way have when the service stops; 0: they are given up at once
	LogSize      int64         // bytes of the log above nine tenths of which it is warned; 0: no limit
}

// A Peer is one MCP server of the configuration.
type Peer struct {
	Name               string
	Transport          string
	Process                           // empty where HTTP is set
	HTTP               *HTTP          // nil for a process
	Capabilities       jsontext.Value // an object, keys sorted
	AllowLegacy        bool
	LegacyRevisions    []string
	ProbeTimeout       time.Duration
	LegacyProbeTimeout time.Duration
	CallTimeout        time.Duration
	UnpinnedCode       bool // accepted
	DataFiles          []string
	TrustHints         bool
	Repeatable         []string

	ListTimeout     time.Duration     // of each page
	CallLimit       time.Duration     // of an exchange, however much progress; 0: progress extends nothing
	IdleTimeout     time.Duration     // silence after progress
	ShutdownTimeout time.Duration     // of each step of ending its processes
	Inflight        int               // calls at once
	Resends         int               // times that one call is sent again by itself
	Idempotency     map[string]string // tool, by its local name, to the argument it honours as a key; never nil
	InputRounds     int
	InputWindow     time.Duration
	Keep            bool          // the bytes of its calls
	RefuseOutput    bool          // results that do not match their outputSchema
	HungAfter       int           // calls in a row; 0: never
	HealthInterval  time.Duration // 0: never
	HealthTimeout   time.Duration
	Restarts        int // starts in a row before quarantine
	Quarantine      time.Duration

	ListInterval  time.Duration // between two readings of one list, at least
	ListRefresh   time.Duration // after which a list is read again; 0: never
	StaleLists    time.Duration // how long one is served that cannot be read again
	Subscribe     bool          // to what the peer says of its tools
	ListenTimeout time.Duration // until the peer has acknowledged that
	HoldChanged   bool          // a tool whose definition changed is not called until it is approved
	SharePublic   bool          // a public list is believed to be the same for everybody
}

// Keeps reports whether the bytes of any call are kept.
func (f *File) Keeps() bool { return slices.ContainsFunc(f.Peers, func(p Peer) bool { return p.Keep }) }

// Peer returns the peer of that name, or nil.
func (f *File) Peer(name string) *Peer {
	for i := range f.Peers {
		if f.Peers[i].Name == name {
			return &f.Peers[i]
		}
	}
	return nil
}
