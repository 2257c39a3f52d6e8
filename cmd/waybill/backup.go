package main

import (
	"errors"
	"fmt"
	"os"

	"waybill/cmd/waybill/upkeep"
	"waybill/harness/care"
	"waybill/store"
)

type backupCmd struct {
	common
	File string `arg:"" placeholder:"FILE" help:"The file to make. It must not exist."`
}

// Help is shown under the usage.
func (backupCmd) Help() string {
	return "Example:\n  waybill backup -c waybill.yaml /backups/log-monday.db\n\n" +
		"Copies the log as it is at one moment, while the service runs or not, verifies every byte of the copy, and only then gives it its name. " +
		"The copy is one file; waybill-audit reads it like the log. It holds no key: back up keys/ apart, once."
}

// Run copies the log.
func (c backupCmd) Run(a *app) error {
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	if err := dataDir(f).Exists(); err != nil {
		return err
	}
	doc, err := upkeep.Backup(a.ctx, dataDir(f).LogFile(), c.File, a.progress)
	if errors.Is(err, store.ErrExists) {
		return usageError(fmt.Errorf("%s is there already, and a backup replaces nothing: name another file", c.File))
	}
	if err != nil {
		return err
	}
	if c.wantJSON() {
		return a.printJSON(doc)
	}
	return doc.Print(a.out)
}

type restoreCmd struct {
	common
	File string `arg:"" placeholder:"FILE" help:"A backup, or any file that is a whole log."`
}

// Help is shown under the usage.
func (restoreCmd) Help() string {
	return "Example:\n  waybill restore -c waybill.yaml /backups/log-monday.db\n\n" +
		"Begins a new log, with an id and a key of its own, where there is none. Its first event cites the log in FILE: size, root and last " +
		"checkpoint. FILE is verified and kept in restored/ID in the data directory, for audits. Nothing of its state is taken over: names are merged as at a " +
		"first start, generations begin at 1, and a call id or idempotency key that was used before is new."
}

// Run begins the new log.
func (c restoreCmd) Run(a *app) error {
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.Data, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	lock, err := dataDir(f).Lock()
	if err != nil {
		return err
	}
	defer lock.Release()
	doc, err := upkeep.Restore(a.ctx, f, c.File, a.progress)
	if errors.Is(err, care.ErrLogThere) {
		return usageError(err)
	}
	if err != nil {
		return err
	}
	creds, err := a.credentials(f, doc.Log)
	if err != nil {
		return err
	}
	doc.Made = append(doc.Made, creds...)
	if c.wantJSON() {
		return a.printJSON(doc)
	}
	return doc.Print(a.out)
}
