package domain

import (
	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain/catalog"
)

// Observations: what the world said. Each is recorded before anything follows
// from it.

// ServiceStarted opens a life of the service. Whatever was under way before it
// has ended: every incarnation is gone, and a call that had no end is lost.
type ServiceStarted struct {
	Version string `json:"version"`
	Rules   int    `json:"rules"`
}

// ServiceStopped closes a life of the service in good order.
type ServiceStopped struct {
	Reason string `json:"reason"`
}

// ConfigLoaded says which configuration is in force. Its evidence is the JSON
// of Config.
type ConfigLoaded struct {
	Config Ref `json:"config"`
	Peers  int `json:"peers"`
}

// LogRestored opens a log that goes on from a backup of another one, whose
// keys or end may be lost. It changes no state: nothing of the other log is taken
// over. Its evidence is the last checkpoint in the backup; the zero Ref where it
// was never signed.
type LogRestored struct {
	Log        string `json:"log"`             // the other one
	Key        string `json:"key"`             // its public key
	Size       int64  `json:"size"`            // its events in the backup
	Root       string `json:"root"`            // RFC 6962, over them, hex
	Signed     int64  `json:"signed,omitzero"` // events that the checkpoint covers
	Checkpoint Ref    `json:"checkpoint,omitzero"`
	Beyond     int64  `json:"beyond,omitzero"` // events it had by a checkpoint that is newer than the backup
}

// PeerSpawned says that a peer's process is running. A peer over HTTP has none, and
// no PID: nothing was sent to it yet.
type PeerSpawned struct {
	At
	PID int `json:"pid"`
}

// SpawnFailed says that a peer's process could not be started. Nothing of it
// runs.
type SpawnFailed struct {
	At
	Code   Code   `json:"code"`
	Reason string `json:"reason"`
}

// PeerExited says that an incarnation's transport is gone and its process
// group with it. Status is the exit status, or -1 where a signal ended it.
// Replaced comes with watchdog_lost alone: the service starts another watchdog
// in the place of the one that was lost, so the peer can be started again.
type PeerExited struct {
	At
	Status     int    `json:"status"`
	Signal     string `json:"signal,omitempty"`
	Cause      string `json:"cause"` // exited, stdout_closed, frame_too_large, write_failed, stopped, watchdog_lost; unreachable, session_gone, session_refused
	StderrSize int64  `json:"stderr_size"`
	Replaced   bool   `json:"replaced,omitzero"`
}

// ProbeAnswered brings a message that came before the era was known and bears
// on it: an answer to a probe, or modern evidence under any other id or in a
// line that is no message. Its evidence is the line, redacted. RequestID is that
// of the probe it answers, 0 for none; Modern says that the line showed modern
// behaviour as it came, whatever redaction has left of it.
type ProbeAnswered struct {
	At
	RequestID int64 `json:"request_id,omitzero"`
	Modern    bool  `json:"modern,omitzero"`
	Frame     Ref   `json:"frame"`
}

// ProbeFailed says that a probe over HTTP had an answer without a message in it, or
// none: an answer under its id is ProbeAnswered, whatever its status. Class says
// what that means, Status is that of HTTP, 0 for none, and Reason says in words of
// ours what was there. Its evidence is the beginning of the body, redacted; the zero
// Ref where there was none.
type ProbeFailed struct {
	At
	RequestID int64  `json:"request_id"`
	Class     string `json:"class"` // unauthorized, unavailable, ambiguous, foreign, redirect
	Status    int    `json:"status,omitzero"`
	Reason    string `json:"reason"`
	Frame     Ref    `json:"frame,omitzero"`
}

// CatalogListed brings the answer to one tools/list. Its evidence is the frame,
// redacted.
type CatalogListed struct {
	At
	RequestID int64  `json:"request_id"`
	Frame     Ref    `json:"frame"`
	Context   string `json:"context,omitempty"`

	// Page is what catalog.ParsePage made of the evidence, by whoever reported it: it
	// takes long, and nobody need wait for it. It is no part of the event. Nil has it
	// made when it is needed, to the same end.
	Page *catalog.Page `json:"-"`
}

