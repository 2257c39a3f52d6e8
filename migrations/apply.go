package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database/sqlite3"
	"github.com/golang-migrate/migrate/v4/source/iofs"
)

// ErrNewerSchema is matched by the error for a file that a later release of
// the program has already moved on.
var ErrNewerSchema = errors.New("the schema is newer than this program")

// A NewerSchemaError says which release can read the file. It matches
// [ErrNewerSchema].
type NewerSchemaError struct {
	Version int    // the schema of the file
	Known   int    // the newest schema this program knows
	Release string // the first release that knows the schema of the file; may be ""
}

func (e *NewerSchemaError) Error() string {
	s := fmt.Sprintf("the file has schema %d and this program knows schemas up to %d", e.Version, e.Known)
	if e.Release != "" {
		s += ": open it with release " + e.Release + " or later"
	}
	return s
}

// Is reports whether target is [ErrNewerSchema].
func (e *NewerSchemaError) Is(target error) bool { return target == ErrNewerSchema }

// Apply brings the SQLite file at path to the newest schema in source, a file
// system with the numbered files at its root. A file that is current is only
// read. The file must exist (an empty one will do) with its page size and
// journal mode already set; Apply opens and closes handles of its own.
//
// It is safe to call from several processes at once: one of them migrates,
// under a lock on path+".migrate", and the others wait for it. ctx is looked
// at before anything is changed; a migration that has begun is never cancelled.
//
// A crash leaves the file as it was before the migration that was running, or
// after it, and marked dirty; the next Apply finds out which and goes on from
// there. A file with a newer schema gives an error that matches
// [ErrNewerSchema], a missing one an error that matches [fs.ErrNotExist].
func Apply(ctx context.Context, path string, source fs.FS) error {
	target, err := Newest(source)
	if err != nil {
		return err
	}
	if err := regular(path); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if done, err := isCurrent(ctx, path, target); done || err != nil {
		return err
	}
	release, err := Lock(path + ".migrate")
	if err != nil {
		return fmt.Errorf("migrate %s: %w", path, err)
	}
	return errors.Join(applyLocked(ctx, path, source, target), release())
}

func isCurrent(ctx context.Context, path string, target int) (bool, error) {
	st, err := inspect(ctx, path)
	if err != nil {
		return false, fmt.Errorf("read the schema of %s: %w", path, err)
	}
	done, err := st.current(target)
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return done, nil
}

// applyLocked looks again, because whoever held the lock before may have done
// the work.
func applyLocked(ctx context.Context, path string, source fs.FS, target int) error {
	st, err := inspect(ctx, path)
	if err != nil {
		return fmt.Errorf("read the schema of %s: %w", path, err)
	}
	done, err := st.current(target)
	if done || err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("migrate %s: %w", path, err)
	}
	if err := up(path, source, st); err != nil {
		return fmt.Errorf("migrate %s from schema %d to %d: %w", path, max(st.done, 0), target, err)
	}
	done, err = isCurrent(ctx, path, target)
	if err == nil && !done {
		err = fmt.Errorf("migrate %s: schema %d was not reached", path, target)
	}
	return err
}

// up resolves a dirty file to what its last transaction says, then runs what is
// missing. Each migration and the row that says it is done commit together, so
// st.done is the truth whatever golang-migrate noted before the crash.
func up(path string, source fs.FS, st state) (err error) {
	m, err := open(path, source)
	if err != nil {
		return err
	}
	defer func() {
		fromSource, fromFile := m.Close()
		err = errors.Join(err, fromSource, fromFile)
	}()
	if st.dirty {
		if err := m.Force(st.done); err != nil {
			return fmt.Errorf("recover from an interrupted migration: %w", err)
		}
	}
	if err := m.Up(); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		return err
	}
	return nil
}

// open gives golang-migrate a handle of its own, which it will close.
func open(path string, source fs.FS) (*migrate.Migrate, error) {
	src, err := iofs.New(source, ".")
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite3", DSN(path, "mode=rw", "_busy_timeout=5000", "_synchronous=FULL"))
	if err != nil {
		return nil, err
	}
	driver, err := sqlite3.WithInstance(db, &sqlite3.Config{})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return migrate.NewWithInstance("iofs", src, "sqlite3", driver)
}
