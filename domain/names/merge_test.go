package names

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// words renders a namespace: "name=peer:local" for what is routable, then
// "name!peer:local,..." for each collision, with * before the winner.
func (m Merged) words() string {
	var out []string
	for _, b := range m.Bindings {
		out = append(out, b.Canonical+"="+b.Owner.Peer+":"+b.Owner.Local)
	}
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

// lists reads "peer: tool tool; peer: tool".
func lists(s string) []PeerTools {
	var out []PeerTools
	for _, part := range strings.Split(s, ";") {
		name, tools, _ := strings.Cut(strings.TrimSpace(part), ":")
		out = append(out, PeerTools{Peer: name, Tools: strings.Fields(tools)})
	}
	return out
}

var mergeCases = []struct{ name, policy, separator, lists, want string }{
	{"nothing", PrefixOnCollision, "/", "", ""},
	{"no collision", PrefixOnCollision, "/", "a: x; b: y", "x=a:x y=b:y"},
	{"the first in sort order keeps the bare name", PrefixOnCollision, "/", "b: x; a: x", "b/x=b:x x=a:x x!*a:x,b:x"},
	{"byte order, not letter case", PrefixOnCollision, "/", "a: x; B: x", "a/x=a:x x=B:x x!*B:x,a:x"},
	{"three peers", PrefixOnCollision, "/", "c: x; a: x; b: x", "b/x=b:x c/x=c:x x=a:x x!*a:x,b:x,c:x"},
	{"another separator", PrefixOnCollision, "__", "a: x; b: x", "b__x=b:x x=a:x x!*a:x,b:x"},
	{"a bare name that looks like a prefixed one", PrefixOnCollision, "/", "a: b/x", "b/x=a:b/x"},
	{"the prefixed form meets a bare name: neither", PrefixOnCollision, "/", "a: x b/x; b: x", "x=a:x b/x!a:b/x,b:x x!*a:x,b:x"},
	{"a name contested twice over has no winner", PrefixOnCollision, "/", "a: d c/d; b: c/d; c: d",
		"b/c/d=b:c/d d=a:d c/d!a:c/d,b:c/d,c:d d!*a:d,c:d"},
	{"two prefixed forms meet", PrefixOnCollision, "__", "a: c b__c; a__b: c; z: b__c; 0: c b__c",
		"a__c=a:c b__c=0:b__c c=0:c z__b__c=z:b__c a__b__c!a:b__c,a__b:c b__c!*0:b__c,a:b__c,z:b__c c!*0:c,a:c,a__b:c"},
	{"one tool listed twice is one tool", PrefixOnCollision, "/", "a: x x; a: x", "x=a:x"},
	{"reject leaves out what sorts second", RejectOnCollision, "/", "b: x y; a: x", "x=a:x y=b:y x!*a:x,b:x"},
	{"always prefixed", PrefixAlways, "/", "b: x; a: x", "a/x=a:x b/x=b:x"},
	{"always prefixed, and they meet", PrefixAlways, "__", "a: b__c; a__b: c", "a__b__c!a:b__c,a__b:c"},
}

func TestMergeByPolicy(t *testing.T) {
	for _, c := range mergeCases {
		t.Run(c.name, func(t *testing.T) {
			if got := Merge(c.policy, c.separator, lists(c.lists)).words(); got != c.want {
				t.Errorf("merged to %q, want %q", got, c.want)
			}
		})
	}
}

// seeded returns a generator whose seed a failed test prints.
func seeded(t *testing.T, seed uint64) *rand.Rand {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("drawn with rand.NewPCG(%d, 0)", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// randomLists draws from few names, so that they meet often.
func randomLists(r *rand.Rand) []PeerTools {
	peers := []string{"a", "b", "c", "a__b", "b__c"}
	tools := []string{"x", "y", "b/x", "b__x", "a/b/x", "c/b/x", "b__c", "c", "x__y", "b__c__x"}
	var out []PeerTools
	for _, p := range peers {
		l := PeerTools{Peer: p}
		for _, t := range tools {
			if r.IntN(3) == 0 {
				l.Tools = append(l.Tools, t)
			}
		}
		out = append(out, l)
	}
	return out
}

var policies = []string{PrefixOnCollision, RejectOnCollision, PrefixAlways}

// checkMerge holds for every namespace, whatever was listed.
func checkMerge(t *testing.T, policy, separator string, in []PeerTools) {
	t.Helper()
	m := Merge(policy, separator, in)
	listed := map[Owner]bool{}
	for _, l := range in {
		for _, tool := range l.Tools {
			listed[Owner{l.Peer, tool}] = true
		}
	}
	names, owners := map[string]Owner{}, map[Owner]bool{}
	for _, b := range m.Bindings {
		if other, taken := names[b.Canonical]; taken {
			t.Errorf("%q has two owners, %v and %v", b.Canonical, other, b.Owner)
		}
		if owners[b.Owner] || !listed[b.Owner] {
			t.Errorf("%v is routable twice, or was never listed", b.Owner)
		}
		if b.Canonical != b.Owner.Local && b.Canonical != b.Owner.Peer+separator+b.Owner.Local {
			t.Errorf("%q is no name of %v", b.Canonical, b.Owner)
		}
		names[b.Canonical], owners[b.Owner] = b.Owner, true
	}
	if !slices.IsSortedFunc(m.Bindings, func(a, b Binding) int { return strings.Compare(a.Canonical, b.Canonical) }) {
		t.Errorf("bindings are not sorted")
	}
	checkCollisions(t, m, names, owners, listed)
}

// checkCollisions: who is not routable is named in a collision, and a winner is
// routable under the name it won.
func checkCollisions(t *testing.T, m Merged, names map[string]Owner, owners, listed map[Owner]bool) {
	t.Helper()
	named, seen := map[Owner]bool{}, map[string]bool{}
	for _, c := range m.Collisions {
		if seen[c.Name] || len(c.Candidates) < 2 {
			t.Errorf("collision %q is recorded twice, or has too few candidates: %v", c.Name, c.Candidates)
		}
		seen[c.Name] = true
		owner, routable := names[c.Name]
		if (c.Winner != nil) != routable || routable && *c.Winner != owner {
			t.Errorf("collision %q: winner %v, owner %v", c.Name, c.Winner, owner)
		}
		for _, o := range c.Candidates {
			named[o] = true
		}
	}
	for o := range listed {
		if !owners[o] && !named[o] {
			t.Errorf("%v vanished without a word", o)
		}
	}
}

func TestMergeIsInjectiveAndForgetsNobody(t *testing.T) {
	r := seeded(t, 1)
	for range 2000 {
		in := randomLists(r)
		for _, policy := range policies {
			checkMerge(t, policy, "/", in)
			checkMerge(t, policy, "__", in)
		}
	}
}

// shuffled returns lists in another order, and their tools too.
func shuffled(r *rand.Rand, in []PeerTools) []PeerTools {
	out := slices.Clone(in)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	for i := range out {
		tools := slices.Clone(out[i].Tools)
		r.Shuffle(len(tools), func(a, b int) { tools[a], tools[b] = tools[b], tools[a] })
		out[i].Tools = tools
	}
	return out
}

// TestMergeKnowsNoOrder: neither the order of arrival nor that of tools inside a
// list has a part in it.
func TestMergeKnowsNoOrder(t *testing.T) {
	r := seeded(t, 2)
	for range 1000 {
		in := randomLists(r)
		for _, policy := range policies {
			want, got := Merge(policy, "__", in), Merge(policy, "__", shuffled(r, in))
			if got.words() != want.words() || got.Digest != want.Digest {
				t.Fatalf("%s: %s, in another order %s", policy, want.words(), got.words())
			}
		}
	}
}

// content is what a digest stands for: the bindings and the unroutable names.
func (m Merged) content() string {
	var words []string
	for _, b := range m.Bindings {
		words = append(words, fmt.Sprint(b))
	}
	for _, c := range m.Collisions {
		if c.Winner == nil {
			words = append(words, c.Name)
		}
	}
	return strings.Join(words, " ")
}

// TestDigestTellsNamespacesApart: another owner or another unroutable name is
// another digest, of either kind.
func TestDigestTellsNamespacesApart(t *testing.T) {
	r, flat, wide := seeded(t, 3), map[string]string{}, map[string]string{}
	for range 3000 {
		in := randomLists(r)
		m := Merge(PrefixOnCollision, "__", in)
		for digest, seen := range map[string]map[string]string{
			m.Digest: flat, tableOf(PrefixOnCollision, "__", in).Digest(): wide} {
			if other, ok := seen[digest]; ok && other != m.content() {
				t.Fatalf("one digest for %q and %q", m.content(), other)
			}
			seen[digest] = m.content()
		}
	}
	if len(flat) != len(wide) {
		t.Errorf("%d flat digests, %d of buckets", len(flat), len(wide))
	}
}

// TestLogsFormStaysAsItIs: logs hold these digests, and owners in this form.
func TestLogsFormStaysAsItIs(t *testing.T) {
	for _, c := range []struct{ policy, separator, lists, want string }{
		{PrefixOnCollision, "/", "", "ab544d1a0652d5ad27ca580b150b4126ca4e733685973a05b0c0521f22b22677"},
		{PrefixOnCollision, "/", "a: x b/x; b: x y", "cb433cb76db72ec704cce71b2bf33a9a87682b67c33dd0a762f8a32a14896622"},
		{PrefixOnCollision, "__", "a: c b__c; a__b: c; z: b__c; 0: c b__c", "0d5c74ea1a0f10d0192c1484ac9670668a7b907b6f717378b03385a67482387e"},
		{RejectOnCollision, "/", "b: x y; a: x", "07006846ef337539514c455d64afe563324a00deef0398a819b97bf3c5cbb499"},
		{PrefixAlways, "__", "a: b__c d; a__b: c", "b7ab6d1956313175c734506224c71349b82b91b67a619f1274cd6c6a29692ad9"},
	} {
		if got := Merge(c.policy, c.separator, lists(c.lists)).Digest; got != c.want {
			t.Errorf("%s of %q has digest %s, was %s", c.policy, c.lists, got, c.want)
		}
	}
	if got, err := json.Marshal(Owner{Peer: "a", Local: "x"}); err != nil || string(got) != `{"peer":"a","local":"x"}` {
		t.Errorf("an owner is written %s (%v)", got, err)
	}
}
