package domain

import (
	"math/rand"
	"reflect"
	"slices"
	"strings"

	"waybill/domain/names"
)

func randomLists(r *rand.Rand) []names.PeerTools {
	peers := []string{"a", "b", "c", "a__b", "b__c"}
	tools := []string{"x", "y", "b/x", "b__x", "a/b/x", "c/b/x", "b__c", "c", "x__y", "b__c__x"}
	var out []names.PeerTools
	for _, p := range peers {
		l := names.PeerTools{Peer: p}
		for _, t := range tools {
			if r.Intn(3) == 0 {
				l.Tools = append(l.Tools, t)
			}
		}
		out = append(out, l)
	}
	return out
}

var policies = []string{PrefixOnCollision, RejectOnCollision, PrefixAlways}

// merged is what names are contested.
type merged struct{ Collisions []Collision }

// words renders collisions: "name!peer:local,...", with * before the winner.
func (m merged) words() string {
	var out []string
	for _, c := range m.Collisions {
		var who []string
		for _, o := range c.Candidates {
			mark := ""
			if c.Winner != nil && *c.Winner == o {
				mark = "*"
			}
			who = append(who, mark+o.Peer+":"+o.Local)
		}
		out = append(out, c.Name+"!"+strings.Join(who, ","))
	}
	return strings.Join(out, " ")
}

// sameState reports whether two states decide alike. What a table keeps to answer
// quickly is left out; its content is not.
func sameState(a, b *State) bool {
	for c, x := range a.namespaces { // order-free: every one must be the same
		y := b.namespaces[c]
		if y == nil || x.table.Digest() != y.table.Digest() || x.table.FlatDigest() != y.table.FlatDigest() ||
			!slices.Equal(x.table.Touched(), y.table.Touched()) {
			return false
		}
		defer func(x, y *namespace, xt, yt *names.Table) { x.table, y.table = xt, yt }(x, y, x.table, y.table)
		x.table, y.table = nil, nil
	}
	return reflect.DeepEqual(a, b)
}
