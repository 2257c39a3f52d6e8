package names

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func tableOf(policy, separator string, in []PeerTools) *Table {
	t := NewTable(policy, separator)
	for _, l := range in {
		t.Set(l.Peer, l.Tools)
	}
	return t
}

func (t *Table) merged() Merged {
	return Merged{Bindings: t.Bindings(), Collisions: t.Collisions(), Digest: t.FlatDigest()}
}

func TestTableByPolicy(t *testing.T) {
	for _, c := range mergeCases {
		t.Run(c.name, func(t *testing.T) {
			byPeer := map[string][]string{}
			for _, l := range lists(c.lists) {
				byPeer[l.Peer] = append(byPeer[l.Peer], l.Tools...)
			}
			if got := tableOf(c.policy, c.separator, listsOf(byPeer)).merged().words(); got != c.want {
				t.Errorf("the table has %q, want %q", got, c.want)
			}
		})
	}
}

func listsOf(byPeer map[string][]string) []PeerTools {
	var out []PeerTools
	for _, name := range slices.Sorted(maps.Keys(byPeer)) {
		out = append(out, PeerTools{Peer: name, Tools: byPeer[name]})
	}
	return out
}

// Names that meet each other's prefixed forms in many ways, with every
// separator of the tests.
var (
	meetingPeers = []string{"", "a", "B", "b", "a/b", "a__b", "b__c", "a.b", "a_"}
	meetingTools = []string{"", "x", "X", "c", "a", "b/c", "b__c", "b.c", "/x", "__x", "b/x", "b__x", "a/x", "a__x", "a/b/c",
		"a__b__c", "a/b/x", "b/x/", "x__y", "_x", "ax", "bx", "m", "rn"}
	separators = []string{"/", "__", "", ".", "_"}
)

// draw returns some of the names that meet, in any order, some more than once.
func draw(r *rand.Rand) []string {
	var out []string
	for range r.IntN(10) {
		out = append(out, meetingTools[r.IntN(len(meetingTools))])
	}
	return out
}

// snapshot is what a name means: what Lookup and Collision say of it.
type snapshot map[string]any

type meaning struct {
	owner     Owner
	bound     bool
	collision string
}

func (m Merged) snapshot() snapshot {
	out := snapshot{}
	for _, c := range m.Collisions {
		out[c.Name] = meaning{collision: Merged{Collisions: []Collision{c}}.words()}
	}
	for _, b := range m.Bindings {
		x, _ := out[b.Canonical].(meaning)
		x.owner, x.bound = b.Owner, true
		out[b.Canonical] = x
	}
	return out
}

// history drives a table through random sets, next to the lists that Merge is
// asked about.
type history struct {
	t                 *testing.T
	policy, separator string
	table             *Table
	lists             map[string][]string
	settled           snapshot        // at the last Settle
	near              map[string]bool // what the changes since can reach
}

func newHistory(t *testing.T, policy, separator string) *history {
	return &history{t: t, policy: policy, separator: separator, table: NewTable(policy, separator),
		lists: map[string][]string{}, settled: snapshot{}, near: map[string]bool{}}
}

func (h *history) merge() Merged { return Merge(h.policy, h.separator, listsOf(h.lists)) }

func (h *history) set(name string, locals []string) {
	for _, local := range append(slices.Clone(locals), h.lists[name]...) {
		if slices.Contains(locals, local) && slices.Contains(h.lists[name], local) {
			continue
		}
		h.near[local], h.near[name+h.separator+local] = true, true
		for other, theirs := range h.lists {
			if slices.Contains(theirs, local) {
				h.near[other+h.separator+local] = true
			}
		}
	}
	given := slices.Clone(locals)
	h.table.Set(name, given)
	if !slices.Equal(given, locals) {
		h.t.Fatalf("Set changed the list it was given: %q, was %q", given, locals)
	}
	if h.lists[name] = locals; len(locals) == 0 {
		delete(h.lists, name)
	}
}

