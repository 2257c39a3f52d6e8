package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"waybill/domain"
)

// callsCmd is about calls that were submitted before.
type callsCmd struct {
	Outcome outcomeCmd `cmd:"" help:"Say what became of a call, from the log; after a crash too."`
	Cancel  cancelCmd  `cmd:"" help:"Give up a call that is under way; its own reply says how it ended."`
	Explain explainCmd `cmd:"" help:"Say why a call went where it went and ended as it did."`
	Resend  resendCmd  `cmd:"" help:"Send a call again that was lost or timed out: an operator's decision, on record."`
}

// oneCall names a call of a host.
type oneCall struct {
	common
	Host string `default:"local" placeholder:"NAME" help:"Whose call it is (local)."`
	Call string `arg:"" help:"The call_id of its reply."`
}

// id takes HOST/ID, as events name a call, as well as an ID.
func (c oneCall) id() domain.CallID {
	if host, id, whole := strings.Cut(c.Call, "/"); whole {
		return domain.CallID{Host: host, ID: id}
	}
	return domain.CallID{Host: c.Host, ID: c.Call}
}

// ask sends a verb about the call to the running service; nil where none runs. then, if
// not nil, goes on with the reply while the connection is there.
func (c oneCall) ask(a *app, verb string, then ...func(context.Context, *remote, []byte) ([]byte, error)) (reply []byte, code string, err error) {
	if id := c.id(); !domain.ValidName(id.Host) {
		return nil, "", usageError(fmt.Errorf("%q is no name of a host: give CALL_ID, or HOST/CALL_ID", id.Host))
	}
	f, err := a.load(c.file())
	if err != nil {
		return nil, "", err
	}
	svc, err := a.running(f, c.id().Host)
	if err != nil || svc == nil {
		return nil, "", err
	}
	defer svc.client.Close()
	body, err := json.Marshal(map[string]string{"call_id": c.id().ID})
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(a.ctx, askPatience)
	defer cancel()
	reply, code, err = svc.client.Request(ctx, verb, body)
	for _, f := range then {
		if err == nil {
			reply, err = f(a.ctx, svc, reply)
		}
	}
	return reply, code, err
}

type outcomeCmd struct{ oneCall }

// Help is shown under the usage.
func (outcomeCmd) Help() string {
	return "Example:\n  waybill calls outcome wb-iC8Fx0xZ1Q\n\nPrints the reply the call had, with its result where payloads are kept; status is under_way while it has no end. Exit 5 if the log has no such call."
}

// Run prints what became of the call.
func (c outcomeCmd) Run(a *app) error {
	reply, _, err := c.ask(a, "outcome", c.whole(a))
	if err == nil && reply == nil {
		reply, err = c.fromLog(a)
	}
	if err != nil {
		return err
	}
	var r struct {
		Code string `json:"code"`
	}
	if err := json.Unmarshal(reply, &r); err != nil {
		return fmt.Errorf("the answer is none of waybill: %w", err)
	}
	fmt.Fprintf(a.out, "%s\n", reply)
	if r.Code == string(domain.CodeUnknownCall) {
		return exitWith(exitRefused)
	}
	return nil
}

// whole fetches a result that does not fit one message, in parts. Where it is not there
// any more, the reply stands as it is.
func (c outcomeCmd) whole(a *app) func(context.Context, *remote, []byte) ([]byte, error) {
	return func(ctx context.Context, svc *remote, reply []byte) ([]byte, error) {
		var r struct {
			Code string `json:"code"`
		}
		if json.Unmarshal(reply, &r) != nil || r.Code != string(domain.CodeResultTooLarge) {
			return reply, nil //nolint:nilerr // the reply stands without it
		}
		whole, err := svc.fetchParts(ctx, c.id().ID, reply)
		if err != nil {
			a.progress("waybill: the result could not be fetched in parts: %v", err)
			return reply, nil
		}
		return whole, nil
	}
}

func (c outcomeCmd) fromLog(a *app) ([]byte, error) {
	f, err := a.load(c.file())
	if err != nil {
		return nil, err
	}
	reply, err := a.outcomeAlone(f, c.id())
	return reply.Encode(), err
}

type cancelCmd struct{ oneCall }

// Help is shown under the usage.
func (cancelCmd) Help() string {
	return "Example:\n  waybill calls cancel wb-iC8Fx0xZ1Q\n\nThe peer is told. Exit 5 if the call is not under way."
}

// Run gives the call up.
func (c cancelCmd) Run(a *app) error {
	reply, _, err := c.ask(a, "cancel")
	if err != nil {
		return err
	}
	if reply == nil {
		return notRunning("no service runs, so no call is under way: see waybill calls outcome")
	}
	var r cancelReply
	if err := json.Unmarshal(reply, &r); err != nil {
		return fmt.Errorf("the answer is none of waybill: %w", err)
	}
	fmt.Fprintf(a.out, "%s\n", reply)
	if !r.UnderWay {
		return exitWith(exitRefused)
	}
	return nil
}
