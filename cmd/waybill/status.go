package main

import (
	"context"
	"errors"
	"os"
	"time"

	"waybill/cmd/waybill/config"
	"waybill/cmd/waybill/doctor"
	"waybill/cmd/waybill/upkeep"
	"waybill/harness/care"
)

type statusCmd struct{ common }

// Help is shown under the usage.
func (statusCmd) Help() string {
	return "Example:\n  waybill status -c waybill.yaml --json\n\n" +
		"How large the log is, how fast it grows, and how many days are left until limits.log_size or the disk is full; " +
		"with a running service also what that says of itself."
}

// Run prints the status.
func (c statusCmd) Run(a *app) error {
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	if err := dataDir(f).Exists(); err != nil {
		return err
	}
	doc, err := upkeep.Measure(a.ctx, f)
	if err != nil {
		return err
	}
	svc, err := a.running(f, localHost)
	if err != nil && !c.wantJSON() { // what the files say is known all the same
		return errors.Join(doc.Print(a.out), err)
	}
	if err != nil {
		return err
	}
	if svc != nil {
		defer svc.client.Close()
		doc.PID = svc.run.PID
		if err := svc.ask(a.ctx, "status", nil, &doc.Service); err != nil {
			return err
		}
	}
	a.warnSize(doc.Measures)
	if c.wantJSON() {
		return a.printJSON(doc)
	}
	if err := doc.Print(a.out); err != nil || svc == nil {
		return err
	}
	printStreams(a, doc.Service)
	return nil
}

// warnSize tells of a log that is nearly as large as it may be.
func (a *app) warnSize(m care.Measures) {
	if w := upkeep.Warning(m); w != "" {
		a.progress("waybill: warning: %s", w)
	}
}

type doctorCmd struct {
	common
	Verify bool `help:"Read every byte of the log, and decide all of it again, too."`
}

// Help is shown under the usage.
func (doctorCmd) Help() string {
	return "Example:\n  waybill doctor -c waybill.yaml --verify\n\n" +
		"Says what is wrong with the data directory and what to do, and changes nothing. Exit 0: no errors, perhaps warnings and notes; 1: an error."
}

// Run examines the data directory.
func (c doctorCmd) Run(a *app) error {
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	p := doctor.Patient{File: f, Lookup: os.LookupEnv, Credentials: credentialsDir(f), Prefix: prefix, Now: time.Now(),
		Ask: func(context.Context) (doctor.Service, error) { return a.askHealth(f) }}
	if c.Verify {
		p.Verify = func(ctx context.Context, path string) error { _, err := upkeep.Verify(ctx, path); return err }
		p.Replay = upkeep.Replay
	}
	found, err := doctor.Examine(a.ctx, p)
	if err != nil {
		return err
	}
	for i := range found.List {
		one := &found.List[i]
		one.Where, one.What, one.Do = a.clean(one.Where), a.clean(one.What), a.clean(one.Do)
	}
	if c.wantJSON() {
		err = a.printJSON(found)
	} else {
		err = found.Print(a.out)
	}
	if err == nil && found.Worst() == doctor.Error {
		return exitWith(exitInternal)
	}
	return err
}

// askHealth asks the running service how it does.
func (a *app) askHealth(f *config.File) (s doctor.Service, err error) {
	svc, err := a.running(f, localHost)
	if err != nil {
		return s, err
	}
	if svc == nil {
		return s, errors.New("it has ended just now")
	}
	defer svc.client.Close()
	var r statusReply
	err = svc.ask(a.ctx, "status", nil, &r)
	return doctor.Service{Head: r.Head, Published: r.Publisher.Position, Stream: r.Publisher.Error}, err
}