func (h *history) settle() {
	h.table.Settle()
	h.settled, h.near = h.merge().snapshot(), map[string]bool{}
}

func (h *history) check() {
	h.t.Helper()
	want := h.merge()
	if got := h.table.merged(); !reflect.DeepEqual(got, want) {
		h.t.Fatalf("%s, %q: the table has %q, Merge %q; lists %q", h.policy, h.separator, got.words(), want.words(), h.lists)
	}
	if got, plain := h.table.Digest(), plainDigest(want); got != plain {
		h.t.Fatalf("%s, %q: digest %s, want %s; lists %q", h.policy, h.separator, got, plain, h.lists)
	}
	if h.table.Len() != len(want.Bindings) {
		h.t.Fatalf("Len is %d of %d bindings", h.table.Len(), len(want.Bindings))
	}
	now := want.snapshot()
	h.checkNames(now)
	h.checkOwners(want)
	h.checkTouched(now)
}

// checkNames asks for every name that could mean something.
func (h *history) checkNames(now snapshot) {
	h.t.Helper()
	names := slices.Concat(meetingTools, slices.Collect(maps.Keys(now)), slices.Collect(maps.Keys(h.settled)), []string{"nobody's"})
	for _, name := range names {
		var got meaning
		got.owner, got.bound = h.table.Lookup(name)
		if c, ok := h.table.Collision(name); ok {
			got.collision = Merged{Collisions: []Collision{c}}.words()
		}
		want, _ := now[name].(meaning)
		if got != want {
			h.t.Fatalf("%s, %q: %q is %+v, want %+v; lists %q", h.policy, h.separator, name, got, want, h.lists)
		}
	}
}

// checkOwners asks for the name of every tool, also of those that are not there.
func (h *history) checkOwners(m Merged) {
	h.t.Helper()
	want := map[Owner]string{}
	for _, b := range m.Bindings {
		want[b.Owner] = b.Canonical
	}
	for _, name := range meetingPeers {
		for _, local := range meetingTools {
			o := Owner{name, local}
			canonical, bound := want[o]
			if got, ok := h.table.Canonical(o); got != canonical || ok != bound {
				h.t.Fatalf("%s, %q: %v is routable under %q (%t), want %q; lists %q", h.policy, h.separator, o, got, ok, canonical, h.lists)
			}
		}
	}
}

// checkTouched holds Touched to two namespaces from below, and to the reach of
// the changes from above.
func (h *history) checkTouched(now snapshot) {
	h.t.Helper()
	touched := h.table.Touched()
	if !slices.IsSorted(touched) || len(slices.Compact(slices.Clone(touched))) != len(touched) {
		h.t.Fatalf("touched names are not sorted, or not each once: %q", touched)
	}
	for name := range maps.Keys(now) {
		if now[name] != h.settled[name] && !slices.Contains(touched, name) {
			h.t.Fatalf("%s, %q: %q was %v and is %v, but touched is %q", h.policy, h.separator, name, h.settled[name], now[name], touched)
		}
	}
	for name := range h.settled {
		if now[name] == nil && !slices.Contains(touched, name) {
			h.t.Fatalf("%s, %q: %q is gone, but touched is %q", h.policy, h.separator, name, touched)
		}
	}
	for _, name := range touched {
		if !h.near[name] {
			h.t.Fatalf("%s, %q: %q is touched, but no change could reach it; lists %q", h.policy, h.separator, name, h.lists)
		}
	}
}

