package domain

import (
	"maps"
	"slices"

	"waybill/domain/names"
)

// Owner is a tool as its peer knows it.
type Owner = names.Owner

// Collision is a name that more than one tool laid claim to. Winner is nil
// where nobody is routable under it.
type Collision = names.Collision

// namespace is what one authorization context calls by which name: the table in
// force, and beside it the one that the lists would give now. The two differ only
// until the names are merged.
type namespace struct {
	context    string
	generation int64
	seq        int64
	digest     string
	policy     string
	tools      int
	merged     bool // since the configuration in force was loaded
	bindings   map[string]binding
	order      []string // canonical names, sorted
	lastOwner  map[string]Owner
	movedAt    map[string]int64 // wall clock
	collisions map[string]collisionRecord
	contested  []string // names in collisions, sorted
	inputs     map[string]Input

	table   *names.Table        // of the lists as they are
	sources map[string]*Catalog // that it was made from, by peer
	rebuilt bool                // from nothing: whatever is in force may differ
}

type binding struct {
	owner Owner
	since int64 // generation from which on the name has this owner
	seq   int64 // of the namespace.merged that gave it
	time  int64 // of it: wall clock
}

type collisionRecord struct {
	Collision
	policy string
	seq    int64
}

func newNamespace(context string) *namespace {
	return &namespace{context: context, bindings: map[string]binding{}, lastOwner: map[string]Owner{}, movedAt: map[string]int64{},
		collisions: map[string]collisionRecord{}, inputs: map[string]Input{}, sources: map[string]*Catalog{},
		table: names.NewTable(PrefixOnCollision, "/")}
}

// space returns the namespace of a context; nil where none is configured.
func (s *State) space(context string) *namespace {
	if context = contextKey(context); slices.Contains(s.contexts, context) {
		return s.namespaces[context]
	}
	return nil
}

// spaces returns the namespaces of the configuration in force, by context.
func (s *State) spaces() []*namespace {
	out := make([]*namespace, 0, len(s.contexts))
	for _, c := range s.contexts {
		out = append(out, s.namespaces[c])
	}
	return out
}

// chart makes the tables anew, for the contexts of a configuration that was just
// loaded.
func (s *State) chart() {
	found := map[string]bool{DefaultContext: true}
	for _, name := range s.names {
		for _, c := range s.peers[name].Config.contexts() {
			found[c] = true
		}
	}
	s.contexts = slices.Sorted(maps.Keys(found))
	for _, c := range s.contexts {
		ns := s.namespaces[c]
		if ns == nil {
			ns = newNamespace(c)
			s.namespaces[c] = ns
		}
		ns.merged, ns.rebuilt = false, true
		ns.table, ns.sources = names.NewTable(s.Config.Collision, s.Config.Separator), map[string]*Catalog{}
		for _, name := range s.names {
			ns.take(s.peers[name])
		}
	}
}

// retable brings a peer's lists into every table that they are served in. It costs
// in proportion to that peer.
func (s *State) retable(p *Peer) {
	for _, ns := range s.spaces() {
		ns.take(p)
	}
}

func (ns *namespace) take(p *Peer) {
	c, _ := p.catalogFor(ns.context)
	if ns.sources[p.Name] == c {
		return
	}
	before := ns.sources[p.Name]
	if ns.sources[p.Name] = c; c == nil {
		delete(ns.sources, p.Name)
	}
	if before == nil || c == nil || before.Digest != c.Digest {
		ns.table.Set(p.Name, c.locals())
	}
}

func (c *Catalog) locals() []string {
	if c == nil {
		return nil
	}
	return c.Locals()
}

// touched lists the names that may be another's than is in force, sorted.
func (ns *namespace) touched() []string {
	list := ns.table.Touched()
	if !ns.rebuilt {
		return list
	}
	all := map[string]bool{}
	for _, name := range list { // order-free: a set
		all[name] = true
	}
	for name := range ns.bindings { // order-free: a set
		all[name] = true
	}
	for _, name := range ns.contested {
		all[name] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// lists names the lists that the table is made from, sorted by peer: those that
// changed since they were named last, or all of them.
func (ns *namespace) lists(all bool) []Input {
	out := []Input{}
	for _, peer := range slices.Sorted(maps.Keys(ns.sources)) {
		c := ns.sources[peer]
		in := Input{Peer: peer, Seq: c.Seq, Digest: c.Digest}
		if all || ns.inputs[peer].Digest != in.Digest {
			out = append(out, in)
		}
	}
	return out
}
