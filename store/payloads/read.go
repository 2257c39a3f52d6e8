package payloads

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Key returns the key of a call, by the seq of its first call.received. ok is
// false where there is none, or it was erased.
func (p *DB) Key(ctx context.Context, story int64) (key Key, ok bool, err error) {
	ctx, done, err := p.take(ctx)
	if err != nil {
		return key, false, err
	}
	defer done()
	return p.keyOf(ctx, story)
}

func (p *DB) keyOf(ctx context.Context, story int64) (key Key, ok bool, err error) {
	var b []byte
	err = p.conn.QueryRowContext(ctx, `SELECT key FROM keys WHERE story = ? AND key <> zeroblob(32)`, story).Scan(&b)
	if errors.Is(err, sql.ErrNoRows) {
		return key, false, nil
	}
	if err != nil {
		return key, false, fmt.Errorf("read the key of a call: %w", err)
	}
	copy(key[:], b)
	return key, true, nil
}

// Read returns what one event cites in one role; ok is false where it is not kept.
func (p *DB) Read(ctx context.Context, seq int64, role string) (x Payload, ok bool, err error) {
	ctx, done, err := p.take(ctx)
	if err != nil {
		return Payload{}, false, err
	}
	defer done()
	x = Payload{Seq: seq, Role: role}
	err = p.conn.QueryRowContext(ctx, `SELECT story, peer, request, created, size, redacted, bytes FROM payloads WHERE seq = ? AND role = ?`, seq, role).
		Scan(&x.Story, &x.Peer, &x.Request, &x.Created, &x.Size, &x.Redacted, &x.Bytes)
	if errors.Is(err, sql.ErrNoRows) {
		return Payload{}, false, nil
	}
	if err != nil {
		return Payload{}, false, fmt.Errorf("read what is kept of event %d: %w", seq, err)
	}
	if x.Key, ok, err = p.keyOf(ctx, x.Story); err != nil || !ok {
		return Payload{}, false, err
	}
	if x.Bytes, err = x.open(x.Bytes); err != nil {
		return Payload{}, false, err
	}
	return x, true, nil
}

// ErasedBy returns the seq of the payloads.erased by which what was kept of a call
// was erased, by the seq of its first call.received; 0 for none.
func (p *DB) ErasedBy(ctx context.Context, story int64) (seq int64, err error) {
	ctx, done, err := p.take(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	var erased sql.NullInt64
	err = p.conn.QueryRowContext(ctx, `SELECT erased FROM stories WHERE seq = ?`, story).Scan(&erased)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read who erased a call: %w", err)
	}
	return erased.Int64, nil
}
