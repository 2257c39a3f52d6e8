package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/mod/sumdb/tlog"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/events/checkpoint"
	"waybill/replay"
	"waybill/store"
)

type proveCmd struct {
	target
	Seq        *int64 `arg:"" optional:"" placeholder:"SEQ" help:"The event to prove."`
	Checkpoint string `placeholder:"FILE" help:"The checkpoint to prove the event under; the last one of the log if none is given."`
	From       string `placeholder:"FILE" help:"Instead of SEQ: the older of two checkpoints."`
	To         string `placeholder:"FILE" help:"The newer of two checkpoints; the last one of the log if none is given."`
	Key        string `placeholder:"KEY" help:"The public key of the log as it was kept elsewhere, or a file that holds it."`
	Out        string `short:"o" placeholder:"FILE" help:"Write the proof to a new file, and a summary to standard output."`
}

// Help is shown under the usage.
func (proveCmd) Help() string {
	return "Example:\n  waybill-audit prove .waybill/log.db 38 -o 38.tlog-proof\n" +
		"  waybill-audit prove .waybill/log.db --from monday.checkpoint --to friday.checkpoint -o week.consistency\n\n" +
		"A proof is text of a public format, which needs the public key to be checked and nothing of Waybill. That an event is in the log: " +
		"c2sp.org/tlog-proof, whose extra data are the exact bytes of the event; the hash of the leaf is SHA-256 over a zero byte and those. " +
		"That one checkpoint continues another: the request that c2sp.org/tlog-witness takes. See also checkproof."
}

// Run writes a proof.
func (c proveCmd) Run(a *app) error {
	if (c.Seq == nil) == (c.From == "") || c.To != "" && c.From == "" || c.Checkpoint != "" && c.Seq == nil {
		return usageError{errors.New("give SEQ, with --checkpoint or without, or --from with --to or without")}
	}
	l, err := logfile.Open(c.Log)
	if err != nil {
		return err
	}
	defer l.Close()
	keys, err := keysOf(a.ctx, l, c.Key)
	if err != nil {
		return err
	}
	var p proof
	if c.Seq != nil {
		p, err = c.inclusion(a, l, keys)
	} else {
		p, err = c.consistency(a, l, keys)
	}
	if err != nil {
		return err
	}
	if p.Key, err = checkpoint.PublicKey(keys.at(p.Size), l.ID()); err != nil {
		return err
	}
	return c.write(a, p)
}

// under returns the checkpoint of a file, or the last one of the log.
func under(a *app, l logfile.Log, path string, keys keyring) (h head, err error) {
	if path != "" {
		h, err = openKeptOf(path, keys, l.ID())
	} else {
		h, err = lastOf(a, l, keys)
	}
	if err != nil {
		return head{}, err
	}
	now, err := l.Head(a.ctx)
	if err == nil && now.Size < h.Size {
		err = &replay.AlteredError{Seq: now.Size + 1, What: fmt.Sprintf("missing; the checkpoint is of %d events", h.Size)}
	}
	return h, err
}

func lastOf(a *app, l logfile.Log, keys keyring) (head, error) {
	c, err := l.LastCheckpoint(a.ctx)
	if errors.Is(err, store.ErrNoCheckpoint) {
		return head{}, usageError{errors.New("the log has no checkpoint to prove anything under: waybill serve signs one within a second of an event")}
	}
	if err != nil {
		return head{}, err
	}
	h, err := checkpoint.Open(c.Note, keys.at(c.Size))
	if err == nil && (h.Log != l.ID() || h.Size != c.Size) {
		err = fmt.Errorf("it is of %d events of log %s", h.Size, h.Log)
	}
	if err != nil {
		return head{}, &replay.AlteredError{Seq: c.Size, What: fmt.Sprintf("the checkpoint stored for the first %d events: %v", c.Size, err)}
	}
	return head{h, c.Note}, nil
}

func (c proveCmd) inclusion(a *app, l logfile.Log, keys keyring) (proof, error) {
	h, err := under(a, l, c.Checkpoint, keys)
	if err != nil {
		return proof{}, err
	}
	seq := *c.Seq
	if seq < 1 || seq > h.Size {
		return proof{}, usageError{fmt.Errorf("event %d is not under the checkpoint, which is of events 1 to %d", seq, h.Size)}
	}
	records, err := l.Read(a.ctx, seq-1, 1)
	if err != nil {
		return proof{}, err
	}
	if len(records) == 0 || records[0].Seq != seq {
		return proof{}, &replay.AlteredError{Seq: seq, What: "missing"}
	}
	hashes, err := l.ProveRecord(a.ctx, seq, store.Head{Size: h.Size, Root: h.Root})
	if err != nil {
		return proof{}, err
	}
	event := records[0].Bytes
	if err := tlog.CheckRecord(hashes, h.Size, h.Root, seq-1, tlog.RecordHash(event)); err != nil {
		return proof{}, &replay.AlteredError{Seq: seq, What: "its bytes are not those that were signed"}
	}
	return proof{Kind: inclusion, Log: h.Log, Seq: seq, Size: h.Size, Root: h.Root, Event: event, Hashes: hashes, Checkpoint: h.note}, nil
}

func (c proveCmd) consistency(a *app, l logfile.Log, keys keyring) (proof, error) {
	to, err := under(a, l, c.To, keys)
	if err != nil {
		return proof{}, err
	}
	from, err := openKeptOf(c.From, keys, l.ID())
	if err != nil {
		return proof{}, err
	}
	if from.Size > to.Size {
		return proof{}, usageError{fmt.Errorf("the older checkpoint is of %d events, the newer of %d", from.Size, to.Size)}
	}
	p := proof{Kind: consistency, Log: to.Log, Old: from.Size, Size: to.Size, Root: to.Root, Checkpoint: to.note}
	if from.Size > 0 {
		hashes, err := l.ProveTree(a.ctx, from.Size, store.Head{Size: to.Size, Root: to.Root})
		if err != nil {
			return proof{}, err
		}
		p.Hashes = hashes
	}
	if !p.continues(from.Head) {
		return proof{}, &replay.AlteredError{Seq: from.Size, What: fmt.Sprintf("the first %d events are not those of the older checkpoint", from.Size)}
	}
	return p, nil
}

func (c proveCmd) write(a *app, p proof) error {
	text := p.text()
	if c.Out != "" {
		if err := writeNew(c.Out, text); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		return a.printJSON(p.doc(c.Out))
	case c.Out == "":
		_, err := a.out.Write(text)
		return err
	}
	_, err := fmt.Fprintf(a.out, "wrote %s: %s\nwhoever has the key %s can check it\n", c.Out, p.says(), p.Key)
	return err
}

// writeNew never replaces a file: it could be the log.
func writeNew(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return usageError{err}
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}
