package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/domain"
	"waybill/events"
	"waybill/replay"
	"waybill/store"
)

type showCmd struct {
	target
	Seq      *int64 `placeholder:"SEQ" xor:"which" help:"Only this event."`
	Call     string `placeholder:"HOST/ID" xor:"which" help:"Only the events of one call."`
	Evidence bool   `help:"Print the evidence an event cites, too; not with --json."`
}

// Help is shown under the usage.
func (showCmd) Help() string {
	return "Example:\n  waybill-audit show --seq 9 --evidence .waybill/log.db\n\n--json prints the exact envelopes, one a line."
}

// Run prints events.
func (c showCmd) Run(a *app) error {
	if c.JSON && c.Evidence {
		return usageError{errors.New("--json prints nothing but envelopes: leave out --evidence")}
	}
	l, err := logfile.Open(c.Log)
	if err != nil {
		return err
	}
	defer l.Close()
	var after int64
	var shown []store.Record // where not all are
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
			if c.some() {
				shown = append(shown, r)
			}
		}
		if len(records) > 0 && !c.some() {
			continue
		}
		if found > 0 && !c.JSON {
			if err := c.sayErased(a, l, shown); err != nil {
				return err
			}
		}
		if found == 0 && c.some() {
			return usageError{fmt.Errorf("the log has no such event; see waybill-audit show %s", c.Log)}
		}
		return nil
	}
}

// some reports whether not all events are asked for.
func (c showCmd) some() bool { return c.Seq != nil || c.Call != "" }

func (c showCmd) next(ctx context.Context, l logfile.Log, after int64) ([]store.Record, error) {
	switch {
	case c.Call != "":
		return l.ByCall(ctx, c.Call)
	case c.Seq == nil:
		return l.Read(ctx, after, 512)
	}
	records, err := l.Read(ctx, *c.Seq-1, 1)
	if len(records) > 0 && records[0].Seq != *c.Seq {
		return nil, err
	}
	return records, err
}

func (c showCmd) print(a *app, l logfile.Log, r store.Record) error {
	if c.JSON {
		_, err := fmt.Fprintf(a.out, "%s\n", r.Bytes)
		return err
	}
	v := jsontext.Value(r.Bytes).Clone()
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		return &replay.AlteredError{Seq: r.Seq, What: "it is no JSON"}
	}
	if _, err := fmt.Fprintf(a.out, "%s\n", v); err != nil || !c.Evidence {
		return err
	}
	return c.printEvidence(a, l, r)
}

func (c showCmd) printEvidence(a *app, l logfile.Log, r store.Record) error {
	e, err := opened(r)
	if err != nil {
		return err
	}
	ref, ok := cited(e)
	if !ok {
		return nil
	}
	d, err := events.DigestOf(ref)
	if err != nil {
		return &replay.AlteredError{Seq: r.Seq, What: err.Error()}
	}
	b, err := l.Evidence(a.ctx, d)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "evidence %s:\n%s\n", ref.Digest, plain(b))
	return err
}

// cited returns what an event rests on: an observation holds its evidence, and
// an era the frame that decided it.
func cited(e domain.Event) (domain.Ref, bool) {
	switch d := e.Data.(type) {
	case domain.EraDetermined:
		return domain.Ref{Digest: d.Evidence}, true
	case domain.EraRefused:
		return domain.Ref{Digest: d.Evidence}, d.Evidence != ""
	}
	return events.EvidenceOf(e.Data)
}

// plain is b, or b quoted where it could do more to a terminal than print: a
// peer wrote it.
func plain(b []byte) []byte {
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	if utf8.Valid(b) && !bytes.ContainsFunc(b, control) {
		return b
	}
	return strconv.AppendQuote(nil, string(b))
}
