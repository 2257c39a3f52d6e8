package main

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/events"
	"waybill/store"
)

type showCmd struct {
	target
	Seq      int64  `placeholder:"SEQ" help:"Only this event."`
	Call     string `placeholder:"HOST/ID" help:"Only the events of one call."`
	Evidence bool   `help:"Print the evidence an event cites, too."`
}

// Help is shown under the usage.
func (showCmd) Help() string {
	return "Example:\n  waybill-audit show --seq 9 --evidence .waybill/log.db\n\n--json prints the exact envelopes, one a line."
}

// Run prints events.
func (c showCmd) Run(a *app) error {
	l, err := logfile.Open(c.Log)
	if err != nil {
		return err
	}
	defer l.Close()
	var after int64
	if c.Seq > 0 {
		after = c.Seq - 1
	}
	for found := 0; ; {
		records, err := c.next(a.ctx, l, after)
		if err != nil {
			return err
		}
		for _, r := range records {
			if err := c.print(a, l, r); err != nil {
				return err
			}
			after = r.Seq
			found++
		}
		if done := len(records) == 0 || c.Seq > 0 || c.Call != ""; done {
			if found == 0 && (c.Seq > 0 || c.Call != "") {
				return usageError{fmt.Errorf("the log has no such event; see waybill-audit show %s", c.Log)}
			}
			return nil
		}
	}
}

func (c showCmd) next(ctx context.Context, l logfile.Log, after int64) ([]store.Record, error) {
	switch {
	case c.Call != "":
		return l.ByCall(ctx, c.Call)
	case c.Seq > 0:
		return l.Read(ctx, after, 1)
	}
	return l.Read(ctx, after, 512)
}

func (c showCmd) print(a *app, l logfile.Log, r store.Record) error {
	if c.JSON {
		_, err := fmt.Fprintf(a.out, "%s\n", r.Bytes)
		return err
	}
	v := jsontext.Value(r.Bytes).Clone()
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		return fmt.Errorf("event %d is no JSON: %w", r.Seq, err)
	}
	if _, err := fmt.Fprintf(a.out, "%s\n", v); err != nil || !c.Evidence {
		return err
	}
	return c.printEvidence(a, l, r)
}

func (c showCmd) printEvidence(a *app, l logfile.Log, r store.Record) error {
	_, e, err := events.Open(r.Bytes)
	if err != nil {
		return fmt.Errorf("event %d: %w", r.Seq, err)
	}
	ref, ok := events.EvidenceOf(e.Data)
	if !ok {
		return nil
	}
	var d [32]byte
	if n, err := hex.Decode(d[:], []byte(ref.Digest)); err != nil || n != len(d) {
		return fmt.Errorf("event %d cites evidence by a bad digest", r.Seq)
	}
	b, err := l.Evidence(a.ctx, d)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "evidence %s:\n%s\n", ref.Digest, b)
	return err
}