// CallReceived is a call as a host submitted it. Problem says why it cannot be
// one; the other fields then hold what could be read. An id that the host did
// not choose begins with GeneratedPrefix; DuplicateOf is the one it chose, where
// that was taken. Generation and the times are 0 where the host named none.
//
// A submission with Input or RequestState goes on with a call that was settled as
// input_required (specification, basic/patterns/mrtr). CarriesKey says that the
// arguments hold the string that the tool is configured to honour as an
// idempotency key. Kept says that the bytes of the call are kept, and that its
// payloads are named under a key of its own; OutcomeOnly that of those only what its
// peer answers is kept, and for idempotency_window.
//
// Key is the keyed digest of the host's idempotency_key, and Same that of what makes
// another submission the same call: tool, form and arguments, together with the key,
// so that it tells nothing to who does not have that. Both are under the key of the
// data directory, in hex.
type CallReceived struct {
	CallID
	DuplicateOf  string         `json:"duplicate_of,omitempty"`
	Tool         string         `json:"tool"`
	Generation   int64          `json:"generation,omitzero"`
	Timeout      int64          `json:"timeout_ms,omitzero"`
	Limit        int64          `json:"limit_ms,omitzero"`     // however much progress there is
	Wait         int64          `json:"wait_ms,omitzero"`      // for a peer that is not there
	Progress     bool           `json:"progress,omitzero"`     // the host listens for it
	Capabilities jsontext.Value `json:"capabilities,omitzero"` // what the host can do for a peer; nil where it did not say
	Arguments    Payload        `json:"arguments"`
	Input        *Payload       `json:"input_responses,omitzero"`
	RequestState *Payload       `json:"request_state,omitzero"`
	CarriesKey   bool           `json:"carries_key,omitzero"`
	Kept         bool           `json:"kept,omitzero"`
	Context      string         `json:"context,omitempty"` // "" for the default one
	Form         string         `json:"form,omitempty"`    // of Tool: "model" for a name in the form of models
	Problem      string         `json:"problem,omitempty"`
	Key          string         `json:"idempotency_key,omitzero"`  // "" for none
	Same         string         `json:"idempotency_call,omitzero"` // with Key
	OutcomeOnly  bool           `json:"outcome_only,omitzero"`     // with Kept
	Trace
}

// CallAnswered is the answer to a call's request. Facts holds what settling
// needs; the bytes go to the host.
type CallAnswered struct {
	CallID
	At
	RequestID    int64    `json:"request_id"`
	Result       Payload  `json:"result"`
	RequestState *Payload `json:"request_state,omitzero"` // of an input_required, as the text it stands for
	Facts        Facts    `json:"facts"`
}

// CallCancelled says that the host gave up a call that was under way.
type CallCancelled struct {
	CallID
	By string `json:"by"` // host
}

// ExchangeFailed says that a request will have no answer because its transport
// is gone. Written says whether it may have reached the peer. Over HTTP it says too
// that the answer carried no message: Status is then that of the answer. Reason says
// in words of ours what was there, "" where the code says it all.
type ExchangeFailed struct {
	At
	RequestID int64  `json:"request_id"`
	Call      string `json:"call,omitempty"` // key of the call, where it was one
	Written   string `json:"written"`        // no, maybe
	Code      Code   `json:"code"`
	Status    int    `json:"status,omitzero"`
	Reason    string `json:"reason,omitempty"`
}

// DeadlinePassed says that a request had no answer inside its deadline. Written
// is "no" where it certainly did not reach the peer. Silent says that the peer
// has written nothing at all since the request was.
type DeadlinePassed struct {
	At
	RequestID int64  `json:"request_id"`
	Call      string `json:"call,omitempty"` // key of the call, where it was one
	Written   string `json:"written,omitempty"`
	Silent    bool   `json:"silent,omitzero"`
}

// WaitPassed says that the time is over for which a call could be held.
type WaitPassed struct{ CallID }

// HealthDue says that it is time to ask a peer for a sign of life.
type HealthDue struct{ At }

// HealthAnswered says that a peer answered when it was asked for a sign of life.
// What it answered makes no difference.
type HealthAnswered struct {
	At
	RequestID int64 `json:"request_id"`
}

// Verbs of an operator.
const (
	VerbRevive = "revive" // start a peer again that is down
	VerbResend = "resend" // send a call again that was lost or timed out
	VerbErase  = "erase"  // erase the kept bytes of calls, and the keys that name them

	VerbApprove = "approve" // let a tool be routed whose definition changed
)

