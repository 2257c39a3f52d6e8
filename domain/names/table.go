package names

import (
	"maps"
	"slices"
	"strings"
)

// Table is a namespace that changes peer by peer. Its content is what Merge
// makes of the same lists under the same policy and separator, whatever was set
// before and in whatever order. It has its own copies of all names.
//
// One goroutine at a time may use it. Methods that only look (Lookup,
// Collision, Canonical, FromModel, Alike, Len) may run at once while no other
// method does.
type Table struct {
	policy, separator string
	peers             map[string]*peer
	nodes             map[string]*node
	contested         map[string]*node
	bound             int
	dirty             []*node // changed by the Set under way
	touched           []*node // changed since the last Settle; some are gone from nodes
	sums              sums
	digits            int   // of the hash in a model form
	models            index // bound names that have a hashed model form
	looks             index // all bound names, by skeleton
}

// NewTable returns an empty table. A policy that is none of the three is taken
// for RejectOnCollision, as Merge does.
func NewTable(policy, separator string) *Table {
	return &Table{policy: policy, separator: separator, peers: map[string]*peer{}, nodes: map[string]*node{},
		contested: map[string]*node{}, sums: newSums(), digits: modelDigits, models: newIndex(), looks: newIndex()}
}

// Set replaces the local names of a peer; none removes the peer. Names may come
// in any order, and more than once. It costs in proportion to this peer's lists
// before and after, the names they share with other peers included; what others
// offer besides has no part in it.
func (t *Table) Set(peerName string, locals []string) {
	p := t.peers[peerName]
	if p == nil {
		p = &peer{name: strings.Clone(peerName)}
	}
	before, after := p.locals, slices.Compact(slices.Sorted(slices.Values(locals)))
	p.locals = make([]string, 0, len(after))
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && before[0] < after[0]:
			t.drop(p, before[0])
			before = before[1:]
		case len(before) == 0 || after[0] < before[0]:
			p.locals = append(p.locals, t.offer(p, after[0]))
			after = after[1:]
		default:
			p.locals = append(p.locals, before[0])
			before, after = before[1:], after[1:]
		}
	}
	if t.peers[p.name] = p; len(p.locals) == 0 {
		delete(t.peers, p.name)
	}
	t.follow()
}

// offer adds a tool. It returns the local name in bytes of the table's own.
func (t *Table) offer(p *peer, local string) string {
	if t.policy == PrefixAlways {
		name := t.claim(p, local).name
		return name[len(name)-len(local):]
	}
	n := t.nodes[local]
	if n == nil {
		n = t.node(strings.Clone(local))
	}
	var at int
	n.bare, at = insert(n.bare, p, p.name, comparePeer)
	t.mark(n)
	if t.policy == PrefixOnCollision && len(n.bare) > 1 {
		// A peer that comes first takes the name from the one that was first.
		t.claim(n.bare[max(at, 1)], n.name)
	}
	return n.name
}

// drop takes back what offer did.
func (t *Table) drop(p *peer, local string) {
	if t.policy == PrefixAlways {
		t.unclaim(p, local)
		return
	}
	n := t.nodes[local]
	at, _ := slices.BinarySearchFunc(n.bare, p.name, comparePeer)
	if t.policy == PrefixOnCollision && len(n.bare) > 1 {
		t.unclaim(n.bare[max(at, 1)], local)
	}
	n.bare = slices.Delete(n.bare, at, at+1)
	t.mark(n)
}

func (t *Table) prefixed(o Owner) string { return o.Peer + t.separator + o.Local }

func (t *Table) claim(p *peer, local string) *node {
	n := t.node(t.prefixed(Owner{p.name, local}))
	if t.policy == PrefixAlways {
		local = n.name[len(n.name)-len(local):]
	}
	c := claim{p, local}
	n.prefixed, _ = insert(n.prefixed, c, c.owner(), compareClaim)
	t.mark(n)
	return n
}

