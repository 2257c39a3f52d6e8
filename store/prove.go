package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// ProveRecord returns the RFC 6962 inclusion proof of the event seq in the tree
// of the given head, which may be any earlier head of the log. Every hash is
// checked against head.Root on the way, so a proof that is returned holds for
// the stored leaf hash; a tree that does not lead to head.Root gives an error
// matching [ErrAltered].
func (r *Reader) ProveRecord(ctx context.Context, seq int64, head Head) (tlog.RecordProof, error) {
	if seq < 1 || seq > head.Size {
		return nil, fmt.Errorf("prove event %d in the log of size %d: there is no such event", seq, head.Size)
	}
	p, err := tlog.ProveRecord(head.Size, seq-1, r.hashes(ctx, head))
	if err != nil {
		return nil, fmt.Errorf("prove event %d in the log of size %d: %w", seq, head.Size, mismatch(err))
	}
	return p, nil
}

// ProveTree returns the RFC 6962 consistency proof from the tree of size old,
// at least 1, to that of the given head, checked like ProveRecord's.
func (r *Reader) ProveTree(ctx context.Context, old int64, head Head) (tlog.TreeProof, error) {
	if old < 1 || old > head.Size {
		return nil, fmt.Errorf("prove that size %d of the log continues size %d: want 1 to %d", head.Size, old, head.Size)
	}
	p, err := tlog.ProveTree(head.Size, old, r.hashes(ctx, head))
	if err != nil {
		return nil, fmt.Errorf("prove that size %d of the log continues size %d: %w", head.Size, old, mismatch(err))
	}
	return p, nil
}

// RootAt returns the root that the log had at a size, computed from the stored
// tree and checked against head, which must be of that size or larger.
func (r *Reader) RootAt(ctx context.Context, size int64, head Head) ([32]byte, error) {
	if size < 0 || size > head.Size {
		return [32]byte{}, fmt.Errorf("root at size %d: the log has size %d", size, head.Size)
	}
	root, err := tlog.TreeHash(size, r.hashes(ctx, head))
	if err != nil {
		return [32]byte{}, fmt.Errorf("root at size %d: %w", size, mismatch(err))
	}
	return root, nil
}

// readError keeps apart what could not be read from what does not fit.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

// mismatch marks what tlog says of hashes that do not lead to the root.
func mismatch(err error) error {
	var unread readError
	if errors.As(err, &unread) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrAltered, err)
}

func (r *Reader) hashes(ctx context.Context, head Head) tlog.HashReader {
	return tlog.TileHashReader(tlog.Tree{N: head.Size, Hash: head.Root}, tileReader{ctx: ctx, reader: r})
}

// A tileReader gives tlog the tiles it asks for. One that is not complete is
// made from the level below it.
type tileReader struct {
	ctx    context.Context // of the one question that the reader was made for
	reader *Reader
}

// Height returns the height of the tiles.
func (t tileReader) Height() int { return tileHeight }

// ReadTiles returns the bytes of the tiles.
func (t tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	out := make([][]byte, len(tiles))
	for i, tile := range tiles {
		b, err := t.tile(tile)
		if err != nil {
			return nil, readError{fmt.Errorf("tile %s: %w", tile.Path(), err)}
		}
		out[i] = b
	}
	return out, nil
}

// SaveTiles does nothing: the log has its tiles.
func (t tileReader) SaveTiles([]tlog.Tile, [][]byte) {}

func (t tileReader) tile(want tlog.Tile) (out []byte, err error) {
	if want.H != tileHeight || want.L < 0 {
		return nil, errors.New("not a tile of this log")
	}
	err = t.reader.pool.read(t.ctx, func(q querier) error {
		out, err = tileAt(t.ctx, q, want)
		return err
	})
	return out, err
}

// tileAt reads a tile as it is stored, or the part of it that is wanted, and
// makes one that is not complete from the level below.
func tileAt(ctx context.Context, q querier, want tlog.Tile) (out []byte, err error) {
	err = q.QueryRowContext(ctx, tileQuery, want.L, want.N).Scan(&out)
	if err == nil && len(out) != tileBytes {
		return nil, fmt.Errorf("it has %d bytes: %w", len(out), ErrAltered)
	}
	if err == nil {
		return out[:want.W*tlog.HashSize], nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	hashes, err := hashesAt(ctx, q, want.L, want.N*tileWidth, int64(want.W))
	for _, h := range hashes {
		out = append(out, h[:]...)
	}
	return out, err
}
