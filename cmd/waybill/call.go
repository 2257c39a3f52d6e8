package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"waybill/cmd/waybill/config"
	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
)

type callCmd struct {
	common
	Once         bool          `help:"Without a service: start the peers, call, and stop them."`
	Host         string        `default:"local" placeholder:"NAME" help:"Who calls; its credentials must be there (local)."`
	Timeout      time.Duration `placeholder:"D" help:"How long the call may take without an answer or progress, such as 5s; the peer's call_timeout if absent."`
	Limit        time.Duration `placeholder:"D" help:"How long it may take however much progress there is; the peer's call_limit if absent."`
	Wait         time.Duration `placeholder:"D" help:"How long to wait for a peer that is down; without it the call is refused at once."`
	Progress     bool          `help:"Print the progress of the call on standard error."`
	CallID       string        `name:"call-id" placeholder:"ID" help:"An id of your own for the call."`
	Key          string        `name:"idempotency-key" placeholder:"KEY" help:"Makes the call once under this key of your own: repeated with it, the call has its first outcome."`
	Traceparent  string        `placeholder:"TP" help:"A W3C traceparent of version 00, which goes on to the peer."`
	Generation   int64         `placeholder:"N" help:"The generation of the namespace you saw; a changed route is then refused."`
	Capabilities string        `placeholder:"JSON" help:"What you can do when the tool asks, such as {\"elicitation\":{}}."`
	Input        string        `placeholder:"JSON" help:"Goes on with a call that asked for input: an object with an answer to each of its inputRequests."`
	State        string        `placeholder:"JSON_STRING" help:"The requestState that came with it, in its quotes."`
	Tool         string        `arg:"" help:"The canonical name."`
	Arguments    string        `arg:"" optional:"" default:"{}" help:"A JSON object."`
}

// Help is shown under the usage.
func (callCmd) Help() string {
	return "Example:\n  waybill call -c waybill.yaml search '{\"query\":\"tea\"}'\n\n" +
		"To go on with a call that ended with input_required, repeat it:\n" +
		"  waybill call --call-id ID --input '{\"confirm\":{\"action\":\"accept\"}}' --state '\"s\"' search '{\"query\":\"tea\"}'\n\n" +
		"Prints the reply as JSON. Exit 0 complete, 4 tool error, 5 refused, 6 lost, 7 timed out, 8 cancelled, 9 not running, " +
		"10 input required, 11 protocol error; ran in the reply says whether the tool may have run."
}

// Run calls a tool.
func (c callCmd) Run(a *app) error {
	if err := c.check(); err != nil {
		return usageError(err)
	}
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	if _, err := c.request(); err != nil {
		return err
	}
	svc, err := a.running(f, c.Host)
	if err != nil {
		return err
	}
	if c.CallID == "" && (svc != nil || c.Progress) {
		c.CallID = bus.NewCallID() // by it the call can be asked after, and listened to
	}
	request, err := c.request()
	if err != nil {
		return err
	}
	var reply []byte
	switch {
	case svc != nil:
		defer svc.client.Close()
		reply, err = c.over(a, f, svc, request)
	case c.Once:
		reply, err = c.once(a, f, request)
	default:
		err = notRunning("no service runs on %s: start one with waybill serve, or call with --once", f.Data)
	}
	if err != nil {
		return err
	}
	return c.print(a, reply)
}

// check refuses what would be sent otherwise than it was typed.
func (c callCmd) check() error {
	if !domain.ValidName(c.Host) {
		return fmt.Errorf("--host %q is no name of a host: [a-z0-9][a-z0-9_-]{0,62}", c.Host)
	}
	if c.Traceparent != "" && domain.ParseTrace(c.Traceparent, "") == (domain.Trace{}) {
		return fmt.Errorf("--traceparent %q is none of version 00: 00-TRACE_ID-PARENT_ID-FLAGS, in lower-case hex", c.Traceparent)
	}
	if len(c.Key) > domain.MaxKey {
		return fmt.Errorf("--idempotency-key has %d bytes, more than %d", len(c.Key), domain.MaxKey)
	}
	for _, d := range []time.Duration{c.Timeout, c.Limit, c.Wait} {
		if d < 0 || d != 0 && d < time.Millisecond {
			return fmt.Errorf("%s is too short: --timeout, --limit and --wait count in milliseconds", d)
		}
	}
	return nil
}

// request builds the submitted JSON. What is JSON already goes in as it was typed.
func (c callCmd) request() ([]byte, error) {
	b := []byte("{")
	for _, m := range []struct {
		key, value string
		kind       jsontext.Kind
		want       string
	}{
		{"arguments", c.Arguments, '{', "the arguments must be one JSON object, in which no key comes twice"},
		{"capabilities", c.Capabilities, '{', "--capabilities must be one JSON object"},
		{"inputResponses", c.Input, '{', "--input must be one JSON object"},
		{"requestState", c.State, '"', "--state must be one JSON string, in its quotes"},
	} {
		if m.value == "" && m.key != "arguments" {
			continue
		}
		if v := jsontext.Value(m.value); !v.IsValid() || v.Kind() != m.kind {
			return nil, usageError(errors.New(m.want))
		}
		b = fmt.Appendf(b, `"%s":%s,`, m.key, m.value)
	}
	head, err := c.head()
	if err != nil {
		return nil, usageError(err)
	}
	return append(b, head[1:]...), nil
}

