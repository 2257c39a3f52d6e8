package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"waybill/cmd/waybill/config"
	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
)

// operatorFlags are those of a command that is recorded under a name.
type operatorFlags struct {
	By string `required:"" placeholder:"NAME" help:"Who orders this, for the record: 1 to 63 of a-z, 0-9, _ and -."`
}

func (o operatorFlags) check() error {
	if domain.ValidName(o.By) {
		return nil
	}
	return usageError(fmt.Errorf("--by %q is no name: [a-z0-9][a-z0-9_-]{0,62}", o.By))
}

// order sends an order to the running service and prints its answer. It waits
// somewhat longer than the order may take.
func (a *app) order(f *config.File, verb, by string, body []byte, patience time.Duration, asJSON bool) error {
	svc, err := a.runningFor(f, func(ctx context.Context, run harness.Run) (*bus.Client, error) {
		id, err := bus.LoadOperator(run.Credentials)
		if err != nil {
			return nil, err
		}
		return bus.DialAs(ctx, id, target(run), run.Prefix)
	})
	if err != nil {
		return err
	}
	if svc == nil {
		return notRunning("no service runs on %s, so there is nobody to take orders: start one with waybill serve", f.Data)
	}
	defer svc.client.Close()
	ctx, cancel := context.WithTimeout(a.ctx, patience+askPatience)
	defer cancel()
	reply, _, err := svc.client.Order(ctx, verb, by, body)
	switch {
	case errors.Is(err, bus.ErrNotServing):
		return notRunning("%w", err)
	case err != nil:
		return fmt.Errorf("order %s over NATS (service pid %d): %w; whether it was carried out is in waybill events --type operator", verb, svc.run.PID, err)
	}
	return a.printOrder(reply, asJSON)
}

// printOrder prints the answer to an order and gives the exit code: 5 where it was
// refused, else that of the call it led to.
func (a *app) printOrder(reply []byte, asJSON bool) error {
	var r struct {
		Code    domain.Code `json:"code"`
		Reason  string      `json:"reason"`
		Outcome *struct {
			Status domain.Status `json:"status"`
			Code   domain.Code   `json:"code"`
			Ran    domain.Ran    `json:"ran"`
		} `json:"outcome"`
	}
	if err := json.Unmarshal(reply, &r); err != nil {
		return fmt.Errorf("the answer is none of waybill: %w", err)
	}
	a.printReply(reply, asJSON)
	switch {
	case r.Code != "":
		a.progress("waybill: %s: %s", r.Code, r.Reason)
		return exitWith(exitRefused)
	case r.Outcome == nil:
		return nil
	case r.Outcome.Status != domain.StatusComplete:
		a.progress("waybill: %s (%s); ran: %s", r.Outcome.Status, r.Outcome.Code, r.Outcome.Ran)
	}
	return exitWith(exitOf(r.Outcome.Status))
}

type reviveCmd struct {
	common
	operatorFlags
	Peer string `arg:"" help:"A peer of the configuration that is down."`
}

// Help is shown under the usage.
func (reviveCmd) Help() string {
	return "Example:\n  waybill peers revive notes --by ann\n\nStarts a peer afresh that is quarantined, closed or waits for its next start. " +
		"The order is recorded under the name. Exit 5 if it changes nothing, 9 if no service runs."
}

// Run orders the start of a peer.
func (c reviveCmd) Run(a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	body, err := json.Marshal(reviveOrder{c.Peer})
	if err != nil {
		return usageError(err)
	}
	return a.order(f, domain.VerbRevive, c.By, body, 0, c.wantJSON())
}

type resendCmd struct {
	oneCall
	operatorFlags
	Arguments string `arg:"" optional:"" help:"The arguments it was made with, byte for byte; needed where payloads are not kept."`
}

// Help is shown under the usage.
func (resendCmd) Help() string {
	return "Example:\n  waybill calls resend wb-iC8Fx0xZ1Q --by ann '{\"query\":\"tea\"}'\n\n" +
		"Sends a call again that was lost or timed out less than 24 hours ago: its tool may then run twice. " +
		"The order is recorded under the name. Waits for the call; exit as with waybill call, 5 if it is refused."
}

