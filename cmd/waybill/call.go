package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"waybill/cmd/waybill/config"
	"waybill/cmd/waybill/text"
	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
)

type callCmd struct {
	common
	Once       bool          `help:"Without a service: start the peers, call, and stop them."`
	Host       string        `default:"local" placeholder:"NAME" help:"Who calls; its credentials must be there (local)."`
	Timeout    time.Duration `placeholder:"D" help:"How long the call may take, such as 5s; the peer's call_timeout if absent."`
	CallID     string        `name:"call-id" placeholder:"ID" help:"An id of your own for the call."`
	Generation int64         `placeholder:"N" help:"The generation of the namespace you saw; a changed route is then refused."`
	Tool       string        `arg:"" help:"The canonical name."`
	Arguments  string        `arg:"" optional:"" default:"{}" help:"A JSON object."`
}

// Help is shown under the usage.
func (callCmd) Help() string {
	return "Example:\n  waybill call -c waybill.yaml search '{\"query\":\"tea\"}'\n\n" +
		"Prints the reply as JSON. Exit 0 complete, 4 tool error, 5 refused, 6 lost, 7 timed out, 8 cancelled, 9 not running, " +
		"10 input required, 11 protocol error; ran in the reply says whether the tool may have run."
}

// Run calls a tool.
func (c callCmd) Run(a *app) error {
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	request, err := c.request()
	if err != nil {
		return err
	}
	svc, err := a.running(f, c.Host)
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

// request builds the submitted JSON. The arguments go in as they were typed.
func (c callCmd) request() ([]byte, error) {
	if !jsontext.Value(c.Arguments).IsValid() || jsontext.Value(c.Arguments).Kind() != '{' {
		return nil, usageError(errors.New("the arguments must be one JSON object, in which no key comes twice"))
	}
	tool, err := json.Marshal(c.Tool)
	if err != nil {
		return nil, usageError(err)
	}
	b := fmt.Appendf(nil, `{"tool":%s,"arguments":%s`, tool, c.Arguments)
	if c.CallID != "" {
		id, err := json.Marshal(c.CallID)
		if err != nil {
			return nil, usageError(err)
		}
		b = fmt.Appendf(b, `,"call_id":%s`, id)
	}
	if c.Generation != 0 {
		b = fmt.Appendf(b, `,"generation":%d`, c.Generation)
	}
	if c.Timeout != 0 {
		b = fmt.Appendf(b, `,"timeout_ms":%d`, max(1, c.Timeout.Milliseconds()))
	}
	return append(b, '}'), nil
}

// over sends the call to the running service. It waits somewhat longer than the
// call may take: the service always answers.
func (c callCmd) over(a *app, f *config.File, svc *remote, request []byte) ([]byte, error) {
	patience := c.Timeout
	for _, p := range f.Peers {
		if c.Timeout == 0 {
			patience = max(patience, p.CallTimeout)
		}
	}
	ctx, cancel := context.WithTimeout(a.ctx, patience+askPatience)
	defer cancel()
	reply, _, err := svc.client.Request(ctx, "call", request)
	switch {
	case errors.Is(err, bus.ErrNotServing):
		return nil, notRunning("%w", err)
	case err != nil && a.ctx.Err() != nil:
		err = errors.New("interrupted: the call goes on at the service; see waybill events --type call")
		return nil, &exitError{exit: exitLost, code: "interrupted", err: err}
	case errors.Is(err, bus.ErrConnectionLost):
		err = fmt.Errorf("%w: the call may have run; see waybill events --type call", err)
		return nil, &exitError{exit: exitLost, code: "connection_lost", err: err}
	case err != nil:
		return nil, fmt.Errorf("call over NATS (service pid %d): %w", svc.run.PID, err)
	}
	return reply, nil
}

// once starts the peers without NATS and hands the call to the loop's intake.
func (c callCmd) once(a *app, f *config.File, request []byte) ([]byte, error) {
	if !domain.ValidName(c.Host) {
		return nil, usageError(fmt.Errorf("--host %q is no name of a host: [a-z0-9][a-z0-9_-]{0,62}", c.Host))
	}
	n, err := a.openNode(f)
	if err != nil {
		return nil, err
	}
	a.progress("starting %s for one call", count(len(f.Peers), "peer"))
	var reply []byte
	if err = n.engine.WaitSettled(a.ctx); err == nil {
		var r harness.Reply
		r, err = n.engine.CallOnce(a.ctx, c.Host, request)
		reply = r.Encode()
	}
	return reply, errors.Join(err, n.stop("call --once has ended"))
}

func (c callCmd) print(a *app, reply []byte) error {
	var r struct {
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
	if c.wantJSON() {
		fmt.Fprintf(a.out, "%s\n", reply)
	} else {
		fmt.Fprintf(a.out, "%s\n", text.Indent(reply))
	}
	switch {
	case r.Reason != "":
		a.progress("waybill: %s: %s", r.Code, r.Reason)
	case r.Code == string(domain.CodeResultTooLarge):
		a.progress("waybill: the call ran, but its result of %d bytes does not fit one NATS message", r.Size)
	case r.Status != domain.StatusComplete:
		a.progress("waybill: %s (%s); ran: %s", r.Status, r.Code, r.Ran)
	}
	return exitWith(exitOf(r.Status))
}