// OperatorCommanded is what an operator ordered. Arguments are those a call is to
// be sent again with. Host and OlderThan, in milliseconds, say what is to be
// erased; Calls is how many calls that names, as far as was seen. Tool, Context and
// Digest say what is approved.
type OperatorCommanded struct {
	By        string   `json:"by"`
	Verb      string   `json:"verb"`
	Peer      string   `json:"peer,omitempty"`
	Call      string   `json:"call,omitempty"` // key: host/call_id
	Arguments *Payload `json:"arguments,omitzero"`
	Host      string   `json:"host,omitempty"`
	OlderThan int64    `json:"older_than_ms,omitzero"`
	Calls     int64    `json:"calls,omitzero"`
	Tool      string   `json:"tool,omitempty"`    // canonical name
	Context   string   `json:"context,omitempty"` // of the tool
	Digest    string   `json:"digest,omitempty"`  // of the definition that was looked at
}

// KeyRotated says that the log left one key for another. Note is signed by both
// (events/checkpoint, OpenRotation); from this event on the new one signs.
type KeyRotated struct {
	By   string `json:"by"`
	From string `json:"from"` // public keys
	To   string `json:"to"`
	Note string `json:"note"`
}

// Kind implements Data.
func (KeyRotated) Kind() string { return "key.rotated" }

// PeerName implements OfPeer.
func (d OperatorCommanded) PeerName() string { return d.Peer }

// CallKey implements OfCall.
func (d OperatorCommanded) CallKey() string { return d.Call }

// RetentionPassed says that bytes of calls are kept that were received longer ago
// than payload_retention, or with Outcomes outcomes that were longer ago than
// idempotency_window. Calls is how many, as far as was seen.
type RetentionPassed struct {
	Calls    int64 `json:"calls"`
	Outcomes bool  `json:"outcomes,omitzero"`
}

// NoiseCounted folds what a peer wrote that is no answer to anything.
type NoiseCounted struct {
	At
	Kinds []NoiseCount `json:"kinds"` // sorted by kind
}

// NoiseCount counts one kind of noise.
type NoiseCount struct {
	What  string `json:"what"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"`
}

// IntakeShed folds calls that were turned away before anything was recorded.
type IntakeShed struct {
	Count int64 `json:"count"`
	Code  Code  `json:"code"`
}

// StreamForked says that the copy of the log in JetStream holds something else
// than the log does; nothing is published any more in this life of the service.
// Log and Copy are the SHA-256 of what each holds at Seq, in hex; "" for nothing.
type StreamForked struct {
	Stream string `json:"stream"`
	Seq    int64  `json:"seq"` // the first one that was found to differ
	Log    string `json:"log,omitempty"`
	Copy   string `json:"copy,omitempty"`
}

// CallKey implements OfCall.
func (d ExchangeFailed) CallKey() string { return d.Call }

// CallKey implements OfCall.
func (d DeadlinePassed) CallKey() string { return d.Call }

// Kind implements Data.
func (ServiceStarted) Kind() string { return "service.started" }

// Kind implements Data.
func (ServiceStopped) Kind() string { return "service.stopped" }

// Kind implements Data.
func (ConfigLoaded) Kind() string { return "config.loaded" }

// Kind implements Data.
func (LogRestored) Kind() string { return "log.restored" }

// Kind implements Data.
func (PeerSpawned) Kind() string { return "peer.spawned" }

// Kind implements Data.
func (SpawnFailed) Kind() string { return "spawn.failed" }

// Kind implements Data.
func (PeerExited) Kind() string { return "peer.exited" }

// Kind implements Data.
func (ProbeAnswered) Kind() string { return "probe.answered" }

// Kind implements Data.
func (CatalogListed) Kind() string { return "catalog.listed" }

// Kind implements Data.
func (CallReceived) Kind() string { return "call.received" }

// Kind implements Data.
func (CallAnswered) Kind() string { return "call.answered" }

// Kind implements Data.
func (CallCancelled) Kind() string { return "call.cancelled" }

// Kind implements Data.
func (ExchangeFailed) Kind() string { return "exchange.failed" }

// Kind implements Data.
func (DeadlinePassed) Kind() string { return "deadline.passed" }

// Kind implements Data.
func (WaitPassed) Kind() string { return "wait.passed" }

// Kind implements Data.
func (HealthDue) Kind() string { return "health.due" }

// Kind implements Data.
func (HealthAnswered) Kind() string { return "health.answered" }

// Kind implements Data.
func (ProbeFailed) Kind() string { return "probe.failed" }

// Kind implements Data.
func (OperatorCommanded) Kind() string { return "operator.commanded" }

// Kind implements Data.
func (RetentionPassed) Kind() string { return "retention.passed" }

// Kind implements Data.
func (NoiseCounted) Kind() string { return "noise.counted" }

// Kind implements Data.
func (IntakeShed) Kind() string { return "intake.shed" }

// Kind implements Data.
func (StreamForked) Kind() string { return "stream.forked" }
