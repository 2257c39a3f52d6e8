package store

import (
	"crypto/sha256"

	"golang.org/x/mod/sumdb/tlog"
)

const (
	tileHeight = 8
	tileWidth  = 1 << tileHeight
	tileBytes  = tileWidth * tlog.HashSize
)

// A tile is 256 hashes that stand side by side in the tree, complete for ever.
type tile struct {
	level  int   // in units of eight levels of the tree: 0 holds leaf hashes
	index  int64 // counted from the left
	hashes []byte
}

// A tree is the right edge of a Merkle tree: all that is needed to make it grow
// and to know its root, in space that depends on the logarithm of its size.
type tree struct {
	size int64

	// edge holds the roots of the perfect subtrees that make up the tree, the
	// largest, which is the leftmost, first: one for each bit set in size.
	edge []tlog.Hash

	// tiles holds, for each tile level, the hashes of the tile that is not
	// complete yet. A backing array is written past the end that an older copy
	// of the tree knows, and never before it.
	tiles [][]byte
}

// fork returns a copy that can grow while t stays what it is. Growing two
// copies of one tree at the same time is not safe.
func (t *tree) fork() tree {
	return tree{
		size:  t.size,
		edge:  append(make([]tlog.Hash, 0, len(t.edge)+tileHeight), t.edge...),
		tiles: append(make([][]byte, 0, len(t.tiles)+1), t.tiles...),
	}
}

// grow adds one leaf and appends the tiles which that completes to done.
func (t *tree) grow(leaf tlog.Hash, done []tile) []tile {
	h, level := leaf, 0
	done = t.place(level, h, done)
	for n := t.size; n&1 == 1; n >>= 1 {
		h = tlog.NodeHash(t.pop(), h)
		level++
		if level%tileHeight == 0 {
			done = t.place(level/tileHeight, h, done)
		}
	}
	t.edge = append(t.edge, h)
	t.size++
	return done
}

func (t *tree) pop() tlog.Hash {
	last := len(t.edge) - 1
	h := t.edge[last]
	t.edge = t.edge[:last]
	return h
}

// place adds a hash to the open tile of a level; a tile that this fills is
// appended to done.
func (t *tree) place(level int, h tlog.Hash, done []tile) []tile {
	if level == len(t.tiles) {
		t.tiles = append(t.tiles, nil)
	}
	if t.tiles[level] == nil {
		t.tiles[level] = make([]byte, 0, tileBytes)
	}
	t.tiles[level] = append(t.tiles[level], h[:]...)
	if len(t.tiles[level]) < tileBytes {
		return done
	}
	index := t.size >> (tileHeight * (level + 1))
	done = append(done, tile{level: level, index: index, hashes: t.tiles[level]})
	t.tiles[level] = nil
	return done
}

// root returns the RFC 6962 root of the whole tree.
func (t *tree) root() tlog.Hash {
	return fold(t.edge)
}

// fold joins the perfect subtrees of a tree, the largest first, into its root.
func fold(edge []tlog.Hash) tlog.Hash {
	if len(edge) == 0 {
		return sha256.Sum256(nil)
	}
	h := edge[len(edge)-1]
	for i := len(edge) - 2; i >= 0; i-- {
		h = tlog.NodeHash(edge[i], h)
	}
	return h
}

// pending returns how many hashes the open tile of a level has in a tree of the
// given size, and where in that level they begin.
func pending(size int64, level int) (from, count int64) {
	n := size >> (tileHeight * level)
	count = n % tileWidth
	return n - count, count
}

// restore adds the open tile of one level to a tree that has those of all
// higher levels already. Its hashes merge as leaves do, but never reach the
// next level, because they are fewer than a tile.
func (t *tree) restore(level int, hashes []tlog.Hash) {
	open := make([]byte, 0, tileBytes)
	for i, h := range hashes {
		open = append(open, h[:]...)
		t.edge = merge(t.edge, int64(i), h)
	}
	t.tiles[level] = open
	t.size += int64(len(hashes)) << (tileHeight * level)
}

// merge adds the n-th of a run of hashes that stand side by side to the edge
// over those before it.
func merge(edge []tlog.Hash, n int64, h tlog.Hash) []tlog.Hash {
	for ; n&1 == 1; n >>= 1 {
		last := len(edge) - 1
		h = tlog.NodeHash(edge[last], h)
		edge = edge[:last]
	}
	return append(edge, h)
}

// runRoot returns the root over a run of hashes that stand side by side.
func runRoot(hashes []tlog.Hash) tlog.Hash {
	var edge []tlog.Hash
	for i, h := range hashes {
		edge = merge(edge, int64(i), h)
	}
	return fold(edge)
}

func splitHashes(b []byte) []tlog.Hash {
	out := make([]tlog.Hash, len(b)/tlog.HashSize)
	for i := range out {
		copy(out[i][:], b[i*tlog.HashSize:])
	}
	return out
}
