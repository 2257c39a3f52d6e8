package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"text/tabwriter"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/replay"
	"waybill/replay/whatif"
)

type replayCmd struct {
	target
	All    bool     `help:"Go on after a divergence, and print every one."`
	WhatIf []string `name:"what-if" sep:"none" placeholder:"KEY[.PEER]=VALUE" help:"Decide under another configuration, and print what would have come out otherwise. Can be given again."`
}

// Help is shown under the usage.
func (replayCmd) Help() string {
	keys := ""
	for _, k := range whatif.Keys() {
		keys += "\n  " + k
	}
	return "Example:\n  waybill-audit replay .waybill/log.db --json\n  waybill-audit replay --what-if collision=prefix-always .waybill/log.db\n\n" +
		"Decides again at every observation. Exit 0 all agree, 20 altered, 21 diverged (with both sides), 22 undecidable.\n" +
		"--what-if decides otherwise and exits 0; what the log says stays what was said. What can be changed:" + keys
}

// Run replays the log.
func (c replayCmd) Run(a *app) error {
	settings := make([]whatif.Setting, 0, len(c.WhatIf))
	for _, s := range c.WhatIf {
		x, err := whatif.Parse(s)
		if err != nil {
			return usageError{err}
		}
		settings = append(settings, x)
	}
	if len(settings) > 0 && c.All {
		return usageError{errors.New("--all looks for divergences and --what-if makes them: give one of the two")}
	}
	l, err := logfile.Open(c.Log)
	if err != nil {
		return err
	}
	defer l.Close()
	src := a.watched(l, "replayed")
	switch {
	case len(settings) > 0:
		return c.otherwise(a, src, settings)
	case c.All:
		return c.all(a, src)
	}
	return c.once(a, src)
}

// once stops at the first divergence.
func (c replayCmd) once(a *app, src replay.Source) error {
	r, err := replay.Replay(a.ctx, src)
	var diverged *replay.DivergedError
	if err != nil && !errors.As(err, &diverged) {
		return err
	}
	switch {
	case c.JSON && diverged != nil:
		return errors.Join(a.printReplay(r, []*replay.DivergedError{diverged}, false), quiet(err))
	case c.JSON:
		return a.printReplay(r, nil, false)
	case err != nil:
		return err
	}
	return a.summarize(r)
}

func (a *app) summarize(r replay.Replayed) error {
	_, err := fmt.Fprintf(a.out, "log %s: %d events, %d decisions decided again, %d agree\nhead %d, root %x\n", r.Log, r.Size, r.Decisions, r.Agreed, r.Size, r.Root)
	return err
}

// mostDivergences bounds those that are kept for a JSON document: each has both sides.
const mostDivergences = 10_000

// all goes on after each divergence.
func (c replayCmd) all(a *app, src replay.Source) error {
	var kept []*replay.DivergedError
	var first error
	count := 0
	r, err := replay.ReplayAll(a.ctx, src, func(d *replay.DivergedError) error {
		if count++; first == nil {
			first = d
		}
		switch {
		case !c.JSON:
			_, err := fmt.Fprintln(a.out, d)
			return err
		case count > mostDivergences:
			return fmt.Errorf("more than %d divergences: print them as text, without --json", mostDivergences)
		}
		kept = append(kept, d)
		return nil
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return errors.Join(a.printReplay(r, kept, true), quiet(first))
	}
	if first != nil {
		fmt.Fprintf(a.out, "%d divergences\n", count)
	}
	return errors.Join(a.summarize(r), quiet(first))
}

func (a *app) printReplay(r replay.Replayed, list []*replay.DivergedError, all bool) error {
	doc := struct {
		Log         string       `json:"log"`
		Size        int64        `json:"size"` // events replayed
		Root        string       `json:"root"` // over them
		HeadSeq     int64        `json:"head_seq"`
		Decisions   int64        `json:"decisions"`
		Agreed      int64        `json:"agreed"`
		Diverged    int64        `json:"diverged"`
		Divergence  *divergence  `json:"divergence,omitempty"`
		Divergences []divergence `json:"divergences,omitempty"` // with --all
	}{Log: r.Log, Size: r.Size, Root: hex.EncodeToString(r.Root[:]), HeadSeq: r.Size, Decisions: r.Decisions, Agreed: r.Agreed, Diverged: int64(len(list))}
	for i, d := range list {
		x := divergence{d.Code, d.Seq, d.Recorded, d.Redecided, d.Observation}
		if i == 0 {
			doc.Divergence = &x
		}
		if all {
			doc.Divergences = append(doc.Divergences, x)
		}
	}
	return a.printJSON(doc)
}

// otherwise decides under another configuration.
func (c replayCmd) otherwise(a *app, src replay.Source, settings []whatif.Setting) error {
	rows := []whatif.Row{}
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(t, "AFTER EVENT\tSUBJECT\tRECORDED\tINSTEAD")
	}
	found, err := whatif.Ask(a.ctx, src, settings, func(r whatif.Row) error {
		if c.JSON {
			rows = append(rows, r)
			return nil
		}
		_, err := fmt.Fprintf(t, "%d\t%s\t%s\t%s\n", r.Seq, r.Subject, orNothing(r.Recorded), orNothing(r.Instead))
		return err
	})
	if errors.Is(err, whatif.ErrNoPeer) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(struct {
			whatif.Found
			WhatIf []string     `json:"what_if"`
			Rows   []whatif.Row `json:"rows"`
		}{found, c.WhatIf, rows})
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "log %s: %d events; %d subjects would have come out otherwise, among them %d calls; %d answers would have had no question\n",
		found.Log, found.Size, found.Otherwise, found.Calls, found.Unheard)
	return err
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
