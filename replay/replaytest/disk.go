package replaytest

import (
	"context"
	"errors"
	"testing"

	"waybill/store"
)

// Write makes a log file of a well-made log, transaction by transaction, and
// closes it.
func (l *Log) Write(t testing.TB, path string) {
	t.Helper()
	if err := store.Create(path, ID, Key); err != nil {
		t.Fatal(err)
	}
	f, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Append(f), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Append appends to an open log what it lacks of this one, and then the
// checkpoints.
func (l *Log) Append(f *store.Log) error {
	entries := l.Entries()
	for _, size := range l.Sizes() {
		after := f.Head().Size
		if size <= after {
			continue
		}
		if _, err := f.Append(context.Background(), after, entries[after:size]); err != nil {
			return err
		}
	}
	for _, c := range l.Notes {
		if err := f.Checkpoint(context.Background(), c.Size, c.Note); err != nil {
			return err
		}
	}
	return nil
}
