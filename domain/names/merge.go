package names

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// Collision policies. A silent overwrite is none of them.
const (
	PrefixOnCollision = "prefix-on-collision"
	RejectOnCollision = "reject-on-collision"
	PrefixAlways      = "prefix-always"
)

// Owner is a tool as its peer knows it.
type Owner struct {
	Peer  string `json:"peer"`
	Local string `json:"local"`
}

// PeerTools is what Merge needs of one peer's catalog: its local names, each
// once.
type PeerTools struct {
	Peer  string
	Tools []string
}

// Binding gives a canonical name its owner.
type Binding struct {
	Canonical string
	Owner     Owner
}

// Collision is a name that more than one tool laid claim to. Winner is nil
// where nobody is routable under it. Candidates are sorted by local name, then
// by peer.
type Collision struct {
	Name       string
	Candidates []Owner
	Winner     *Owner
}

// Merged is a namespace at one generation: what Merge returns.
type Merged struct {
	Bindings   []Binding   // sorted by canonical name
	Collisions []Collision // sorted by name
	Digest     string      // SHA-256 over bindings and unroutable names
}

// Merge makes one namespace of many catalogs. It is a function of the set of
// (peer, tool) alone: peers sorted by name, tools by name, byte order; arrival
// has no part in it. No name is ever overwritten: of several claims to a bare
// name the first in sort order keeps it and the others are prefixed
// (prefix-on-collision) or left out (reject-on-collision); claims that still
// meet, as a prefixed form with somebody's bare name, are all unroutable
// (seed 2.1.0, rule 6).
func Merge(policy, separator string, lists []PeerTools) Merged {
	owners := sortedOwners(lists)
	var m Merged
	claims := map[string][]Owner{}
	var names []string
	claim := func(name string, o Owner) {
		if claims[name] == nil {
			names = append(names, name)
		}
		claims[name] = append(claims[name], o)
	}
	for i := 0; i < len(owners); {
		j := i
		for j < len(owners) && owners[j].Local == owners[i].Local {
			j++
		}
		m.assign(policy, separator, owners[i:j], claim)
		i = j
	}
	slices.Sort(names)
	for _, name := range names {
		if c := claims[name]; len(c) == 1 {
			m.Bindings = append(m.Bindings, Binding{Canonical: name, Owner: c[0]})
		} else {
			m.Collisions = append(m.Collisions, Collision{Name: name, Candidates: c})
		}
	}
	m.settle()
	return m
}

// assign claims names for the owners of one local name, sorted by peer.
func (m *Merged) assign(policy, separator string, same []Owner, claim func(string, Owner)) {
	local := same[0].Local
	prefixed := func(o Owner) string { return o.Peer + separator + o.Local }
	if policy == PrefixAlways {
		for _, o := range same {
			claim(prefixed(o), o)
		}
		return
	}
	claim(local, same[0])
	if len(same) == 1 {
		return
	}
	winner := same[0]
	m.Collisions = append(m.Collisions, Collision{Name: local, Candidates: slices.Clone(same), Winner: &winner})
	if policy == PrefixOnCollision {
		for _, o := range same[1:] {
			claim(prefixed(o), o)
		}
	}
}

// settle folds collisions of one name into one record (nobody wins a name that
// is contested twice over), sorts them and digests the result.
func (m *Merged) settle() {
	slices.SortStableFunc(m.Collisions, func(a, b Collision) int { return strings.Compare(a.Name, b.Name) })
	var out []Collision
	for _, c := range m.Collisions {
		if n := len(out); n > 0 && out[n-1].Name == c.Name {
			out[n-1].Candidates = union(out[n-1].Candidates, c.Candidates)
			out[n-1].Winner = nil
			continue
		}
		out = append(out, c)
	}
	m.Collisions = out
	m.Digest = flatDigest(m.Bindings, m.Collisions)
}

func union(a, b []Owner) []Owner {
	out := append(slices.Clone(a), b...)
	slices.SortFunc(out, compareOwners)
	return slices.Compact(out)
}

// flatDigest is the digest that the log holds: one run over everything, in
// order.
func flatDigest(bindings []Binding, collisions []Collision) string {
	b := appendField(nil, strconv.Itoa(len(bindings)))
	for _, x := range bindings {
		b = appendBinding(b, x)
	}
	for _, c := range collisions {
		if c.Winner == nil {
			b = appendField(b, c.Name)
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func appendBinding(b []byte, x Binding) []byte {
	b = appendField(b, x.Canonical)
	b = appendField(b, x.Owner.Peer)
	return appendField(b, x.Owner.Local)
}

// appendField appends a string so that no two lists of strings give the same
// bytes.
func appendField(b []byte, s string) []byte {
	n := len(s)
	b = append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	return append(b, s...)
}

// sortedOwners returns every (peer, tool) once, sorted by tool and then by peer.
func sortedOwners(lists []PeerTools) []Owner {
	var out []Owner
	for _, l := range lists {
		for _, t := range l.Tools {
			out = append(out, Owner{Peer: l.Peer, Local: t})
		}
	}
	slices.SortFunc(out, compareOwners)
	return slices.Compact(out)
}

func compareOwners(a, b Owner) int {
	if c := strings.Compare(a.Local, b.Local); c != 0 {
		return c
	}
	return strings.Compare(a.Peer, b.Peer)
}
