package config

import (
	"path/filepath"

	"waybill/cmd/waybill/config/lockfile"
)

// LockName is the name of the lock file, which stands beside the configuration.
const LockName = lockfile.Name

// A Lock holds the pins of one configuration.
type Lock = lockfile.Lock

// LockPath is the path of the lock file of f.
func (f *File) LockPath() string { return filepath.Join(f.Dir, LockName) }

// ReadLock is lockfile.Read: where there is no file, the Lock is empty.
func ReadLock(path string) (*Lock, error) { return lockfile.Read(path) }

// WriteLock is lockfile.Write: the file is there whole, or as it was before.
func WriteLock(path string, lock Lock) error { return lockfile.Write(path, lock) }
