package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"waybill/domain"
)

// Verified is what Verify found of a whole log.
type Verified struct {
	Log      string
	Size     int64    // events; also the seq of the last one
	Root     [32]byte // RFC 6962, over the exact bytes of all events
	Evidence int64    // pieces that hash to their digest

	Checkpoints int64  // stored, each signed by the key of the log and right
	Signed      int64  // size of the last of them: later events are not signed yet
	Key         string // that signs at the end of the log
}

// Kept is what somebody kept of a log elsewhere, to hold the log to.
type Kept struct {
	Key         string   // the public key, under any name; empty: the one that the log names as its own
	Checkpoints [][]byte // which the log must contain
}

// Verify reads every byte of a log: events in dense order, leaf hashes, tiles,
// the root of every transaction, evidence, and the checkpoints with their
// signatures. It returns an *AlteredError that names the first event found to be
// wrong, and an *UndecidableError for an event this program cannot read.
//
// A log that is being appended to is verified up to an end it had meanwhile.
// What Verify cannot see by itself is a tail that was taken off together with
// its roots, tiles and checkpoints, or a log made anew under another key: that
// takes what was kept elsewhere, and VerifyAgainst.
func Verify(ctx context.Context, src Source) (Verified, error) {
	return VerifyAgainst(ctx, src, Kept{})
}

// VerifyAgainst is Verify of a log that must also be the one that something was
// kept of. A log of which an end is missing is altered at the first missing
// event, one that differs below a checkpoint at the checkpoint's size. A key or
// a checkpoint that is malformed is an error of another kind, which matches
// [checkpoint.ErrMalformed] in the second case.
func VerifyAgainst(ctx context.Context, src Source, kept Kept) (Verified, error) {
	v := &verifier{ctx: ctx, src: readAhead(src), after: first, cited: map[[32]byte]bool{}}
	for _, step := range []func() error{
		v.listEvidence,
		func() error { return v.signed.open(ctx, src, kept) },
		func() error { return v.signed.reach(&v.tree) },
		func() error { return each(ctx, src, v.event) },
		v.end, v.endOfTiles, v.allCited, v.strays,
	} {
		if err := step(); err != nil {
			return Verified{}, err
		}
	}
	return Verified{Log: src.ID(), Size: v.tree.size, Root: v.tree.root(), Evidence: int64(len(v.cited)),
		Checkpoints: v.signed.right, Signed: v.signed.last, Key: v.signed.key}, nil
}

type verifier struct {
	ctx     context.Context
	src     Source
	tree    tree
	roots   []Root // read ahead
	after   int64  // size of the last root read
	covered int64  // size of the last root that was right
	cited   map[[32]byte]bool
	signed  heads
}

// strays refuses what going through the log from its first event does not meet. It
// comes last: what is found on the way is named by its event.
func (v *verifier) strays() error {
	what, err := v.src.Strays(v.ctx)
	if err == nil && what != "" {
		err = &AlteredError{What: what + " was added: no log has such a row"}
	}
	return err
}

// listEvidence notes what evidence there is before any event is read: what
// cites it is then among the events, however the log may grow.
func (v *verifier) listEvidence() error {
	var after [32]byte
	for {
		digests, err := v.src.Digests(v.ctx, after, batch)
		if err != nil {
			return fmt.Errorf("read evidence: %w", err)
		}
		if len(digests) == 0 {
			return nil
		}
		for _, d := range digests {
			v.cited[d] = false
			after = d
		}
	}
}

func (v *verifier) allCited() error {
	n := 0
	for _, cited := range v.cited {
		if !cited {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return &AlteredError{What: fmt.Sprintf("%d pieces of evidence are kept that no event cites", n)}
}

func (v *verifier) event(r Record) error {
	if leaf := tlog.RecordHash(r.Bytes); leaf != tlog.Hash(r.Leaf) {
		return &AlteredError{Seq: r.Seq, What: "its bytes do not have the leaf hash stored with it"}
	}
	e, err := open(v.src, r)
	if err != nil {
		return err
	}
	digest, cites, err := join(v.ctx, v.src, &e)
	if err != nil {
		return err
	}
	if cites {
		v.cited[digest] = true
	}
	if d, ok := e.Data.(domain.KeyRotated); ok {
		if err := v.signed.rotate(r.Seq, d); err != nil {
			return err
		}
	}
	for _, t := range v.tree.add(r.Leaf) {
		if err := v.tile(r.Seq, t); err != nil {
			return err
		}
	}
	if err := v.root(r.Seq); err != nil {
		return err
	}
	return v.signed.reach(&v.tree)
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

// root compares the tree with the stored root of this size, if there is one. A
// log is appended in whole transactions, so some root covers every event.
func (v *verifier) root(seq int64) error {
	if len(v.roots) == 0 {
		var err error
		if v.roots, err = v.src.Roots(v.ctx, v.after, batch); err != nil {
			return fmt.Errorf("read roots: %w", err)
		}
	}
	if len(v.roots) == 0 {
		return &AlteredError{Seq: v.covered + 1, What: "no root covers the events from here on"}
	}
	r := v.roots[0]
	if r.Size > seq {
		return nil
	}
	if r.Size != seq || r.Hash != v.tree.root() {
		return &AlteredError{Seq: seq, What: fmt.Sprintf("the root stored for the first %d events is not theirs", r.Size)}
	}
	v.roots, v.after, v.covered = v.roots[1:], r.Size, r.Size
	return nil
}

// end checks that no root is left over, unless it is one of events that came
// after the last one read.
func (v *verifier) end() error {
	more, err := v.src.Roots(v.ctx, v.after, 1)
	if err != nil {
		return fmt.Errorf("read roots: %w", err)
	}
	if len(more) > 0 {
		if err := v.unlessGrown("a root was stored for a longer log"); err != nil {
			return err
		}
	}
	return v.signed.beyond(v.tree.size)
}

// endOfTiles checks that no tile is left over, nor one before the first. Tiles
// of a level have indexes from 0.
func (v *verifier) endOfTiles() error {
	const levels = 8 // of 8 bits each: no log is longer
	for level := range levels {
		full := v.tree.size >> (tileHeight * (level + 1))
		for _, after := range []int64{first, full - 1} {
			more, err := v.src.Tiles(v.ctx, level, after, 1)
			if err != nil {
				return fmt.Errorf("read tiles: %w", err)
			}
			if len(more) == 0 || more[0].Index >= 0 && more[0].Index < full {
				continue
			}
			if err := v.unlessGrown(fmt.Sprintf("tile %d/%d is stored but not filled", level, more[0].Index)); err != nil {
				return err
			}
		}
	}
	return nil
}

// unlessGrown says what is wrong with the end of the log, unless the log has
// another end by now.
func (v *verifier) unlessGrown(what string) error {
	more, err := v.src.Records(v.ctx, v.tree.size, 1)
	if err != nil {
		return fmt.Errorf("read events after %d: %w", v.tree.size, err)
	}
	if len(more) == 1 && more[0].Seq == v.tree.size+1 {
		return nil
	}
	return &AlteredError{Seq: v.tree.size + 1, What: "missing; " + what}
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
