package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"waybill/cmd/waybill/config"
	"waybill/cmd/waybill/text"
	"waybill/domain"
	"waybill/events"
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

type eventsCmd struct {
	common
	After int64  `placeholder:"SEQ" help:"Only events after this seq."`
	Call  string `placeholder:"HOST/ID" help:"Only the events of one call."`
	Type  string `placeholder:"TYPE" help:"Only this type, or this noun: era.determined, or era."`
	Peer  string `placeholder:"NAME" help:"Only events of one peer."`
}

// Help is shown under the usage.
func (eventsCmd) Help() string {
	return "Example:\n  waybill events -c waybill.yaml --type era\n\nReads the log itself, also while the service runs. --json prints the exact envelopes, one a line."
}

// Run prints events.
func (c eventsCmd) Run(a *app) error {
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	if err := dataDir(f).Exists(); err != nil {
		return err
	}
	r, err := store.OpenReader(dataDir(f).LogFile())
	if err != nil {
		return err
	}
	defer r.Close()
	found := 0
	err = c.each(a.ctx, r, func(rec store.Record) error { found++; return printEvent(a, rec, c.wantJSON()) })
	if err == nil && found == 0 {
		a.progress("waybill: no event of log %s matches; a call is named HOST/ID, such as %s/wb-...", r.ID(), localHost)
	}
	return err
}

func (c eventsCmd) each(ctx context.Context, r *store.Reader, f func(store.Record) error) error {
	after := c.After
	for {
		records, err := r.Read(ctx, after, 512)
		if err != nil || len(records) == 0 {
			return err
		}
		for _, rec := range records {
			after = rec.Seq
			if c.wants(rec) {
				if err := f(rec); err != nil {
					return err
				}
			}
		}
	}
}

func (c eventsCmd) wants(r store.Record) bool {
	return (c.Call == "" || r.Call == c.Call) && (c.Peer == "" || r.Peer == c.Peer) &&
		(c.Type == "" || r.Type == c.Type || strings.HasPrefix(r.Type, c.Type+"."))
}

// printEvent writes the exact envelope, or a line for people.
func printEvent(a *app, r store.Record, asJSON bool) error {
	if asJSON {
		_, err := fmt.Fprintf(a.out, "%s\n", r.Bytes)
		return err
	}
	_, e, err := events.Open(r.Bytes)
	if err != nil {
		return fmt.Errorf("event %d: %w", r.Seq, err)
	}
	data, err := json.Marshal(e.Data)
	if err != nil {
		return err
	}
	mark := "observed"
	if e.IsDecision() {
		mark = fmt.Sprintf("from %d", e.Cause)
	}
	_, err = fmt.Fprintf(a.out, "%6d  %-18s %-10s %s\n", e.Seq, r.Type, mark, data)
	return err
}
