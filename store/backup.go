package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mattn/go-sqlite3"

	"waybill/migrations"
)

// backupBatch is how many events, roots or tiles are read at once.
const backupBatch = 1024

// Backup copies the log at from, which a writer may have open, into a new file
// at to, and returns the head of the copy: the one that the log had when Backup
// began. The folder of to must exist. check is called with the finished copy
// before it has its name, and an error of it is that of Backup; nil checks
// nothing. progress is told how many of the events are copied; nil tells nobody.
//
// The rows are copied, in many short reads: a log only grows, so what was there
// at one moment is still there later, and no read keeps the writer from folding
// its write-ahead log back into the file, however large the log is.
//
// A path that is taken gives an error matching [ErrExists], and nothing is
// touched. When Backup returns nil, the file and its name are on disk; it is one
// file, complete by itself. A crash before that leaves no file at to but one at
// to+".waybill-unfinished", which the next Backup to this path removes. A log
// whose rows do not fit together gives [ErrAltered].
func Backup(ctx context.Context, from, to string, check func(path string) error, progress func(copied, of int64)) (h Head, err error) {
	release, err := migrations.Lock(to + ".create")
	if err != nil {
		return Head{}, fmt.Errorf("back up to %s: %w", to, err)
	}
	defer func() { err = errors.Join(err, release()) }()
	r, err := OpenReader(from)
	if err != nil {
		return Head{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	err = assemble(to, to+".waybill-unfinished", func(unfinished string) error {
		if h, err = r.copyTo(ctx, unfinished, progress); err != nil || check == nil {
			return err
		}
		return check(unfinished)
	})
	if err != nil {
		return Head{}, fmt.Errorf("back up log %s to %s: %w", from, to, err)
	}
	return h, nil
}

// copyTo makes a log file with what the log holds now.
func (r *Reader) copyTo(ctx context.Context, path string, progress func(copied, of int64)) (h Head, err error) {
	if progress == nil {
		progress = func(int64, int64) {}
	}
	c := copier{ctx: ctx, from: r, progress: progress}
	var evidence sql.NullInt64
	err = r.pool.read(ctx, func(q querier) error {
		return q.QueryRowContext(ctx, cutQuery).Scan(&c.size, &evidence)
	})
	if err != nil && !errors.Is(err, sql.ErrNoRows) { // none: there is no event yet
		return Head{}, fmt.Errorf("read the head: %w", err)
	}
	c.evidence = evidence.Int64
	if err := build(ctx, path, r.id, r.publicKey); err != nil {
		return Head{}, err
	}
	if c.to, err = openWriter(ctx, path); err != nil {
		return Head{}, err
	}
	// The copy counts for nothing before it is synced as a whole, at the end.
	if err := c.to.exec(ctx, "PRAGMA synchronous = OFF"); err != nil {
		return Head{}, errors.Join(err, c.to.close())
	}
	if err := errors.Join(c.run(), c.to.close()); err != nil {
		return Head{}, err
	}
	return Head{Size: c.size, Root: c.root}, syncFile(path)
}

// A copier brings what one log held at a moment into another that is empty.
type copier struct {
	ctx      context.Context // of the one Backup
	from     *Reader
	to       *writer
	size     int64    // events to copy
	evidence int64    // the last row of it to copy
	root     [32]byte // copied last
	progress func(copied, of int64)
}

func (c *copier) run() error {
	c.root = fold(nil)
	for _, step := range []func() error{c.events, c.pieces, c.tiles, c.checkpoints} {
		if err := step(); err != nil {
			return unfit(err)
		}
	}
	return nil
}

// unfit marks rows that the triggers of the copy refuse: the log did not come by
// them.
func unfit(err error) error {
	var e sqlite3.Error
	if errors.As(err, &e) && e.Code == sqlite3.ErrConstraint {
		return fmt.Errorf("%w: %w", ErrAltered, err)
	}
	return err
}

// together runs f in one transaction of the copy.
func (c *copier) together(f func() error) error {
	if _, err := c.to.begin.Exec(); err != nil {
		return err
	}
	if err := f(); err != nil {
		return errors.Join(err, c.to.abandon())
	}
	if _, err := c.to.commit.Exec(); err != nil {
		return errors.Join(err, c.to.abandon())
	}
	return nil
}

// events copies the events with the roots that stand between them.
func (c *copier) events() error {
	rooted := int64(0)
	for after := int64(0); after < c.size; {
		records, err := c.from.Read(c.ctx, after, int(min(backupBatch, c.size-after)))
		if err != nil {
			return err
		}
		if len(records) == 0 {
			return fmt.Errorf("event %d is missing: %w", after+1, ErrAltered)
		}
		roots, err := c.from.Roots(c.ctx, rooted, backupBatch)
		if err != nil {
			return err
		}
		if err := c.together(func() error { rooted, err = c.batch(records, roots, rooted); return err }); err != nil {
			return err
		}
		after = records[len(records)-1].Seq
		c.progress(after, c.size)
	}
	if rooted != c.size {
		return fmt.Errorf("there are events up to %d and a root for %d: %w", c.size, rooted, ErrAltered)
	}
	return nil
}

// batch writes events, and each root after the event it ends with.
func (c *copier) batch(records []Record, roots []Head, rooted int64) (int64, error) {
	for _, r := range records {
		if _, err := c.to.event.Exec(r.Seq, r.Type, r.Peer, r.Call, r.Leaf[:], r.Bytes); err != nil {
			return rooted, fmt.Errorf("event %d: %w", r.Seq, err)
		}
		if len(roots) == 0 || roots[0].Size != r.Seq {
			continue
		}
		if _, err := c.to.root.Exec(roots[0].Size, roots[0].Root[:]); err != nil {
			return rooted, fmt.Errorf("root of size %d: %w", roots[0].Size, err)
		}
		rooted, c.root, roots = roots[0].Size, roots[0].Root, roots[1:]
	}
	return rooted, nil
}

// pieces copies the evidence, one piece at a time: each may be large.
func (c *copier) pieces() error {
	for after := int64(0); after < c.evidence; {
		var digest, bytes []byte
		err := c.from.pool.read(c.ctx, func(q querier) error {
			return q.QueryRowContext(c.ctx, piecesQuery, after, c.evidence).Scan(&after, &digest, &bytes)
		})
		if err != nil {
			return fmt.Errorf("read evidence: %w", err)
		}
		if err := c.together(func() error { _, err := c.to.evidence.Exec(digest, notNil(bytes)); return err }); err != nil {
			return fmt.Errorf("evidence %x: %w", digest, err)
		}
	}
	return nil
}

// tiles copies the tiles that were complete.
func (c *copier) tiles() error {
	for level := 0; c.size>>(tileHeight*(level+1)) > 0; level++ {
		full := c.size >> (tileHeight * (level + 1))
		for after := int64(-1); after < full-1; {
			tiles, err := c.from.Tiles(c.ctx, level, after, int(min(backupBatch, full-1-after)))
			if err != nil {
				return err
			}
			if len(tiles) == 0 {
				return fmt.Errorf("tile %d/%d is missing: %w", level, after+1, ErrAltered)
			}
			after = tiles[len(tiles)-1].Index
			err = c.together(func() error { return c.insert(tiles) })
			if err != nil {
				return fmt.Errorf("tiles of level %d: %w", level, err)
			}
		}
	}
	return nil
}

func (c *copier) insert(tiles []Tile) error {
	for _, t := range tiles {
		if _, err := c.to.tile.Exec(t.Level, t.Index, t.Hashes); err != nil {
			return err
		}
	}
	return nil
}

// checkpoints copies those of the events that were copied, also one that was
// signed meanwhile.
func (c *copier) checkpoints() error {
	for after := int64(-1); ; {
		list, err := c.from.Checkpoints(c.ctx, after, backupBatch)
		if err != nil {
			return err
		}
		if len(list) == 0 || list[0].Size > c.size {
			return nil
		}
		after = list[len(list)-1].Size
		err = c.together(func() error {
			for _, p := range list {
				if p.Size > c.size {
					return nil
				}
				if _, err := c.to.note.Exec(p.Size, p.Note); err != nil {
					return fmt.Errorf("checkpoint of size %d: %w", p.Size, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}
