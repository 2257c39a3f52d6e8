package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"waybill/cmd/waybill/config"
	"waybill/cmd/waybill/config/redact"
	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
	"waybill/store"
	"waybill/store/payloads"
)

// erasePatience is how long bytes may take to be erased.
const erasePatience = 10 * time.Minute

type eraseCmd struct {
	common
	operatorFlags
	Call      string `placeholder:"HOST/ID" xor:"which" help:"What is kept of one call."`
	Host      string `placeholder:"NAME" xor:"which" help:"What is kept of all calls of a host."`
	OlderThan string `placeholder:"TIME" xor:"which" help:"What is kept of all calls that were received longer ago, such as 72h or 30d."`
}

// Help is shown under the usage.
func (eraseCmd) Help() string {
	return "Example:\n  waybill erase --by ann --host local\n\n" +
		"Erases the kept bytes of calls, and the keys by which their digests could be told: the log verifies and replays as before, and " +
		"says what was erased, when and by whom. It cannot be undone. Works with and without a running service. Exit 5 if nothing was ever kept here."
}

// Run has the service erase, or does it itself where none runs.
func (c eraseCmd) Run(a *app) error {
	d, err := c.order()
	if err != nil {
		return usageError(err)
	}
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	run, err := dataDir(f).Running()
	if err != nil {
		return err
	}
	if run != nil {
		body, err := json.Marshal(eraseOrder{Call: d.Call, Host: d.Host, OlderThan: d.OlderThan})
		if err != nil {
			return usageError(err)
		}
		return a.order(f, domain.VerbErase, c.By, body, erasePatience, c.wantJSON())
	}
	reply, err := a.eraseAlone(f, d)
	if err != nil {
		return err
	}
	return a.printOrder(reply.Encode(), c.wantJSON())
}

// order is what the flags say.
func (c eraseCmd) order() (domain.OperatorCommanded, error) {
	d := domain.OperatorCommanded{By: c.By, Verb: domain.VerbErase, Call: c.Call, Host: c.Host}
	if err := c.check(); err != nil {
		return d, err
	}
	if c.OlderThan != "" {
		age, err := config.ParseDuration(c.OlderThan)
		if err != nil || age < time.Millisecond {
			return d, fmt.Errorf("--older-than %q is no time of at least 1ms, such as 72h or 30d", c.OlderThan)
		}
		d.OlderThan = age.Milliseconds()
	}
	return d, checkErase(d)
}

// checkErase refuses what names no calls.
func checkErase(d domain.OperatorCommanded) error {
	switch {
	case d.Call == "" && d.Host == "" && d.OlderThan == 0:
		return errors.New("say what to erase: --call, --host or --older-than")
	case d.Call != "" && !callKey.MatchString(d.Call):
		return errors.New("a call is named as HOST/CALL_ID")
	case d.Host != "" && !domain.ValidName(d.Host):
		return errors.New("a host is named by 1 to 63 of a-z, 0-9, _ and -")
	}
	return nil
}

// eraseAlone erases under the lock of the data directory.
func (a *app) eraseAlone(f *config.File, d domain.OperatorCommanded) (reply harness.CommandReply, err error) {
	n := &node{app: a, file: f, dir: dataDir(f)}
	defer func() { err = errors.Join(err, n.release()) }()
	if err := n.dir.Exists(); err != nil {
		return reply, err
	}
	if n.lock, err = n.dir.Lock(); err != nil {
		return reply, err
	}
	if n.log, err = store.Open(n.dir.LogFile()); err != nil {
		return reply, err
	}
	known, err := f.AllSecrets(os.LookupEnv)
	if err != nil {
		return reply, err
	}
	if there, err := payloads.Exists(n.dir.PayloadsFile()); err != nil || there || f.Keeps() {
		if err = errors.Join(err, n.openPayloads()); err != nil {
			return reply, err
		}
	}
	return harness.EraseAlone(a.ctx, n.log, n.kept(), harness.SystemClock(), redact.New(known).Redact, d)
}

// openPayloads opens what is kept of calls, or makes the file: whatever the
// configuration keeps, an idempotency key keeps an outcome.
func (n *node) openPayloads() (err error) {
	n.payloads, err = payloads.Open(n.dir.PayloadsFile(), n.log.ID())
	return err
}

// kept is the payloads as the harness knows them: nil where there are none.
func (n *node) kept() harness.KeptPayloads {
	if n.payloads == nil {
		return nil
	}
	return n.payloads
}

// outcomeOf says what became of a call, with its result where p has it; p is nil
// where nothing is kept.
func outcomeOf(ctx context.Context, l *store.Reader, p *payloads.DB, id domain.CallID) (reply harness.Reply, err error) {
	var ok bool
	if p == nil {
		reply, ok, err = harness.Outcome(ctx, l, id)
	} else {
		reply, ok, err = harness.OutcomeKept(ctx, l, p, id)
	}
	if err == nil && !ok {
		reply = harness.Refused(domain.CodeUnknownCall, "this host has no call of this id in the log", l.ID())
		reply.CallID = id.ID
	}
	return reply, err
}

// outcomeAlone is outcomeOf where no service runs.
func (a *app) outcomeAlone(f *config.File, id domain.CallID) (reply harness.Reply, err error) {
	l, err := store.OpenReader(dataDir(f).LogFile())
	if err != nil {
		return reply, err
	}
	defer l.Close()
	p, err := payloads.OpenReader(dataDir(f).PayloadsFile(), l.ID())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return outcomeOf(a.ctx, l, nil, id)
	case err != nil:
		return reply, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return outcomeOf(a.ctx, l, p, id)
}

// eraseOrder is the body of the order.
type eraseOrder struct {
	Call      string `json:"call,omitempty"` // host/call_id
	Host      string `json:"host,omitempty"`
	OlderThan int64  `json:"older_than_ms,omitzero"`
}

func (s *server) erase(ctx context.Context, r *bus.Request) {
	var ask eraseOrder
	d := domain.OperatorCommanded{By: r.Operator, Verb: domain.VerbErase}
	err := json.Unmarshal(r.Data, &ask)
	if err != nil {
		s.refuseOrder(r, d, domain.CodeBadRequest, "the order is not of the form {call}, {host} or {older_than_ms}")
		return
	}
	d.Call, d.Host, d.OlderThan = ask.Call, ask.Host, ask.OlderThan
	if err := checkErase(d); err != nil {
		d.Call = ""
		s.refuseOrder(r, d, domain.CodeBadRequest, strings.ReplaceAll(err.Error(), "--", ""))
		return
	}
	s.obey(ctx, r, d, nil)
}
