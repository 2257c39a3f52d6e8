package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"waybill/migrations"
)

// A Record is an event as the log keeps it.
type Record struct {
	Seq              int64
	Type, Peer, Call string
	Bytes            []byte
	Leaf             [32]byte // the leaf hash stored with the event; only a verifier says that it is that of Bytes
}

// A Tile is 256 hashes of the tree as they are stored, in the coordinates of
// golang.org/x/mod/sumdb/tlog with tile height 8.
type Tile struct {
	Level  int
	Index  int64
	Hashes []byte
}

// A Checkpoint is a signed tree head as it was given to [Log.Checkpoint].
type Checkpoint struct {
	Size int64
	Note []byte
}

// A Reader reads a log that may be growing. Every method is one short read,
// sees one moment of the log, and may be called from several goroutines.
type Reader struct {
	pool          *pool
	id, publicKey string
}

// OpenReader opens the log at path for reading, whether or not a writer has it
// open, and also a copy of the file in a folder that cannot be written. It
// never creates or changes a file of the log, and never migrates. (Beside a log
// that a writer has open, or was killed with, SQLite notes in the -shm file who
// reads.) A missing file gives [ErrMissing], a schema that is ahead
// [ErrNewerSchema].
//
// A copy must be one of a closed log, or of the file and its -wal file taken
// together while nothing was written, or made by SQLite itself (VACUUM INTO);
// the file alone, taken from under a running writer, lacks what was written
// last.
func OpenReader(path string) (*Reader, error) {
	r, err := openReader(context.Background(), path, false)
	if err != nil {
		return nil, fmt.Errorf("read log %s: %w%s", path, err, advice(err))
	}
	return r, nil
}

// openLive opens the readers of a log that this process has open.
func openLive(ctx context.Context, path string) (*Reader, error) {
	return openReader(ctx, path, true)
}

func openReader(ctx context.Context, path string, live bool) (*Reader, error) {
	if err := present(path); err != nil {
		return nil, err
	}
	p, err := openPool(ctx, path, live)
	if err != nil {
		return nil, err
	}
	r := &Reader{pool: p}
	if err := r.identify(ctx); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return r, nil
}

// identify refuses what is not a log, and reads its identity.
func (r *Reader) identify(ctx context.Context) error {
	return r.pool.read(ctx, func(q querier) error {
		var app string
		if err := q.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&app); err != nil {
			return notLog(err)
		}
		if app != strconv.Itoa(applicationID) {
			return ErrNotLog
		}
		if err := knownSchema(ctx, q); err != nil {
			return err
		}
		err := q.QueryRowContext(ctx, `SELECT id, public_key FROM log`).Scan(&r.id, &r.publicKey)
		if err != nil {
			return fmt.Errorf("read the identity of the log: %w", err)
		}
		return nil
	})
}

// knownSchema refuses a log that a later release has moved on.
func knownSchema(ctx context.Context, q querier) error {
	known, err := migrations.Newest(migrations.Log)
	if err != nil {
		return err
	}
	var version int
	var release string
	err = q.QueryRowContext(ctx, `SELECT version, release FROM migrations_done ORDER BY version DESC LIMIT 1`).
		Scan(&version, &release)
	if err != nil {
		return fmt.Errorf("read the schema of the log: %w", err)
	}
	if version > known {
		return &migrations.NewerSchemaError{Version: version, Known: known, Release: release}
	}
	return nil
}

// ID returns the id of the log.
func (r *Reader) ID() string { return r.id }

// PublicKey returns the key that checkpoints of the log are verified with.
func (r *Reader) PublicKey() string { return r.publicKey }

// Head returns the seq of the last event, or 0, and the root stored last. That
// the root is the right one for those events is for a verifier to say; that it
// is for another number of them gives [ErrAltered].
func (r *Reader) Head(ctx context.Context) (h Head, err error) {
	err = r.pool.read(ctx, func(q querier) error {
		var size int64
		size, h, err = stored(ctx, q)
		if err == nil && size != h.Size {
			err = fmt.Errorf("there are events up to %d and a root for %d: %w", size, h.Size, ErrAltered)
		}
		return err
	})
	return h, err
}

// Read returns up to max events with a seq above after, in ascending order;
// none if there are no more. The seqs of a whole log have no gap: a caller
// that finds one has found damage.
func (r *Reader) Read(ctx context.Context, after int64, max int) ([]Record, error) {
	return r.records(ctx, readQuery, after, max)
}

// ByCall returns all events of a call, in ascending order; none for "".
func (r *Reader) ByCall(ctx context.Context, call string) ([]Record, error) {
	return r.records(ctx, byCallQuery, call)
}

