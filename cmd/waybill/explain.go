package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
	"waybill/replay/explain"
)

// explaining bounds how many explanations are made at once: each folds the log up to the
// call.
const explaining = 1

// explanation is the answer to the verb explain. Where it is too long for a message it
// gives up the table of events, which the sentences cite anyway.
type explanation struct{ explain.Explanation }

func (x *explanation) shrink() bool {
	if x.Events == nil {
		return false
	}
	x.Events = nil
	return true
}

// explain answers why a call of this host went where it went.
func (s *server) explain(ctx context.Context, r *bus.Request) {
	select {
	case s.explains <- struct{}{}:
		defer func() { <-s.explains }()
	default:
		s.refuseRead(r, harness.Reply{Code: domain.CodeOverloaded, Reason: "another call is being explained; ask again"}, 503)
		return
	}
	id := callOf(r)
	x, err := explain.Call(ctx, logfile.Log{Reader: s.log.Reader()}, id.CallKey())
	switch {
	case errors.Is(err, explain.ErrNoCall):
		s.refuseRead(r, harness.Reply{CallID: id.ID, Code: domain.CodeUnknownCall, Reason: "this host has no call of this id in the log"}, 404)
	case ctx.Err() != nil:
		s.refuseRead(r, harness.Reply{CallID: id.ID, Code: domain.CodeExplainTooLong, Reason: "the log is too long to be explained while you wait: use waybill-audit explain on the log or a backup"}, 504)
	default:
		s.answer(ctx, r, func(context.Context, *bus.Request) (any, error) { return &explanation{x}, err })
	}
}

type explainCmd struct{ oneCall }

// Help is shown under the usage.
func (explainCmd) Help() string {
	return "Example:\n  waybill calls explain wb-iC8Fx0xZ1Q\n\nWhy the call went where it went and ended as it did, each sentence with the events it rests on. " +
		"Asks the running service, and reads the log where none runs. Exit 5 if the log has no such call. waybill-audit explain also writes proofs."
}

// Run explains a call.
func (c explainCmd) Run(a *app) error {
	x, err := c.explained(a)
	if errors.Is(err, explain.ErrNoCall) {
		return &exitError{exit: exitRefused, code: string(domain.CodeUnknownCall),
			err: fmt.Errorf("host %s has no call %s in the log: give the call_id of its reply, and --host if another host made it: %w", c.id().Host, c.id().ID, err)}
	}
	if err != nil {
		return err
	}
	if c.wantJSON() {
		return a.printJSON(x)
	}
	fmt.Fprint(a.out, x.Text())
	return nil
}

func (c explainCmd) explained(a *app) (x explain.Explanation, err error) {
	reply, code, err := c.ask(a, "explain")
	switch {
	case err != nil:
		return x, err
	case reply == nil:
		return c.fromLog(a)
	case code == string(domain.CodeUnknownCall):
		return x, explain.ErrNoCall
	case code != "":
		var r struct {
			Reason string `json:"reason"`
		}
		_ = json.Unmarshal(reply, &r) // the code says enough
		return x, &exitError{exit: exitRefused, code: code, err: fmt.Errorf("%s: %s", code, r.Reason)}
	}
	return x, json.Unmarshal(reply, &x)
}

func (c explainCmd) fromLog(a *app) (x explain.Explanation, err error) {
	f, err := a.load(c.file())
	if err != nil {
		return x, err
	}
	l, err := logfile.Open(dataDir(f).LogFile())
	if err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return explain.Call(a.ctx, l, c.id().CallKey())
}
