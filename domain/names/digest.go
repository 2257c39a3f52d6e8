package names

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
)

// bucketBits is how much of a name's hash chooses its bucket. With more buckets
// the run over their sums costs more, with fewer the run over the names that
// share one with a change does. At 20,000 names 1,024 is near the best.
const (
	bucketBits = 10
	buckets    = 1 << bucketBits
)

// sums keeps the digest of each bucket of names.
type sums struct {
	buckets [][]*node // the live nodes, sorted by name
	sums    []byte    // SHA-256 of each bucket, one after the other
	stale   []uint16  // buckets whose sum does not hold any more
	isStale []bool
	all     string // of sums; "" where it is not known
}

func newSums() sums {
	s := sums{buckets: make([][]*node, buckets), isStale: make([]bool, buckets)}
	empty := sha256.Sum256(appendBucket(nil, nil))
	s.sums = bytes.Repeat(empty[:], buckets)
	return s
}

// keep puts a node that changed in its bucket, or takes it out.
func (s *sums) keep(n *node, live bool) {
	i := uint16(n.hash >> (64 - bucketBits))
	if live && !n.live {
		s.buckets[i], _ = insert(s.buckets[i], n, n.name, compareNode)
	}
	if !live && n.live {
		at, _ := slices.BinarySearchFunc(s.buckets[i], n.name, compareNode)
		s.buckets[i] = slices.Delete(s.buckets[i], at, at+1)
	}
	if !s.isStale[i] {
		s.isStale[i] = true
		s.stale = append(s.stale, i)
	}
}

func (s *sums) refresh() {
	var b []byte
	for _, i := range s.stale {
		s.all = ""
		b = appendBucket(b[:0], s.buckets[i])
		sum := sha256.Sum256(b)
		copy(s.sums[int(i)*len(sum):], sum[:])
		s.isStale[i] = false
	}
	s.stale = s.stale[:0]
}

// appendBucket writes the content of a bucket as Digest has it.
func appendBucket(b []byte, bucket []*node) []byte {
	bound := 0
	for _, n := range bucket {
		if n.bound {
			bound++
		}
	}
	b = appendField(b, strconv.Itoa(bound))
	for _, n := range bucket {
		if o, ok := n.owner(); ok {
			b = appendBinding(b, Binding{n.name, o})
		}
	}
	for _, n := range bucket {
		if !n.bound {
			b = appendField(b, n.name)
		}
	}
	return b
}

// Digest returns a digest of the bindings and the unroutable names, as
// FlatDigest does, but costs in proportion to what changed since it was last
// called (and a run over 32 KiB).
//
// To make it from the content alone: a field is a string of bytes with its
// length before it, as four bytes, the most significant first. There are 1,024
// buckets; a name is in the bucket whose number is the first ten bits, the most
// significant first, of SHA-256 of the name. The content of a bucket is these
// fields, one after the other: the number of its bindings in decimal; for each
// binding, sorted by canonical name in byte order, the canonical name, the peer
// and the local name; then each unroutable name of the bucket (a collision
// without a winner), sorted in byte order. An empty bucket has the content of
// the one field "0". The digest is SHA-256, in lower-case hex, of the SHA-256
// sums (32 bytes each) of the contents of buckets 0 to 1,023 in this order.
func (t *Table) Digest() string {
	t.sums.refresh()
	if t.sums.all == "" {
		sum := sha256.Sum256(t.sums.sums)
		t.sums.all = hex.EncodeToString(sum[:])
	}
	return t.sums.all
}

// FlatDigest returns the Digest that Merge gives the same lists. It costs in
// proportion to the table.
func (t *Table) FlatDigest() string { return flatDigest(t.Bindings(), t.Collisions()) }
