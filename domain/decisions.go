package domain

import "github.com/go-json-experiment/json/jsontext"

// Decisions: what Waybill chose, including every act towards the world. Each
// can be made again from the events before it.

// Methods of the probe. server/discover asks a modern peer for a sign of life, too.
const (
	MethodDiscover   = "server/discover"
	MethodInitialize = "initialize"
)

// Methods of everything after it.
const (
	MethodList = "tools/list"
	MethodCall = "tools/call"
	MethodPing = "ping" // of the legacy era only
)

// Authorities: on what ground a probe is sent.
const (
	AuthorityFirst       = "first_message"         // the first message of a fresh process
	AuthorityVersion     = "version_refused"       // -32022: again at the mutual version
	AuthorityCapability  = "capability_configured" // -32021: again with what the configuration lets us declare
	AuthorityStamp       = "stamped_again"         // -32020
	AuthorityAllowLegacy = "allow_legacy"          // the operator's word for this pinned peer
	AuthorityCredential  = "another_credential"    // the credential of the context before it was refused
)

// PeerAdmitted says that a peer is pinned and may be started.
type PeerAdmitted struct {
	Peer string `json:"peer"`
	Pin  string `json:"pin"`
}

// PeerRefused says that a peer is not started, or could not be.
type PeerRefused struct {
	Peer   string `json:"peer"`
	Code   Code   `json:"code"`
	Reason string `json:"reason"`
}

// PeerLaunched orders the start of one incarnation.
type PeerLaunched struct {
	At
	First string `json:"first"` // the method of its first message
}

// PeerRestarted orders the start of the next incarnation after a delay, because
// the one before it has ended by itself. Its first message is server/discover.
type PeerRestarted struct {
	At
	Attempt int    `json:"attempt"`      // from 1, in a row
	Delay   int64  `json:"delay_ms"`     // before the start
	After   Code   `json:"after"`        // why the incarnation before it ended
	By      string `json:"by,omitempty"` // the operator who ordered it; "" for recovery
}

// PeerAbandoned gives up an incarnation that shows no sign of life: its process
// group is killed, and recovery follows.
type PeerAbandoned struct {
	At
	Code   Code   `json:"code"`
	Reason string `json:"reason"`
}

// HealthRequested asks a peer for a sign of life: server/discover, or ping in the
// legacy era. The next one is due after Every.
type HealthRequested struct {
	At
	RequestID    int64          `json:"request_id"`
	Method       string         `json:"method"`
	Era          Era            `json:"era"`
	Version      string         `json:"version"`
	Capabilities jsontext.Value `json:"capabilities"`
	Deadline     int64          `json:"deadline_ms"`
	Every        int64          `json:"every_ms"`
	Context      string         `json:"context,omitempty"` // of a peer over HTTP: that of its probe
}

