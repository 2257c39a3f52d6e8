package domain

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain/catalog"
	"waybill/domain/names"
)

// Bounds of what is recorded about the tools of one list.
const (
	mostRejected = 200       // tools left out each with an event of its own; the warning counts them all
	mostDiffed   = 256 << 10 // bytes of definitions that are compared for people, in one reading
	mostFlagged  = 200       // tools, or names, that are warned of
	mostKnown    = 4 * catalog.MaxTools
	mostBefore   = catalog.MaxList // bytes of definitions that are kept to say what changed
)

// knownTool is what is remembered of a tool, also while it is not listed: a name
// that comes back with another definition is a change.
type knownTool struct {
	digest   string         // of the definition that was seen last
	approved string         // of the one that is routable, where digest is held
	before   jsontext.Value // that one, where it is at hand
	held     bool
	heldSeq  int64
	diff     []string // of its tool.changed
}

// build makes a catalog of the pages that were read. Where lists are kept by
// rules, broken tools are left out by the stricter ones, and so are new names once
// too many are known.
func (l *line) build() (catalog.Catalog, []catalog.BadTool, []string) {
	strict := l.peer.rules() != nil
	b := l.fetch.build(strict)
	c, bad, warnings := b.catalog, b.bad, b.warnings
	if !strict || len(l.known)+len(c.Tools) <= mostKnown {
		return c, bad, warnings
	}
	room := mostKnown - len(l.known)
	return catalog.Keep(c, func(t catalog.Tool) bool {
		if _, known := l.known[t.Local]; known {
			return true
		}
		room--
		return room >= 0
	}), bad, append(warnings, "too many names: of a peer that has listed 100000 names, tools of new ones are left out")
}

// news are the tools left out that were not left out last time, as far as they are
// recorded one by one. What a peer does wrong at every reading is said once.
func (l *line) news(bad []catalog.BadTool) []catalog.BadTool {
	if l.peer.rules() != nil && rejectedDigest(bad) == l.rejected {
		return nil
	}
	return bad[:min(len(bad), mostRejected)]
}

// lookAlikes says of tools left out for their names which tool of the list they
// could be taken for.
func lookAlikes(bad []catalog.BadTool, c catalog.Catalog) {
	var looks map[string]string
	for i := range bad {
		if Code(bad[i].Problem) != CodeToolNameInvalid {
			continue
		}
		if looks == nil {
			looks = map[string]string{}
			locals := c.Locals()
			for i := len(locals) - 1; i >= 0; i-- { // of several the first
				looks[names.Skeleton(locals[i])] = locals[i]
			}
		}
		if local, ok := looks[names.Skeleton(bad[i].Raw)]; ok {
			bad[i].Reason += "; it looks like the tool " + local
		}
	}
}

// rejectedDigest names a list of tools that were left out.
func rejectedDigest(bad []catalog.BadTool) string {
	var b []byte
	for _, t := range bad {
		b = appendField(appendField(b, t.Name), string(t.Problem))
	}
	return digest(b)
}

// decideTools says what a list brings that somebody should know: tools that are
// not what they were, and such as hide something.
func (l *line) decideTools(c catalog.Catalog) []Data {
	if l.peer.rules() == nil {
		return nil
	}
	var out []Data
	left, flags := mostDiffed, 0
	for _, t := range c.Tools { // order-free: a list, in its order
		k, known := l.known[t.Local]
		if known && k.digest == t.Digest {
			continue
		}
		if known {
			d, cost := l.changed(t, k, left)
			out, left = append(out, d), left-cost
		}
		if len(t.Marks) > 0 && flags < mostFlagged {
			out = append(out, ToolFlagged{At: l.peer.at(), Context: contextWord(l.context), Local: t.Local, Marks: toolMarks(t.Marks)})
			flags++
		}
	}
	return out
}

// changed compares a tool with what was approved last, or seen. What changed is said
// where that takes no more than so many bytes to compare; cost is what it took.
func (l *line) changed(t catalog.Tool, k knownTool, most int) (d ToolChanged, cost int) {
	from, before := k.digest, jsontext.Value(nil)
	if l.catalog != nil {
		before = l.catalog.Definition(t.Local)
	}
	if k.held {
		from, before = k.approved, k.before
	}
	d = ToolChanged{At: l.peer.at(), Context: contextWord(l.context), Local: t.Local, From: from, To: t.Digest,
		Held: l.peer.rules().Hold && t.Digest != from}
	switch cost = len(before) + len(t.Definition); {
	case t.Digest == from:
		d.Diff = []string{"it is again what it was when it was approved"}
	case before == nil:
		d.Diff = []string{"the definition before is not at hand; look at the one it has now, with waybill tools diff"}
	case cost > most:
		return d, 0 // too much to compare in one reading: the digests name both
	default:
		d.Diff = catalog.Diff(before, t.Definition)
	}
	return d, cost
}

