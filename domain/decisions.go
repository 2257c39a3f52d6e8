package domain

import "github.com/go-json-experiment/json/jsontext"

// Decisions: what Waybill chose, including every act towards the world. Each
// can be made again from the events before it.

// Methods of the probe.
const (
	MethodDiscover   = "server/discover"
	MethodInitialize = "initialize"
)

// Authorities: on what ground a probe is sent.
const (
	AuthorityFirst       = "first_message"         // the first message of a fresh process
	AuthorityVersion     = "version_refused"       // -32022: again at the mutual version
	AuthorityCapability  = "capability_configured" // -32021: again with what the configuration lets us declare
	AuthorityStamp       = "stamped_again"         // -32020
	AuthorityAllowLegacy = "allow_legacy"          // the operator's word for this pinned peer
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
	Attempt int   `json:"attempt"`  // from 1, in a row
	Delay   int64 `json:"delay_ms"` // before the start
	After   Code  `json:"after"`    // why the incarnation before it ended
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
	RequestID    int64          `json:"request_id"`
	Page         int            `json:"page"` // from 1
	Cursor       *string        `json:"cursor"`
	Era          Era            `json:"era"`
	Version      string         `json:"version"`
	Capabilities jsontext.Value `json:"capabilities"`
	Deadline     int64          `json:"deadline_ms"`
}

// CatalogAccepted makes a list the peer's last good one.
type CatalogAccepted struct {
	At
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
	Code   Code   `json:"code"`
	Reason string `json:"reason"`
}

// ToolRejected leaves one tool out of a catalog.
type ToolRejected struct {
	At
	Position int    `json:"position"` // from 0, over all pages
	Name     string `json:"name"`     // quoted to ASCII, shortened
	Code     Code   `json:"code"`
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
}

// CallRefused ends a call before anything was sent for it.
type CallRefused struct {
	CallID
	Code   Code   `json:"code"`
	Reason string `json:"reason"`
}

// CallAbandoned gives up waiting for a request: the peer is told, and a late
// answer is dropped.
type CallAbandoned struct {
	CallID
	At
	RequestID int64  `json:"request_id"`
	Reason    string `json:"reason"`
}

// CallSettled ends a call that was routed. It is final.
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

// PeerName implements OfPeer.
func (d PeerAdmitted) PeerName() string { return d.Peer }

// PeerName implements OfPeer.
func (d PeerQuarantined) PeerName() string { return d.Peer }

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
func (CallAbandoned) Kind() string { return "call.abandoned" }

// Kind implements Data.
func (CallSettled) Kind() string { return "call.settled" }

// Kind implements Data.
func (AnswerDropped) Kind() string { return "answer.dropped" }
