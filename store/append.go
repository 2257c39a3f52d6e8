package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/mattn/go-sqlite3"
	"golang.org/x/mod/sumdb/tlog"
)

// MaxEvent is the largest event in bytes: it fits a tile entry and a message.
const MaxEvent = 60 << 10

// Evidence is what a peer said, kept with the log for ever. Bytes may be empty.
type Evidence struct {
	Digest [32]byte // SHA-256 of Bytes
	Bytes  []byte
}

// An Entry is an event to append. Type, Peer and Call are kept beside the bytes
// for queries and are not part of the tree; Peer and Call may be empty.
type Entry struct {
	Type, Peer, Call string
	Bytes            []byte // the exact envelope: stored, hashed; 1 to MaxEvent bytes
	Evidence         []Evidence
}

// Points in an append at which a test can make it fail.
const (
	faultBegin     = "begin"     // nothing was begun
	faultInsert    = "insert"    // in the transaction
	faultCommit    = "commit"    // all written, COMMIT not sent: did not happen
	faultCommitted = "committed" // COMMIT succeeded: did happen
)

// A batch is a transaction made ready before it begins.
type batch struct {
	entries []Entry
	leaves  []tlog.Hash
	tree    tree // after the batch
	tiles   []tile
}

// Append adds the entries, in order, after the event with seq after, in one
// transaction with the evidence they cite, the tiles they complete and the new
// root; it returns the new head. When it returns nil, all of it is on disk and
// survives a power cut. Evidence that is kept already is not written again.
//
// after must be the size of the log, else the error matches [ErrConflict]. ctx
// is looked at before the transaction begins and never cancels it half way.
// After any error the head is what it was, and nothing was written, except
// that an error matching [ErrOutcomeUnknown] leaves it open whether everything
// was written or nothing: [Log.Reread] finds out, and must be called before
// the next append. The slices are not kept.
func (l *Log) Append(ctx context.Context, after int64, entries []Entry) (Head, error) {
	leaves, err := check(entries)
	if err != nil {
		return Head{}, fmt.Errorf("append after %d: %w", after, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(ctx); err != nil {
		return Head{}, fmt.Errorf("append after %d: %w", after, err)
	}
	if after != l.tree.size {
		return Head{}, &ConflictError{After: after, Size: l.tree.size}
	}
	b := batch{entries: entries, leaves: leaves, tree: l.tree.fork()}
	for _, leaf := range leaves {
		b.tiles = b.tree.grow(leaf, b.tiles)
	}
	if err := l.write(&b, after); err != nil {
		return Head{}, err
	}
	return l.advance(b.tree), nil
}

// check refuses entries that the log cannot hold, and hashes the others.
func check(entries []Entry) ([]tlog.Hash, error) {
	if len(entries) == 0 {
		return nil, errors.New("no entries")
	}
	leaves := make([]tlog.Hash, len(entries))
	for i, e := range entries {
		if e.Type == "" {
			return nil, fmt.Errorf("entry %d has no type", i)
		}
		if len(e.Bytes) == 0 || len(e.Bytes) > MaxEvent {
			return nil, fmt.Errorf("entry %d (%s) has %d bytes, want 1 to %d", i, e.Type, len(e.Bytes), MaxEvent)
		}
		for _, ev := range e.Evidence {
			if sha256.Sum256(ev.Bytes) != ev.Digest {
				return nil, fmt.Errorf("entry %d (%s): evidence %x is not the digest of its bytes", i, e.Type, ev.Digest)
			}
		}
		leaves[i] = tlog.RecordHash(e.Bytes)
	}
	return leaves, nil
}

// ready reports why no transaction can begin now.
func (l *Log) ready(ctx context.Context) error {
	if l.writer == nil {
		return ErrClosed
	}
	if l.unknown != nil {
		return l.unknown
	}
	return ctx.Err()
}

// write runs the transaction of a batch.
//
// This is the commit point. A crash before COMMIT returns leaves either the
// whole batch or nothing of it: the next Open reads which from the file.
func (l *Log) write(b *batch, after int64) error {
	if err := l.hit(faultBegin); err != nil {
		return fmt.Errorf("append after %d: %w", after, err)
	}
	if _, err := l.writer.begin.Exec(); err != nil {
		return fmt.Errorf("append after %d: begin: %w", after, err)
	}
	if err := l.insert(b); err != nil {
		return l.giveUp(after, err)
	}
	if err := l.commit(); err != nil {
		return l.doubt(after, err)
	}
	return nil
}

func (l *Log) insert(b *batch) error {
	first := b.tree.size - int64(len(b.entries)) + 1
	for i, e := range b.entries {
		if err := l.writer.insertEvent(first+int64(i), &e, &b.leaves[i]); err != nil {
			return err
		}
	}
	for _, t := range b.tiles {
		if _, err := l.writer.tile.Exec(t.level, t.index, t.hashes); err != nil {
			return fmt.Errorf("insert tile %d of level %d: %w", t.index, t.level, err)
		}
	}
	root := b.tree.root()
	if _, err := l.writer.root.Exec(b.tree.size, root[:]); err != nil {
		return fmt.Errorf("insert root: %w", err)
	}
	return l.hit(faultInsert)
}

func (w *writer) insertEvent(seq int64, e *Entry, leaf *tlog.Hash) error {
	for _, ev := range e.Evidence {
		if _, err := w.evidence.Exec(ev.Digest[:], notNil(ev.Bytes)); err != nil {
			return fmt.Errorf("insert evidence %x: %w", ev.Digest, err)
		}
	}
	if _, err := w.event.Exec(seq, e.Type, e.Peer, e.Call, leaf[:], e.Bytes); err != nil {
		return fmt.Errorf("insert event %d: %w", seq, err)
	}
	return nil
}

func (l *Log) commit() error {
	if err := l.hit(faultCommit); err != nil {
		return err
	}
	if _, err := l.writer.commit.Exec(); err != nil {
		return err
	}
	return l.hit(faultCommitted)
}

// giveUp ends a transaction that failed before COMMIT: nothing was written. A
// row that the schema refuses means that the file has moved on without us.
func (l *Log) giveUp(after int64, cause error) error {
	if err := l.writer.abandon(); err != nil {
		return l.doubt(after, errors.Join(cause, err))
	}
	var refused sqlite3.Error
	if errors.As(cause, &refused) && refused.ExtendedCode == sqlite3.ErrConstraintTrigger {
		return &ConflictError{After: after, Size: l.tree.size, Cause: cause}
	}
	return fmt.Errorf("append after %d: %w", after, cause)
}

// doubt notes that the outcome of a transaction must be read from the file.
func (l *Log) doubt(after int64, cause error) error {
	l.unknown = fmt.Errorf("append after %d: commit: %w: %w", after, ErrOutcomeUnknown, cause)
	return l.unknown
}

// Reread reads the real head from disk and makes it the head of the log. After
// an append with an unknown outcome it tells which one it was: the head is the
// old one, and nothing was written, or it has moved, and the events after the
// old head can be compared with those sent. If it fails the outcome stays
// unknown, and Reread can be called again.
func (l *Log) Reread(ctx context.Context) (Head, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writer == nil {
		return Head{}, fmt.Errorf("read log %s again: %w", l.path, ErrClosed)
	}
	if err := l.writer.abandon(); err != nil {
		return Head{}, fmt.Errorf("read log %s again: %w", l.path, err)
	}
	t, err := l.writer.reread(ctx)
	if err != nil {
		return Head{}, fmt.Errorf("read log %s again: %w", l.path, err)
	}
	l.unknown = nil
	return l.advance(t), nil
}

// reread rebuilds the tree in one read transaction.
func (w *writer) reread(ctx context.Context) (tree, error) {
	if err := w.exec(ctx, "BEGIN"); err != nil {
		return tree{}, err
	}
	t, err := rebuild(ctx, w.conn)
	return t, errors.Join(err, w.abandon())
}

// Checkpoint keeps the signed tree head for the given size, which must not be
// beyond the log and must be larger than that of the one kept last. It is
// durable when it returns nil. After an error it may or may not be kept; that
// does not touch the events.
func (l *Log) Checkpoint(ctx context.Context, size int64, note []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(ctx); err != nil {
		return fmt.Errorf("keep checkpoint %d: %w", size, err)
	}
	if _, err := l.writer.note.Exec(size, notNil(note)); err != nil {
		return fmt.Errorf("keep checkpoint %d: %w", size, err)
	}
	return nil
}

func (l *Log) hit(point string) error {
	if l.fault == nil {
		return nil
	}
	return l.fault(point)
}

// notNil keeps the driver from writing NULL for no bytes.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