func toolMarks(marks []catalog.Mark) []ToolMark {
	out := make([]ToolMark, len(marks))
	for i, m := range marks {
		out[i] = ToolMark(m)
	}
	return out
}

func (s *State) applyToolChanged(seq int64, d ToolChanged) {
	l := s.current(d.At).line(d.Context)
	if l == nil {
		return
	}
	l.changes++
	k := l.known[d.Local]
	switch {
	case !d.Held:
		l.before -= len(k.before)
		k = knownTool{}
	case !k.held:
		k.held, k.approved = true, d.From
		if l.catalog != nil && l.before+len(l.catalog.Definition(d.Local)) <= mostBefore {
			k.before = l.catalog.Definition(d.Local).Clone()
			l.before += len(k.before)
		}
	}
	if k.digest = d.To; k.held {
		k.heldSeq, k.diff = seq, d.Diff
	}
	l.known[d.Local] = k
}

// learn remembers the tools of a list that was accepted.
func (l *line) learn(c *Catalog) {
	if l.peer.rules() == nil {
		return
	}
	for _, t := range c.Tools { // order-free: a list, in its order
		if _, known := l.known[t.Local]; !known {
			l.known[t.Local] = knownTool{digest: t.Digest}
		}
	}
}

// held says why a tool must not be called now.
func (l *line) held(local string) (Code, string) {
	k := l.known[local]
	if !k.held || l.peer.rules() == nil || !l.peer.rules().Hold {
		return "", ""
	}
	return CodeToolQuarantined, fmt.Sprintf("the definition of this tool has changed since it was approved (event %d); see waybill tools diff, and waybill tools approve", k.heldSeq)
}

// decideApprove lets a tool be routed as it is now. The digest says which
// definition was looked at, so that nobody approves what came a moment later.
func (s *State) decideApprove(mono int64, d OperatorCommanded) ([]Data, Code, string) {
	ns := s.space(d.Context)
	if ns == nil {
		return nil, CodeUnknownTool, "no authorization context of this name is configured"
	}
	b, ok := ns.bindings[d.Tool]
	if !ok {
		return nil, CodeUnknownTool, "no peer has a tool of this name; see waybill tools"
	}
	p := s.Peer(b.owner.Peer) // nil for one that was configured when the names were merged
	_, l := p.served(ns.context, mono)
	if l == nil || !l.known[b.owner.Local].held {
		return nil, CodeNotQuarantined, "the tool is not in quarantine: it is routable as it is"
	}
	now := l.known[b.owner.Local].digest
	if d.Digest != now {
		return nil, CodeToolDiffers, "the definition is another one by now (" + now + "); look at it, and approve that"
	}
	return []Data{ToolApproved{By: d.By, Peer: p.Name, Context: contextWord(l.context), Name: d.Tool, Local: b.owner.Local, Digest: now}}, "", ""
}

func (s *State) applyApproved(d ToolApproved) {
	if l := s.Peer(d.Peer).line(d.Context); l != nil && l.known[d.Local].digest == d.Digest {
		l.before -= len(l.known[d.Local].before)
		l.known[d.Local] = knownTool{digest: d.Digest}
	}
}

// flagNames warns of names that are new in a namespace and look like others. Of
// names that are new together the first is no news.
func (ns *namespace) flagNames(touched []string) []Data {
	const mostAlike = 8
	var out []Data
	for _, name := range touched {
		_, bound := ns.table.Lookup(name)
		if _, was := ns.bindings[name]; was || !bound || len(out) >= mostFlagged {
			continue
		}
		alike := ns.table.Alike(name)
		news := slices.ContainsFunc(alike, func(other string) bool {
			_, was := ns.bindings[other]
			return was || other < name
		})
		if news {
			out = append(out, NameFlagged{Context: ns.context, Name: name, Alike: slices.Clone(alike[:min(len(alike), mostAlike)])})
		}
	}
	return out
}
