package domain

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain/names"
)

// ToolEntry is one tool with its definition as its peer wrote it. Its JSON form is
// a contract.
type ToolEntry struct {
	Canonical  string         `json:"canonical"`
	Peer       string         `json:"peer"`
	Local      string         `json:"local"`
	Definition jsontext.Value `json:"definition"`        // null for a tool in quarantine
	Model      string         `json:"model_name"`        // for APIs that take A-Z a-z 0-9 _ - alone; "" where two tools share it
	Since      string         `json:"since"`             // RFC 3339, UTC: when the name came to this owner
	SinceGen   int64          `json:"since_generation"`  // and with which generation
	Collided   []Owner        `json:"collided,omitzero"` // 16 at most of the other tools that claim the name, or the local one
	Held       *HeldReport    `json:"held,omitzero"`     // it is in quarantine
	Digest     string         `json:"digest,omitempty"`  // of the definition, SHA-256
}

// HeldReport says why a tool is in quarantine.
type HeldReport struct {
	Approved   string         `json:"approved"` // digest of the definition that was routable
	Now        string         `json:"now"`
	Seq        int64          `json:"seq"` // of its tool.changed
	Diff       []string       `json:"diff"`
	Definition jsontext.Value `json:"definition"` // as it is now: what would be approved
}

// ToolList is what one context can call. The definitions alias the state.
type ToolList struct {
	Context    string
	Generation int64
	Digest     string
	Tools      []ToolEntry // sorted by canonical name
	Stale      []string    // peers whose list is served although it is stale
	Missing    []string    // peers of which there is no list
}

// Tools lists what a context can call at a moment of the monotonic clock, after a
// canonical name, at most as many as most; most 0 is for all.
func (s *State) Tools(context, after string, most int, mono int64) ToolList {
	return s.listTools(context, after, most, mono, func(string, Owner) bool { return true })
}

func (s *State) listTools(context, after string, most int, mono int64, may func(string, Owner) bool) ToolList {
	out := ToolList{Context: contextKey(context), Tools: []ToolEntry{}, Stale: []string{}, Missing: []string{}}
	ns := s.space(context)
	if ns == nil {
		return out
	}
	out.Generation, out.Digest = ns.generation, ns.digest
	from, found := slices.BinarySearch(ns.order, after)
	if found {
		from++
	}
	for _, name := range ns.order[from:] {
		if most > 0 && len(out.Tools) == most {
			break
		}
		if may(name, ns.bindings[name].owner) {
			out.Tools = append(out.Tools, s.entry(ns, name, mono))
		}
	}
	s.judge(&out, mono)
	return out
}

func (s *State) judge(out *ToolList, mono int64) {
	for _, name := range s.names {
		p := s.peers[name]
		if p.asked(out.Context) == "" || p.rules() == nil {
			continue
		}
		switch verdict, _ := p.verdict(out.Context, mono); verdict {
		case CacheStale:
			out.Stale = append(out.Stale, name)
		case CacheNone:
			out.Missing = append(out.Missing, name)
		}
	}
}

func (s *State) entry(ns *namespace, name string, mono int64) ToolEntry {
	b := ns.bindings[name]
	e := ToolEntry{Canonical: name, Peer: b.owner.Peer, Local: b.owner.Local, Model: ns.model(name), SinceGen: b.since,
		Since: time.Unix(0, b.time).UTC().Format(time.RFC3339Nano), Collided: ns.rivals(name, b.owner)}
	c, l := s.Peer(b.owner.Peer).served(ns.context, mono)
	if c == nil {
		return e
	}
	if t, ok := c.Tool(b.owner.Local); ok {
		e.Definition, e.Digest = t.Definition, t.Digest
	}
	if code, _ := l.held(b.owner.Local); code != "" {
		e.Held, e.Definition = l.heldReport(b.owner.Local, e.Definition), nil
	}
	return e
}

func (l *line) heldReport(local string, now jsontext.Value) *HeldReport {
	k := l.known[local]
	return &HeldReport{Approved: k.approved, Now: k.digest, Seq: k.heldSeq, Diff: append([]string{}, k.diff...), Definition: now}
}

// model is the name in the form of models; "" where two tools share it.
func (ns *namespace) model(canonical string) string {
	name := names.ModelName(canonical)
	if !ns.merged || ns.rebuilt { // the table is not that of the names in force
		return name
	}
	if back, ok := ns.table.FromModel(name); !ok || back != canonical {
		return ""
	}
	return name
}

// mostRivals bounds the others that are named beside one tool.
const mostRivals = 16

// rivals lists the other tools that claim a name, or the local name of its owner.
func (ns *namespace) rivals(name string, owner Owner) []Owner {
	contested := []string{owner.Local}
	if name != owner.Local {
		contested = []string{name, owner.Local}
	}
	var out []Owner
	for _, n := range contested {
		for _, o := range ns.collisions[n].Candidates { // order-free: a list, in its order
			if o != owner && len(out) < mostRivals && (n == name || !slices.Contains(out, o)) {
				out = append(out, o)
			}
		}
	}
	return out
}
