package main

import (
	"errors"

	"waybill/cmd/waybill/text"
	"waybill/domain"
)

type checkCmd struct{ common }

// Help is shown under the usage.
func (checkCmd) Help() string {
	return "Example:\n  waybill check -c waybill.yaml --json\n\n" +
		"With a service running it is asked; else the peers are started, probed, listed and stopped, and the log keeps what was decided.\n" +
		"Exit 0 when all peers are ready, 3 when some are not, 2 when the configuration is rejected, 9 without a log."
}

// Run prints the report.
func (c checkCmd) Run(a *app) error {
	r, err := c.report(a)
	if err != nil {
		return err
	}
	if c.wantJSON() {
		err = a.printJSON(r)
	} else {
		text.Report(a.out, r)
	}
	if err == nil && !r.AllReady() {
		return exitWith(exitSomeNotReady)
	}
	return err
}

func (c checkCmd) report(a *app) (r domain.Report, err error) {
	f, err := a.load(c.file())
	if err != nil {
		return r, err
	}
	svc, err := a.running(f, localHost)
	if err != nil {
		return r, err
	}
	if svc != nil {
		defer svc.client.Close()
		return r, svc.ask(a.ctx, "check", nil, &r)
	}
	n, err := a.openNode(f)
	if err != nil {
		return r, err
	}
	a.progress("probing %s", count(len(f.Peers), "peer"))
	err = n.engine.WaitSettled(a.ctx)
	if err == nil {
		r, err = n.engine.Report(a.ctx)
		n.showStderr(r)
	}
	return r, errors.Join(err, n.stop("check has ended"))
}
