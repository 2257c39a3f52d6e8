package watchdog

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// pipes makes the standard input, output and error of a program: its ends, and ours.
func pipes() (theirs [3]int, ours [3]*os.File, err error) {
	for i := range theirs {
		if theirs[i], ours[i], err = pipe(i == 0); err != nil {
			closePipes(theirs[:i], ours[:i])
			return theirs, ours, err
		}
	}
	return theirs, ours, nil
}

// pipe makes one pipe, closed on exec. Our end waits in the runtime's poller, so that closing it ends a wait; theirs blocks, as
// programs expect.
func pipe(toThem bool) (theirs int, ours *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return 0, nil, fmt.Errorf("make a pipe: %w", err)
	}
	mine, other := fds[0], fds[1]
	if toThem {
		mine, other = other, mine
	}
	if err := unix.SetNonblock(mine, true); err != nil {
		return 0, nil, errors.Join(err, unix.Close(mine), unix.Close(other))
	}
	return other, os.NewFile(uintptr(mine), "pipe"), nil
}

func closePipes(theirs []int, ours []*os.File) {
	for _, fd := range theirs {
		_ = unix.Close(fd)
	}
	for _, f := range ours {
		_ = f.Close()
	}
}

// Searchable reports why a program could not be started in a directory; nil for "".
func Searchable(dir string) error {
	if dir == "" {
		return nil
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return unix.ENOTDIR
	}
	return unix.Access(dir, unix.X_OK)
}
