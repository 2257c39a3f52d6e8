package names

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
)

// peer is where tools come from. Its locals are sorted, each once.
type peer struct {
	name   string
	locals []string
}

// node is a name that tools lay claim to. Each tool claims one name at most:
// its own, if it is the first of those that share it, or its prefixed form.
// Nothing of a node depends on the order in which the claims came.
type node struct {
	name     string
	hash     uint64  // the first 64 bits of SHA-256 of name
	bare     []*peer // who offers name as a local name, sorted; the first claims it
	prefixed []claim // whose prefixed form is name; sorted as owners are
	// What the indexes of the table say of this node. They follow at the end of
	// a Set.
	live, bound, contested, dirty, touched bool
}

// claim is an owner's claim to its prefixed form.
type claim struct {
	peer  *peer
	local string
}

func (c claim) owner() Owner { return Owner{Peer: c.peer.name, Local: c.local} }

func newNode(name string) *node {
	sum := sha256.Sum256([]byte(name))
	return &node{name: name, hash: binary.BigEndian.Uint64(sum[:])}
}

// claims counts the tools that claim the name itself.
func (n *node) claims() int { return len(n.prefixed) + min(len(n.bare), 1) }

func (n *node) owner() (Owner, bool) {
	switch {
	case n.claims() != 1:
		return Owner{}, false
	case len(n.bare) > 0:
		return Owner{Peer: n.bare[0].name, Local: n.name}, true
	}
	return n.prefixed[0].owner(), true
}

func (n *node) isContested() bool { return n.claims() > 1 || len(n.bare) > 1 }

// collision is the record of a contested node. Of a name that is claimed once
// and offered often the claimant is the winner; a name that is claimed more
// than once has none, and its record holds all who offer it too.
func (n *node) collision() Collision {
	c := Collision{Name: n.name, Candidates: make([]Owner, 0, len(n.bare)+len(n.prefixed))}
	for _, p := range n.bare {
		c.Candidates = append(c.Candidates, Owner{Peer: p.name, Local: n.name})
	}
	for _, x := range n.prefixed {
		c.Candidates = append(c.Candidates, x.owner())
	}
	if n.claims() == 1 {
		winner := c.Candidates[0]
		c.Winner = &winner
		return c
	}
	slices.SortFunc(c.Candidates, compareOwners)
	return c
}

func comparePeer(p *peer, name string) int { return strings.Compare(p.name, name) }

func compareClaim(c claim, o Owner) int { return compareOwners(c.owner(), o) }

func compareNode(n *node, name string) int { return strings.Compare(n.name, name) }

// insert puts x where key belongs in a sorted list and says where that is.
func insert[T, K any](list []T, x T, key K, compare func(T, K) int) ([]T, int) {
	i, _ := slices.BinarySearchFunc(list, key, compare)
	return slices.Insert(list, i, x), i
}

// index finds nodes by a number made of their names. Most numbers belong to one
// node, which costs no more than an entry of a map; adding and removing cost
// the same however many share a number.
type index struct {
	one  map[uint64]*node
	more map[uint64]map[*node]struct{}
}

func newIndex() index {
	return index{one: map[uint64]*node{}, more: map[uint64]map[*node]struct{}{}}
}

func (x index) add(key uint64, n *node) {
	if x.one[key] == nil {
		x.one[key] = n
		return
	}
	if x.more[key] == nil {
		x.more[key] = map[*node]struct{}{}
	}
	x.more[key][n] = struct{}{}
}

func (x index) remove(key uint64, n *node) {
	if x.one[key] == n {
		delete(x.one, key)
		return
	}
	delete(x.more[key], n)
	if len(x.more[key]) == 0 {
		delete(x.more, key)
	}
}

// at returns the names of the nodes of a number, sorted.
func (x index) at(key uint64) []string {
	var out []string
	if n := x.one[key]; n != nil {
		out = append(out, n.name)
	}
	for n := range x.more[key] { // order-free: sorted below
		out = append(out, n.name)
	}
	slices.SortFunc(out, cmp.Compare)
	return out
}
