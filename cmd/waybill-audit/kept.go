package main

import (
	"context"
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

// keyring has the keys of a log, each with the event from which on it signs.
type keyring []replay.KeyFrom

// at is the key that signs checkpoints of a size.
func (k keyring) at(size int64) string {
	key := ""
	for _, from := range k {
		if from.Seq <= size {
			key = from.Public
		}
	}
	return key
}

// keysOf returns the keys that a log's checkpoints are opened with. One that is
// given must be among them.
func keysOf(ctx context.Context, l logfile.Log, arg string) (keyring, error) {
	keys, err := replay.Keys(ctx, l)
	if err != nil || arg == "" {
		return keys, err
	}
	key, err := readKey(arg)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if checkpoint.SameKey(key, k.Public) {
			return keys, nil
		}
	}
	return nil, &replay.AlteredError{What: fmt.Sprintf("the log names %s as its key, and not %s", l.PublicKey(), key)}
}

// openKeptOf opens a checkpoint of a log that was kept in a file.
func openKeptOf(path string, keys keyring, log string) (head, error) {
	b, err := readSmall(path)
	if err != nil {
		return head{}, err
	}
	h, err := checkpoint.Peek(b)
	if err != nil {
		return head{}, asAltered(path, err)
	}
	return openKept(path, keys.at(h.Size), log)
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
