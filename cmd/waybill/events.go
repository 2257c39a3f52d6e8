package main

import (
	"time"

	"waybill/cmd/waybill/eventlist"
	"waybill/store"
)

type eventsCmd struct {
	common
	After int64  `placeholder:"SEQ" help:"Only events after this seq."`
	Call  string `placeholder:"HOST/ID" help:"Only the events of one call."`
	Type  string `placeholder:"TYPE" help:"Only this type, or this noun: era.determined, or era."`
	Peer  string `placeholder:"NAME" help:"Only events of one peer."`
	Since string `placeholder:"TIME" help:"Only events since then: RFC 3339, or how long ago, as 1h30m."`

	Follow bool `help:"Go on as events come, until a signal."`
}

// Help is shown under the usage.
func (eventsCmd) Help() string {
	return "Example:\n  waybill events -c waybill.yaml --type era\n  waybill events --since 1h --follow --json\n\n" +
		"Reads the log itself, also while the service runs. --json prints the exact envelopes, one a line."
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
	list := eventlist.Filter{Call: c.Call, Type: c.Type, Peer: c.Peer}
	if list.Since, err = eventlist.When(c.Since, time.Now()); err != nil {
		return usageError(err)
	}
	found := 0
	show := func(rec store.Record) error {
		found++
		return eventlist.Print(a.out, rec, c.wantJSON())
	}
	if c.Follow {
		return list.Follow(a.ctx, r, c.After, show)
	}
	_, err = list.Each(a.ctx, r, c.After, show)
	if err == nil && found == 0 {
		a.progress("waybill: no event of log %s matches; a call is named HOST/ID, such as %s/wb-...", r.ID(), localHost)
	}
	return err
}
