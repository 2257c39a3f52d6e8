package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/go-json-experiment/json"

	"waybill/cmd/waybill/config"
	"waybill/cmd/waybill/text"
	"waybill/domain"
	"waybill/harness/bus"
	"waybill/projections"
)

type diffCmd struct {
	common
	Tool string `arg:"" help:"The canonical name."`
}

// Help is shown under the usage.
func (diffCmd) Help() string {
	return "Example:\n  waybill tools diff search\n\n" +
		"Compares the definition as it is now with the one that was approved. Without a service, what the log says. Exit 5 if there is no such tool."
}

// Run prints what changed in a tool.
func (c diffCmd) Run(a *app) error {
	if c.Tool == "" {
		return usageError(errors.New("name a tool"))
	}
	var e *domain.ToolEntry
	err := c.read(a, func(svc *remote) (err error) {
		e, err = svc.tool(a.ctx, c.Tool)
		return err
	}, func(v *projections.Views, _ string) error {
		list, err := v.Tools(a.ctx, "")
		e = find(list.Tools, c.Tool)
		return err
	})
	if err != nil {
		return err
	}
	if e == nil {
		return &exitError{exit: exitRefused, code: string(domain.CodeUnknownTool), err: fmt.Errorf("no peer has a tool named %q; see waybill tools", c.Tool)}
	}
	if c.wantJSON() {
		return a.printJSON(e)
	}
	text.Held(a.out, *e)
	return nil
}

type approveCmd struct {
	common
	operatorFlags
	Digest string `placeholder:"HEX" help:"Approve the definition of this digest and no other; the one that is shown if absent."`
	Tool   string `arg:"" help:"The canonical name of a tool in quarantine."`
}

// Help is shown under the usage.
func (approveCmd) Help() string {
	return "Example:\n  waybill tools approve search --by ann\n\n" +
		"Shows on standard error what changed since the tool was approved last, and approves that very definition: if the peer has changed it " +
		"again meanwhile, nothing is approved. The order is recorded under the name. Exit 5 if it changes nothing, 9 if no service runs."
}

// Run shows what changed, and orders that it is approved.
func (c approveCmd) Run(a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	order := approveOrder{Tool: c.Tool, Digest: c.Digest}
	if err := order.check(); err != nil {
		return usageError(err)
	}
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	if err := order.show(a, f); err != nil {
		return err
	}
	body, err := json.Marshal(order)
	if err != nil {
		return usageError(err)
	}
	return a.order(f, domain.VerbApprove, c.By, body, 0, c.wantJSON())
}

// approveOrder is the body of the order. The digest says which definition was
// looked at; without one the order says why there is nothing to approve.
type approveOrder struct {
	Tool   string `json:"tool"`
	Digest string `json:"digest,omitempty"`
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (o approveOrder) check() error {
	switch {
	case o.Tool == "":
		return errors.New("the order names no tool")
	case o.Digest != "" && !hexDigest.MatchString(o.Digest):
		return errors.New("the digest is none of a definition: 64 of 0-9 and a-f, as in waybill tools --json")
	}
	return nil
}

// show prints what changed in the tool, and has that approved which it shows. Where
// no service runs there is nobody to ask.
func (o *approveOrder) show(a *app, f *config.File) error {
	svc, err := a.running(f, localHost)
	if err != nil || svc == nil {
		return err
	}
	defer svc.client.Close()
	e, err := svc.tool(a.ctx, o.Tool)
	if err != nil || e == nil || e.Held == nil {
		return err // the service says what is the matter with it
	}
	text.Held(a.err, *e)
	if o.Digest == "" {
		o.Digest = e.Held.Now
	}
	return nil
}

func (s *server) approve(ctx context.Context, r *bus.Request) {
	var ask approveOrder
	d := domain.OperatorCommanded{By: r.Operator, Verb: domain.VerbApprove}
	if json.Unmarshal(r.Data, &ask) != nil {
		s.refuseOrder(r, d, domain.CodeBadRequest, "the order is not of the form {tool, digest}")
		return
	}
	if err := ask.check(); err != nil {
		s.refuseOrder(r, d, domain.CodeBadRequest, err.Error())
		return
	}
	d.Tool, d.Digest = ask.Tool, ask.Digest
	s.obey(ctx, r, d, nil)
}
