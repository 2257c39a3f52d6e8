package store

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/mattn/go-sqlite3"

	"waybill/migrations"
)

var (
	// ErrMissing is matched by the error for a log that does not exist. It
	// matches [fs.ErrNotExist].
	ErrMissing = fmt.Errorf("no log there: %w", fs.ErrNotExist)

	// ErrExists is matched by the error of [Create] where there is a file
	// already. It matches [fs.ErrExist].
	ErrExists = fmt.Errorf("there is a file already: %w", fs.ErrExist)

	// ErrNotLog is matched by the error for a file that is not a log.
	ErrNotLog = errors.New("not a log of this program")

	// ErrNewerSchema is matched by the error for a log that a later release
	// has moved on; the text says which release can read it.
	ErrNewerSchema = migrations.ErrNewerSchema

	// ErrAltered is matched by the error for a log whose rows do not agree
	// with its tree.
	ErrAltered = errors.New("the log is altered or damaged: run waybill-audit verify")

	// ErrConflict is matched by the error of an append that does not follow
	// the head of the log. Nothing was written.
	ErrConflict = errors.New("the log has another head")

	// ErrOutcomeUnknown is matched by the error of an append whose transaction
	// may or may not have committed, and by that of every later append until
	// Reread has found out.
	ErrOutcomeUnknown = errors.New("outcome unknown until the log is read again")

	// ErrNoEvidence is matched by the error for a digest that is not kept.
	ErrNoEvidence = errors.New("no evidence with this digest")

	// ErrNoCheckpoint is matched by the error for a log without a checkpoint.
	ErrNoCheckpoint = errors.New("no checkpoint")

	// ErrClosed is matched by the error of using a log after Close.
	ErrClosed = errors.New("the log is closed")
)

// A ConflictError says which head an append expected and which one there is.
// It matches [ErrConflict].
type ConflictError struct {
	After int64 // the head that the append was to follow
	Size  int64 // the head in memory
	Cause error // what the file refused, if another process has written to it; else nil
}

func (e *ConflictError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("append after %d: another process has written to the log: %v", e.After, e.Cause)
	}
	return fmt.Sprintf("append after %d: the head of the log is %d", e.After, e.Size)
}

// Is reports whether target is [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// Unwrap returns the cause, which may be nil.
func (e *ConflictError) Unwrap() error { return e.Cause }

// notLog makes SQLite's word for a file that is not a database match
// [ErrNotLog], and leaves every other error as it is.
func notLog(err error) error {
	var e sqlite3.Error
	if errors.As(err, &e) && e.Code == sqlite3.ErrNotADB {
		return fmt.Errorf("%w: %w", ErrNotLog, err)
	}
	return err
}

// advice says what to do about what SQLite says of a file that cannot be used
// just now; "" where the error says so itself.
func advice(err error) string {
	var e sqlite3.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch e.Code {
	case sqlite3.ErrReadonly, sqlite3.ErrPerm:
		return "; it cannot be written: run as its owner, and look whether the file system is mounted read-only"
	case sqlite3.ErrCantOpen, sqlite3.ErrAuth:
		return "; it cannot be opened: run as its owner, and look at the permissions of the file and its folder"
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return "; another program has locked it: find it, with fuser for example, and end it"
	case sqlite3.ErrFull:
		return "; make room on its disk"
	case sqlite3.ErrIoErr:
		return "; look at the disk: it may be full or failing"
	}
	return ""
}

// damaged marks what SQLite says of a file whose pages do not fit together, or
// whose schema is not ours: bytes in it were changed.
func damaged(err error) error {
	var e sqlite3.Error
	if !errors.As(err, &e) || errors.Is(err, ErrAltered) {
		return err
	}
	if e.Code == sqlite3.ErrCorrupt || e.Code == sqlite3.ErrError || e.Code == sqlite3.ErrMismatch {
		return fmt.Errorf("%w: %w", ErrAltered, err)
	}
	return err
}
