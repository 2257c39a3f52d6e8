package domain

// Methods and notification types of a subscription (specification,
// basic/patterns/subscriptions).
const (
	MethodListen     = "subscriptions/listen"
	TypeToolsChanged = "toolsListChanged"
)

// Why a list is read.
const (
	WhyChanged = "changed"      // the peer says that it changed
	WhyRead    = "read"         // a host reads the tools
	WhyMissed  = "missed"       // a call names a tool that nobody has
	WhyUnknown = "unknown_tool" // the peer says that it does not know the tool of a call
	WhyAgain   = "again"        // the last try failed
	WhyRefresh = "refresh"      // list_refresh has passed
	WhyListen  = "listening"    // a subscription was opened after the list was read
	WhyHeader  = "headers"      // the peer says that the headers of a call do not match it (-32020)
)

// ListChanged says that a peer announced a change of its tools, Count times since
// it was last said. Subscription is the request of the subscription it came on; 0
// in the legacy era, where notices come unasked.
type ListChanged struct {
	At
	Context      string `json:"context,omitempty"`
	Subscription int64  `json:"subscription,omitzero"`
	Count        int64  `json:"count"`
}

// ListDue says that the time has come for which reading a list was put off.
type ListDue struct {
	At
	Context string `json:"context,omitempty"`
}

// ToolsRead says that hosts read the tools of a context, Reads of them at once.
type ToolsRead struct {
	Context string `json:"context,omitempty"`
	Reads   int64  `json:"reads"`
}

// SubscriptionAcknowledged brings the first message of a subscription. Its
// evidence is the line, redacted.
type SubscriptionAcknowledged struct {
	At
	Context   string `json:"context,omitempty"`
	RequestID int64  `json:"request_id"`
	Frame     Ref    `json:"frame"`
}

// How a subscription ended.
const (
	EndedAnswered  = "answered"  // by the response that the specification calls graceful
	EndedError     = "error"     // by an error answer
	EndedCancelled = "cancelled" // by the peer's notifications/cancelled
	EndedBroken    = "broken"    // by an answer that is neither
)

// SubscriptionEnded says that the peer ended a subscription. A transport that is
// lost is exchange.failed instead.
type SubscriptionEnded struct {
	At
	Context   string `json:"context,omitempty"`
	RequestID int64  `json:"request_id"`
	How       string `json:"how"`
	ErrorCode int64  `json:"error_code,omitzero"`
}

// SubscriptionDue says that it is time to open a subscription again.
type SubscriptionDue struct {
	At
	Context string `json:"context,omitempty"`
}

// Kind implements Data.
func (ListChanged) Kind() string { return "list.changed" }

// Kind implements Data.
func (ListDue) Kind() string { return "list.due" }

// Kind implements Data.
func (ToolsRead) Kind() string { return "tools.read" }

// Kind implements Data.
func (SubscriptionAcknowledged) Kind() string { return "subscription.acknowledged" }

// Kind implements Data.
func (SubscriptionEnded) Kind() string { return "subscription.ended" }

// Kind implements Data.
func (SubscriptionDue) Kind() string { return "subscription.due" }
