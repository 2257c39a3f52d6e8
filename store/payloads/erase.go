package payloads

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// A Selection names calls by exactly one of Call, Host and Before, of those that
// were received before the event Seq.
type Selection struct {
	Seq    int64
	Call   string // key: host/call_id
	Host   string
	Before int64 // wall clock, milliseconds since 1970
	Only   Only  // of Before
}

// Only says by what bytes are kept.
type Only int

// What keeps the bytes of a call.
const (
	All      Only = iota // whatever does
	Whole                // the policy: all that belongs to it
	Outcomes             // an idempotency key: what was answered
)

// where is the condition and its argument.
func (s Selection) where() (string, any) {
	switch {
	case s.Call != "":
		return `call = ?`, s.Call
	case s.Host != "":
		return `host = ?`, s.Host
	}
	switch s.Only {
	case Whole:
		return `outcome = 0 AND created < ?`, s.Before * 1_000_000
	case Outcomes:
		return `outcome = 1 AND created < ?`, s.Before * 1_000_000
	}
	return `created < ?`, s.Before * 1_000_000
}

// Count returns how many calls of a selection have payloads or a key; Seq does not
// count.
func (p *DB) Count(ctx context.Context, s Selection) (n int64, err error) {
	ctx, done, err := p.take(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	where, arg := s.where()
	err = p.conn.QueryRowContext(ctx, `SELECT count(*) FROM stories WHERE erased IS NULL AND `+where, arg).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count kept payloads: %w", err)
	}
	return n, nil
}

// Ever reports whether anything was ever kept of a call, erased or not.
func (p *DB) Ever(ctx context.Context) (ever bool, err error) {
	ctx, done, err := p.take(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	err = p.conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM stories)`).Scan(&ever)
	return ever, err
}

// atOnce is how many calls are erased in one transaction: saving waits for it.
const atOnce = 32

// Erase erases the bytes and the keys of a selection. When it returns nil they are
// in none of the files of the DB. It may be done again: what is erased stays so,
// and says that it was this event, which is the one whose seq is given. If it
// fails, or a crash comes between, some are erased and some are not; then Erased
// stays where it was, so that the next start does it again.
func (p *DB) Erase(ctx context.Context, s Selection) error {
	for {
		n, err := p.erase(ctx, s)
		if err != nil {
			p.fellBehind()
			return fmt.Errorf("erase payloads: %w", err)
		}
		if n < atOnce {
			break
		}
	}
	if err := p.finish(ctx, s.Seq); err != nil {
		p.fellBehind()
		return fmt.Errorf("erase payloads: %w", err)
	}
	return nil
}

func (p *DB) fellBehind() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behind = true
}

// erase erases at most atOnce calls of a selection.
func (p *DB) erase(ctx context.Context, s Selection) (n int, err error) {
	ctx, done, err := p.take(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	if err := p.failAt(faultErase); err != nil {
		return 0, err
	}
	stories, err := p.some(ctx, s)
	if err != nil || len(stories) == 0 {
		return 0, err
	}
	return len(stories), p.write(ctx, func(ctx context.Context, tx *sql.Conn) error {
		for _, story := range stories {
			_, err := tx.ExecContext(ctx, `DELETE FROM payloads WHERE story = ?`, story)
			if err == nil {
				err = eraseKey(ctx, tx, story)
			}
			if err == nil {
				_, err = tx.ExecContext(ctx, `UPDATE stories SET erased = ? WHERE seq = ?`, s.Seq, story)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *DB) some(ctx context.Context, s Selection) (out []int64, err error) {
	where, arg := s.where()
	rows, err := p.conn.QueryContext(ctx, `SELECT seq FROM stories WHERE erased IS NULL AND seq < ? AND `+where+` LIMIT ?`, s.Seq, arg, atOnce)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var seq int64
		if err := rows.Scan(&seq); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		out = append(out, seq)
	}
	return out, errors.Join(rows.Err(), rows.Close())
}

// finish empties the write-ahead log, which still holds what was erased, and then
// notes how far the log was followed. After an erasure that failed that stays where
// it is, so that the next start does both again.
func (p *DB) finish(ctx context.Context, seq int64) error {
	ctx, done, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := p.truncate(ctx); err != nil || p.behind {
		return err
	}
	_, err = p.conn.ExecContext(ctx, `UPDATE about SET erased = max(erased, ?)`, seq)
	return err
}

// eraseKey writes zeros over a key where it stands.
func eraseKey(ctx context.Context, tx *sql.Conn, story int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE keys SET key = zeroblob(32) WHERE story = ?`, story)
	return err
}

// Erased returns the event up to which this file has followed the log: every
// payloads.erased up to it has been carried out here.
func (p *DB) Erased(ctx context.Context) (seq int64, err error) {
	ctx, done, err := p.take(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	err = p.conn.QueryRowContext(ctx, `SELECT erased FROM about`).Scan(&seq)
	return seq, err
}

// CaughtUp notes that every payloads.erased up to an event has been carried out.
func (p *DB) CaughtUp(ctx context.Context, seq int64) error { return p.finish(ctx, seq) }
