package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nuid"
)

// ErrNotServing says that nothing answers the host's subject.
var ErrNotServing = errors.New("no Waybill service answers")

// ErrConnectionLost says that the connection ended while a request waited. The
// request may have been carried out: its reply, if there was one, is lost.
var ErrConnectionLost = errors.New("the connection was lost before the reply came")

// NotPermittedError is a refusal by the NATS server.
type NotPermittedError struct{ Violation }

func (e *NotPermittedError) Error() string {
	if e.Publish {
		return fmt.Sprintf("not permitted to publish to %q: use --host with a name whose credentials exist", e.Subject)
	}
	return fmt.Sprintf("not permitted to subscribe to %q with these credentials", e.Subject)
}

// Client is a host's or the operator's side of the conversation, as the commands
// use it. Its methods may be called at once.
type Client struct {
	nc     *nats.Conn
	host   string // or operatorUser
	prefix string

	mu      sync.Mutex
	waiting map[string]map[*context.CancelCauseFunc]struct{} // by subject
}

// Dial connects to the server at url as host, whose key is in credsDir, and
// gives up after five seconds. Close the client afterwards.
func Dial(ctx context.Context, url, credsDir, host, prefix string) (*Client, error) {
	id, err := LoadHost(credsDir, host)
	if err != nil {
		return nil, err
	}
	return DialAs(ctx, id, Target{URL: url}, prefix)
}

// DialOperator is Dial for the operator.
func DialOperator(ctx context.Context, url, credsDir, prefix string) (*Client, error) {
	id, err := LoadOperator(credsDir)
	if err != nil {
		return nil, err
	}
	return DialAs(ctx, id, Target{URL: url}, prefix)
}

// DialAs is Dial for who has the key already, also inside the process. It sets
// the target's OnViolation.
func DialAs(ctx context.Context, id Identity, to Target, prefix string) (*Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := &Client{host: id.Name(), prefix: prefix, waiting: map[string]map[*context.CancelCauseFunc]struct{}{}}
	to.OnViolation = c.refused
	nc, err := Connect(id, to)
	if err != nil {
		return nil, err
	}
	c.nc = nc
	nc.SetDisconnectErrHandler(func(*nats.Conn, error) { c.lost() })
	return c, nil
}

// Close ends the connection. Requests that wait fail.
func (c *Client) Close() { c.nc.Close() }

// refused ends what waits on the subject; without it they would wait for their
// deadline, for that is all that NATS lets them see.
func (c *Client) refused(v Violation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cancel := range c.waiting[v.Subject] {
		(*cancel)(&NotPermittedError{v})
	}
}

// lost ends everything that waits: a reply sent meanwhile goes nowhere, even if
// the connection comes back.
func (c *Client) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, waiting := range c.waiting {
		for cancel := range waiting {
			(*cancel)(ErrConnectionLost)
		}
	}
}

// watch makes a context that ends when the server refuses the subject.
func (c *Client) watch(ctx context.Context, subject string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[subject] == nil {
		c.waiting[subject] = map[*context.CancelCauseFunc]struct{}{}
	}
	c.waiting[subject][&cancel] = struct{}{}
	return ctx, func() {
		cancel(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting[subject], &cancel)
		if len(c.waiting[subject]) == 0 {
			delete(c.waiting, subject)
		}
	}
}

// Request asks verb with body and waits for the reply as long as ctx lets it.
// code is the reply's short code, empty if all went well; data is the reply's
// body in either case. An error means that there was no reply: a
// *NotPermittedError, ErrNotServing, or what ended ctx, in which case the
// request may have arrived.
func (c *Client) Request(ctx context.Context, verb string, body []byte) (data []byte, code string, err error) {
	return c.RequestTraced(ctx, verb, body, "")
}

// RequestTraced is Request with a W3C traceparent, which is not sent if empty.
func (c *Client) RequestTraced(ctx context.Context, verb string, body []byte, traceparent string) (data []byte, code string, err error) {
	msg := &nats.Msg{Subject: RequestSubject(c.prefix, verb, c.host), Data: body}
	if traceparent != "" {
		msg.Header = nats.Header{traceHeader: []string{traceparent}}
	}
	return c.ask(ctx, verb, msg)
}

// Order is Request for the operator, in the name of by.
func (c *Client) Order(ctx context.Context, verb, by string, body []byte) (data []byte, code string, err error) {
	return c.ask(ctx, verb, &nats.Msg{Subject: CommandSubject(c.prefix, verb, by), Data: body})
}

