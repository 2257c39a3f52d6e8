package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/events/checkpoint"
	"waybill/replay"
)

// maxSmall bounds files that hold a key or a checkpoint.
const maxSmall = 64 << 10

// readSmall reads a file that the user has named.
func readSmall(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, usageError{err}
	}
	if len(b) > maxSmall {
		return nil, usageError{fmt.Errorf("%s has %d bytes, too many for a key or a checkpoint", path, len(b))}
	}
	return b, nil
}

// readKey takes a public key or the name of a file that holds one.
func readKey(arg string) (string, error) {
	if checkpoint.SameKey(arg, arg) {
		return arg, nil
	}
	b, err := readSmall(arg)
	if err != nil {
		return "", usageError{fmt.Errorf("--key is neither a public key, as waybill init prints it, nor a file: %w", err)}
	}
	key := strings.TrimSpace(string(b))
	if !checkpoint.SameKey(key, key) {
		return "", usageError{fmt.Errorf("%s holds no public key, as waybill init prints it", arg)}
	}
	return key, nil
}

// keyOf returns the key that a log's checkpoints are opened with: the one given,
// which must be the log's, or the log's own.
func keyOf(l logfile.Log, arg string) (string, error) {
	if arg == "" {
		return l.PublicKey(), nil
	}
	key, err := readKey(arg)
	if err == nil && !checkpoint.SameKey(key, l.PublicKey()) {
		err = &replay.AlteredError{What: fmt.Sprintf("the log names %s as its key, and not %s", l.PublicKey(), key)}
	}
	return key, err
}

// head is an opened checkpoint with its bytes.
type head struct {
	checkpoint.Head
	note []byte
}

// openKept opens a checkpoint that was kept in a file. One that is not signed by
// the key, or for another log than the one named, does not fit.
func openKept(path, key, log string) (head, error) {
	b, err := readSmall(path)
	if err != nil {
		return head{}, err
	}
	h, err := checkpoint.Open(b, key)
	if err == nil && log != "" && h.Log != log {
		err = fmt.Errorf("it is of log %s, and not of %s", h.Log, log)
	}
	return head{h, b}, asAltered(path, err)
}

// asAltered tells a file that is no checkpoint at all from one that is wrong.
func asAltered(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, checkpoint.ErrMalformed):
		return usageError{fmt.Errorf("%s: %w", path, err)}
	}
	return &replay.AlteredError{What: fmt.Sprintf("%s: %v", path, err)}
}
