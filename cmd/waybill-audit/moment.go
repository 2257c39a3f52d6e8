package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/domain"
	"waybill/replay/moment"
)

// instant is the moment that a command asks about.
type instant struct {
	target
	At string `placeholder:"SEQ|TIME" help:"After this event, or at this time (RFC 3339); the end, if absent."`
}

// sight folds the log up to the moment.
func (c instant) sight(a *app) (s moment.Sight, err error) {
	p := moment.Point{}
	if c.At != "" {
		if p, err = moment.ParsePoint(c.At); err != nil {
			return s, usageError{err}
		}
	}
	l, err := logfile.Open(c.Log)
	if err != nil {
		return s, err
	}
	defer l.Close()
	m, err := moment.At(a.ctx, a.watched(l, "folded"), p)
	if err != nil {
		return s, beyond(err)
	}
	return m.Sight(), nil
}

// beyond makes a mistake in the command line of asking for what is not there.
func beyond(err error) error {
	if errors.Is(err, moment.ErrBeyond) || errors.Is(err, moment.ErrOrder) {
		return usageError{err}
	}
	return err
}

// whenWords says which moment it is.
func whenWords(s moment.Sight) string {
	if s.Seq == 0 {
		return "before the first event"
	}
	return fmt.Sprintf("after event %d, %s", s.Seq, s.Time)
}

type peersCmd struct{ instant }

// Help is shown under the usage.
func (peersCmd) Help() string {
	return "Example:\n  waybill-audit peers --at 2026-11-30T12:00:00Z .waybill/log.db\n\nThe peers as they stood at that moment, folded from the events before it."
}

// Run prints the peers of a moment.
func (c peersCmd) Run(a *app) error {
	s, err := c.sight(a)
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(struct {
			Log   string              `json:"log"`
			Seq   int64               `json:"seq"`
			Time  string              `json:"time"`
			Peers []domain.PeerReport `json:"peers"`
		}{s.Log, s.Seq, s.Time, s.Report.Peers})
	}
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PEER\tSTATE\tERA\tVERSION\tINCARNATION\tTOOLS\tCODE")
	for _, p := range s.Report.Peers {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", p.Name, p.State, p.Era, orDash(p.Version), orDash(p.Incarnation), len(p.Tools), orDash(p.Code))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, p := range s.Report.Peers {
		if p.Reason != nil {
			fmt.Fprintf(a.out, "%s: %s\n", p.Name, *p.Reason)
		}
	}
	_, err = fmt.Fprintf(a.out, "%d peers, %s\n", len(s.Report.Peers), whenWords(s))
	return err
}

func orDash[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

type namespaceCmd struct {
	instant
	Context string `placeholder:"NAME" help:"Only this authorization context."`
}

// Help is shown under the usage.
func (namespaceCmd) Help() string {
	return "Example:\n  waybill-audit namespace --at 4711 .waybill/log.db\n\nWho held each name at that moment. The digest is the one that namespace.merged recorded."
}

// Run prints the names of a moment.
func (c namespaceCmd) Run(a *app) error {
	s, err := c.sight(a)
	if err != nil {
		return err
	}
	spaces := []moment.Space{}
	for _, x := range s.Spaces {
		if c.Context == "" || c.Context == x.Context {
			spaces = append(spaces, x)
		}
	}
	if c.JSON {
		return a.printJSON(struct {
			Log    string         `json:"log"`
			Seq    int64          `json:"seq"`
			Time   string         `json:"time"`
			Spaces []moment.Space `json:"namespaces"`
		}{s.Log, s.Seq, s.Time, spaces})
	}
	for _, x := range spaces {
		if err := printSpace(a, x); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(a.out, "%d namespaces, %s\n", len(spaces), whenWords(s))
	return err
}

func printSpace(a *app, x moment.Space) error {
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "NAME\tPEER\tLOCAL NAME\tSINCE GENERATION\tCLAIMED BY\n")
	for _, n := range x.Names {
		var rivals []string
		for _, o := range n.Collided {
			rivals = append(rivals, o.Peer+": "+o.Local)
		}
		claimed := strings.Join(rivals, ", ")
		if claimed == "" {
			claimed = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", n.Canonical, n.Owner.Peer, n.Owner.Local, n.Since, claimed)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "context %s: generation %d, %d names, digest %s\n", x.Context, x.Generation, len(x.Names), x.Digest)
	return err
}

type callsCmd struct{ instant }

// Help is shown under the usage.
func (callsCmd) Help() string {
	return "Example:\n  waybill-audit calls --at 4711 .waybill/log.db\n\nThe calls that were under way at that moment: sent, or held for their peer."
}

// Run prints the calls under way at a moment.
func (c callsCmd) Run(a *app) error {
	s, err := c.sight(a)
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(struct {
			Log   string              `json:"log"`
			Seq   int64               `json:"seq"`
			Time  string              `json:"time"`
			Calls []domain.CallReport `json:"calls"`
		}{s.Log, s.Seq, s.Time, s.Calls})
	}
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CALL\tSTATE\tTOOL\tPEER\tREQUEST\tSINCE EVENT")
	for _, x := range s.Calls {
		peer := x.Peer
		if peer == "" {
			peer = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\n", x.Call, x.State, x.Tool, peer, x.RequestID, x.Seq)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%d calls under way, %s\n", len(s.Calls), whenWords(s))
	return err
}

type diffCmd struct {
	target
	From string `required:"" placeholder:"SEQ|TIME" help:"The earlier moment."`
	To   string `placeholder:"SEQ|TIME" help:"The later one; the end, if absent."`
}

// Help is shown under the usage.
func (diffCmd) Help() string {
	return "Example:\n  waybill-audit diff --from 100 --to 2026-11-30T12:00:00Z .waybill/log.db\n\nWhat changed between two moments: peers, namespaces, who holds each name, collisions."
}

// Run prints what changed between two moments.
func (c diffCmd) Run(a *app) error {
	from, err := moment.ParsePoint(c.From)
	if err != nil {
		return usageError{err}
	}
	to := moment.Point{}
	if c.To != "" {
		if to, err = moment.ParsePoint(c.To); err != nil {
			return usageError{err}
		}
	}
	l, err := logfile.Open(c.Log)
	if err != nil {
		return err
	}
	defer l.Close()
	before, after, err := moment.Two(a.ctx, a.watched(l, "folded"), from, to)
	if err != nil {
		return beyond(err)
	}
	changes := moment.Diff(before, after)
	if c.JSON {
		if changes == nil {
			changes = []moment.Change{}
		}
		return a.printJSON(struct {
			Log     string          `json:"log"`
			From    int64           `json:"from"`
			To      int64           `json:"to"`
			Changes []moment.Change `json:"changes"`
		}{after.Log, before.Seq, after.Seq, changes})
	}
	for _, x := range changes {
		fmt.Fprintln(a.out, changeWords(x))
	}
	_, err = fmt.Fprintf(a.out, "%d changes, from %s to %s\n", len(changes), whenWords(before), whenWords(after))
	return err
}

func changeWords(x moment.Change) string {
	subject := x.What + " " + x.Subject
	if x.Context != "" && x.Context != domain.DefaultContext {
		subject += " (context " + x.Context + ")"
	}
	switch {
	case x.Before == "":
		return subject + ": new: " + x.After
	case x.After == "":
		return subject + ": gone; it was " + x.Before
	}
	return subject + ": " + x.Before + " -> " + x.After
}