// Run orders that a call is sent again.
func (c resendCmd) Run(a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	body, err := c.body()
	if err != nil {
		return usageError(err)
	}
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	return a.order(f, domain.VerbResend, c.By, body, longestCall(f), c.wantJSON())
}

// body holds the arguments as they were typed.
func (c resendCmd) body() ([]byte, error) {
	b, err := json.Marshal(resendOrder{Call: c.id().CallKey()})
	if err != nil || c.Arguments == "" {
		return b, err
	}
	if v := jsontext.Value(c.Arguments); !v.IsValid() || v.Kind() != '{' {
		return nil, errors.New("the arguments must be one JSON object, in which no key comes twice")
	}
	return fmt.Appendf(b[:len(b)-1], `,"arguments":%s}`, c.Arguments), nil
}

// longestCall is the longest that an exchange with any peer may take.
func longestCall(f *config.File) (longest time.Duration) {
	for _, p := range f.Peers {
		longest = max(longest, p.CallTimeout, p.CallLimit)
	}
	return longest
}

// reviveOrder and resendOrder are the bodies of the two orders.
type reviveOrder struct {
	Peer string `json:"peer"`
}

type resendOrder struct {
	Call      string         `json:"call"` // host/call_id
	Arguments jsontext.Value `json:"arguments,omitzero"`
}

func (s *server) revive(ctx context.Context, r *bus.Request) {
	var ask reviveOrder
	d := domain.OperatorCommanded{By: r.Operator, Verb: domain.VerbRevive}
	if json.Unmarshal(r.Data, &ask) != nil || !domain.ValidName(ask.Peer) {
		s.refuseOrder(r, d, domain.CodeBadRequest, "the order names no peer: 1 to 63 of a-z, 0-9, _ and -")
		return
	}
	d.Peer = ask.Peer
	s.obey(ctx, r, d, nil)
}

var callKey = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}/[A-Za-z0-9_-]{1,64}$`)

func (s *server) resend(ctx context.Context, r *bus.Request) {
	var ask resendOrder
	d := domain.OperatorCommanded{By: r.Operator, Verb: domain.VerbResend}
	if json.Unmarshal(r.Data, &ask) != nil || !callKey.MatchString(ask.Call) {
		s.refuseOrder(r, d, domain.CodeBadRequest, "the order names no call, as host/call_id")
		return
	}
	d.Call = ask.Call
	s.obey(ctx, r, d, ask.Arguments)
}

// obey carries out an order and answers with what followed from it.
func (s *server) obey(ctx context.Context, r *bus.Request, d domain.OperatorCommanded, arguments []byte) {
	reply, err := s.engine.Loop.Command(ctx, d, arguments)
	switch {
	case err != nil && !reply.Done:
		s.refuseOrder(r, d, domain.CodeShuttingDown, err.Error())
		return
	case err != nil:
		reply.Reason = err.Error() // done, and its end is not known yet
	case reply.Reply != nil && s.tooLarge(*reply.Reply):
		reply = shortened(reply)
	}
	s.answerOrder(r, reply)
}

func (s *server) refuseOrder(r *bus.Request, d domain.OperatorCommanded, code domain.Code, reason string) {
	s.answerOrder(r, harness.CommandReply{By: d.By, Verb: d.Verb, Peer: d.Peer, Call: d.Call, Tool: d.Tool, Code: code, Reason: reason,
		Seqs: []int64{}, Log: s.log.ID()})
}

// shortened leaves the result of the call out, and says how large it is.
func shortened(reply harness.CommandReply) harness.CommandReply {
	short := reply.Reply.TooLarge()
	reply.Reply = &short
	return reply
}

func (s *server) answerOrder(r *bus.Request, reply harness.CommandReply) {
	err := r.Respond(reply.Encode(), string(reply.Code), 409)
	if errors.Is(err, bus.ErrTooLarge) && reply.Reply != nil {
		err = r.Respond(shortened(reply).Encode(), string(reply.Code), 409)
	}
	if err != nil {
		s.app.logger.Warn("the answer to an order could not be sent; what followed from it is in the log", "operator", r.Operator, "err", err)
	}
}
