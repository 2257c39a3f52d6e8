package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-sqlite3"

	"waybill/migrations"
)

// maxReaders bounds the connections of one Reader.
const maxReaders = 4

// A pool reads from a file in whichever way leaves nothing behind.
//
// A log that a writer has open has a -shm file beside it, and is read through
// that. Without one the file stands still, and SQLite would make a -shm file
// only to read it; so it is read as immutable, or, if a copy was taken together
// with a -wal file, with that replayed in memory. Should it then begin to move,
// because a writer has opened it, the pool is opened again in the other way.
type pool struct {
	path string

	mu    sync.RWMutex // held for reading during each read
	db    *prepared    // nil once closed
	still *stamp       // what the files looked like, if they stood still; else nil
}

// openPool opens the file at path. live says that a writer has it open.
func openPool(ctx context.Context, path string, live bool) (*pool, error) {
	p := &pool{path: path}
	if err := p.open(ctx, live); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *pool) open(ctx context.Context, live bool) error {
	now, err := look(p.path)
	if err != nil {
		return err
	}
	options := []string{"mode=ro", "_query_only=1", "_busy_timeout=5000"}
	readers, still := maxReaders, &now
	switch {
	case live || now.shm:
		still = nil
	case now.wal.size > 0:
		// One connection: it holds the replayed -wal in its own memory.
		options, readers = append(options, "vfs=unix-none", "_locking_mode=EXCLUSIVE"), 1
	default:
		options = append(options, "immutable=1")
	}
	db := sql.OpenDB(connector{dsn: migrations.DSN(p.path, options...)})
	db.SetMaxOpenConns(readers)
	db.SetMaxIdleConns(readers)
	if err := db.PingContext(ctx); err != nil {
		return errors.Join(damaged(notLog(err)), db.Close())
	}
	p.db, p.still = &prepared{db: db}, still
	return nil
}

// read calls f with the pool. f must be one short read and may be called a
// second time, if the file began to move under the first.
func (p *pool) read(ctx context.Context, f func(q querier) error) error {
	for {
		moved, err := p.try(f)
		if !moved {
			return err
		}
		if err := p.reopen(ctx); err != nil {
			return err
		}
	}
}

func (p *pool) try(f func(q querier) error) (moved bool, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.db == nil {
		return false, ErrClosed
	}
	err = damaged(f(p.db))
	return p.moved(), err // also where it had moved before
}

// moved reports whether a file that stood still no longer does.
func (p *pool) moved() bool {
	if p.still == nil {
		return false
	}
	now, err := look(p.path)
	return err == nil && now != *p.still
}

func (p *pool) reopen(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.db == nil {
		return ErrClosed
	}
	if !p.moved() {
		return nil // another caller was first
	}
	old := p.db
	if err := p.open(ctx, false); err != nil {
		return fmt.Errorf("open %s again: %w", p.path, err)
	}
	return old.close()
}

func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.db == nil {
		return nil
	}
	err := p.db.close()
	p.db = nil
	return err
}

// A connector opens connections that leave a -wal file where it is when they
// close. SQLite would remove one in which it finds nothing to keep, and it is
// not for a reader to decide that.
type connector struct{ dsn string }

// Connect opens a connection.
func (c connector) Connect(context.Context) (driver.Conn, error) {
	return c.Driver().Open(c.dsn)
}

// Driver returns the driver with that setting.
func (c connector) Driver() driver.Driver {
	return &sqlite3.SQLiteDriver{ConnectHook: func(conn *sqlite3.SQLiteConn) error {
		return conn.SetFileControlInt("main", sqlite3.SQLITE_FCNTL_PERSIST_WAL, 1)
	}}
}

// A stamp is what the files of a database looked like at one moment.
type stamp struct {
	file, wal fileStamp
	shm       bool
}

type fileStamp struct {
	size  int64
	mtime time.Time
}

func look(path string) (stamp, error) {
	file, err := stampOf(path)
	if err != nil {
		return stamp{}, err
	}
	wal, err := stampOf(path + "-wal")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return stamp{}, err
	}
	_, err = os.Stat(path + "-shm")
	return stamp{file: file, wal: wal, shm: err == nil}, nil
}

func stampOf(path string) (fileStamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}, err
	}
	return fileStamp{size: info.Size(), mtime: info.ModTime()}, nil
}
