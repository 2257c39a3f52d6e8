package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// A querier is a connection, a pool or a transaction to read from.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// stored reads the head as the rows have it: the last seq, and the last root
// with the size it is for. It is one statement, so it sees one moment.
func stored(ctx context.Context, q querier) (size int64, root Head, err error) {
	var hash []byte
	err = q.QueryRowContext(ctx, `SELECT (SELECT coalesce(max(seq), 0) FROM events), size, root
		FROM (SELECT 0 AS size, NULL AS root UNION ALL SELECT size, root FROM roots) ORDER BY size DESC LIMIT 1`).
		Scan(&size, &root.Size, &hash)
	if err != nil {
		return 0, Head{}, fmt.Errorf("read the head: %w", err)
	}
	if root.Size == 0 {
		root.Root = fold(nil)
		return size, root, nil
	}
	if root.Root, err = hash32(hash); err != nil {
		return 0, Head{}, fmt.Errorf("root of size %d: %w", root.Size, err)
	}
	return size, root, nil
}

// rebuild makes the right edge of the tree from the last event, the leaf
// hashes after the last complete tile, and the tiles whose roots are still
// open in a higher one. At most 255 rows are read at each level.
func rebuild(ctx context.Context, q querier) (tree, error) {
	size, last, err := stored(ctx, q)
	if err != nil {
		return tree{}, err
	}
	if size != last.Size {
		return tree{}, fmt.Errorf("there are events up to %d and a root for %d: %w", size, last.Size, ErrAltered)
	}
	t, err := edge(ctx, q, size)
	if err != nil {
		return tree{}, err
	}
	if t.root() != last.Root {
		return tree{}, fmt.Errorf("the tree at size %d does not have the stored root: %w", size, ErrAltered)
	}
	return t, checkTail(ctx, q, size)
}

func edge(ctx context.Context, q querier, size int64) (tree, error) {
	levels := 0
	for size>>(tileHeight*levels) > 0 {
		levels++
	}
	t := tree{tiles: make([][]byte, levels)}
	for level := levels - 1; level >= 0; level-- {
		from, count := pending(size, level)
		hashes, err := hashesAt(ctx, q, level, from, count)
		if err != nil {
			return tree{}, err
		}
		t.restore(level, hashes)
	}
	return t, nil
}

// hashesAt returns count hashes of a tile level, beginning with the one
// numbered from: leaf hashes at level 0, above it roots of the tiles below.
func hashesAt(ctx context.Context, q querier, level int, from, count int64) ([]tlog.Hash, error) {
	if count == 0 {
		return nil, nil
	}
	query, args := leavesQuery, []any{from, count}
	if level > 0 {
		query = tileRunQuery
		args = append(args, level-1)
	}
	blobs, err := scan(ctx, q, func(rows *sql.Rows, b *[]byte) error { return rows.Scan(b) }, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read level %d of the tree: %w", level, err)
	}
	if int64(len(blobs)) != count {
		return nil, fmt.Errorf("level %d of the tree has %d hashes after %d, want %d: %w", level, len(blobs), from, count, ErrAltered)
	}
	out := make([]tlog.Hash, count)
	for i, b := range blobs {
		out[i] = runRoot(splitHashes(b))
	}
	return out, nil
}

// checkTail compares the events that no complete tile covers yet with their
// leaf hashes: the end of a log is where damage is likeliest.
func checkTail(ctx context.Context, q querier, size int64) (err error) {
	from, _ := pending(size, 0)
	rows, err := q.QueryContext(ctx, tailQuery, from)
	if err != nil {
		return fmt.Errorf("read the last events: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var seq int64
		var leaf, bytes sql.RawBytes
		if err := rows.Scan(&seq, &leaf, &bytes); err != nil {
			return fmt.Errorf("read the last events: %w", err)
		}
		if h := tlog.RecordHash(bytes); string(h[:]) != string(leaf) {
			return fmt.Errorf("the bytes of event %d do not have its leaf hash: %w", seq, ErrAltered)
		}
	}
	return rows.Err()
}

// hash32 refuses a hash of another length: a file edited without our checks
// can hold anything.
func hash32(b []byte) (h [32]byte, err error) {
	if len(b) != len(h) {
		return h, fmt.Errorf("a hash of %d bytes, want %d: %w", len(b), len(h), ErrAltered)
	}
	copy(h[:], b)
	return h, nil
}
