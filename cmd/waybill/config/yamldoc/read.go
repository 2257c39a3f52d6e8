package yamldoc

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// ReadFile reads one byte more than a file may have, for Parse to see.
func ReadFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, MaxFile+1))
}

// Unreadable is the mistake of a file that cannot be read; missing is what to say where
// there is none, if anything.
func Unreadable(path string, err error, missing string) *Error {
	e := &Error{File: path, Msg: "cannot be read: " + err.Error(), Cause: err}
	if missing != "" && errors.Is(err, fs.ErrNotExist) {
		e.Msg = missing
	}
	return e
}
