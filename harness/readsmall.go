package harness

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxSmall bounds the files that are read whole: keys, checkpoints, notes.
const maxSmall = 1 << 20

// ReadSmall reads a regular file of at most 1 MiB. Whatever else stands under the
// name, a pipe nobody writes to or a device without an end, is refused at once. A
// missing file gives an error that matches [fs.ErrNotExist].
func ReadSmall(path string) (b []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file: put the right one in its place", path)
	}
	if b, err = io.ReadAll(io.LimitReader(f, maxSmall+1)); err == nil && len(b) > maxSmall {
		return nil, fmt.Errorf("%s has more than %d bytes: put the right file in its place", path, maxSmall)
	}
	return b, err
}
