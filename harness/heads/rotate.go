package heads

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"waybill/domain"
	"waybill/events"
	"waybill/events/checkpoint"
	"waybill/harness"
	"waybill/store"
)

// Rotate gives the log a new key: key.rotated is recorded, signed by both keys,
// and from that event on the new one signs. The log keeps its id and the key it
// was made with; the chain leads from that to the present one. The caller holds
// the lock and no service runs.
//
// The order is: next key on disk, event in the log, key in place. A crash before
// the event leaves a next key that Settle removes; one after it a key that Settle
// puts in place.
func Rotate(ctx context.Context, dir harness.DataDir, l *store.Log, by string, clock harness.Clock) (public string, err error) {
	if err := Settle(ctx, dir, l); err != nil {
		return "", err
	}
	r, err := prepare(dir, l.ID())
	if err != nil {
		return "", err
	}
	if err := writeNext(dir.KeyFiles(), r.private, r.data.To); err != nil {
		return "", err
	}
	r.data.By = by
	if err := record(ctx, l, clock, r.data); err != nil {
		return "", err
	}
	return r.data.To, Settle(ctx, dir, l)
}

// rotation is a next key and the event that takes it.
type rotation struct {
	private string
	data    domain.KeyRotated
}

func prepare(dir harness.DataDir, log string) (rotation, error) {
	private, err := readKey(dir.KeyFiles().Private)
	if err != nil {
		return rotation{}, err
	}
	next, to, err := checkpoint.NextKey(rand.Reader, log)
	if err != nil {
		return rotation{}, fmt.Errorf("make a key: %w", err)
	}
	signed, err := checkpoint.SignRotation(log, private, next)
	if err != nil {
		return rotation{}, err
	}
	_, from, err := checkpoint.NewSigner(private, log)
	if err != nil {
		return rotation{}, err
	}
	return rotation{next, domain.KeyRotated{From: from, To: to, Note: string(signed)}}, nil
}

func readKey(path string) (string, error) {
	b, err := harness.ReadSmall(path)
	if err != nil {
		return "", fmt.Errorf("read a key of the log: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

func writeNext(f harness.KeyFiles, private, public string) error {
	return errors.Join(harness.WriteFile(f.NextPrivate, []byte(private+"\n"), 0o600),
		harness.WriteFile(f.NextPublic, []byte(public+"\n"), fileMode))
}

// record appends one observation from which nothing follows.
func record(ctx context.Context, l *store.Log, clock harness.Clock, d domain.Data) error {
	head := l.Head().Size
	b, err := events.Seal(l.ID(), domain.Event{Seq: head + 1, Time: clock.Wall(), Mono: clock.Mono(), Data: d})
	if err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	_, err = l.Append(ctx, head, []store.Entry{{Type: d.Kind(), Bytes: b}})
	return err
}

// Settle ends a rotation that a crash has left half way: where the last event of
// the log is the rotation to the next key, that key is put in place; else it is
// removed. It may be called at any time by whoever holds the lock.
func Settle(ctx context.Context, dir harness.DataDir, l *store.Log) error {
	f := dir.KeyFiles()
	public, err := readKey(f.NextPublic)
	if errors.Is(err, fs.ErrNotExist) {
		return remove(f.NextPrivate) // a crash came between the two
	} else if err != nil {
		return err
	}
	rotated, err := lastRotation(ctx, l)
	if err != nil {
		return err
	}
	if rotated == nil || rotated.To != public {
		return errors.Join(remove(f.NextPrivate), remove(f.NextPublic))
	}
	return install(dir, l, *rotated)
}

// lastRotation returns the last event, if it is a rotation.
func lastRotation(ctx context.Context, l *store.Log) (*domain.KeyRotated, error) {
	records, err := l.Reader().Read(ctx, l.Head().Size-1, 1)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	if records[0].Type != (domain.KeyRotated{}).Kind() {
		return nil, nil
	}
	_, e, err := events.Open(records[0].Bytes)
	if err != nil {
		return nil, fmt.Errorf("read event %d: %w", records[0].Seq, err)
	}
	d, ok := e.Data.(domain.KeyRotated)
	if !ok {
		return nil, fmt.Errorf("event %d is no rotation", records[0].Seq)
	}
	return &d, nil
}

// install adds the note to the chain and puts the key in place. Each step may
// have been done by a run before this one.
func install(dir harness.DataDir, l *store.Log, d domain.KeyRotated) error {
	f := dir.KeyFiles()
	keys, err := dir.Keys(l.ID(), l.PublicKey())
	if err != nil {
		return err
	}
	if !checkpoint.SameKey(keys[len(keys)-1], d.To) {
		b, err := harness.ReadSmall(f.Rotations)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := harness.WriteFile(f.Rotations, append(b, d.Note+"\n"...), fileMode); err != nil {
			return err
		}
	}
	if err := errors.Join(copyKey(f.NextPrivate, f.Private), copyKey(f.NextPublic, f.Public)); err != nil {
		return err
	}
	return errors.Join(remove(f.NextPrivate), remove(f.NextPublic))
}

func copyKey(from, to string) error {
	b, err := harness.ReadSmall(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is in place
	} else if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	return harness.WriteFile(to, b, info.Mode().Perm())
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the key of a rotation that did not happen: %w", err)
	}
	return nil
}
