package names

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"testing"
)

// plainDigest makes Table.Digest again as its comment says, from sorted content.
func plainDigest(m Merged) string {
	field := func(s string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + s
	}
	bucket := func(name string) int {
		sum := sha256.Sum256([]byte(name))
		return int(binary.BigEndian.Uint16(sum[:2])) / 64
	}
	var count [1024]int
	var bound, unroutable [1024]string
	for _, b := range m.Bindings {
		i := bucket(b.Canonical)
		count[i]++
		bound[i] += field(b.Canonical) + field(b.Owner.Peer) + field(b.Owner.Local)
	}
	for _, c := range m.Collisions {
		if c.Winner == nil {
			unroutable[bucket(c.Name)] += field(c.Name)
		}
	}
	all := sha256.New()
	for i := range count {
		sum := sha256.Sum256([]byte(field(strconv.Itoa(count[i])) + bound[i] + unroutable[i]))
		all.Write(sum[:])
	}
	return fmt.Sprintf("%x", all.Sum(nil))
}

// TestDigestAsOthersMakeIt: the values are of a program in another language,
// written from the comment of Digest.
func TestDigestAsOthersMakeIt(t *testing.T) {
	for _, c := range []struct{ policy, separator, lists, want string }{
		{PrefixOnCollision, "/", "", "4c4ecd67dd68da14096549438420011ed5ed6a04a2c431a80237a5ecae28de8e"},
		{PrefixOnCollision, "/", "a: x b/x; b: x y", "6623f0c849a910349f82cf6eb38c1f2eef790b8333cc9843bf14db9a04c8e95c"},
		{PrefixOnCollision, "__", "a: c b__c; a__b: c; z: b__c; 0: c b__c", "40d28b9e3e45b83f8f74860d6fc8fa1bde052d2a90bf07db3601310c152c279d"},
	} {
		if got := tableOf(c.policy, c.separator, lists(c.lists)).Digest(); got != c.want {
			t.Errorf("%q has digest %s, want %s", c.lists, got, c.want)
		}
	}
}

// TestDigestOfManyNames has some twenty names in each bucket, and changes a few.
func TestDigestOfManyNames(t *testing.T) {
	for _, policy := range policies {
		in := realistic(200, 100)
		table := tableOf(policy, "/", in)
		for step := range 5 {
			m := Merge(policy, "/", in)
			if got, want := table.Digest(), plainDigest(m); got != want || table.FlatDigest() != m.Digest {
				t.Fatalf("%s, step %d: digest %s, want %s; flat %s, want %s", policy, step, got, want, table.FlatDigest(), m.Digest)
			}
			changed := &in[step*40]
			changed.Tools = append(changed.Tools[step*20:], fmt.Sprintf("new_%d", step))
			table.Set(changed.Peer, changed.Tools)
		}
	}
}

// TestDigestRunsOverWhatChanged: one changed name leaves all buckets but its own
// as they are.
func TestDigestRunsOverWhatChanged(t *testing.T) {
	table := tableOf(PrefixOnCollision, "/", realistic(20, 100))
	before := table.Digest()
	if len(table.sums.stale) != 0 {
		t.Fatalf("%d buckets are stale after Digest", len(table.sums.stale))
	}
	table.Set("newcomer", []string{"alone"})
	if len(table.sums.stale) != 1 {
		t.Errorf("%d buckets are stale after one name came", len(table.sums.stale))
	}
	with := table.Digest()
	if table.Set("newcomer", nil); with == before || table.Digest() != before {
		t.Errorf("digests %s, with a name more %s, without it %s", before, with, table.Digest())
	}
}
