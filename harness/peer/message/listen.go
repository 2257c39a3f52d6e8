package message

import (
	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

// metaSubscription is the member of _meta that names the subscriptions/listen request which a message belongs to (specification
// 2026-07-28, basic/patterns/subscriptions, "Receiving Notifications").
const metaSubscription = "io.modelcontextprotocol/subscriptionId"

// Notice is what a notification says about subscriptions.
type Notice int

// Notices, and the methods that bring them.
const (
	Unrelated    Notice = iota // any other
	Acknowledged               // notifications/subscriptions/acknowledged
	ToolsChanged               // notifications/tools/list_changed
	Cancelled                  // notifications/cancelled
)

// ReadNotice says what a notification, a message with a method and without an id, says about subscriptions, and about which: the
// id of a subscriptions/listen request, or 0 where it names none of the form that requests have here. A legacy peer announces
// changes without naming one. For Cancelled the id is that of the request that is cancelled (specification, basic/patterns/
// cancellation), of whatever method it is.
func ReadNotice(m domain.Message) (Notice, int64) {
	switch m.MethodName() {
	case "notifications/subscriptions/acknowledged":
		return Acknowledged, subscriptionOf(m.Params)
	case "notifications/tools/list_changed":
		return ToolsChanged, subscriptionOf(m.Params)
	case "notifications/cancelled":
		return Cancelled, requestID(lookup(m.Params, "requestId"))
	}
	return Unrelated, 0
}

// ReadEnd says how the answer to the subscriptions/listen request under id, 1 or more, ended it (specification, basic/patterns/subscriptions,
// "Graceful Closure"): domain.EndedAnswered, EndedError with the code of the error, 0 where it has none that can be used, or
// EndedBroken for an answer that is neither. That the answer came under id is not looked at.
func ReadEnd(m domain.Message, id int64) (how string, code int64) {
	switch {
	case !m.Is2() || (m.Result != nil) == (m.Error != nil):
		return domain.EndedBroken, 0
	case m.Error != nil:
		return domain.EndedError, domain.ReadAnswer(m).Facts.ErrorCode
	case !isText(lookup(m.Result, "resultType"), "complete") || subscriptionOf(m.Result) != id:
		return domain.EndedBroken, 0
	}
	return domain.EndedAnswered, 0
}

// subscriptionOf is the subscription that the _meta of params or of a result names; 0 for none.
func subscriptionOf(v jsontext.Value) int64 {
	return requestID(lookup(v, "_meta", metaSubscription))
}

// requestID is the id that v is, exactly as requests are numbered here; else 0.
func requestID(v jsontext.Value) int64 {
	id, _ := domain.Message{ID: v}.RequestID()
	return id
}

func isText(v jsontext.Value, want string) bool {
	b, err := jsontext.AppendUnquote(nil, v)
	return err == nil && string(b) == want
}