func (t *Table) unclaim(p *peer, local string) {
	o := Owner{p.name, local}
	n := t.nodes[t.prefixed(o)]
	at, _ := slices.BinarySearchFunc(n.prefixed, o, compareClaim)
	n.prefixed = slices.Delete(n.prefixed, at, at+1)
	t.mark(n)
}

// node returns the node of a name, a new one if nobody claimed it so far. It
// keeps the bytes of the name.
func (t *Table) node(name string) *node {
	n := t.nodes[name]
	if n == nil {
		n = newNode(name)
		t.nodes[name] = n
	}
	return n
}

func (t *Table) mark(n *node) {
	if !n.dirty {
		n.dirty = true
		t.dirty = append(t.dirty, n)
	}
}

// follow brings the indexes up to date with the nodes that were changed.
func (t *Table) follow() {
	for _, n := range t.dirty {
		n.dirty = false
		if !n.touched {
			n.touched = true
			t.touched = append(t.touched, n)
		}
		live := n.claims() > 0
		t.sums.keep(n, live)
		if n.live = live; !live {
			delete(t.nodes, n.name)
		}
		t.followBound(n)
		if n.contested = n.isContested(); n.contested {
			t.contested[n.name] = n
		} else {
			delete(t.contested, n.name)
		}
	}
	t.dirty = nil
}

func (t *Table) followBound(n *node) {
	_, bound := n.owner()
	if bound == n.bound {
		return
	}
	change := index.remove
	if n.bound = bound; bound {
		change = index.add
		t.bound += 2
	}
	t.bound--
	change(t.looks, skeletonKey(n.name), n)
	if !plain(n.name, t.digits) {
		change(t.models, n.hash>>(64-4*t.digits), n)
	}
}

// Lookup returns the owner of a canonical name. There is none if nobody claims
// the name, or more than one does.
func (t *Table) Lookup(name string) (Owner, bool) {
	if n := t.nodes[name]; n != nil {
		return n.owner()
	}
	return Owner{}, false
}

// Collision returns the record of a contested name, as Merge gives it. Its
// slices are the caller's.
func (t *Table) Collision(name string) (Collision, bool) {
	if n := t.nodes[name]; n != nil && n.contested {
		return n.collision(), true
	}
	return Collision{}, false
}

// Canonical returns the name that a tool is routable under. There is none for a
// tool that is not listed, was left out, or whose name is claimed by others too.
func (t *Table) Canonical(o Owner) (string, bool) {
	for _, name := range [...]string{o.Local, t.prefixed(o)} {
		if owner, ok := t.Lookup(name); ok && owner == o {
			return name, true
		}
	}
	return "", false
}

// Len returns the number of canonical names.
func (t *Table) Len() int { return t.bound }

// Bindings returns all canonical names with their owners, sorted by name. It
// costs in proportion to the table.
func (t *Table) Bindings() []Binding {
	var out []Binding
	for _, bucket := range t.sums.buckets {
		for _, n := range bucket {
			if o, ok := n.owner(); ok {
				out = append(out, Binding{Canonical: n.name, Owner: o})
			}
		}
	}
	slices.SortFunc(out, func(a, b Binding) int { return strings.Compare(a.Canonical, b.Canonical) })
	return out
}

// Collisions returns the records of all contested names, sorted by name. It
// costs in proportion to these records. Their slices are the caller's.
func (t *Table) Collisions() []Collision {
	var out []Collision
	for _, name := range slices.Sorted(maps.Keys(t.contested)) {
		out = append(out, t.contested[name].collision())
	}
	return out
}

// Touched returns, sorted, the names whose owner or collision may differ from
// what they were at the last Settle, or in the empty table if there was none. A
// name that was changed and changed back is among them. What is touched is kept
// until Settle, so a table that lives long needs it now and then.
func (t *Table) Touched() []string {
	out := make([]string, 0, len(t.touched))
	for _, n := range t.touched {
		out = append(out, n.name)
	}
	slices.Sort(out)
	return slices.Compact(out) // a name that went and came back has two nodes here
}

// Settle forgets what was touched.
func (t *Table) Settle() {
	for _, n := range t.touched {
		n.touched = false
	}
	t.touched = nil
}
