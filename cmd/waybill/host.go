package main

import (
	"errors"

	"waybill/cmd/waybill/config"
	"waybill/cmd/waybill/users"
	"waybill/harness"
	"waybill/harness/bus"
	"waybill/harness/bus/access"
	"waybill/store"
)

// The commands of those of whom there can be any number.
type (
	hostCmd struct {
		Add  addHostCmd    `cmd:"" help:"Make the credentials of a host."`
		List listCmd[host] `cmd:"" help:"Print the hosts that have credentials."`
	}
	auditorCmd struct {
		Add  addCmd[auditor]  `cmd:"" help:"Make the credentials of an auditor."`
		List listCmd[auditor] `cmd:"" help:"Print the auditors that have credentials."`
	}
	dashboardCmd struct {
		Add  addCmd[dashboard]  `cmd:"" help:"Make the credentials of a dashboard."`
		List listCmd[dashboard] `cmd:"" help:"Print the dashboards that have credentials."`
	}
)

// roled is a role as a type, with an example and what its users do.
type roled interface {
	role() (is access.Role, name, does string)
}

type (
	host      struct{}
	auditor   struct{}
	dashboard struct{}
)

func (host) role() (is access.Role, name, does string) {
	return access.RoleHost, "batch --context nightly", "A host calls tools."
}

func (auditor) role() (is access.Role, name, does string) {
	return access.RoleAuditor, "ann", "An auditor reads every event and every signed head, and can neither write nor call."
}

func (dashboard) role() (is access.Role, name, does string) {
	return access.RoleDashboard, "hall", "A dashboard reads the events of peers and names, nothing of calls, and can neither write nor call."
}

// addCmd makes the credentials of a user.
type addCmd[R roled] struct {
	common
	Name string `arg:"" help:"1 to 63 of a-z, 0-9, _ and -."`
}

// Help is shown under the usage.
func (addCmd[R]) Help() string {
	var r R
	role, name, does := r.role()
	return "Example:\n  waybill " + string(role) + " add " + name + "\n\n" + does + " Makes a key and a context for the nats command line, and writes nats-accounts.conf anew. " +
		"The embedded server knows the user from its next start on, an outside one when it has loaded that file again. Run again it touches no key. " +
		"Exit 2 if nats-accounts.conf has been edited and an outside server needs it, 9 before waybill init."
}

// Run makes what is missing.
func (c addCmd[R]) Run(a *app) error { return c.add(a, "") }

type addHostCmd struct {
	addCmd[host]
	Context string `placeholder:"NAME" help:"The authorization context that the host is to call in; what is to be added to the configuration for that is printed."`
}

// Run makes what is missing.
func (c addHostCmd) Run(a *app) error { return c.add(a, c.Context) }

func (c addCmd[R]) add(a *app, context string) error {
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	w := users.Wanted{File: f, Dir: credentialsDir(f), Prefix: prefix, Name: c.Name, Context: context}
	var r R
	w.Role, _, _ = r.role()
	if err := w.Check(); err != nil {
		return usageError(err)
	}
	if w.Log, w.Running, err = whichLog(f); err != nil {
		return err
	}
	doc, err := w.Add()
	stale := errors.Is(err, bus.ErrStaleAccounts)
	if err != nil && !stale {
		return &exitError{exit: exitConfig, code: "credentials", err: err}
	}
	print := func() error { return doc.Print(a.out) }
	if c.wantJSON() {
		print = func() error { return a.printJSON(doc) }
	}
	if stale && f.NATS.URL == "" { // no server reads the file
		a.progress("waybill: warning: %v", err)
		return print()
	}
	if stale {
		if !c.wantJSON() {
			_ = print() // the error that follows says more
		}
		return &exitError{exit: exitConfig, code: "accounts_stale", err: err}
	}
	return print()
}

// listCmd prints who has credentials.
type listCmd[R roled] struct{ common }

// Help is shown under the usage.
func (listCmd[R]) Help() string {
	var r R
	role, _, _ := r.role()
	return "Example:\n  waybill " + string(role) + " list --json\n\nName, public key and the file of the seed, one a line. Exit 9 before waybill init."
}

// Run prints them.
func (c listCmd[R]) Run(a *app) error {
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	if err := dataDir(f).Exists(); err != nil {
		return err
	}
	var r R
	role, _, _ := r.role()
	list, err := access.ListUsers(credentialsDir(f), role)
	if err != nil {
		return &exitError{exit: exitConfig, code: "credentials", err: err}
	}
	if c.wantJSON() {
		return a.printJSON(list)
	}
	return users.PrintList(a.out, list)
}

// whichLog reads the id of the log, also while the service runs, and whether it does.
func whichLog(f *config.File) (id string, running bool, err error) {
	dir := dataDir(f)
	if err := dir.Exists(); err != nil {
		return "", false, err
	}
	run, err := dir.Running()
	var busy *harness.LockedError
	if err != nil && !errors.As(err, &busy) {
		return "", false, err
	}
	l, err := store.OpenReader(dir.LogFile())
	if err != nil {
		return "", false, err
	}
	defer l.Close()
	return l.ID(), run != nil || busy != nil, nil
}
