package payloads

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	_ "github.com/mattn/go-sqlite3" // the driver

	"waybill/migrations"
)

const (
	pageSize      = 8192
	applicationID = 0x57425059 // "WBPY", which file(1) and Open can tell from another program's
)

var (
	// ErrForeign is matched by the error for a file that belongs to another log,
	// or to another program.
	ErrForeign = errors.New("these are not the payloads of this log: move the file away")

	// ErrClosed is matched by the error of using a DB after Close.
	ErrClosed = errors.New("the payloads are closed")
)

// settings are the pragmas of the connection. Each is read back: without
// secure_delete, erased bytes would stay in free pages of the file.
var settings = []struct{ name, value, reads string }{
	{"busy_timeout", "5000", "5000"},
	{"journal_mode", "WAL", "wal"},
	{"synchronous", "FULL", "2"},
	{"fullfsync", "ON", "1"},
	{"checkpoint_fullfsync", "ON", "1"},
	{"secure_delete", "ON", "1"},
	{"temp_store", "MEMORY", "2"}, // nothing of it in a file that is not this one
	{"trusted_schema", "OFF", "0"},
	{"wal_autocheckpoint", "1000", "1000"},
	{"journal_size_limit", "16777216", "16777216"},
}

// A DB is the payloads of one log. Its methods may be called from several
// goroutines; they take turns. At most one DB may write a file, in all processes
// together: the caller holds a lock to that end.
type DB struct {
	path string

	mu                         sync.Mutex
	db                         *sql.DB // nil once closed
	conn                       *sql.Conn
	first, story, key, payload *sql.Stmt // of Save
	behind                     bool      // something the log says was erased could not be; the next Open finds it

	fault func(point string) error // tests make it fail here
}

// Open opens the payloads of a log for writing, and makes the file if there is
// none: an empty one is as good as one that was lost. A crash at any moment
// leaves what the next Open goes on from. It fails where the file is that of
// another log, or of a later release.
func Open(path, log string) (*DB, error) {
	p, err := open(context.Background(), path, log)
	if err != nil {
		return nil, fmt.Errorf("open payloads %s: %w", path, err)
	}
	return p, nil
}

func open(ctx context.Context, path, log string) (*DB, error) {
	if err := ensure(ctx, path); err != nil {
		return nil, err
	}
	if err := migrations.Apply(ctx, path, migrations.Payloads); err != nil {
		return nil, err
	}
	p, err := connect(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := p.start(ctx, log); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// ensure makes the file and gives it its format. The page size comes first: in
// WAL mode it can no longer be changed.
func ensure(ctx context.Context, path string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("no regular file: move it away")
	}
	if info.Size() > 0 {
		return nil
	}
	p, err := dial(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close(), syncDir(filepath.Dir(path))) }()
	for _, set := range []string{"page_size = " + strconv.Itoa(pageSize), "application_id = " + strconv.Itoa(applicationID)} {
		if _, err := p.conn.ExecContext(ctx, "PRAGMA "+set); err != nil {
			return err
		}
	}
	return p.configure(ctx)
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func dial(ctx context.Context, path string) (*DB, error) {
	db, err := sql.Open("sqlite3", migrations.DSN(path, "mode=rw", "_busy_timeout=5000"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &DB{path: path, db: db, conn: conn}, nil
}

func connect(ctx context.Context, path string) (*DB, error) {
	p, err := dial(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := p.configure(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// configure sets the pragmas and reads each one back.
func (p *DB) configure(ctx context.Context) error {
	for _, s := range settings {
		if _, err := p.conn.ExecContext(ctx, "PRAGMA "+s.name+" = "+s.value); err != nil {
			return fmt.Errorf("pragma %s: %w", s.name, err)
		}
	}
	for _, s := range settings {
		var got string
		if err := p.conn.QueryRowContext(ctx, "PRAGMA "+s.name).Scan(&got); err != nil {
			return fmt.Errorf("pragma %s: %w", s.name, err)
		}
		if got != s.reads {
			return fmt.Errorf("pragma %s is %s, want %s: this build of SQLite cannot erase safely", s.name, got, s.reads)
		}
	}
	return nil
}

// start writes whose payloads these are, or checks it, and empties the
// write-ahead log: a crash may have left there what is erased.
func (p *DB) start(ctx context.Context, log string) error {
	var id int
	var mine string
	if err := p.conn.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	if id != applicationID {
		return ErrForeign
	}
	if _, err := p.conn.ExecContext(ctx, `INSERT INTO about (one, log, first, erased) SELECT 1, ?1, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM about)`, log); err != nil {
		return err
	}
	if err := p.conn.QueryRowContext(ctx, `SELECT log FROM about`).Scan(&mine); err != nil {
		return err
	}
	if mine != log {
		return fmt.Errorf("%w (it belongs to %s)", ErrForeign, mine)
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	return p.truncate(ctx)
}

// truncate moves what the write-ahead log holds into the file, and empties it.
func (p *DB) truncate(ctx context.Context) error {
	var busy, frames, moved int
	if err := p.conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved); err != nil {
		return fmt.Errorf("empty the write-ahead log of the payloads: %w", err)
	}
	if busy != 0 {
		return errors.New("the write-ahead log of the payloads cannot be emptied while another process reads them")
	}
	return nil
}

// OpenReader opens the payloads of a log to read what is kept of calls, while
// another process may write. It makes no file and gives an error matching
// [fs.ErrNotExist] where there is none. What writes fails.
func OpenReader(path, log string) (*DB, error) {
	p, err := openReader(context.Background(), path, log)
	if err != nil {
		return nil, fmt.Errorf("read payloads %s: %w", path, err)
	}
	return p, nil
}

func openReader(ctx context.Context, path, log string) (*DB, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite3", migrations.DSN(path, "mode=ro", "_query_only=1", "_busy_timeout=5000"))
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	p := &DB{path: path, db: db, conn: conn}
	var mine string
	err = conn.QueryRowContext(ctx, `SELECT log FROM about`).Scan(&mine)
	if err == nil && mine != log {
		err = fmt.Errorf("%w (it belongs to %s)", ErrForeign, mine)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close ends the connection. The last one to a file moves what the write-ahead log
// holds into the file and removes it. Closing a closed DB does nothing.
func (p *DB) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.db == nil {
		return nil
	}
	var errs []error
	for _, s := range []*sql.Stmt{p.first, p.story, p.key, p.payload} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	err := errors.Join(append(errs, p.conn.Close(), p.db.Close())...)
	p.db = nil
	if err != nil {
		return fmt.Errorf("close payloads %s: %w", p.path, err)
	}
	return nil
}

// take locks the DB for one use; done gives it back. What has begun is not
// cancelled half way: an interruption could hit whoever comes next.
func (p *DB) take(ctx context.Context) (use context.Context, done func(), err error) {
	p.mu.Lock()
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case p.db == nil:
		err = ErrClosed
	default:
		return context.WithoutCancel(ctx), p.mu.Unlock, nil
	}
	p.mu.Unlock()
	return ctx, nil, err
}

// Exists reports whether there is a file at path.
func Exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
