package domain

// RulesVersion numbers the rules that Decide follows. A change of what Decide
// returns for the same input gets a new number; a log is replayed under the
// number that its events carry.
const RulesVersion = 1

// Data is the content of one kind of event. Kind is its type on the wire:
// noun.past-participle, the same words as the Go type.
type Data interface {
	// Kind is the type on the wire.
	Kind() string
}

// OfPeer is implemented by the data of events that concern one peer.
type OfPeer interface {
	// PeerName is the peer's configured name.
	PeerName() string
}

// OfCall is implemented by the data of events that belong to one call.
type OfCall interface {
	// CallKey is the call's key: host/call_id.
	CallKey() string
}

// Event is one fact of the log: an observation or a decision.
//
// Time and Mono are those of the observation; the decisions that follow from
// it carry the same values, so that their bytes follow from it alone.
type Event struct {
	Seq      int64  // position in the log, dense from 1
	Time     int64  // wall clock, nanoseconds since 1970
	Mono     int64  // monotonic clock, nanoseconds since service.started
	Cause    int64  // seq of the observation a decision follows from; 0 for an observation
	Evidence []byte // bytes the data refers to by digest; never part of the envelope
	Data     Data
}

// IsDecision reports whether the event is something Waybill chose.
func (e Event) IsDecision() bool { return e.Cause != 0 }

// Peer returns the name of the peer the event concerns, or "".
func (e Event) Peer() string {
	if p, ok := e.Data.(OfPeer); ok {
		return p.PeerName()
	}
	return ""
}

// Call returns the key of the call the event belongs to, or "".
func (e Event) Call() string {
	if c, ok := e.Data.(OfCall); ok {
		return c.CallKey()
	}
	return ""
}

// Era of a peer.
type Era string

// The eras (seed 2.1.0, rules 3 and 4).
const (
	EraUnknown Era = "unknown"
	EraModern  Era = "modern"
	EraLegacy  Era = "legacy"
)

// At names one incarnation of one peer.
type At struct {
	Peer        string `json:"peer"`
	Incarnation int64  `json:"incarnation"`
}

// PeerName implements OfPeer.
func (a At) PeerName() string { return a.Peer }

// CallID names one call: unique for its host.
type CallID struct {
	Host string `json:"host"`
	ID   string `json:"call_id"`
}

// CallKey implements OfCall.
func (c CallID) CallKey() string { return c.Host + "/" + c.ID }

// Payload stands for bytes that are never in an event: their size, and an
// HMAC-SHA-256 under a key that is kept outside the log.
type Payload struct {
	Size int64  `json:"size"`
	HMAC string `json:"hmac"` // hex
}
