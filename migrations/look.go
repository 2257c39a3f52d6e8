package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// A Schema is what a file says about its own schema.
type Schema struct {
	Version int    // the migration begun last; -1 where none was
	Done    int    // the migration committed last; -1 where none was
	Dirty   bool   // the one begun last was not noted as ended; the next Apply goes on from Done
	Release string // the first release that knows schema Done; may be ""
}

// Look reads the schema of the SQLite file at path and changes nothing, not even
// beside it. A missing file gives an error that matches [fs.ErrNotExist].
func Look(ctx context.Context, path string) (s Schema, err error) {
	db, err := OpenStill(path)
	if err != nil {
		return Schema{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return Schema{}, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	st, err := inspectOnce(ctx, conn)
	if err != nil {
		return Schema{}, fmt.Errorf("read the schema of %s: %w", path, err)
	}
	return Schema{Version: st.version, Done: st.done, Dirty: st.dirty, Release: st.release}, nil
}

// OpenStill opens the SQLite file at path for one short look that leaves nothing
// behind: through the -shm file where a process has made one, and else as a file
// that stands still. Its caller must not keep it open, because a process that
// begins to write meanwhile would not be seen. A missing file gives an error that
// matches [fs.ErrNotExist].
func OpenStill(path string) (*sql.DB, error) {
	if err := regular(path); err != nil {
		return nil, err
	}
	options := []string{"mode=ro", "_query_only=1", "_busy_timeout=5000"}
	wal, _ := os.Stat(path + "-wal")
	switch _, err := os.Stat(path + "-shm"); {
	case err == nil:
	case wal != nil && wal.Size() > 0:
		options = append(options, "vfs=unix-none", "_locking_mode=EXCLUSIVE")
	default:
		options = append(options, "immutable=1")
	}
	db, err := sql.Open("sqlite3", DSN(path, options...))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// regular refuses what SQLite would wait for: a pipe that nobody writes to.
func regular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file: move it away", path)
	}
	return err
}