// checkEmpty: a table that was emptied keeps nothing of what it held.
func (h *history) checkEmpty() {
	h.t.Helper()
	for name := range maps.Clone(h.lists) {
		h.set(name, nil)
	}
	h.check()
	h.settle()
	left := len(h.table.peers) + len(h.table.nodes) + len(h.table.contested) + len(h.table.touched) + len(h.table.dirty) +
		len(h.table.looks.one) + len(h.table.looks.more) + len(h.table.models.one) + len(h.table.models.more)
	for _, bucket := range h.table.sums.buckets {
		left += len(bucket)
	}
	if left != 0 || h.table.Len() != 0 || h.table.Digest() != NewTable("", "").Digest() {
		h.t.Fatalf("%s, %q: %d things are left in an empty table: %+v", h.policy, h.separator, left, h.table)
	}
}

// TestTableIsMergeWhateverItsHistory walks random histories and asks
// everything after each step.
func TestTableIsMergeWhateverItsHistory(t *testing.T) {
	r := seeded(t, 4)
	for i := range 1000 {
		h := newHistory(t, policies[i%len(policies)], separators[i/len(policies)%len(separators)])
		h.table.digits = 1 + r.IntN(2)
		for range 2 + r.IntN(12) {
			h.set(meetingPeers[r.IntN(len(meetingPeers))], draw(r))
			if r.IntN(3) == 0 {
				h.check()
			}
			if r.IntN(4) == 0 {
				h.settle()
			}
		}
		h.check()
		h.checkModels()
		h.checkAlike()
		again := tableOf(h.policy, h.separator, shuffled(r, listsOf(h.lists)))
		if again.merged().words() != h.table.merged().words() || again.Digest() != h.table.Digest() {
			t.Fatalf("%s, %q: another history leads to another table; lists %q", h.policy, h.separator, h.lists)
		}
		h.checkEmpty()
	}
}

func TestUnknownPolicyLeavesOut(t *testing.T) {
	in := lists("b: x; a: x")
	if got, want := tableOf("", "/", in).merged(), Merge("", "/", in); !reflect.DeepEqual(got, want) || got.words() != "x=a:x x!*a:x,b:x" {
		t.Errorf("the table has %q, Merge %q", got.words(), want.words())
	}
}

func TestTouched(t *testing.T) {
	for _, c := range []struct{ name, policy, before, peer, after, want string }{
		{"a change that meets nobody touches its own names", PrefixOnCollision, "a: x y; b: z w", "b", "z v", "v w"},
		{"the same list touches nothing", PrefixOnCollision, "a: x y; b: x", "a", "y x y", ""},
		{"one more candidate", PrefixOnCollision, "a: x; b: x; d: q", "c", "x", "c/x x"},
		{"the winner leaves and the next one loses its prefix", PrefixOnCollision, "a: x; b: x; c: x", "a", "", "b/x x"},
		{"a peer that sorts first takes the name", PrefixOnCollision, "b: x; c: x y", "a", "x", "b/x x"},
		{"left out", RejectOnCollision, "a: x; b: y", "b", "x y", "x"},
		{"always prefixed", PrefixAlways, "a: x; b: x", "c", "x", "c/x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := tableOf(c.policy, "/", lists(c.before))
			table.Settle()
			if got := table.Touched(); len(got) != 0 {
				t.Fatalf("touched right after Settle: %q", got)
			}
			table.Set(c.peer, strings.Fields(c.after))
			if got := strings.Join(table.Touched(), " "); got != c.want {
				t.Errorf("touched %q, want %q", got, c.want)
			}
		})
	}
}

func TestAnswersAreTheCallers(t *testing.T) {
	table := tableOf(PrefixOnCollision, "/", lists("a: x; b: x; c: x"))
	c, _ := table.Collision("x")
	c.Candidates[0], *c.Winner = Owner{}, Owner{}
	for _, c := range table.Collisions() {
		c.Candidates[0], *c.Winner = Owner{}, Owner{}
	}
	table.Bindings()[0].Owner = Owner{}
	if got, want := table.merged().words(), "b/x=b:x c/x=c:x x=a:x x!*a:x,b:x,c:x"; got != want {
		t.Errorf("the table has %q after its answers were written to, want %q", got, want)
	}
}