func (r *Reader) records(ctx context.Context, query string, args ...any) (out []Record, err error) {
	err = r.pool.read(ctx, func(q querier) error {
		out, err = scan(ctx, q, func(rows *sql.Rows, rec *Record) error {
			var leaf sql.RawBytes
			if err := rows.Scan(&rec.Seq, &rec.Type, &rec.Peer, &rec.Call, &leaf, &rec.Bytes); err != nil {
				return err
			}
			rec.Leaf, err = hash32(leaf)
			return err
		}, query, args...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return out, nil
}

// Evidence returns the bytes with this SHA-256, or an error that matches
// [ErrNoEvidence]. It does not hash them again.
func (r *Reader) Evidence(ctx context.Context, digest [32]byte) (b []byte, err error) {
	err = r.pool.read(ctx, func(q querier) error {
		return q.QueryRowContext(ctx, evidenceQuery, digest[:]).Scan(&b)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNoEvidence
	}
	if err != nil {
		return nil, fmt.Errorf("evidence %x: %w", digest, err)
	}
	return notNil(b), nil
}

// A Piece is evidence as it stands in the log.
type Piece struct {
	Row    int64 // in the order in which evidence was kept: that of the events that cited it first
	Digest [32]byte
	Bytes  []byte
}

// runBytes ends a run of evidence early: what is read ahead is held in memory.
const runBytes = 4 << 20

// EvidenceRun returns evidence that was kept after a row, up to max pieces and fewer
// where they are large, in order; none if there are no more. It does not hash them
// again.
func (r *Reader) EvidenceRun(ctx context.Context, after int64, max int) (out []Piece, err error) {
	size := 0
	err = r.pool.read(ctx, func(q querier) error {
		size = 0
		out, err = scanWhile(ctx, q, func() bool { return size < runBytes }, func(rows *sql.Rows, p *Piece) error {
			var d sql.RawBytes
			if err := rows.Scan(&p.Row, &d, &p.Bytes); err != nil {
				return err
			}
			size += len(p.Bytes)
			p.Digest, err = hash32(d)
			return err
		}, runQuery, after, max)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read evidence after row %d: %w", after, err)
	}
	return out, nil
}

// Digests returns up to max digests of evidence above after, in ascending
// order; begin with the zero digest.
func (r *Reader) Digests(ctx context.Context, after [32]byte, max int) (out [][32]byte, err error) {
	err = r.pool.read(ctx, func(q querier) error {
		out, err = scan(ctx, q, func(rows *sql.Rows, d *[32]byte) error {
			var b sql.RawBytes
			if err := rows.Scan(&b); err != nil {
				return err
			}
			*d, err = hash32(b)
			return err
		}, digestsQuery, after[:], max)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read digests: %w", err)
	}
	return out, nil
}

// Tiles returns up to max complete tiles of a level with an index above after,
// in ascending order; begin with -1. A log of n events has n>>8(level+1) of
// them, without a gap.
func (r *Reader) Tiles(ctx context.Context, level int, after int64, max int) (out []Tile, err error) {
	err = r.pool.read(ctx, func(q querier) error {
		out, err = scan(ctx, q, func(rows *sql.Rows, t *Tile) error {
			t.Level = level
			return rows.Scan(&t.Index, &t.Hashes)
		}, tilesQuery, level, after, max)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read tiles of level %d: %w", level, err)
	}
	return out, nil
}

// Roots returns up to max stored roots with a size above after, in ascending
// order: one for each transaction that appended events.
func (r *Reader) Roots(ctx context.Context, after int64, max int) (out []Head, err error) {
	err = r.pool.read(ctx, func(q querier) error {
		out, err = scan(ctx, q, func(rows *sql.Rows, h *Head) error {
			var b sql.RawBytes
			if err := rows.Scan(&h.Size, &b); err != nil {
				return err
			}
			h.Root, err = hash32(b)
			return err
		}, rootsQuery, after, max)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read roots: %w", err)
	}
	return out, nil
}

// Checkpoints returns up to max checkpoints with a size above after, in
// ascending order; begin with -1.
func (r *Reader) Checkpoints(ctx context.Context, after int64, max int) (out []Checkpoint, err error) {
	err = r.pool.read(ctx, func(q querier) error {
		out, err = scan(ctx, q, func(rows *sql.Rows, c *Checkpoint) error {
			return rows.Scan(&c.Size, &c.Note)
		}, checkpointsQuery, after, max)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	return out, nil
}

// LastCheckpoint returns the checkpoint kept last, or an error that matches
// [ErrNoCheckpoint].
func (r *Reader) LastCheckpoint(ctx context.Context) (c Checkpoint, err error) {
	err = r.pool.read(ctx, func(q querier) error {
		return q.QueryRowContext(ctx, `SELECT size, note FROM checkpoints ORDER BY size DESC LIMIT 1`).Scan(&c.Size, &c.Note)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNoCheckpoint
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read the last checkpoint: %w", err)
	}
	return c, nil
}

// Close ends the reader. The readers of a [Log] end with it. Closing a closed
// reader does nothing.
func (r *Reader) Close() error { return r.pool.close() }

// scan runs a query and calls row for each of its rows.
func scan[T any](ctx context.Context, q querier, row func(*sql.Rows, *T) error, query string, args ...any) ([]T, error) {
	return scanWhile(ctx, q, func() bool { return true }, row, query, args...)
}

// scanWhile is scan that ends early when more says so.
func scanWhile[T any](ctx context.Context, q querier, more func() bool, row func(*sql.Rows, *T) error, query string, args ...any) (out []T, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for more() && rows.Next() {
		if len(out) == cap(out) {
			out = slices.Grow(out, 3*len(out)+16) // often many
		}
		out = out[:len(out)+1]
		clear(out[len(out)-1:])
		if err := row(rows, &out[len(out)-1]); err != nil {
			return nil, err
		}
	}
	return out, rows.Err()
}
