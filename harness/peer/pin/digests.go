package pin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Digests keeps what files hashed to for as long as one look at a configuration
// takes, so that a program that many peers share is read once. A file is known by
// its path, and as long as its inode, size and time of change are the same. It is
// for one goroutine; what is started must be looked at anew, with none.
type Digests struct {
	known map[string]digested
}

type digested struct {
	info fs.FileInfo
	sum  string
}

// NewDigests makes one that knows nothing.
func NewDigests() *Digests { return &Digests{known: make(map[string]digested)} }

// of returns the SHA-256 of a file, in hex. It may be called on nil.
func (d *Digests) of(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if d == nil {
		return fileDigest(f)
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if old, ok := d.known[path]; ok && same(old.info, info) {
		return old.sum, nil
	}
	sum, err := fileDigest(f)
	if err == nil {
		d.known[path] = digested{info, sum}
	}
	return sum, err
}

func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func fileDigest(f *os.File) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
