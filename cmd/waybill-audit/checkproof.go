package main

import (
	"fmt"
	"os"

	"waybill/events/checkpoint"
	"waybill/replay"
)

type checkproofCmd struct {
	JSON bool   `name:"json" help:"Print pure JSON on standard output."`
	File string `arg:"" placeholder:"FILE" help:"What prove wrote."`
	Key  string `required:"" placeholder:"KEY" help:"The public key of the log, or a file that holds it."`
	From string `placeholder:"FILE" help:"The older checkpoint, for a proof that another one continues it."`
}

// Help is shown under the usage.
func (checkproofCmd) Help() string {
	return "Example:\n  waybill-audit checkproof 38.tlog-proof --key kept/log.pub\n" +
		"  waybill-audit checkproof week.consistency --key kept/log.pub --from monday.checkpoint\n\n" +
		"It needs no log. Exit 0 the proof holds, 20 it does not."
}

// Run checks a proof, and prints the event if it is one of an event.
func (c checkproofCmd) Run(a *app) error {
	b, err := os.ReadFile(c.File)
	if err != nil {
		return usageError{err}
	}
	key, err := readKey(c.Key)
	if err != nil {
		return err
	}
	p, err := parseProof(b)
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", c.File, err)}
	}
	h, err := checkpoint.Open(p.Checkpoint, key)
	if err != nil {
		return asAltered(c.File, err)
	}
	p.Log, p.Size, p.Root = h.Log, h.Size, h.Root
	if p.Key, err = checkpoint.PublicKey(key, h.Log); err != nil {
		return err
	}
	if err := c.holds(p, key); err != nil {
		return err
	}
	return c.print(a, p)
}

func (c checkproofCmd) holds(p proof, key string) error {
	if (p.Kind == consistency) == (c.From == "") {
		return usageError{fmt.Errorf("%s is a proof of %s: --from is for proofs of consistency, and they need it", c.File, p.Kind)}
	}
	if p.Kind == inclusion {
		if !p.includes() {
			return &replay.AlteredError{Seq: p.Seq, What: "the proof does not hold: the log that was signed has another event there"}
		}
		return nil
	}
	from, err := openKept(c.From, key, p.Log)
	if err != nil {
		return err
	}
	if !p.continues(from.Head) {
		return &replay.AlteredError{What: fmt.Sprintf("the proof does not hold: the log with %d events does not continue the checkpoint of %d", p.Size, from.Size)}
	}
	return nil
}

func (c checkproofCmd) print(a *app, p proof) error {
	if c.JSON {
		d := p.doc("")
		d.Proof = ""
		return a.printJSON(d)
	}
	if _, err := fmt.Fprintf(a.out, "%s, signed by %s\n", p.says(), p.Key); err != nil || p.Kind == consistency {
		return err
	}
	_, err := fmt.Fprintf(a.out, "%s\n", plain(p.Event))
	return err
}
