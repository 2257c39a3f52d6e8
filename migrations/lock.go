package migrations

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes an exclusive lock on the file at path, made for the purpose, and
// waits as long as another process, or another caller in this one, holds it.
// The release function removes the file and gives the lock up; a process that
// dies gives it up too and leaves an empty file, which the next caller takes
// over and removes.
func Lock(path string) (release func() error, err error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock file: %w", err)
		}
		if err := flock(f); err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		if named(f, path) {
			// Removed while still locked: whoever opened it before that will
			// find in named that it lost its name, and begin again.
			return func() error { return errors.Join(os.Remove(path), f.Close()) }, nil
		}
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
}

func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// named reports whether path still names the open file f.
func named(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(mine, now)
}
