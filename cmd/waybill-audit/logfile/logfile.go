package logfile

import (
	"context"
	"errors"
	"fmt"
	"os"

	"waybill/replay"
	"waybill/store"
)

// Log is a log file opened for reading.
type Log struct {
	*store.Reader
	dir string // that goes with it; "" for none
}

// Open opens the log at path: a log file, a backup, or an export. It never creates or
// changes a file but for an export, which it reads into a temporary folder that Close
// removes.
func Open(path string) (Log, error) {
	if isExport(path) {
		return openExport(path)
	}
	r, err := store.OpenReader(path)
	if err != nil && isEvents(path) {
		err = fmt.Errorf("%s has the events alone: waybill-audit export --whole writes what stands for a log: %w", path, store.ErrNotLog)
	}
	return Log{Reader: r}, err
}

// Close ends the reading.
func (l Log) Close() error { return errors.Join(l.Reader.Close(), l.remove()) }

func (l Log) remove() error {
	if l.dir == "" {
		return nil
	}
	return os.RemoveAll(l.dir)
}

// Records implements replay.Source.
func (l Log) Records(ctx context.Context, after int64, max int) ([]replay.Record, error) {
	records, err := l.Read(ctx, after, max)
	out := make([]replay.Record, len(records))
	for i, r := range records {
		out[i] = replay.Record(r)
	}
	return out, err
}

// OfCall implements explain.Indexed.
func (l Log) OfCall(ctx context.Context, key string) ([]replay.Record, error) {
	list, err := l.ByCall(ctx, key)
	out := make([]replay.Record, len(list))
	for i, r := range list {
		out[i] = replay.Record(r)
	}
	return out, err
}

// Roots implements replay.Source.
func (l Log) Roots(ctx context.Context, after int64, max int) ([]replay.Root, error) {
	heads, err := l.Reader.Roots(ctx, after, max)
	out := make([]replay.Root, len(heads))
	for i, h := range heads {
		out[i] = replay.Root{Size: h.Size, Hash: h.Root}
	}
	return out, err
}

// Tiles implements replay.Source.
func (l Log) Tiles(ctx context.Context, level int, after int64, max int) ([]replay.Tile, error) {
	tiles, err := l.Reader.Tiles(ctx, level, after, max)
	out := make([]replay.Tile, len(tiles))
	for i, t := range tiles {
		out[i] = replay.Tile(t)
	}
	return out, err
}

// Checkpoints implements replay.Source.
func (l Log) Checkpoints(ctx context.Context, after int64, max int) ([]replay.Checkpoint, error) {
	list, err := l.Reader.Checkpoints(ctx, after, max)
	out := make([]replay.Checkpoint, len(list))
	for i, c := range list {
		out[i] = replay.Checkpoint(c)
	}
	return out, err
}

// EvidenceRun implements replay.Runner.
func (l Log) EvidenceRun(ctx context.Context, after int64, max int) ([]replay.Piece, error) {
	run, err := l.Reader.EvidenceRun(ctx, after, max)
	out := make([]replay.Piece, len(run))
	for i, p := range run {
		out[i] = replay.Piece(p)
	}
	return out, err
}

// Evidence implements replay.Source.
func (l Log) Evidence(ctx context.Context, digest [32]byte) ([]byte, error) {
	b, err := l.Reader.Evidence(ctx, digest)
	if errors.Is(err, store.ErrNoEvidence) {
		err = fmt.Errorf("%w: %w", replay.ErrNoEvidence, err)
	}
	return b, err
}
