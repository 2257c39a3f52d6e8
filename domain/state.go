package domain

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// State is everything decisions rest on, folded from the log. It holds no
// payload bytes. It is owned by one goroutine; nothing in it may be kept by a
// caller across a Step.
type State struct {
	Head      int64 // seq of the last applied event
	Stopped   bool  // service.stopped was the last word
	Config    Config
	ConfigSeq int64
	Rejected  *ConfigRejected // the configuration in force was rejected

	peers       map[string]*Peer
	names       []string // configured peers, sorted
	nextRequest int64
	byRequest   map[int64]*call  // the calls, by the id of their request
	calls       map[string]*call // routed, not ended
	holding     int              // of them are held
	ids         recentIDs
	keys        keyring
	received    CallReceived          // the last one, until it is decided on
	receivedSeq int64                 // of it
	receivedAt  int64                 // of it: wall clock
	paused      shelf                 // calls that wait for their host's input
	ended       shelf                 // calls that an operator may send again
	contexts    []string              // authorization contexts of the configuration, sorted
	namespaces  map[string]*namespace // by context
	knownNaming map[string]bool       // configurations whose names were merged before
}

// Peer is Waybill's record of one MCP server: bookkeeping of the client, never
// protocol session state.
type Peer struct {
	Name         string
	Config       PeerConfig
	Incarnation  int64
	Era          Era
	Version      string
	Code         Code // why it is not ready
	Reason       string
	Warnings     []string
	live         bool        // launched, not exited
	waiting      bool        // to be started again, not yet spawned
	attempt      int         // of the recovery, 0 for the first start
	selectedAt   int64       // monotonic clock of era.determined, 0 before it
	nextTry      int64       // wall clock of the next start, 0 where none is to come
	exit         *PeerExited // of the last incarnation that ended
	closing      bool        // given up, not exited
	silent       int         // calls in a row that reached their deadline without a sign of life
	health       int64       // the request for a sign of life that waits; 0 where none does
	calls        int         // under way at it
	configured   bool
	settled      bool // was refused since the configuration was loaded
	hasTools     bool
	listChanged  bool           // it advertises notices of changed tools
	capabilities jsontext.Value // declared to it since the era is known
	probe        probe
	lines        map[string]*line // its lists, by context
}

// probe is the state of the determination of one incarnation's era.
type probe struct {
	id             int64 // the outstanding request; 0 where none is
	discoverID     int64 // the last server/discover of this incarnation
	method         string
	version        string
	attempt        int
	refused        []string // versions answered with -32022
	stamped        bool     // -32020 was answered once
	capabilities   jsontext.Value
	raised         bool // -32021 was answered once
	legacyExcluded bool // modern behaviour was seen: no initialize, ever
	respawned      bool // the second process of one launch, started for its initialize
	closed         bool // decided, either way
	context        string
}

// call is a call that was routed or is held, until it has ended. Those on a shelf
// may go on.
type call struct {
	id           CallID
	received     CallReceived // as it was submitted first
	seq          int64        // of call.routed, or of call.held before it
	story        int64        // of its first call.received
	receivedAt   int64        // of it: wall clock
	erased       bool         // what was kept of it
	owner        Owner        // the peer and tool it went to
	tool         string       // the canonical name it was routed by
	at           At
	era          Era
	reqID        int64 // of the exchange under way, or of the last one
	declared     jsontext.Value
	timeout      int64 // milliseconds the exchange may wait without progress
	deadlineAt   int64 // monotonic clock: the end of its time for what is sent by rule
	attempts     int   // exchanges
	resends      int   // by rule, but for continue
	mayHaveRun   bool  // an exchange before the present one was not rejected, and may have reached the peer
	ran          Ran   // as it was settled last
	used         []string
	rounds       int // of input
	mostRounds   int
	until        int64    // wall clock: the last moment for its host's input
	joined       int      // submissions that wait for its end
	held         *hold    // nil where a request is under way
	requestState *Payload // of the last answer: what the host must bring back
}

// hold says why a call waits for its peer.
type hold struct {
	rule string // by which it is sent again; "" where it never was
	code Code
	ran  Ran
	seq  int64 // of its call.held
}

// NewState returns the state before the first event.
func NewState() *State {
	return &State{
		peers:       map[string]*Peer{},
		byRequest:   map[int64]*call{},
		calls:       map[string]*call{},
		knownNaming: map[string]bool{},
		ids:         recentIDs{seen: map[string]int64{}},
		keys:        newKeyring(),
		paused:      newShelf(),
		ended:       newShelf(),
		contexts:    []string{DefaultContext},
		namespaces:  map[string]*namespace{DefaultContext: newNamespace(DefaultContext)},
	}
}

// Peer returns the record of a configured peer, or nil.
func (s *State) Peer(name string) *Peer {
	if p := s.peers[name]; p != nil && p.configured {
		return p
	}
	return nil
}

// current returns the peer if at is its present incarnation, else nil.
func (s *State) current(at At) *Peer {
	p := s.Peer(at.Peer)
	if p == nil || p.Incarnation != at.Incarnation {
		return nil
	}
	return p
}

// InFlight returns the number of calls routed and not ended.
func (s *State) InFlight() int { return len(s.calls) }

// CallTaken reports whether a call id is under way, or was chosen by this host
// and routed within the last 24 hours.
func (s *State) CallTaken(key string) bool { return s.calls[key] != nil || s.ids.taken(key) }

// UnderWay reports whether a call is routed and has not ended.
func (s *State) UnderWay(key string) bool { return s.calls[key] != nil }

// Settled reports whether every configured peer has listed, failed or been
// refused once since the configuration was loaded, and the names are merged.
func (s *State) Settled() bool {
	for _, ns := range s.spaces() {
		if !ns.merged {
			return s.Rejected != nil
		}
	}
	return true
}

// allSettled reports whether bare names may be assigned in a context.
func (s *State) allSettled(context string) bool {
	for _, n := range s.names {
		if !s.peers[n].isSettled(context) {
			return false
		}
	}
	return s.ConfigSeq != 0
}

// unended returns the calls that have no end yet, in the order of their routing.
func (s *State) unended() []*call {
	out := make([]*call, 0, len(s.calls))
	for _, c := range s.calls { // order-free: sorted below
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *call) int { return int(a.seq - b.seq) })
	return out
}

// idWindow is how long a host's own call id stays taken after it was used.
const idWindow = 24 * 60 * 60 * 1_000_000_000 // nanoseconds

// recentIDs remembers the call ids that hosts chose, for idWindow.
type recentIDs struct {
	seen  map[string]int64
	queue []string
}

func (r *recentIDs) taken(key string) bool {
	_, ok := r.seen[key]
	return ok
}

// expire forgets the ids whose time is over.
func (r *recentIDs) expire(now int64) {
	for len(r.queue) > 0 && now-r.seen[r.queue[0]] > idWindow {
		delete(r.seen, r.queue[0])
		r.queue = r.queue[1:]
	}
}

func (r *recentIDs) add(key string, now int64) {
	if !r.taken(key) {
		r.seen[key] = now
		r.queue = append(r.queue, key)
	}
}
