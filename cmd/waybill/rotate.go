package main

import (
	"errors"
	"fmt"

	"waybill/harness"
	"waybill/harness/heads"
	"waybill/store"
)

type rotateCmd struct {
	common
	operatorFlags
}

// Help is shown under the usage.
func (rotateCmd) Help() string {
	return "Example:\n  waybill rotate-key --by oncall\n\n" +
		"The log leaves its signing key for a new one. The rotation is an event, signed by both keys; the log keeps its id, and whoever " +
		"kept an older public key can still verify it. No service may run. Keep the public key that is printed, and back up keys/."
}

// Run rotates the key.
func (c rotateCmd) Run(a *app) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	dir := dataDir(f)
	if err := dir.Exists(); err != nil {
		return err
	}
	lock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	l, err := store.Open(dir.LogFile())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := heads.Check(a.ctx, dir, l, a.logger); err != nil {
		return err
	}
	public, err := heads.Rotate(a.ctx, dir, l, c.By, harness.SystemClock())
	if err != nil {
		return err
	}
	return c.print(a, l.ID(), l.Head().Size, public)
}

func (c rotateCmd) print(a *app, id string, seq int64, public string) error {
	if c.wantJSON() {
		return a.printJSON(struct {
			Log       string `json:"log"`
			Seq       int64  `json:"seq"`
			PublicKey string `json:"public_key"`
		}{id, seq, public})
	}
	_, err := fmt.Fprintf(a.out, "log %s\npublic key %s from event %d on\nkeep it where the old one is kept; keys/rotations has the note that both keys signed\n", id, public, seq)
	return err
}
