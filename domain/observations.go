package domain

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
// that was taken. Generation is 0 and
// Timeout 0 where the host named none.
type CallReceived struct {
	CallID
	DuplicateOf string  `json:"duplicate_of,omitempty"`
	Tool        string  `json:"tool"`
	Generation  int64   `json:"generation,omitzero"`
	Timeout     int64   `json:"timeout_ms,omitzero"`
	Arguments   Payload `json:"arguments"`
	Problem     string  `json:"problem,omitempty"`
}

// CallAnswered is the answer to a call's request. Facts holds what settling
// needs; the bytes go to the host.
type CallAnswered struct {
	CallID
	At
	RequestID int64   `json:"request_id"`
	Result    Payload `json:"result"`
	Facts     Facts   `json:"facts"`
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
// is "no" where it certainly did not reach the peer.
type DeadlinePassed struct {
	At
	RequestID int64  `json:"request_id"`
	Call      string `json:"call,omitempty"` // key of the call, where it was one
	Written   string `json:"written,omitempty"`
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
func (NoiseCounted) Kind() string { return "noise.counted" }

// Kind implements Data.
func (IntakeShed) Kind() string { return "intake.shed" }