// head is the object of what the request holds beside what was typed as JSON.
func (c callCmd) head() ([]byte, error) {
	if (c.Input != "" || c.State != "") && c.CallID == "" {
		return nil, errors.New("--input and --state go on with a call: name its --call-id")
	}
	return json.Marshal(struct {
		Tool       string `json:"tool"`
		CallID     string `json:"call_id,omitzero"`
		Generation int64  `json:"generation,omitzero"`
		Timeout    int64  `json:"timeout_ms,omitzero"`
		Limit      int64  `json:"limit_ms,omitzero"`
		Wait       int64  `json:"wait_ms,omitzero"`
		Progress   bool   `json:"progress,omitzero"`
		Key        string `json:"idempotency_key,omitzero"`
	}{c.Tool, c.CallID, c.Generation, milliseconds(c.Timeout), milliseconds(c.Limit), milliseconds(c.Wait), c.Progress, c.Key})
}

// milliseconds rounds up to 1 what is less and not 0.
func milliseconds(d time.Duration) int64 {
	if d > 0 {
		return max(1, d.Milliseconds())
	}
	return d.Milliseconds()
}

// told prints progress as it came, secrets and all: it is for the host that calls.
func (a *app) told(progress []byte) { fmt.Fprintf(a.err.to, "progress %s\n", progress) }

// over sends the call to the running service. It waits somewhat longer than the
// call may take: the service always answers.
func (c callCmd) over(a *app, f *config.File, svc *remote, request []byte) ([]byte, error) {
	patience := max(c.Timeout, c.Limit)
	if c.Timeout == 0 || c.Limit == 0 {
		patience = max(patience, longestCall(f))
	}
	ctx, cancel := context.WithTimeout(a.ctx, patience+c.Wait+askPatience)
	defer cancel()
	stop := func() error { return nil }
	if c.Progress {
		var err error
		if stop, err = svc.client.Progress(ctx, c.CallID, a.told); err != nil {
			return nil, fmt.Errorf("listen for progress over NATS (service pid %d): %w", svc.run.PID, err)
		}
	}
	reply, _, err := svc.client.RequestTraced(ctx, "call", request, c.Traceparent)
	if ended := stop(); err == nil && ended != nil {
		a.progress("waybill: warning: not all progress was seen: %v", ended)
	}
	switch {
	case errors.Is(err, bus.ErrNotServing):
		return nil, notRunning("%w", err)
	case err != nil && a.ctx.Err() != nil:
		err = fmt.Errorf("interrupted: the call goes on at the service; see waybill calls outcome %s, or give it up with waybill calls cancel %s", c.CallID, c.CallID)
		return nil, &exitError{exit: exitLost, code: "interrupted", err: err}
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w: the call may have run, and may still; see waybill calls outcome %s", err, c.CallID)
		return nil, &exitError{exit: exitTimedOut, code: "no_reply", err: err}
	case errors.Is(err, bus.ErrConnectionLost):
		err = fmt.Errorf("%w: the call may have run; see waybill calls outcome %s", err, c.CallID)
		return nil, &exitError{exit: exitLost, code: "connection_lost", err: err}
	case err != nil:
		return nil, fmt.Errorf("call over NATS (service pid %d): %w", svc.run.PID, err)
	}
	return reply, nil
}

// once starts the peers without NATS and hands the call to the loop's intake.
func (c callCmd) once(a *app, f *config.File, request []byte) ([]byte, error) {
	n, err := a.openNode(f)
	if err != nil {
		return nil, err
	}
	n.onProgress = func(_ domain.CallID, progress []byte) { a.told(progress) }
	a.progress("starting %s for one call", count(len(f.Peers), "peer"))
	var reply []byte
	if err = n.engine.WaitSettled(a.ctx); err == nil {
		var r harness.Reply
		r, err = n.engine.CallOnce(a.ctx, c.Host, request, domain.Trace{Parent: c.Traceparent})
		reply = r.Encode()
	}
	return reply, errors.Join(err, n.stop("call --once has ended"))
}

func (c callCmd) print(a *app, reply []byte) error {
	var r struct {
		CallID string         `json:"call_id"`
		Status domain.Status  `json:"status"`
		Code   string         `json:"code"`
		Ran    domain.Ran     `json:"ran"`
		Size   int64          `json:"size"`
		Reason string         `json:"reason"`
		Result jsontext.Value `json:"result"`
	}
	if err := json.Unmarshal(reply, &r); err != nil {
		return fmt.Errorf("the reply is no reply of waybill: %w", err)
	}
	a.printReply(reply, c.wantJSON())
	switch {
	case r.Reason != "":
		a.progress("waybill: %s: %s", r.Code, r.Reason)
	case r.Code == string(domain.CodeResultTooLarge):
		a.progress("waybill: the call ran, but its result of %d bytes does not fit one NATS message; waybill calls outcome %s fetches it in parts", r.Size, r.CallID)
	case r.Status == domain.StatusInputRequired:
		a.progress("waybill: the tool asks for input: repeat the call with --call-id %s, --input and, if requestState came, --state", r.CallID)
	case r.Code == string(domain.CodeUndeclaredInput):
		a.progress("waybill: the tool asks for input that was not declared: give --capabilities, and allow it under capabilities: of the peer")
	case r.Status != domain.StatusComplete:
		a.progress("waybill: %s (%s); ran: %s", r.Status, r.Code, r.Ran)
	}
	return exitWith(exitOf(r.Status))
}
