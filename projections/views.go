package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/mattn/go-sqlite3"

	"waybill/domain"
	"waybill/migrations"
)

// Views is a follower of one log. Apply and Position belong to the one
// goroutine that feeds it; the reading methods are safe beside it.
type Views struct {
	db     *sql.DB
	log    string
	state  *domain.State
	stored int64 // position in the file
	broken error // of the Apply that failed: the fold is ahead of the rows
	seen   atomic.Int64

	filed *filed            // what is in the file; nil until something is written
	lists map[string]string // digest and scope of each peer's last list, where it has one for the default context alone
}

// Open opens the views of a log at path, and makes the file where there is
// none. Views of another log, or of one that is ahead of head, are thrown away:
// they are no views of this log. So is a file that is damaged or of something
// else. Views of a later release are left alone and give an error matching
// migrations.ErrNewerSchema. The caller holds the lock of the data directory.
func Open(ctx context.Context, path, log string, head int64) (*Views, error) {
	v, err := open(ctx, path, log)
	if err == nil && v.stored <= head {
		return v, nil
	}
	if err == nil {
		err = v.Close()
	}
	if ctx.Err() != nil || errors.Is(err, migrations.ErrNewerSchema) || passing(err) {
		return nil, err
	}
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove stale views: %w", err)
		}
	}
	return open(ctx, path, log)
}

// passing reports whether an error says nothing about the content of the file:
// views that are made again would meet it too.
func passing(err error) bool {
	if errors.Is(err, fs.ErrPermission) {
		return true
	}
	var e sqlite3.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrNomem, sqlite3.ErrFull, sqlite3.ErrPerm, sqlite3.ErrReadonly, sqlite3.ErrInterrupt:
		return true
	}
	return false
}

func open(ctx context.Context, path, log string) (*Views, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the views: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	if err := migrations.Apply(ctx, path, migrations.Views); err != nil {
		return nil, fmt.Errorf("views %s: %w", path, err)
	}
	// The last commits may be lost, so a commit need not wait for the disk; the
	// file may not be damaged, so a checkpoint must (NORMAL, not OFF).
	db, err := sql.Open("sqlite3", migrations.DSN(path, "_journal_mode=WAL", "_synchronous=NORMAL", "_busy_timeout=5000", "_stmt_cache_size=16"))
	if err != nil {
		return nil, err
	}
	v := &Views{db: db, log: log, state: domain.NewState(), lists: map[string]string{}}
	if err := v.readPosition(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return v, nil
}

func (v *Views) readPosition(ctx context.Context) error {
	var log string
	err := v.db.QueryRowContext(ctx, `SELECT log, seq FROM position`).Scan(&log, &v.stored)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("views: read the position: %w", err)
	case log != v.log:
		return fmt.Errorf("views belong to log %s, not %s", log, v.log)
	}
	return nil
}

// Name implements the follower.
func (v *Views) Name() string { return "views" }

// Position returns the seq of the last event seen. It begins at 0 even where
// the file is further: the fold is kept in memory only, and rows that are there
// are not written again.
func (v *Views) Position() int64 { return v.seen.Load() }

// Holds reports whether the file has the rows of every event up to seq, so that
// it can be read without folding the log. Not safe beside Apply.
func (v *Views) Holds(seq int64) bool { return v.stored >= seq }

// Close closes the file.
func (v *Views) Close() error { return v.db.Close() }

// Apply folds events into the views: the rows and the position in one
// transaction. ctx is looked at before and never cancels it half way. A crash
// leaves the rows of whole batches only. After an error Apply goes on failing,
// until the views are opened again.
func (v *Views) Apply(ctx context.Context, facts []domain.Event) error {
	if len(facts) == 0 {
		return nil
	}
	if v.broken != nil {
		return v.broken
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if v.broken = v.apply(context.WithoutCancel(ctx), facts); v.broken != nil {
		return v.broken
	}
	v.seen.Store(facts[len(facts)-1].Seq)
	return nil
}

func (v *Views) apply(ctx context.Context, facts []domain.Event) error {
	last := facts[len(facts)-1].Seq
	if last <= v.stored {
		for _, e := range facts {
			v.state.Apply(e)
		}
		return nil
	}
	tx, err := v.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("views: %w", err)
	}
	if err := v.write(ctx, tx, facts); err != nil {
		return errors.Join(fmt.Errorf("views: %w", err), tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("views: %w", err)
	}
	v.stored = last
	return nil
}

func (v *Views) write(ctx context.Context, tx *sql.Tx, facts []domain.Event) error {
	peers, names := false, false
	var calls callRows
	for _, e := range facts {
		v.state.Apply(e)
		if e.Seq <= v.stored {
			continue
		}
		if e.Call() != "" {
			calls.take(e)
			continue
		}
		peers = true
		names = v.changesNames(e.Data) || names
		if d, ok := e.Data.(domain.NamespaceMerged); ok {
			if err := writeNamespace(ctx, tx, e.Seq, d); err != nil {
				return err
			}
		}
	}
	if err := calls.write(ctx, tx); err != nil {
		return err
	}
	if peers {
		if err := v.writeState(ctx, tx, names); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO position (id, log, seq) VALUES (1, ?, ?)
		ON CONFLICT (id) DO UPDATE SET log = excluded.log, seq = excluded.seq`, v.log, facts[len(facts)-1].Seq)
	return err
}

// changesNames reports whether an event may change what is said of tools, or which
// names are contested. A list that is what it was changes nothing of that: lists
// are read far more often than they change.
func (v *Views) changesNames(data domain.Data) bool {
	switch d := data.(type) {
	case domain.ConfigLoaded: // it drops the lists, and so the definitions, of peers that it does not name
		clear(v.lists)
	case domain.CatalogAccepted:
		if d.Context != "" { // which of its public lists a context is served may be another one now
			delete(v.lists, d.Peer)
			return true
		}
		list := d.Digest + " " + d.CacheScope
		if v.lists[d.Peer] == list {
			return false
		}
		v.lists[d.Peer] = list
	case domain.NamespaceMerged, domain.CollisionDecided, domain.ToolChanged, domain.ToolApproved:
	default:
		return false
	}
	return true
}
