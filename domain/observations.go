package domain

import "github.com/go-json-experiment/json/jsontext"

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

// PeerSpawned says that a peer's process is running.
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
type PeerExited struct {
	At
	Status     int    `json:"status"`
	Signal     string `json:"signal,omitempty"`
	Cause      string `json:"cause"` // exited, stdout_closed, frame_too_large, write_failed, stopped, watchdog_lost
	StderrSize int64  `json:"stderr_size"`
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

// CatalogListed brings the answer to one tools/list. Its evidence is the frame,
// redacted.
type CatalogListed struct {
	At
	RequestID int64 `json:"request_id"`
	Frame     Ref   `json:"frame"`
}

// CallReceived is a call as a host submitted it. Problem says why it cannot be
// one; the other fields then hold what could be read. An id that the host did
// not choose begins with GeneratedPrefix; DuplicateOf is the one it chose, where
// that was taken. Generation and the times are 0 where the host named none.
//
// A submission with Input or RequestState goes on with a call that was settled as
// input_required (specification, basic/patterns/mrtr). CarriesKey says that the
// arguments hold the string that the tool is configured to honour as an
// idempotency key.
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
	Problem      string         `json:"problem,omitempty"`
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
// is gone. Written says whether it may have reached the peer.
type ExchangeFailed struct {
	At
	RequestID int64  `json:"request_id"`
	Call      string `json:"call,omitempty"` // key of the call, where it was one
	Written   string `json:"written"`        // no, maybe
	Code      Code   `json:"code"`
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
)

// OperatorCommanded is what an operator ordered. Arguments are those a call is to
// be sent again with, where they were not kept.
type OperatorCommanded struct {
	By        string   `json:"by"`
	Verb      string   `json:"verb"`
	Peer      string   `json:"peer,omitempty"`
	Call      string   `json:"call,omitempty"` // key: host/call_id
	Arguments *Payload `json:"arguments,omitzero"`
}

// PeerName implements OfPeer.
func (d OperatorCommanded) PeerName() string { return d.Peer }

// CallKey implements OfCall.
func (d OperatorCommanded) CallKey() string { return d.Call }

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
func (OperatorCommanded) Kind() string { return "operator.commanded" }

// Kind implements Data.
func (NoiseCounted) Kind() string { return "noise.counted" }

// Kind implements Data.
func (IntakeShed) Kind() string { return "intake.shed" }
