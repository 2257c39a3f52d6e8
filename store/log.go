package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"waybill/migrations"
)

// A Head is the size of a log, which is also the seq of its last event, and
// the RFC 6962 root over the exact bytes of all its events.
type Head struct {
	Size int64
	Root [32]byte
}

// A Log is the one writer of a log. Its methods may be called from several
// goroutines; appends take turns. At most one Log may be open on a file, in
// all processes together: the caller holds a lock to that end. If there are two
// all the same, one of them gets conflicts, and the log stays whole.
type Log struct {
	path      string
	id        string
	publicKey string
	reader    *Reader
	head      atomic.Pointer[Head]

	mu      sync.Mutex // held for one append
	writer  *writer    // nil once closed
	tree    tree
	unknown error // the append whose outcome Reread must find out

	fault func(point string) error // tests make appends fail here
}

// Open opens the log at path for appending. It never creates one: a missing
// file gives an error that matches [ErrMissing]. A schema that is behind is
// brought up to date first; one that is ahead gives [ErrNewerSchema].
//
// Open reads the right edge of the tree, a few hundred rows whatever the size,
// and gives [ErrAltered] if it does not lead to the last stored root. That
// older rows are unaltered is for a verifier to say.
func Open(path string) (*Log, error) {
	l, err := open(context.Background(), path)
	if err != nil {
		return nil, fmt.Errorf("open log %s: %w%s", path, damaged(err), advice(err))
	}
	return l, nil
}

func open(ctx context.Context, path string) (*Log, error) {
	if err := present(path); err != nil {
		return nil, err
	}
	if err := writable(path); err != nil {
		return nil, err
	}
	if err := dropSecondName(path); err != nil {
		return nil, err
	}
	if err := recognize(ctx, path); err != nil {
		return nil, err
	}
	if err := migrations.Apply(ctx, path, migrations.Log); err != nil {
		return nil, err
	}
	w, err := openWriter(ctx, path)
	if err != nil {
		return nil, err
	}
	l := &Log{path: path, writer: w}
	if err := l.start(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return l, nil
}

// present refuses a path that has no file.
func present(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrMissing
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("not a regular file: %w", ErrNotLog)
	}
	return nil
}

// writable refuses a file that this process may not write, or not beside it:
// SQLite would open it all the same, and find out with the first event.
func writable(path string) error {
	for _, p := range []string{path, filepath.Dir(path)} {
		if err := unix.Faccessat(unix.AT_FDCWD, p, unix.W_OK, unix.AT_EACCESS); err != nil {
			return fmt.Errorf("%s: %w; it cannot be written: run as its owner, and look whether the file system is mounted read-only", p, err)
		}
	}
	return nil
}

// recognize refuses a file that is not a log before anything is written to it.
func recognize(ctx context.Context, path string) (err error) {
	w, err := connect(ctx, path)
	if err != nil {
		return notLog(err)
	}
	defer func() { err = errors.Join(err, w.close()) }()
	id, err := w.text(ctx, "PRAGMA application_id")
	if err != nil {
		return notLog(err)
	}
	if id != strconv.Itoa(applicationID) {
		return ErrNotLog
	}
	return nil
}

// start reads what the log says about itself and proves that it can be written.
func (l *Log) start(ctx context.Context) error {
	err := l.writer.conn.QueryRowContext(ctx, `SELECT id, public_key FROM log`).Scan(&l.id, &l.publicKey)
	if err != nil {
		return fmt.Errorf("read the identity of the log: %w", err)
	}
	if err := l.writer.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	t, err := rebuild(ctx, l.writer.conn)
	if err := errors.Join(err, l.writer.abandon()); err != nil {
		return err
	}
	l.advance(t)
	l.reader, err = openLive(ctx, l.path)
	return err
}

// advance makes t the tree of the log. The mutex is held, or l is not shared yet.
func (l *Log) advance(t tree) Head {
	l.tree = t
	h := Head{Size: t.size, Root: t.root()}
	l.head.Store(&h)
	return h
}

// ID returns the id of the log, which is the source of its events.
func (l *Log) ID() string { return l.id }

// PublicKey returns the key that checkpoints of the log are verified with.
func (l *Log) PublicKey() string { return l.publicKey }

// Head returns the head after the last append that succeeded. It does not
// wait for one that is under way.
func (l *Log) Head() Head { return *l.head.Load() }

// Reader returns the readers of this log in this process. They see an event
// when its append has returned, or shortly before, and end with Close.
func (l *Log) Reader() *Reader { return l.reader }

// Close ends the readers and then the writer, waiting for an append under way.
// The file is then complete by itself, unless another process is reading.
// Closing a closed log does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writer == nil {
		return nil
	}
	err := errors.Join(l.reader.Close(), l.writer.close())
	l.writer = nil
	if err != nil {
		return fmt.Errorf("close log %s: %w", l.path, err)
	}
	return nil
}
