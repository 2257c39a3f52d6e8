package web

import "strings"

// Class says what an HTTP answer to a request is, before anybody has read a
// message in it.
type Class string

// The classes.
const (
	Message      Class = "message"      // its body may be one JSON-RPC message
	Stream       Class = "stream"       // its body may be a stream of events with messages in it
	Unauthorized Class = "unauthorized" // 401, 403: it says nothing about the era
	Unavailable  Class = "unavailable"  // nobody is there, or not now: tried again later
	Redirect     Class = "redirect"     // followed or refused by who holds the connection
	Ambiguous    Class = "ambiguous"    // another refusal: perhaps a server from before 2026-07-28
	Foreign      Class = "foreign"      // no refusal, and no answer of this protocol
)

// The types that the answer to a request has. The specification names these two,
// so nothing like application/problem+json is taken for one of them.
const (
	typeJSON   = "application/json"
	typeStream = "text/event-stream"
)

// Judge classifies an answer to a request by its status and its Content-Type,
// which is compared without case and parameters (specification 2026-07-28,
// basic/transports/streamable-http, "Sending Messages"; design, "Streamable HTTP").
//
// Message and Stream say where to look, and no more. A body is looked at whatever
// the status, because a modern server refuses with a message. What was found
// there is weighed with Fallback of the status: a result, or a modern error, counts
// under every status; an error that is not recognised as modern says nothing that
// 401, 403 or an outage did not say, and is ambiguous under the others only. Where
// nothing was found, Fallback is all there is.
//
// A stream may stay open for ever, so it is not waited for where the status tells
// by itself that nobody was reached or let in. 202 answers a notification: it is no
// answer to a request, whatever comes with it.
func Judge(status int, contentType string) Class {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.Trim(kind, " \t"))
	class := Fallback(status)
	switch {
	case class == Redirect || status == 202:
		return class
	case kind == typeJSON:
		return Message
	case kind == typeStream && (class == Ambiguous || class == Foreign):
		return Stream
	}
	return class
}

// Fallback is the class of an answer in which no message was found (design,
// "Streamable HTTP"). A status that does not exist is Foreign.
func Fallback(status int) Class {
	switch status {
	case 401, 403:
		return Unauthorized
	case 407, 408, 421, 425, 429:
		return Unavailable
	}
	switch status / 100 {
	case 5:
		return Unavailable
	case 4:
		return Ambiguous
	case 3:
		return Redirect
	}
	return Foreign
}
