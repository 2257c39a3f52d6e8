package bus

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

var (
	// ErrTooLarge says that a reply does not fit one message. Nothing was
	// sent, and the request can still be answered.
	ErrTooLarge = errors.New("reply is larger than one message may be")

	// ErrAnswered says that a request has had its one reply.
	ErrAnswered = errors.New("request was answered before")
)

const (
	traceHeader = "traceparent"
	stateHeader = "tracestate"

	// The longest traceparent that is passed on. Version 00 has 55 bytes;
	// later versions may be longer.
	maxTraceparent = 128

	// The longest tracestate that is passed on.
	maxTracestate = 512
)

// Request is one request of a host, or an order of an operator. Which host sent it
// is known from its subject, to which the server binds the key of the host. Only
// who holds the operator's key can order; the name is what that one says.
type Request struct {
	Verb        string
	Host        string // "" for an order
	Operator    string // "" for a request of a host
	Data        []byte // belongs to the receiver
	Traceparent string // as sent; empty if absent or over 128 bytes
	Tracestate  string // as sent; empty if absent or over 512 bytes

	service  *Service
	reply    string
	answered atomic.Bool
}

// Respond sends the one reply. body is the whole of it; an empty code means
// that all went well. Otherwise code also goes into the header
// Nats-Service-Error and number, which is like an HTTP status, into
// Nats-Service-Error-Code (500 if it is 0).
//
// If the reply does not fit one message the error wraps ErrTooLarge, nothing
// was sent, and Respond may be called again with less. A nil error means that
// the reply was handed to the connection, not that the host has it. Respond
// may be called from any goroutine, also after the service was stopped, as
// long as the connection is open.
func (r *Request) Respond(body []byte, code string, number int) error {
	msg := &nats.Msg{Subject: r.reply, Data: body}
	if code != "" {
		if number == 0 {
			number = 500
		}
		msg.Header = nats.Header{
			micro.ErrorHeader:     []string{code},
			micro.ErrorCodeHeader: []string{strconv.Itoa(number)},
		}
	}
	if size, limit := msg.Size()-len(msg.Subject), r.service.MaxReply(); size > limit {
		return fmt.Errorf("%w: %d bytes of at most %d", ErrTooLarge, size, limit)
	}
	if !r.answered.CompareAndSwap(false, true) {
		return ErrAnswered
	}
	if code != "" {
		r.service.failed.Add(1)
	}
	if err := r.service.nc.PublishMsg(msg); err != nil {
		return fmt.Errorf("reply to %s: %w", r.Host+r.Operator, err)
	}
	return nil
}
