package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"waybill/migrations"
)

// besides are the files that SQLite and the migrations put beside a database.
var besides = []string{"-wal", "-shm", "-journal", ".migrate"}

// Create makes a log at path with the given identity: the id under which
// its events are known, and the public key that its checkpoints are verified
// with. Neither can be changed later. The folder must exist. first are the
// events that the log begins with, appended as one batch; none for an empty log.
//
// A path that is taken gives an error matching [ErrExists], and nothing is
// touched. When Create returns nil, the file and its name are on disk. A crash
// before that leaves no file at path but one at path+".new", never opened,
// which the next Create removes.
func Create(path, logID, publicKey string, first ...Entry) (err error) {
	if logID == "" || publicKey == "" {
		return fmt.Errorf("create log %s: the log id and the public key must not be empty", path)
	}
	release, err := migrations.Lock(path + ".create")
	if err != nil {
		return fmt.Errorf("create log %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, release()) }()
	err = assemble(path, path+".new", func(unfinished string) error {
		if err := build(context.Background(), unfinished, logID, publicKey); err != nil {
			return err
		}
		return begin(unfinished, first)
	})
	if err != nil {
		return fmt.Errorf("create log %s: %w", path, err)
	}
	return nil
}

// assemble makes a log under another name with fill, and gives it its own when
// it is finished.
func assemble(path, unfinished string, fill func(unfinished string) error) error {
	if err := vacant(path); err != nil {
		return err
	}
	if err := remove(unfinished); err != nil {
		return err
	}
	if err := fill(unfinished); err != nil {
		return errors.Join(err, remove(unfinished))
	}
	return publish(unfinished, path)
}

// begin appends the first events of a log and closes it, on disk.
func begin(path string, first []Entry) error {
	if len(first) == 0 {
		return nil
	}
	l, err := open(context.Background(), path)
	if err != nil {
		return err
	}
	_, err = l.Append(context.Background(), 0, first)
	if err := errors.Join(err, l.Close()); err != nil {
		return err
	}
	return syncFile(path)
}

// vacant refuses a path that is taken. A write-ahead log without its file is
// refused too: SQLite would play it into the new one.
func vacant(path string) error {
	for _, p := range []string{path, path + "-wal", path + "-journal"} {
		_, err := os.Lstat(p)
		if err == nil {
			return fmt.Errorf("%s: %w", p, ErrExists)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// remove deletes a database with all that stands beside it; what is not there
// is no error.
func remove(path string) error {
	var errs []error
	for _, suffix := range append([]string{""}, besides...) {
		if err := os.Remove(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func build(ctx context.Context, path, logID, publicKey string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := format(ctx, path); err != nil {
		return err
	}
	if err := migrations.Apply(ctx, path, migrations.Log); err != nil {
		return err
	}
	if err := identify(ctx, path, logID, publicKey); err != nil {
		return err
	}
	return syncFile(path)
}

// format turns an empty file into an empty database. The page size comes
// first: in WAL mode it can no longer be changed, and stays silently at 4096.
func format(ctx context.Context, path string) (err error) {
	w, err := connect(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	for _, set := range []string{
		"PRAGMA page_size = " + strconv.Itoa(pageSize),
		"PRAGMA application_id = " + strconv.Itoa(applicationID),
	} {
		if err := w.exec(ctx, set); err != nil {
			return err
		}
	}
	if err := w.configure(ctx); err != nil {
		return err
	}
	got, err := w.text(ctx, "PRAGMA page_size")
	if err == nil && got != strconv.Itoa(pageSize) {
		err = fmt.Errorf("the page size is %s, want %d", got, pageSize)
	}
	return err
}

// identify writes the identity and brings everything into the one file.
func identify(ctx context.Context, path, logID, publicKey string) error {
	w, err := openWriter(ctx, path)
	if err != nil {
		return err
	}
	err = w.exec(ctx, `INSERT INTO log (one, id, public_key) VALUES (1, ?, ?)`, logID, publicKey)
	if err := errors.Join(err, w.close()); err != nil {
		return err
	}
	if _, err := os.Lstat(path + "-wal"); err == nil {
		return fmt.Errorf("%s-wal was not folded into the file", path)
	}
	return nil
}

// publish gives the finished file its name, never replacing another. A crash
// between the two steps leaves the file with both names; Open removes the
// first, because SQLite must not know a file under two.
func publish(unfinished, path string) error {
	err := os.Link(unfinished, path)
	if errors.Is(err, fs.ErrExist) {
		err = ErrExists
	}
	if err := errors.Join(err, remove(unfinished)); err != nil {
		return err
	}
	return syncFile(filepath.Dir(path))
}

// dropSecondName removes what a crash in publish has left.
func dropSecondName(path string) error {
	mine, err := os.Stat(path)
	if err != nil {
		return err
	}
	other, err := os.Lstat(path + ".new")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !os.SameFile(mine, other):
		return nil
	}
	return os.Remove(path + ".new")
}

// syncFile brings a file, or the names in a folder, to disk. It must not be
// used on a database that this process has open: closing any descriptor of a
// file drops the locks that SQLite holds on it.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
