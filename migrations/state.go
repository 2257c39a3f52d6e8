package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"github.com/golang-migrate/migrate/v4/source"
)

// nothing is the version of a file to which no migration was applied; it is
// also golang-migrate's number for that.
const nothing = -1

// state is what a file says about its own schema.
type state struct {
	version int  // the migration begun last, or nothing
	dirty   bool // that migration was begun and its end was not noted
	done    int  // the migration committed last, or nothing
	release string
}

// Newest returns the number of the newest schema in src, which has its files
// at its root.
func Newest(src fs.FS) (int, error) {
	entries, err := fs.ReadDir(src, ".")
	if err != nil {
		return 0, fmt.Errorf("list migrations: %w", err)
	}
	last := nothing
	for _, e := range entries {
		if m, err := source.DefaultParse(e.Name()); err == nil && m.Direction == source.Up {
			last = max(last, int(m.Version))
		}
	}
	if last == nothing {
		return 0, errors.New("no migrations in the source")
	}
	return last, nil
}

// inspect reads the state of the file at path. It asks SQLite itself, because
// golang-migrate takes every read error for "nothing applied" and would then
// run the first migration on a file that has data.
func inspect(ctx context.Context, path string) (st state, err error) {
	db, err := sql.Open("sqlite3", DSN(path, "mode=rw", "_busy_timeout=5000"))
	if err != nil {
		return state{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return state{}, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return inspectOnce(ctx, conn)
}

// inspectOnce reads everything in one transaction: another process may be
// migrating the file just now.
func inspectOnce(ctx context.Context, conn *sql.Conn) (st state, err error) {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return state{}, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	return inspectTables(ctx, tx)
}

func inspectTables(ctx context.Context, tx *sql.Tx) (state, error) {
	st := state{version: nothing, done: nothing}
	var tables, versions, done int
	err := tx.QueryRowContext(ctx, `SELECT count(*),
		count(*) FILTER (WHERE name = 'schema_migrations'),
		count(*) FILTER (WHERE name = 'migrations_done')
		FROM sqlite_schema WHERE type = 'table'`).Scan(&tables, &versions, &done)
	if err != nil {
		return state{}, err
	}
	if versions == 0 && tables > 0 {
		return state{}, errors.New("the file has tables but none of ours: it belongs to another program")
	}
	if versions > 0 {
		if err := st.readVersion(ctx, tx); err != nil {
			return state{}, err
		}
	}
	if done > 0 {
		if err := st.readDone(ctx, tx); err != nil {
			return state{}, err
		}
	}
	return st, st.check()
}

func (st *state) readVersion(ctx context.Context, tx *sql.Tx) error {
	err := tx.QueryRowContext(ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&st.version, &st.dirty)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

func (st *state) readDone(ctx context.Context, tx *sql.Tx) error {
	err := tx.QueryRowContext(ctx, `SELECT version, release FROM migrations_done
		ORDER BY version DESC LIMIT 1`).Scan(&st.done, &st.release)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// check refuses a file whose two accounts of its schema cannot both be true.
func (st *state) check() error {
	if st.done == st.version || (st.dirty && st.done < st.version) {
		return nil
	}
	return fmt.Errorf("the file says that migration %d was begun last and that %d was completed last: restore it from a backup",
		st.version, st.done)
}

// current reports whether nothing is left to do to reach target.
func (st *state) current(target int) (bool, error) {
	if st.version > target {
		return false, &NewerSchemaError{Version: st.version, Known: target, Release: st.release}
	}
	return st.version == target && !st.dirty, nil
}
