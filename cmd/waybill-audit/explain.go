package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/replay"
	"waybill/replay/explain"
)

type explainCmd struct {
	Call string `arg:"" placeholder:"CALL" help:"HOST/CALL_ID, the seq of any event of the call, or its call_id alone where one host has it."`
	target
	Markdown bool   `help:"Print a report to hand in, in Markdown."`
	Prove    string `placeholder:"DIR" help:"Write a proof of inclusion of each event that a sentence rests on into this directory, as prove does."`
	Key      string `placeholder:"KEY" help:"With --prove: the public key of the log as it was kept elsewhere, or a file that holds it."`
}

// Help is shown under the usage.
func (explainCmd) Help() string {
	return "Example:\n  waybill-audit explain agent/7f3a .waybill/log.db --prove proofs\n\n" +
		"Each sentence ends with the events it rests on; see show --seq, and --evidence for what a peer wrote. " +
		"It says what the log says: whether the log is whole, and whether its decisions follow, say verify and replay."
}

// Run explains a call.
func (c explainCmd) Run(a *app) error {
	if c.JSON && c.Markdown {
		return usageError{errors.New("give --json or --markdown, not both")}
	}
	l, err := logfile.Open(c.Log)
	if err != nil {
		return err
	}
	defer l.Close()
	x, err := explain.Call(a.ctx, callIndex{a.watched(l, "folded"), l}, c.Call)
	if errors.Is(err, explain.ErrNoCall) {
		return usageError{fmt.Errorf("%w; see waybill-audit show %s", err, c.Log)}
	}
	if err != nil {
		return err
	}
	if c.Prove != "" {
		if err := proveAll(a, l, c, explain.Seqs(x.Sentences)); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		return a.printJSON(x)
	case c.Markdown:
		_, err = a.out.Write([]byte(x.Markdown()))
		return err
	}
	if _, err = a.out.Write([]byte(x.Text())); err == nil && c.Prove != "" {
		_, err = fmt.Fprintf(a.out, "wrote the proofs of these events into %s; see waybill-audit checkproof\n", c.Prove)
	}
	return err
}

// callIndex finds the events of a call by the index of the log file.
type callIndex struct {
	replay.Source
	log logfile.Log
}

// OfCall implements explain.Indexed.
func (l callIndex) OfCall(ctx context.Context, key string) ([]replay.Record, error) {
	return l.log.OfCall(ctx, key)
}

// proveAll makes every proof before it writes any: a directory holds all of them, or
// none.
func proveAll(a *app, l logfile.Log, c explainCmd, seqs []int64) error {
	keys, err := keysOf(a.ctx, l, c.Key)
	if err != nil {
		return err
	}
	texts := make([][]byte, len(seqs))
	for i := range seqs {
		p, err := proveCmd{Seq: &seqs[i]}.inclusion(a, l, keys)
		if err != nil {
			return err
		}
		texts[i] = p.text()
	}
	if err := os.MkdirAll(c.Prove, 0o755); err != nil {
		return usageError{err}
	}
	for i, seq := range seqs {
		if err := writeNew(filepath.Join(c.Prove, fmt.Sprintf("%d.tlog-proof", seq)), texts[i]); err != nil {
			return err
		}
	}
	return nil
}
