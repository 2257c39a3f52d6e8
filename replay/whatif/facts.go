package whatif

import (
	"fmt"
	"strings"

	"waybill/domain"
)

// said is what one decision says about a subject, without numbers that differ from world
// to world.
type said struct{ subject, words, call string }

// differences holds the decisions of two worlds against each other, by subject and in
// their order.
func differences(was, is []domain.Event) []Row {
	a, b := tell(was), tell(is)
	var out []Row
	for _, subject := range subjects(a, b) {
		before, call := join(a, subject)
		after, other := join(b, subject)
		if before != after {
			out = append(out, Row{Subject: subject, Recorded: before, Instead: after, Call: call + strings.TrimPrefix(other, call)})
		}
	}
	return out
}

func tell(list []domain.Event) (out []said) {
	for _, e := range list {
		if s := about(e.Data); s.subject != "" {
			out = append(out, s)
		}
	}
	return out
}

func subjects(lists ...[]said) (out []string) {
	seen := map[string]bool{}
	for _, list := range lists {
		for _, s := range list {
			if !seen[s.subject] {
				seen[s.subject] = true
				out = append(out, s.subject)
			}
		}
	}
	return out
}

func join(list []said, subject string) (words, call string) {
	var all []string
	for _, s := range list {
		if s.subject == subject {
			all, call = append(all, s.words), s.call
		}
	}
	return strings.Join(all, ", then "), call
}

// about puts a decision into words. Those that only order something to be asked, or
// follow from names that are said already, have none.
func about(data domain.Data) said {
	switch d := data.(type) {
	case domain.PeerAdmitted:
		return said{"peer " + d.Peer, "admitted", ""}
	case domain.PeerRefused:
		return said{"peer " + d.Peer, "refused " + string(d.Code), ""}
	case domain.PeerLaunched:
		return said{"peer " + d.Peer, "started for " + d.First, ""}
	case domain.PeerRestarted:
		return said{"peer " + d.Peer, fmt.Sprintf("started again, attempt %d", d.Attempt), ""}
	case domain.PeerQuarantined:
		return said{"peer " + d.Peer, "quarantined", ""}
	case domain.PeerAbandoned:
		return said{"peer " + d.Peer, "given up " + string(d.Code), ""}
	case domain.ProbeIssued:
		return said{"peer " + d.Peer, d.Method + " sent by " + d.Authority, ""}
	case domain.LegacyExcluded:
		return said{"peer " + d.Peer, "legacy ruled out", ""}
	case domain.EraDetermined:
		return said{"peer " + d.Peer, string(d.Era) + " " + d.Version, ""}
	case domain.EraRefused:
		return said{"peer " + d.Peer, "closed " + string(d.Code), ""}
	case domain.ConfigRejected:
		return said{"configuration", "rejected " + string(d.Code), ""}
	}
	return aboutNames(data)
}

func aboutNames(data domain.Data) said {
	switch d := data.(type) {
	case domain.CatalogAccepted:
		return said{"list of " + d.Peer + in(d.Context), fmt.Sprintf("%d tools", d.Tools), ""}
	case domain.CatalogRefused:
		return said{"list of " + d.Peer + in(d.Context), "refused " + string(d.Code), ""}
	case domain.CollisionDecided:
		if d.Winner == nil {
			return said{"name " + d.Name + in(d.Context), "nobody has it", ""}
		}
		return said{"name " + d.Name + in(d.Context), d.Winner.Peer + " has it", ""}
	case domain.NameMoved:
		return said{"name " + d.Name + in(d.Context), "moves from " + d.From.Peer + " to " + d.To.Peer, ""}
	case domain.NamespaceMerged:
		return said{"namespace" + in(d.Context), fmt.Sprintf("%d names", d.Tools), ""}
	case domain.ToolApproved:
		return said{"tool " + d.Name + in(d.Context), "approved", ""}
	}
	return aboutCalls(data)
}

func in(context string) string {
	if context == "" || context == domain.DefaultContext {
		return ""
	}
	return " in context " + context
}

func aboutCalls(data domain.Data) said {
	switch d := data.(type) {
	case domain.CallRouted:
		return said{"call " + d.CallKey(), "to " + d.Peer + " as " + d.Local, d.CallKey()}
	case domain.CallRefused:
		return said{"call " + d.CallKey(), "refused " + string(d.Code), d.CallKey()}
	case domain.CallJoined:
		return said{"call " + d.CallKey(), "has the outcome of " + d.First, d.CallKey()}
	case domain.CallHeld:
		return said{"call " + d.CallKey(), "held " + string(d.Code), d.CallKey()}
	case domain.CallResent:
		return said{"call " + d.CallKey(), "sent again to " + d.Peer + " by " + d.Rule, d.CallKey()}
	case domain.CallSettled:
		words := string(d.Status)
		if d.Code != "" && string(d.Code) != words {
			words += " " + string(d.Code)
		}
		return said{"call " + d.CallKey(), words + ", ran " + string(d.Ran), d.CallKey()}
	case domain.CommandRefused:
		return said{"order " + d.Verb + " by " + d.By, "refused " + string(d.Code), ""}
	}
	return said{}
}
