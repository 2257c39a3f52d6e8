package moment

import (
	"fmt"
	"slices"
	"strings"

	"waybill/domain"
)

// Change is one thing that is otherwise at a later moment. Its JSON form is a contract.
type Change struct {
	What    string `json:"what"` // peer, name, namespace, collision
	Context string `json:"context,omitempty"`
	Subject string `json:"subject"`
	Before  string `json:"before"` // "" for nothing
	After   string `json:"after"`
}

// Diff lists what changed between two moments: peers, then namespaces with their names,
// then collisions, each sorted.
func Diff(before, after Sight) []Change {
	out := changes("peer", "", peers(before), peers(after))
	for _, context := range contexts(before, after) {
		a, b := before.space(context), after.space(context)
		out = append(out, changes("namespace", context, summary(a), summary(b))...)
		out = append(out, changes("name", context, owners(a), owners(b))...)
	}
	return append(out, changes("collision", "", collisions(before), collisions(after))...)
}

// fact is a subject with what is said of it.
type fact struct{ subject, words string }

// changes compares two lists of facts, whatever their order.
func changes(what, context string, before, after []fact) (out []Change) {
	was, is := map[string]string{}, map[string]string{}
	var subjects []string
	for _, f := range before {
		was[f.subject] = f.words
		subjects = append(subjects, f.subject)
	}
	for _, f := range after {
		is[f.subject] = f.words
		subjects = append(subjects, f.subject)
	}
	slices.Sort(subjects)
	for _, s := range slices.Compact(subjects) {
		if was[s] != is[s] {
			out = append(out, Change{What: what, Context: context, Subject: s, Before: was[s], After: is[s]})
		}
	}
	return out
}

func contexts(list ...Sight) (out []string) {
	for _, s := range list {
		for _, x := range s.Spaces {
			out = append(out, x.Context)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func peers(s Sight) (out []fact) {
	for _, p := range s.Report.Peers {
		words := []string{p.State, string(p.Era)}
		if p.Version != nil {
			words = append(words, *p.Version)
		}
		if p.Code != nil {
			words = append(words, string(*p.Code))
		}
		if p.Incarnation != nil {
			words = append(words, fmt.Sprintf("incarnation %d", *p.Incarnation))
		}
		out = append(out, fact{p.Name, strings.Join(words, " ")})
	}
	return out
}

func summary(s *Space) []fact {
	if s == nil {
		return nil
	}
	return []fact{{"digest", s.Digest}, {"generation", fmt.Sprint(s.Generation)}, {"names", fmt.Sprint(len(s.Names))}}
}

func owners(s *Space) (out []fact) {
	if s == nil {
		return nil
	}
	for _, n := range s.Names {
		words := ownerWords(n.Owner)
		if n.Held {
			words += ", in quarantine"
		}
		out = append(out, fact{n.Canonical, words})
	}
	return out
}

func ownerWords(o domain.Owner) string { return o.Peer + ": " + o.Local }

func collisions(s Sight) (out []fact) {
	for _, c := range s.Report.Collisions {
		var who []string
		for _, o := range c.Candidates {
			who = append(who, ownerWords(o))
		}
		words := strings.Join(who, ", ") + "; nobody has it"
		if c.Winner != nil {
			words = strings.Join(who, ", ") + "; " + c.Winner.Peer + " has it"
		}
		out = append(out, fact{strings.TrimSpace(c.Context + " " + c.Name), words})
	}
	return out
}
