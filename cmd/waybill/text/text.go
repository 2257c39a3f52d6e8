package text

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

// Indent makes JSON pleasant to read; what is no JSON stays as it is.
func Indent(b []byte) string {
	v := jsontext.Value(b).Clone()
	if v.Indent(jsontext.WithIndent("  ")) != nil {
		return string(b)
	}
	return string(v)
}

// Report writes the start-up report: a line for each peer, the refused
// ones with the reason, and last the collision policy and the number of tools.
func Report(w io.Writer, r domain.Report) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PEER\tSTATE\tERA\tVERSION\tCACHE SCOPE\tTOOLS")
	for _, p := range r.Peers {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, p.State, p.Era, orDash(p.Version), orDash(p.CacheScope), toolsOf(p))
	}
	_ = t.Flush()
	for _, p := range r.Peers {
		if p.Reason != nil {
			fmt.Fprintf(w, "%s: %s (%s)\n", p.Name, *p.Reason, *p.Code)
		}
		if p.State != "ready" {
			recovery(w, p)
		}
		for _, l := range p.Lists {
			freshness(w, p, l)
		}
		for _, warning := range p.Warnings {
			fmt.Fprintf(w, "%s: warning: %s\n", p.Name, warning)
		}
	}
	for _, c := range r.Collisions {
		fmt.Fprintf(w, "collision: %s\n", collisionWords(c))
	}
	fmt.Fprintln(w, lastLine(r))
}

// recovery says how the last process of a peer that is not ready ended, and when
// it is started again.
func recovery(w io.Writer, p domain.PeerReport) {
	if x := p.LastExit; x != nil && p.Endpoint != "" {
		fmt.Fprintf(w, "%s: incarnation %d ended: %s\n", p.Name, x.Incarnation, x.Cause)
	} else if x != nil {
		status := fmt.Sprintf("status %d", x.Status)
		if x.Signal != "" {
			status = x.Signal
		}
		fmt.Fprintf(w, "%s: process %d ended: %s, %s, %d bytes on standard error\n", p.Name, x.Incarnation, x.Cause, status, x.StderrSize)
	}
	if p.Attempt != nil {
		fmt.Fprintf(w, "%s: attempt %d; next try %s\n", p.Name, *p.Attempt, orDash(p.NextTry))
	}
}

// freshness says of a list what somebody should know: that it could not be read
// again, or that nobody tells of its changes any more.
func freshness(w io.Writer, p domain.PeerReport, l domain.ListReport) {
	var facts []string
	if l.Failures > 0 {
		facts = append(facts, fmt.Sprintf("readings that failed in a row: %d", l.Failures))
	}
	if l.Code != "" && (p.Reason == nil || *p.Reason != l.Reason) {
		facts = append(facts, fmt.Sprintf("%s (%s)", l.Reason, l.Code))
	}
	if l.Subscription == "ended" {
		facts = append(facts, "the subscription to its changes has ended and will be opened again")
	}
	if facts == nil {
		return
	}
	list := "list"
	if l.Context != domain.DefaultContext {
		list += " of context " + l.Context
	}
	fmt.Fprintf(w, "%s: %s: %s\n", p.Name, list, strings.Join(facts, "; "))
}

func orDash(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// toolsOf names the tools of the default context, or says how many others have.
func toolsOf(p domain.PeerReport) string {
	var counts []string
	for _, l := range p.Lists {
		if l.Context != domain.DefaultContext {
			counts = append(counts, fmt.Sprintf("%s: %d", l.Context, l.Tools))
		}
	}
	if len(p.Tools) == 0 && counts != nil {
		return strings.Join(counts, ", ")
	}
	return toolNames(p.Tools)
}

func toolNames(tools []domain.ToolReport) string {
	const most = 8
	var names []string
	for i, t := range tools {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(tools)-most))
			break
		}
		names = append(names, t.Canonical)
	}
	if names == nil {
		return "-"
	}
	return strings.Join(names, ", ")
}

func collisionWords(c domain.CollisionReport) string {
	var who []string
	for _, o := range c.Candidates {
		who = append(who, o.Peer)
	}
	winner := "nobody is routable under it"
	if c.Winner != nil {
		winner = c.Winner.Peer + " keeps it"
	}
	name := c.Name
	if c.Context != "" {
		name += " in context " + c.Context
	}
	return fmt.Sprintf("%s is claimed by %s; %s (event %d)", name, strings.Join(who, ", "), winner, c.Seq)
}

func lastLine(r domain.Report) string {
	if len(r.Namespaces) == 0 {
		return "no namespace has been merged yet"
	}
	n := r.Namespaces[0]
	for _, other := range r.Namespaces {
		if other.Context == domain.DefaultContext {
			n = other
		}
	}
	line := fmt.Sprintf("collision policy %s: %d tools merged, generation %d", n.Policy, n.Tools, n.Generation)
	for _, other := range r.Namespaces {
		if other.Context != n.Context {
			line += fmt.Sprintf("; context %s: %d tools, generation %d", other.Context, other.Tools, other.Generation)
		}
	}
	return line
}
