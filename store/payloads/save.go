package payloads

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
)

// Roles of bytes.
const (
	Arguments      = "arguments"
	InputResponses = "input_responses"
	RequestState   = "request_state"
	Result         = "result"
	Error          = "error"
	InputRequests  = "input_requests" // a result that asks for input, with its requestState
)

// A Story is one call whose payloads are kept.
type Story struct {
	Seq     int64  // of its first call.received
	Call    string // key: host/call_id
	Host    string // whose it is
	Created int64  // wall clock of that event, nanoseconds since 1970
	Key     Key    // of the call
	Outcome bool   // only what is answered is kept, because of an idempotency key
}

// A Payload is what one event says only the size and the digest of.
type Payload struct {
	Seq      int64  // of the event
	Role     string // one of the roles
	Story    int64  // of the call
	Key      Key    // of the call
	Peer     string // who answered; "" for what a host sent
	Request  int64  // id of the request that was answered; 0 for what a host sent
	Created  int64  // wall clock of the event, nanoseconds since 1970
	Size     int64  // as it came
	Redacted bool   // the bytes are not those that came: a secret was in them
	Bytes    []byte
}

// A Batch is what the events of one transaction of the log cite.
type Batch struct {
	First    int64                  // seq of its first event
	Events   func(seq int64) []byte // the exact bytes of each of its events
	Stories  []Story
	Payloads []Payload
}

// Points at which tests make a DB fail.
const (
	faultSave  = "save"  // nothing was written
	faultSaved = "saved" // everything was
	faultErase = "erase" // between two calls
)

func (p *DB) failAt(point string) error {
	if p.fault == nil {
		return nil
	}
	return p.fault(point)
}

// Save makes a batch durable, all or nothing. It may be called again with the same
// batch, whatever became of the first time. What is saved and then never cited,
// because the append of the log did not follow, is found by Sweep.
func (p *DB) Save(ctx context.Context, b Batch) error {
	ctx, done, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := p.failAt(faultSave); err != nil {
		return fmt.Errorf("keep payloads: %w", err)
	}
	if err := p.write(ctx, func(ctx context.Context, _ *sql.Conn) error { return p.save(ctx, b) }); err != nil {
		return fmt.Errorf("keep payloads: %w", err)
	}
	return p.failAt(faultSaved)
}

// write runs f in a transaction.
func (p *DB) write(ctx context.Context, f func(ctx context.Context, tx *sql.Conn) error) error {
	if _, err := p.conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	err := f(ctx, p.conn)
	if err == nil {
		_, err = p.conn.ExecContext(ctx, `COMMIT`)
	}
	if err != nil {
		// SQLite has rolled back by itself after some errors; then this fails.
		_, _ = p.conn.ExecContext(ctx, `ROLLBACK`)
	}
	return err
}

// prepare makes the statements of Save.
func (p *DB) prepare(ctx context.Context) (err error) {
	for _, x := range []struct {
		stmt  **sql.Stmt
		query string
	}{
		{&p.first, `UPDATE about SET first = ?`},
		{&p.story, `INSERT OR REPLACE INTO stories (seq, call, host, created, outcome) VALUES (?, ?, ?, ?, ?)`},
		{&p.key, `INSERT INTO keys (story, key) VALUES (?, ?) ON CONFLICT (story) DO UPDATE SET key = excluded.key`},
		{&p.payload, `INSERT OR REPLACE INTO payloads (seq, role, sum, story, peer, request, created, size, redacted, bytes)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`},
	} {
		if *x.stmt, err = p.conn.PrepareContext(ctx, x.query); err != nil {
			return err
		}
	}
	return nil
}

func (p *DB) save(ctx context.Context, b Batch) error {
	if _, err := p.first.ExecContext(ctx, b.First); err != nil {
		return err
	}
	for _, s := range b.Stories {
		if _, err := p.story.ExecContext(ctx, s.Seq, s.Call, s.Host, s.Created, s.Outcome); err != nil {
			return err
		}
		if _, err := p.key.ExecContext(ctx, s.Seq, s.Key[:]); err != nil {
			return err
		}
	}
	for _, x := range b.Payloads {
		sum := sha256.Sum256(b.Events(x.Seq))
		sealed, err := x.seal()
		if err == nil {
			_, err = p.payload.ExecContext(ctx, x.Seq, x.Role, sum[:], x.Story, x.Peer, x.Request, x.Created, x.Size, x.Redacted, sealed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Sweep erases what no event of the log cites: a crash, or an append that failed
// for good, came between saving and citing. event returns the exact bytes of an
// event of the log, nil for none; it is asked for those of the transaction that
// was saved last, and head is the last event there is. Nothing may be saved
// meanwhile.
func (p *DB) Sweep(ctx context.Context, head int64, event func(ctx context.Context, seq int64) ([]byte, error)) (swept int, err error) {
	ctx, done, err := p.take(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	orphans, err := p.orphans(ctx, head, event)
	if err != nil || len(orphans) == 0 {
		return 0, err
	}
	err = p.write(ctx, func(ctx context.Context, tx *sql.Conn) error {
		for _, seq := range orphans {
			_, err := tx.ExecContext(ctx, `DELETE FROM payloads WHERE seq = ?`, seq)
			if err == nil {
				_, err = tx.ExecContext(ctx, `DELETE FROM stories WHERE seq = ?`, seq)
			}
			if err == nil {
				err = eraseKey(ctx, tx, seq)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("erase payloads that no event cites: %w", err)
	}
	return len(orphans), p.truncate(ctx)
}

func (p *DB) orphans(ctx context.Context, head int64, event func(context.Context, int64) ([]byte, error)) (out []int64, err error) {
	rows, err := p.conn.QueryContext(ctx, `SELECT seq, sum FROM payloads WHERE seq > ?1 OR seq >= (SELECT first FROM about)
		UNION SELECT seq, NULL FROM stories WHERE seq > ?1 ORDER BY seq`, head)
	if err != nil {
		return nil, err
	}
	sums := map[int64][]byte{}
	for rows.Next() {
		var seq int64
		var sum []byte
		if err := rows.Scan(&seq, &sum); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		sums[seq] = sum
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	for seq, sum := range sums {
		b, err := event(ctx, seq)
		if err != nil {
			return nil, err
		}
		if got := sha256.Sum256(b); b == nil || string(got[:]) != string(sum) {
			out = append(out, seq)
		}
	}
	return out, nil
}
