package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Find returns the path of the program that command names, absolute and with
// its symbolic links unresolved, because programs such as the python of a
// virtual environment look at the path they were started by.
//
// An absolute command is taken as it is, one that contains a slash is relative
// to dir, and any other is searched in the directories of pathEnv, which has
// the form of PATH. Empty and relative entries of pathEnv are passed over: what
// they mean depends on where Waybill was started. A directory, and a file we
// may not execute, is no program. Errors name the command and say what to do.
func Find(command, dir, pathEnv string) (path string, err error) {
	switch {
	case command == "":
		return "", errors.New("the command is empty: name a program")
	case strings.ContainsRune(command, 0):
		return "", errors.New("the command contains a NUL byte, which no path can")
	case filepath.IsAbs(command):
		return command, findAt(command, command)
	case strings.ContainsRune(command, '/'):
		path = filepath.Join(dir, command)
		return path, findAt(command, path)
	}
	return findOnPath(command, pathEnv)
}

func findAt(command, path string) error {
	err := executable(path)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("command %s: there is no file %s: install it, or correct the path", command, path)
	}
	return fmt.Errorf("command %s: %w", command, err)
}

// findOnPath prefers to report a file that is there and cannot be executed
// over the fact that nothing was found.
func findOnPath(command, pathEnv string) (string, error) {
	var unfit error
	for _, dir := range filepath.SplitList(pathEnv) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, command)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if unfit == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			unfit = err
		}
	}
	if unfit != nil {
		return "", fmt.Errorf("command %s: not found on PATH: %w", command, unfit)
	}
	return "", fmt.Errorf("command %s: not found on PATH: install it, or give its full path", command)
}

// executable reports why path, links followed, is no program that we may run.
func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return fmt.Errorf("%s is a directory: name the program in it", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file", path)
	case unix.Access(path, unix.X_OK) != nil:
		return fmt.Errorf("%s is not executable: run chmod +x, or name its interpreter as the command", path)
	}
	return nil
}
