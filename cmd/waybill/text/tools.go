package text

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"waybill/domain"
)

// Tools writes what can be called: a line for each tool, and below it whose lists
// may have changed and whose are not there.
func Tools(w io.Writer, l domain.ToolList) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TOOL\tPEER\tLOCAL NAME\tSINCE\tMODEL NAME\tCLAIMED BY\tQUARANTINE")
	for _, e := range l.Tools {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Canonical, e.Peer, e.Local, since(e), modelName(e), rivals(e.Collided), quarantine(e.Held))
	}
	_ = t.Flush()
	if len(l.Stale) > 0 {
		fmt.Fprintf(w, "stale: the lists of %s may have changed\n", strings.Join(l.Stale, ", "))
	}
	for _, peer := range l.Missing {
		fmt.Fprintf(w, "partial: no list of %s yet\n", peer)
	}
	fmt.Fprintf(w, "%d tools, generation %d\n", len(l.Tools), l.Generation)
}

// since is when a name came to its owner, to the second.
func since(e domain.ToolEntry) string {
	at := e.Since
	if whole, _, cut := strings.Cut(at, "."); cut {
		at = whole + "Z"
	}
	return fmt.Sprintf("%s (generation %d)", at, e.SinceGen)
}

// modelName is the name in the form of models where that is another one.
func modelName(e domain.ToolEntry) string {
	switch e.Model {
	case e.Canonical:
		return "-"
	case "":
		return "none: two tools share it"
	}
	return e.Model
}

func rivals(owners []domain.Owner) string {
	if len(owners) == 0 {
		return "-"
	}
	who := make([]string, len(owners))
	for i, o := range owners {
		who[i] = o.Peer + ": " + o.Local
	}
	return strings.Join(who, ", ")
}

func quarantine(h *domain.HeldReport) string {
	if h == nil {
		return "-"
	}
	return fmt.Sprintf("changed (event %d)", h.Seq)
}

// Held writes what changed in a tool since it was approved.
func Held(w io.Writer, e domain.ToolEntry) {
	if e.Held == nil {
		fmt.Fprintf(w, "%s of peer %s is not in quarantine; what ever changed in it is in waybill events --type tool.changed\n", e.Canonical, e.Peer)
		return
	}
	fmt.Fprintf(w, "%s of peer %s has changed since it was approved or first seen (event %d):\n", e.Canonical, e.Peer, e.Held.Seq)
	for _, line := range e.Held.Diff {
		fmt.Fprintf(w, "  %s\n", line)
	}
	if len(e.Held.Definition) > 0 {
		quoted := strconv.QuoteToASCII(string(e.Held.Definition))
		fmt.Fprintf(w, "  it is now %s\n", strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`))
	}
	fmt.Fprintf(w, "was %s\nnow %s\n", e.Held.Approved, e.Held.Now)
}
