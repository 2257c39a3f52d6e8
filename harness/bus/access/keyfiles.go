package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/nats-io/nkeys"
)

// createSeed makes a key if there is no file for it.
func createSeed(path string) (bool, error) {
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return false, fmt.Errorf("make a NATS key: %w", err)
	}
	defer pair.Wipe()
	seed, err := pair.Seed()
	if err != nil {
		return false, fmt.Errorf("make a NATS key: %w", err)
	}
	return createFile(path, append(seed, '\n'), 0o600)
}

// createFile writes a new file, whole and durable, and reports false if the
// path exists. The link is the commit point: it fails if the path exists, and
// a crash before it leaves only the .tmp file.
func createFile(path string, data []byte, mode fs.FileMode) (bool, error) {
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}
	tmp := path + ".tmp"
	if err := writeSynced(tmp, data, mode); err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	err := os.Link(tmp, path)
	if rest := os.Remove(tmp); err == nil {
		err = rest
	}
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	return true, syncDir(filepath.Dir(path))
}

func writeSynced(path string, data []byte, mode fs.FileMode) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, werr := f.Write(data)
	return errors.Join(werr, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// replaceFile puts a file in the place of what is there, whole and durable.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	tmp := path + ".tmp"
	err := writeSynced(tmp, data, mode)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return syncDir(filepath.Dir(path))
}

// lockDir waits until nobody else writes into the directory.
func lockDir(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, errors.Join(err, d.Close()))
	}
	return func() { _ = d.Close() }, nil // which gives up the lock
}
