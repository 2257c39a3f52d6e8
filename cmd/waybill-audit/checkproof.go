package main

import (
	"errors"
	"fmt"
	"os"

	"waybill/events/checkpoint"
	"waybill/replay"
)

type checkproofCmd struct {
	JSON  bool     `name:"json" help:"Print pure JSON on standard output."`
	Files []string `arg:"" name:"file" placeholder:"FILE" help:"What prove, or explain --prove, wrote; more than one can be given."`
	Key   []string `required:"" placeholder:"KEY" help:"A public key that the log has had, or a file that holds it; may be given more than once."`
	From  string   `placeholder:"FILE" help:"The older checkpoint, for a proof that another one continues it."`
}

// Help is shown under the usage.
func (checkproofCmd) Help() string {
	return "Example:\n  waybill-audit checkproof 38.tlog-proof --key kept/log.pub\n" +
		"  waybill-audit checkproof week.consistency --key kept/log.pub --from monday.checkpoint\n\n" +
		"It needs no log. Exit 0 the proof holds, 20 it does not."
}

// Run checks proofs, and prints the event of each that is one of an event. It stops at
// the first that does not hold.
func (c checkproofCmd) Run(a *app) error {
	var keys []string
	for _, arg := range c.Key {
		key, err := readKey(arg)
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	for _, file := range c.Files {
		if err := c.check(a, file, keys); err != nil {
			return err
		}
	}
	return nil
}

func (c checkproofCmd) check(a *app, file string, keys []string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return usageError{err}
	}
	p, err := parseProof(b)
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", file, err)}
	}
	h, key, err := openByAny(p.Checkpoint, keys)
	if err != nil {
		return asAltered(file, err)
	}
	p.Log, p.Size, p.Root = h.Log, h.Size, h.Root
	if p.Key, err = checkpoint.PublicKey(key, h.Log); err != nil {
		return err
	}
	if err := c.holds(file, p, keys); err != nil {
		return err
	}
	return c.print(a, p)
}

// openByAny opens a checkpoint with whichever of the keys has signed it.
func openByAny(note []byte, keys []string) (h checkpoint.Head, key string, err error) {
	for _, key = range keys {
		if h, err = checkpoint.Open(note, key); !errors.Is(err, checkpoint.ErrSignature) {
			return h, key, err
		}
	}
	if len(keys) > 1 {
		err = fmt.Errorf("%w, any of the %d given", checkpoint.ErrSignature, len(keys))
	}
	return h, "", err
}

func (c checkproofCmd) holds(file string, p proof, keys []string) error {
	if (p.Kind == consistency) == (c.From == "") {
		return usageError{fmt.Errorf("%s is a proof of %s: a proof of consistency needs --from, the older checkpoint, and one of inclusion takes none", file, p.Kind)}
	}
	if p.Kind == inclusion {
		if !p.includes() {
			return &replay.AlteredError{Seq: p.Seq, What: "the proof does not hold: the log that was signed has another event there"}
		}
		return nil
	}
	older, err := readSmall(c.From)
	if err != nil {
		return err
	}
	from, _, err := openByAny(older, keys)
	if err == nil && from.Log != p.Log {
		err = fmt.Errorf("it is of log %s, and not of %s", from.Log, p.Log)
	}
	if err != nil {
		return asAltered(c.From, err)
	}
	if !p.continues(from) {
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
