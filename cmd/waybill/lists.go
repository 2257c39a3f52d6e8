package main

import (
	"waybill/cmd/waybill/config"
	"waybill/cmd/waybill/text"
	"waybill/domain"
	"waybill/harness"
	"waybill/projections"
	"waybill/store"
)

// peersCmd prints the peer table where no verb is given.
type peersCmd struct {
	List   listPeersCmd `cmd:"" default:"withargs" help:"Print the peer table."`
	Revive reviveCmd    `cmd:"" help:"Start a peer again that is down: an operator's decision, on record."`
}

// Help is shown under the usage.
func (peersCmd) Help() string { return listPeersCmd{}.Help() }

type listPeersCmd struct{ common }

// Help is shown under the usage.
func (listPeersCmd) Help() string {
	return "Example:\n  waybill peers -c waybill.yaml\n\nWithout a service, the state at the end of the log."
}

// Run prints the peer table.
func (c listPeersCmd) Run(a *app) error {
	var r domain.Report
	err := c.read(a, func(svc *remote) error { return svc.ask(a.ctx, "peers", nil, &r) }, func(v *projections.Views, _ string) (err error) {
		r, err = v.Report(a.ctx)
		return err
	})
	if err != nil {
		return err
	}
	if c.wantJSON() {
		return a.printJSON(r)
	}
	text.Report(a.out, r)
	return nil
}

// read asks the running service, or reads the views of the log.
func (c common) read(a *app, ask func(*remote) error, local func(v *projections.Views, log string) error) error {
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	return c.readAs(a, f, localHost, ask, local)
}

func (c common) readAs(a *app, f *config.File, host string, ask func(*remote) error, local func(v *projections.Views, log string) error) error {
	svc, err := a.running(f, host)
	if err != nil {
		return err
	}
	if svc != nil {
		defer svc.client.Close()
		return ask(svc)
	}
	return a.withViews(f, local)
}

// withViews brings the views up to the head of the log and reads them.
func (a *app) withViews(f *config.File, use func(v *projections.Views, log string) error) error {
	dir := dataDir(f)
	lock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer lock.Release()
	r, err := store.OpenReader(dir.LogFile())
	if err != nil {
		return err
	}
	defer r.Close()
	head, err := r.Head(a.ctx)
	if err != nil {
		return err
	}
	v, err := projections.Open(a.ctx, dir.ViewsFile(), r.ID(), head.Size)
	if err != nil {
		return err
	}
	defer v.Close()
	if !v.Holds(head.Size) {
		if err := harness.CatchUp(a.ctx, r, r.ID(), v); err != nil {
			return err
		}
	}
	return use(v, r.ID())
}
