package main

import (
	"errors"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/replay/explain"
	"waybill/replay/moment"
)

type whyNotCmd struct {
	Tool string `arg:"" placeholder:"TOOL" help:"A name: canonical, the local one, PEER/TOOL, or a model_name."`
	target
	At       string `placeholder:"SEQ|TIME" help:"After this event, or at this time (RFC 3339); the end, if absent."`
	Context  string `placeholder:"NAME" help:"The authorization context; that of the host, or the default one, if absent."`
	Host     string `placeholder:"HOST" help:"For a call of this host; for one that may use everything, if absent."`
	Markdown bool   `help:"Print a report to hand in, in Markdown."`
}

// Help is shown under the usage.
func (whyNotCmd) Help() string {
	return "Example:\n  waybill-audit why-not search .waybill/log.db --at 4711\n\n" +
		"Says why a name could not be called at that moment, or that it could and to whom the call would have gone. " +
		"The rules themselves are asked, with the state folded from the events before. Exit 0 with either answer."
}

// Run answers for one name.
func (c whyNotCmd) Run(a *app) error {
	if c.JSON && c.Markdown {
		return usageError{errors.New("give --json or --markdown, not both")}
	}
	q := explain.Question{Tool: c.Tool, Context: c.Context, Host: c.Host}
	var err error
	if c.At != "" {
		if q.At, err = moment.ParsePoint(c.At); err != nil {
			return usageError{err}
		}
	}
	l, err := logfile.Open(c.Log)
	if err != nil {
		return err
	}
	defer l.Close()
	w, err := explain.AskWhyNot(a.ctx, a.watched(l, "folded"), q)
	if errors.Is(err, explain.ErrNoCall) || errors.Is(err, moment.ErrBeyond) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	switch {
	case c.JSON:
		return a.printJSON(w)
	case c.Markdown:
		_, err = a.out.Write([]byte(w.Markdown()))
	default:
		_, err = a.out.Write([]byte(w.Text()))
	}
	return err
}