func (c *Client) ask(ctx context.Context, verb string, msg *nats.Msg) (data []byte, code string, err error) {
	if size, limit := msg.Size()-len(msg.Subject), maxMessage(c.nc); size > limit {
		return nil, "", fmt.Errorf("%s: %w: it has %d bytes, which is more than %d", verb, ErrRequestTooLarge, size, limit)
	}
	watched, done := c.watch(ctx, msg.Subject)
	defer done()
	reply, err := c.nc.RequestMsgWithContext(watched, msg)
	if err != nil {
		return nil, "", c.fault(watched, msg.Subject, err)
	}
	return reply.Data, reply.Header.Get(micro.ErrorHeader), nil
}

func (c *Client) fault(ctx context.Context, subject string, err error) error {
	var refused *NotPermittedError
	switch {
	case errors.As(context.Cause(ctx), &refused):
		return refused
	case errors.Is(context.Cause(ctx), ErrConnectionLost), errors.Is(err, nats.ErrConnectionClosed):
		return fmt.Errorf("request on %s: %w", subject, ErrConnectionLost)
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w on %s: it is stopping, not serving yet, or cut off from this NATS server", ErrNotServing, subject)
	case ctx.Err() != nil:
		return fmt.Errorf("no reply on %s: %w", subject, context.Cause(ctx))
	}
	return fmt.Errorf("request on %s: %w", subject, err)
}

// Published is one event as it passes by.
type Published struct {
	Seq     int64 // of the log
	Subject string
	Bytes   []byte
}

// Events calls each for every event of the log that is published from now on,
// in order, until ctx ends, each fails, or the connection does. logID may be
// "*" for all logs and pattern selects by what follows it, for example
// "call.>" or ">". An event can come twice after an interruption of the
// publisher, and those published while the client is disconnected are missed:
// who needs every event reads the stream or the log.
//
// ready, if not nil, is called once when events will be seen.
func (c *Client) Events(ctx context.Context, logID, pattern string, ready func(), each func(Published) error) error {
	subject := EventRoot(c.prefix, logID) + pattern
	watched, done := c.watch(ctx, subject)
	defer done()
	sub, err := c.nc.SubscribeSync(subject)
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is gone
	if err := c.nc.FlushWithContext(watched); err != nil {
		return c.fault(watched, subject, err)
	}
	if ready != nil {
		ready()
	}
	for {
		msg, err := sub.NextMsgWithContext(watched)
		if err != nil {
			return c.fault(watched, subject, err)
		}
		seq, err := strconv.ParseInt(msg.Header.Get(jetstream.MsgIDHeader), 10, 64)
		if err != nil {
			return fmt.Errorf("message on %s without the sequence of an event: %w", msg.Subject, err)
		}
		if err := each(Published{Seq: seq, Subject: msg.Subject, Bytes: msg.Data}); err != nil {
			return err
		}
	}
}

// NewCallID makes an id for a call, for a host that must know it beforehand.
func NewCallID() string { return "cli-" + nuid.Next() }

// Progress calls each, from one goroutine, with what is published of the progress
// of a call of this host from now on. stop ends it and must be called once. What
// came before is still handed over, so that after the reply of the call nothing of
// it is missing when stop returns, unless it says why it ended early: a
// *NotPermittedError, or ErrConnectionLost.
func (c *Client) Progress(ctx context.Context, call string, each func(progress []byte)) (stop func() error, err error) {
	subject := ProgressSubject(c.prefix, c.host, call)
	watched, done := c.watch(ctx, subject)
	sub, err := c.nc.SubscribeSync(subject)
	if err == nil {
		err = c.nc.FlushWithContext(watched)
	}
	if err != nil {
		defer done()
		return nil, c.fault(watched, subject, err)
	}
	var reader sync.WaitGroup
	reader.Go(func() { handOver(watched, sub, each) })
	return func() error {
		early := watched.Err()
		if early != nil {
			early = c.fault(watched, subject, early)
		}
		done()
		reader.Wait()
		_ = sub.Unsubscribe() // fails only if the connection is gone
		return early
	}, nil
}

// handOver passes on what comes until ctx ends, and then what has come.
func handOver(ctx context.Context, sub *nats.Subscription, each func([]byte)) {
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			break
		}
		each(msg.Data)
	}
	for n, _, _ := sub.Pending(); n > 0; n-- {
		msg, err := sub.NextMsg(time.Second)
		if err != nil {
			return
		}
		each(msg.Data)
	}
}
