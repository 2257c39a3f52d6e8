package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"waybill/harness"
	"waybill/harness/peer/pin"
)

// LockName is the name of the lock file, which stands beside the configuration.
const LockName = "waybill.lock"

const lockVersion = 1

const lockHeader = "# made by waybill pin; review changes like code\n"

// A Lock holds the pins of the peers of one configuration.
type Lock struct {
	Peers map[string]pin.Pin
}

// lockFile is the form on disk, sorted by name.
type lockFile struct {
	Version int          `yaml:"version"`
	Peers   []lockedPeer `yaml:"peers"`
}

type lockedPeer struct {
	Name    string `yaml:"name"`
	pin.Pin `yaml:",inline"`
}

// LockPath is the path of the lock file of f.
func (f *File) LockPath() string { return filepath.Join(f.Dir, LockName) }

// ReadLock reads a lock file. Where there is none, the Lock is empty, and every
// peer counts as not pinned. A file that is not as WriteLock writes it gives
// Errors.
func ReadLock(path string) (*Lock, error) {
	data, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Lock{}, nil
	}
	if err != nil {
		return nil, Errors{unreadable(path, err, "")}
	}
	doc := &document{file: path}
	doc.parse(data) // refuses what could make a small file large
	if len(doc.errs) > 0 {
		return nil, doc.errs.err()
	}
	return decodeLock(path, data)
}

func decodeLock(path string, data []byte) (*Lock, error) {
	var file lockFile
	if err := yaml.UnmarshalWithOptions(data, &file, yaml.Strict()); err != nil {
		e := &Error{File: path, Msg: "is not a lock file: " + err.Error()}
		var located yaml.Error
		if errors.As(err, &located) {
			e.Line, e.Column = position(located.GetToken())
			e.Msg = "is not a lock file: " + located.GetMessage()
		}
		e.Msg += ": run waybill pin to make it anew"
		return nil, Errors{e}
	}
	if file.Version != lockVersion {
		return nil, Errors{{File: path, Key: "version", Msg: fmt.Sprintf(
			"is %d, this program knows %d: run waybill pin to make the file anew", file.Version, lockVersion)}}
	}
	lock := &Lock{Peers: make(map[string]pin.Pin)}
	for _, p := range file.Peers {
		if _, twice := lock.Peers[p.Name]; twice {
			return nil, Errors{{File: path, Key: "peers", Msg: fmt.Sprintf(
				"%q is there twice: run waybill pin to make the file anew", p.Name)}}
		}
		lock.Peers[p.Name] = p.Pin
	}
	return lock, nil
}

// WriteLock writes a lock file: the same Lock gives the same bytes. The file is
// there whole or as it was before, and durable when WriteLock returns. A crash
// can leave a file ending in .new, which the next call replaces. Two calls must
// not run at once on one path.
func WriteLock(path string, lock Lock) error {
	data, err := encodeLock(lock)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return harness.WriteFile(path, data, 0o644)
}

func encodeLock(lock Lock) ([]byte, error) {
	file := lockFile{Version: lockVersion, Peers: []lockedPeer{}}
	for name, pin := range lock.Peers {
		file.Peers = append(file.Peers, lockedPeer{name, pin})
	}
	slices.SortFunc(file.Peers, func(a, b lockedPeer) int { return strings.Compare(a.Name, b.Name) })
	var b bytes.Buffer
	b.WriteString(lockHeader)
	if err := yaml.NewEncoder(&b).Encode(file); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
