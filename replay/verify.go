package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Verified is what Verify found of a whole log.
type Verified struct {
	Log      string
	Size     int64    // events; also the seq of the last one
	Root     [32]byte // RFC 6962, over the exact bytes of all events
	Evidence int64    // pieces that hash to their digest
}

// Verify reads every byte of a log: events in dense order, leaf hashes, tiles,
// the root of every transaction, and evidence. It returns an *AlteredError that
// names the first event found to be wrong.
func Verify(ctx context.Context, src Source) (Verified, error) {
	v := &verifier{ctx: ctx, src: src}
	if err := each(ctx, src, v.event); err != nil {
		return Verified{}, err
	}
	if err := v.end(); err != nil {
		return Verified{}, err
	}
	evidence, err := verifyEvidence(ctx, src)
	if err != nil {
		return Verified{}, err
	}
	return Verified{Log: src.ID(), Size: v.tree.size, Root: v.tree.root(), Evidence: evidence}, nil
}

type verifier struct {
	ctx   context.Context
	src   Source
	tree  tree
	roots []Root // read ahead
	last  int64  // size of the last root read
}

func (v *verifier) event(r Record) error {
	if leaf := tlog.RecordHash(r.Bytes); leaf != tlog.Hash(r.Leaf) {
		return &AlteredError{Seq: r.Seq, What: "its bytes do not have the leaf hash stored with it"}
	}
	e, err := open(v.src, r)
	if err != nil {
		return err
	}
	if err := join(v.ctx, v.src, &e); err != nil {
		return err
	}
	for _, t := range v.tree.add(r.Leaf) {
		if err := v.tile(r.Seq, t); err != nil {
			return err
		}
	}
	return v.root(r.Seq)
}

// tile compares a completed tile with the stored one.
func (v *verifier) tile(seq int64, want Tile) error {
	got, err := v.src.Tiles(v.ctx, want.Level, want.Index-1, 1)
	if err != nil {
		return fmt.Errorf("read tile %d/%d: %w", want.Level, want.Index, err)
	}
	if len(got) != 1 || got[0].Index != want.Index || !bytes.Equal(got[0].Hashes, want.Hashes) {
		return &AlteredError{Seq: seq, What: fmt.Sprintf("tile %d/%d, which it completes, is not the one stored", want.Level, want.Index)}
	}
	return nil
}

// root compares the tree with the stored root of this size, if there is one.
func (v *verifier) root(seq int64) error {
	if len(v.roots) == 0 {
		var err error
		if v.roots, err = v.src.Roots(v.ctx, v.last, batch); err != nil {
			return fmt.Errorf("read roots: %w", err)
		}
	}
	if len(v.roots) == 0 || v.roots[0].Size > seq {
		return nil
	}
	r := v.roots[0]
	v.roots, v.last = v.roots[1:], r.Size
	if r.Size != seq || r.Hash != v.tree.root() {
		return &AlteredError{Seq: seq, What: fmt.Sprintf("the root stored for the first %d events is not theirs", r.Size)}
	}
	return nil
}

// end checks that the last root covers the last event: a log is appended in
// whole transactions.
func (v *verifier) end() error {
	more, err := v.src.Roots(v.ctx, v.last, 1)
	if err != nil {
		return fmt.Errorf("read roots: %w", err)
	}
	if len(v.roots) > 0 || len(more) > 0 {
		return &AlteredError{Seq: v.tree.size + 1, What: "missing; a root was stored for a longer log"}
	}
	if v.last != v.tree.size {
		return &AlteredError{Seq: v.last + 1, What: "no root covers the events from here on"}
	}
	return v.noMoreTiles()
}

func (v *verifier) noMoreTiles() error {
	for level := range v.tree.tiles {
		more, err := v.src.Tiles(v.ctx, level, v.tree.tiles[level].index-1, 1)
		if err != nil {
			return fmt.Errorf("read tiles: %w", err)
		}
		if len(more) > 0 {
			return &AlteredError{Seq: v.tree.size + 1, What: fmt.Sprintf("missing; tile %d/%d is stored but not filled", level, more[0].Index)}
		}
	}
	return nil
}

func verifyEvidence(ctx context.Context, src Source) (n int64, err error) {
	var after [32]byte
	for {
		digests, err := src.Digests(ctx, after, batch)
		if err != nil {
			return n, fmt.Errorf("read evidence: %w", err)
		}
		if len(digests) == 0 {
			return n, nil
		}
		for _, d := range digests {
			b, err := src.Evidence(ctx, d)
			if err != nil {
				return n, fmt.Errorf("read evidence %x: %w", d[:4], err)
			}
			if sha256.Sum256(b) != d {
				return n, &AlteredError{What: fmt.Sprintf("evidence %x was changed", d[:4])}
			}
			n++
			after = d
		}
	}
}

// tree is an RFC 6962 tree that grows by one leaf at a time and holds its right
// edge only.
type tree struct {
	size  int64
	edge  []tlog.Hash // roots of complete subtrees, largest first
	tiles []tileEdge  // by tile level
}

// tileEdge is the tile being filled at one level.
type tileEdge struct {
	index  int64
	hashes []byte
}

const tileHeight = 8

// add appends a leaf and returns the tiles it completes.
func (t *tree) add(leaf [32]byte) []Tile {
	done := t.fill(0, leaf)
	t.edge = append(t.edge, leaf)
	t.size++
	for n, level := t.size, 1; n%2 == 0; n, level = n/2, level+1 {
		k := len(t.edge)
		node := tlog.NodeHash(t.edge[k-2], t.edge[k-1])
		t.edge = append(t.edge[:k-2], node)
		if level%tileHeight == 0 {
			done = append(done, t.fill(level/tileHeight, node)...)
		}
	}
	return done
}

func (t *tree) fill(level int, h tlog.Hash) []Tile {
	if level == len(t.tiles) {
		t.tiles = append(t.tiles, tileEdge{})
	}
	e := &t.tiles[level]
	e.hashes = append(e.hashes, h[:]...)
	if len(e.hashes) < len(h)<<tileHeight {
		return nil
	}
	full := Tile{Level: level, Index: e.index, Hashes: e.hashes}
	*e = tileEdge{index: e.index + 1}
	return []Tile{full}
}

func (t *tree) root() [32]byte {
	if len(t.edge) == 0 {
		return sha256.Sum256(nil)
	}
	h := t.edge[len(t.edge)-1]
	for i := len(t.edge) - 2; i >= 0; i-- {
		h = tlog.NodeHash(t.edge[i], h)
	}
	return h
}