// CommandRefused says that an operator's command changes nothing.
type CommandRefused struct {
	By     string `json:"by"`
	Verb   string `json:"verb"`
	Peer   string `json:"peer,omitempty"`
	Call   string `json:"call,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Code   Code   `json:"code"`
	Reason string `json:"reason"`
}

// PeerQuarantined says that too many starts in a row have failed; the next
// attempt comes much later.
type PeerQuarantined struct {
	Peer     string `json:"peer"`
	Attempts int    `json:"attempts"`
	Reason   string `json:"reason"`
}

// ProbeIssued orders a probe.
type ProbeIssued struct {
	At
	RequestID    int64          `json:"request_id"`
	Method       string         `json:"method"`
	Version      string         `json:"version"`
	Attempt      int            `json:"attempt"`
	Deadline     int64          `json:"deadline_ms"`
	Authority    string         `json:"authority"`
	Capabilities jsontext.Value `json:"capabilities"` // declared in it
	Context      string         `json:"context,omitempty"`
}

// LegacyExcluded rules legacy out for this incarnation while the wait for the
// probe's own answer goes on.
type LegacyExcluded struct {
	At
	Reason string `json:"reason"`
}

// EraDetermined selects an era and a version for this incarnation.
type EraDetermined struct {
	At
	Era          Era            `json:"era"`
	Version      string         `json:"version"`
	Evidence     string         `json:"evidence"` // digest of the frame it rests on
	HasTools     bool           `json:"has_tools"`
	Capabilities jsontext.Value `json:"capabilities"` // declared from here on
	Warnings     []string       `json:"warnings,omitempty"`
	HealthEvery  int64          `json:"health_every_ms,omitzero"` // the first health.due comes after it; 0 for none
	ListChanged  bool           `json:"list_changed,omitzero"`    // it advertises notices of changed tools
}

// EraRefused closes this incarnation: the era stays unknown. Reason says in
// one sentence which rule closed it and what the operator can do.
type EraRefused struct {
	At
	Code     Code   `json:"code"`
	Reason   string `json:"reason"`
	Evidence string `json:"evidence,omitempty"`
}

// ListRequested orders one page of tools/list.
type ListRequested struct {
	At
	Context      string         `json:"context,omitempty"`
	RequestID    int64          `json:"request_id"`
	Page         int            `json:"page"` // from 1
	Cursor       *string        `json:"cursor"`
	Era          Era            `json:"era"`
	Version      string         `json:"version"`
	Capabilities jsontext.Value `json:"capabilities"`
	Deadline     int64          `json:"deadline_ms"`
	Why          string         `json:"why,omitempty"` // "" where the peer has just come up
}

// CatalogAccepted makes a list the peer's last good one.
type CatalogAccepted struct {
	At
	Context    string   `json:"context,omitempty"`
	Digest     string   `json:"digest"` // over names and definitions
	Tools      int      `json:"tools"`
	CacheScope string   `json:"cache_scope"`
	TTL        int64    `json:"ttl_ms"`
	Pages      []string `json:"pages"` // digests of the frames it was read from
	Warnings   []string `json:"warnings,omitempty"`
}

// CatalogRefused keeps the last good list, if there is one.
type CatalogRefused struct {
	At
	Context string `json:"context,omitempty"`
	Code    Code   `json:"code"`
	Reason  string `json:"reason"`
}

// ToolRejected leaves one tool out of a catalog.
type ToolRejected struct {
	At
	Context  string `json:"context,omitempty"`
	Position int    `json:"position"` // from 0, over all pages
	Name     string `json:"name"`     // quoted to ASCII, shortened
	Code     Code   `json:"code"`
	Reason   string `json:"reason,omitempty"`
}

// CollisionDecided says who is routable under a contested name. Winner is null
// where nobody is.
type CollisionDecided struct {
	Context    string  `json:"context"`
	Name       string  `json:"name"`
	Policy     string  `json:"policy"`
	Candidates []Owner `json:"candidates"`
	Winner     *Owner  `json:"winner"`
}

// NameMoved says that a canonical name changes its owner.
type NameMoved struct {
	Context string `json:"context"`
	Name    string `json:"name"`
	From    Owner  `json:"from"`
	To      Owner  `json:"to"`
}

// Input names a list that a namespace was merged from.
type Input struct {
	Peer   string `json:"peer"`
	Seq    int64  `json:"seq"` // of its catalog.accepted
	Digest string `json:"digest"`
}

// NamespaceMerged puts a namespace in force.
type NamespaceMerged struct {
	Context    string  `json:"context"`
	Generation int64   `json:"generation"`
	Digest     string  `json:"digest"`
	Policy     string  `json:"policy"`
	Tools      int     `json:"tools"`
	Inputs     []Input `json:"inputs"` // sorted by peer
}

// ConfigRejected refuses the first start of a configuration.
type ConfigRejected struct {
	Code   Code   `json:"code"`
	Reason string `json:"reason"`
}

// CallRouted sends a call to the peer that owns the tool. Catalog and Namespace
// are the seqs of the events it was looked up in.
type CallRouted struct {
	CallID
	At
	RequestID    int64          `json:"request_id"`
	Tool         string         `json:"tool"`
	Local        string         `json:"local"`
	Era          Era            `json:"era"`
	Version      string         `json:"version"`
	Capabilities jsontext.Value `json:"capabilities"`
	Generation   int64          `json:"generation"`
	Namespace    int64          `json:"namespace"`
	Catalog      int64          `json:"catalog"`
	Deadline     int64          `json:"deadline_ms"`
	Idle         int64          `json:"idle_ms,omitzero"`  // after progress; 0 where it extends nothing
	Limit        int64          `json:"limit_ms,omitzero"` // however much progress there is
	Progress     bool           `json:"progress,omitzero"` // a progressToken goes with it
	Context      string         `json:"context,omitempty"`
	Cache        string         `json:"cache,omitempty"` // the verdict on the list that it was found in
}

// Rules by which a call is sent again.
const (
	RuleNeverWritten = "never_written"        // it certainly never reached the peer
	RuleHeader       = "header_mismatch"      // -32020: rejected before it ran
	RuleCapability   = "capability_missing"   // -32021: rejected before it ran
	RuleVersion      = "version_refused"      // -32022: rejected before it ran
	RuleSession      = "session_gone"         // HTTP 404 under a legacy session: rejected before it ran
	RuleRepeatable   = "repeatable"           // the operator marked the tool
	RuleKey          = "idempotency_argument" // it carries the key that the tool is configured to honour
	RuleHints        = "trusted_hints"        // the peer's hints are trusted: read-only or idempotent
	RuleContinue     = "continue"             // input_required with a requestState alone
	RuleInput        = "input"                // the host answered an input_required
	RuleOperator     = "operator"             // the operator's word
)

// CallResent sends a call again, under a new id, to the same peer and tool. Rule
// says on what ground, By on whose word: a host or an operator, "" for a rule.
type CallResent struct {
	CallID
	At
	RequestID    int64          `json:"request_id"`
	After        int64          `json:"after"`   // the request before it
	Attempt      int            `json:"attempt"` // exchanges of the call, this one included
	Rule         string         `json:"rule"`
	By           string         `json:"by,omitempty"`
	Local        string         `json:"local"`
	Era          Era            `json:"era"`
	Version      string         `json:"version"`
	Capabilities jsontext.Value `json:"capabilities"`
	Deadline     int64          `json:"deadline_ms"`
	Idle         int64          `json:"idle_ms,omitzero"`
	Limit        int64          `json:"limit_ms,omitzero"`
	Progress     bool           `json:"progress,omitzero"`
	Context      string         `json:"context,omitempty"`
}

// CallHeld keeps a call until its peer is ready, for at most Wait. Code says why
// it cannot go now.
type CallHeld struct {
	CallID
	Peer string `json:"peer,omitempty"` // "" where the owner is not known yet
	Code Code   `json:"code"`
	Rule string `json:"rule,omitempty"` // by which it is then sent again; "" where it never was sent
	Ran  Ran    `json:"ran"`
	Wait int64  `json:"wait_ms"`
}

// CallRefused ends a call before anything was sent for it.
type CallRefused struct {
	CallID
	Code   Code   `json:"code"`
	Reason string `json:"reason"`
}

// Ran says what is known of the tool: nothing was sent for this submission. Under a
// key that has expired the call before it may have run.
func (d CallRefused) Ran() Ran {
	if d.Code == CodeOutcomeExpired {
		return RanMaybe
	}
	return RanNo
}

// CallJoined answers a submission with the outcome of a call that was made before
// under the same idempotency key, or has it wait for that: nothing is sent. The
// submission is no call of its own.
type CallJoined struct {
	CallID
	First    string `json:"first"`    // key of the call that has the idempotency key: host/call_id
	Received int64  `json:"received"` // seq of its call.received
}

// CallAbandoned gives up waiting for a request: the peer is told, and a late
// answer is dropped.
type CallAbandoned struct {
	CallID
	At
	RequestID int64  `json:"request_id"`
	Reason    string `json:"reason"`
}

// CallSettled ends the exchange of a call that was routed, and the call with it.
// Status input_required is final too, unless the host goes on with the call.
type CallSettled struct {
	CallID
	Status Status `json:"status"`
	Code   Code   `json:"code,omitempty"`
	Ran    Ran    `json:"ran"`
}

// AnswerDropped says that an observation about an exchange came after the
// exchange had ended, and changes nothing.
type AnswerDropped struct {
	At
	RequestID int64  `json:"request_id"`
	Reason    string `json:"reason"`
}

// PayloadsErased erases what is kept of calls that were received before it: the
// bytes, and the keys under which their events name them. It says which calls by
// exactly one of Call, Host and Before, and goes for those under way too: nothing
// more of them is kept. By is the operator, "" for payload_retention, or with Outcomes
// for idempotency_window: each of the two erases only what is kept by it.
type PayloadsErased struct {
	By     string `json:"by,omitempty"`
	Call   string `json:"call,omitempty"`     // key: host/call_id
	Host   string `json:"host,omitempty"`     // all calls of one host
	Before int64  `json:"before_ms,omitzero"` // those received before: wall clock, milliseconds since 1970
	Calls  int64  `json:"calls"`              // how many they were when it was asked for

	Outcomes bool `json:"outcomes,omitzero"` // those of which only the outcome is kept
}

// PeerName implements OfPeer.
func (d PeerAdmitted) PeerName() string { return d.Peer }

// PeerName implements OfPeer.
func (d PeerQuarantined) PeerName() string { return d.Peer }

// PeerName implements OfPeer.
func (d CommandRefused) PeerName() string { return d.Peer }

// CallKey implements OfCall.
func (d CommandRefused) CallKey() string { return d.Call }

// CallKey implements OfCall.
func (d PayloadsErased) CallKey() string { return d.Call }

// PeerName implements OfPeer.
func (d CallHeld) PeerName() string { return d.Peer }

// PeerName implements OfPeer.
func (d PeerRefused) PeerName() string { return d.Peer }

// Kind implements Data.
func (PeerAdmitted) Kind() string { return "peer.admitted" }

// Kind implements Data.
func (PeerRefused) Kind() string { return "peer.refused" }

// Kind implements Data.
func (PeerLaunched) Kind() string { return "peer.launched" }

// Kind implements Data.
func (PeerRestarted) Kind() string { return "peer.restarted" }

// Kind implements Data.
func (PeerQuarantined) Kind() string { return "peer.quarantined" }

// Kind implements Data.
func (PeerAbandoned) Kind() string { return "peer.abandoned" }

// Kind implements Data.
func (HealthRequested) Kind() string { return "health.requested" }

// Kind implements Data.
func (CommandRefused) Kind() string { return "command.refused" }

// Kind implements Data.
func (CallResent) Kind() string { return "call.resent" }

// Kind implements Data.
func (CallHeld) Kind() string { return "call.held" }

// Kind implements Data.
func (ProbeIssued) Kind() string { return "probe.issued" }

// Kind implements Data.
func (LegacyExcluded) Kind() string { return "legacy.excluded" }

// Kind implements Data.
func (EraDetermined) Kind() string { return "era.determined" }

// Kind implements Data.
func (EraRefused) Kind() string { return "era.refused" }

// Kind implements Data.
func (ListRequested) Kind() string { return "list.requested" }

// Kind implements Data.
func (CatalogAccepted) Kind() string { return "catalog.accepted" }

// Kind implements Data.
func (CatalogRefused) Kind() string { return "catalog.refused" }

// Kind implements Data.
func (ToolRejected) Kind() string { return "tool.rejected" }

// Kind implements Data.
func (CollisionDecided) Kind() string { return "collision.decided" }

// Kind implements Data.
func (NameMoved) Kind() string { return "name.moved" }

// Kind implements Data.
func (NamespaceMerged) Kind() string { return "namespace.merged" }

// Kind implements Data.
func (ConfigRejected) Kind() string { return "config.rejected" }

// Kind implements Data.
func (CallRouted) Kind() string { return "call.routed" }

// Kind implements Data.
func (CallRefused) Kind() string { return "call.refused" }

// Kind implements Data.
func (CallJoined) Kind() string { return "call.joined" }

// Kind implements Data.
func (CallAbandoned) Kind() string { return "call.abandoned" }

// Kind implements Data.
func (CallSettled) Kind() string { return "call.settled" }

// Kind implements Data.
func (AnswerDropped) Kind() string { return "answer.dropped" }

// Kind implements Data.
func (PayloadsErased) Kind() string { return "payloads.erased" }
