package domain

import "github.com/go-json-experiment/json/jsontext"

// SubscriptionRequested opens a subscription for the types that the peer
// advertises. Deadline is for its acknowledgement alone.
type SubscriptionRequested struct {
	At
	Context      string         `json:"context,omitempty"`
	RequestID    int64          `json:"request_id"`
	Types        []string       `json:"types"`
	Attempt      int            `json:"attempt"` // in a row, from 1
	Version      string         `json:"version"`
	Capabilities jsontext.Value `json:"capabilities"`
	Deadline     int64          `json:"deadline_ms"`
}

// SubscriptionOpened says what the peer agreed to. Missing is what it was asked
// for and left out.
type SubscriptionOpened struct {
	At
	Context   string   `json:"context,omitempty"`
	RequestID int64    `json:"request_id"`
	Granted   []string `json:"granted"`
	Missing   []string `json:"missing,omitempty"`
}

// SubscriptionClosed says that a subscription is none any more, or never became
// one. Withdrawn tells the peer. It is opened again after Reopen; 0 for never in
// this incarnation.
type SubscriptionClosed struct {
	At
	Context   string `json:"context,omitempty"`
	RequestID int64  `json:"request_id"`
	Code      Code   `json:"code"`
	Reason    string `json:"reason"`
	Withdrawn bool   `json:"withdrawn,omitzero"`
	Reopen    int64  `json:"reopen_ms,omitzero"`
}

// ListDeferred puts off reading a list for Delay, because it was read a moment
// ago or could not be read. The last good one is served meanwhile.
type ListDeferred struct {
	At
	Context string `json:"context,omitempty"`
	Why     string `json:"why"`
	Delay   int64  `json:"delay_ms"`
}

// Verdicts on a cached list.
const (
	CacheFresh  = "fresh"  // within its ttl, and no change was announced
	CacheStale  = "stale"  // served all the same
	CacheShared = "shared" // a public list that was read for another context
	CacheNone   = "none"   // there is no list, or the last one was served too long
)

// Acts that follow from a verdict.
const (
	ActServed   = "served"   // as it is
	ActRead     = "read"     // it is read again
	ActJoined   = "joined"   // it is being read, or about to be
	ActDeferred = "deferred" // it will be read again when its interval has passed
	ActDown     = "down"     // it cannot be read: the peer is not there
)

// CacheUse is the decision on one peer's list. Owner is the context that the list
// was read for, where that is another one.
type CacheUse struct {
	Peer    string `json:"peer"`
	Owner   string `json:"owner,omitempty"`
	List    int64  `json:"list"` // seq of its catalog.accepted; 0 for none
	Verdict string `json:"verdict"`
	Act     string `json:"act"`
	Age     int64  `json:"age_ms,omitzero"` // since its first page was received
}

// CacheDecided says what a need of the lists of one context is met with. Uses are
// sorted by peer; where there are too many for one event, more follow.
type CacheDecided struct {
	Context string     `json:"context"`
	Why     string     `json:"why"`
	Uses    []CacheUse `json:"uses"`
}

// ToolChanged says that a tool is not what it was when it was last seen, or last
// approved. Diff is for people. Held tools are not routable until somebody
// approves them.
type ToolChanged struct {
	At
	Context string   `json:"context,omitempty"`
	Local   string   `json:"local"`
	From    string   `json:"from"` // digests of the definitions
	To      string   `json:"to"`
	Diff    []string `json:"diff,omitempty"`
	Held    bool     `json:"held,omitzero"`
}

// ToolMark says that a definition holds characters nobody sees.
type ToolMark struct {
	Where string `json:"where"` // JSON pointer
	What  string `json:"what"`
	Count int    `json:"count"`
}

// ToolFlagged warns of a tool whose definition shows people something else than
// it tells a model.
type ToolFlagged struct {
	At
	Context string     `json:"context,omitempty"`
	Local   string     `json:"local"`
	Marks   []ToolMark `json:"marks"`
}

// NameFlagged warns of names that a person could take for each other.
type NameFlagged struct {
	Context string   `json:"context"`
	Name    string   `json:"name"`
	Alike   []string `json:"alike"`
}

// ToolApproved lets a tool be routed again as it is now, on an operator's word.
type ToolApproved struct {
	By      string `json:"by"`
	Peer    string `json:"peer"`
	Context string `json:"context,omitempty"`
	Name    string `json:"name"`
	Local   string `json:"local"`
	Digest  string `json:"digest"`
}

// PeerName implements OfPeer.
func (d ToolApproved) PeerName() string { return d.Peer }

// Kind implements Data.
func (SubscriptionRequested) Kind() string { return "subscription.requested" }

// Kind implements Data.
func (SubscriptionOpened) Kind() string { return "subscription.opened" }

// Kind implements Data.
func (SubscriptionClosed) Kind() string { return "subscription.closed" }

// Kind implements Data.
func (ListDeferred) Kind() string { return "list.deferred" }

// Kind implements Data.
func (CacheDecided) Kind() string { return "cache.decided" }

// Kind implements Data.
func (ToolChanged) Kind() string { return "tool.changed" }

// Kind implements Data.
func (ToolFlagged) Kind() string { return "tool.flagged" }

// Kind implements Data.
func (NameFlagged) Kind() string { return "name.flagged" }

// Kind implements Data.
func (ToolApproved) Kind() string { return "tool.approved" }
