package upkeep

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/cmd/waybill/config"
	"waybill/domain"
	"waybill/harness"
	"waybill/harness/care"
	"waybill/replay"
	"waybill/store"
)

// Say tells a person what is going on.
type Say func(format string, v ...any)

// Verify reads every byte of a log file.
func Verify(ctx context.Context, path string) (replay.Verified, error) {
	l, err := logfile.Open(path)
	if err != nil {
		return replay.Verified{}, err
	}
	v, err := replay.Verify(ctx, l)
	return v, errors.Join(err, l.Close())
}

// Replay decides a log again; the error names the first decision that does not follow.
func Replay(ctx context.Context, path string) error {
	l, err := logfile.Open(path)
	if err != nil {
		return err
	}
	_, err = replay.Replay(ctx, l)
	var d *replay.DivergedError
	if errors.As(err, &d) {
		err = fmt.Errorf("event %d does not follow from what was recorded before it (%s)", d.Seq, d.Code)
	}
	return errors.Join(err, l.Close())
}

// Backed says what a backup holds.
type Backed struct {
	Log    string `json:"log"`
	File   string `json:"file"`
	Bytes  int64  `json:"bytes"`
	Size   int64  `json:"size"`   // events
	Signed int64  `json:"signed"` // size of the last checkpoint in it
	Root   string `json:"root"`
}

// Backup copies a log, which a service may have open, into a new file, verified.
func Backup(ctx context.Context, log, file string, say Say) (Backed, error) {
	var v replay.Verified
	_, err := store.Backup(ctx, log, file, func(path string) (err error) {
		say("waybill: backup: verifying the copy")
		v, err = Verify(ctx, path)
		return err
	}, tenths("backup", say))
	if err != nil {
		return Backed{}, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return Backed{}, err
	}
	path, err := filepath.Abs(file)
	return Backed{v.Log, path, info.Size(), v.Size, v.Signed, hex.EncodeToString(v.Root[:])}, err
}

// Print writes it for people.
func (b Backed) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "log %s: %d events whole and unaltered in %s (%s), signed up to %d\nhead %d, root %s\n",
		b.Log, b.Size, b.File, Bytes(b.Bytes), b.Signed, b.Size, b.Root)
	return err
}

// tenths tells how far a copy is, ten times in all.
func tenths(what string, say Say) func(copied, of int64) {
	told := int64(-1)
	return func(copied, of int64) {
		if tenth := copied * 10 / of; tenth > told {
			told = tenth
			say("waybill: %s: %d of %d events copied", what, copied, of)
		}
	}
}

// Restored says what a restore has made.
type Restored struct {
	Log       string             `json:"log"`
	PublicKey string             `json:"public_key"`
	Cites     domain.LogRestored `json:"cites"`
	Kept      string             `json:"kept"` // the other log
	Made      []string           `json:"made"`
}

// Restore begins a new log that cites the one in file. The caller holds the lock.
func Restore(ctx context.Context, f *config.File, file string, say Say) (Restored, error) {
	dir := harness.DataDir(f.Data)
	r, err := care.Restore(ctx, care.Restoring{Dir: dir, Node: f.Node, Backup: file, Now: time.Now(), Progress: tenths("restore", say),
		Verify: func(ctx context.Context, path string) error { _, err := Verify(ctx, path); return err }})
	if err != nil {
		return Restored{}, err
	}
	key, err := dir.PublicKey()
	return Restored{r.Log, key, r.Cites, r.Kept, r.Made}, err
}

// Print writes it for people.
func (r Restored) Print(w io.Writer) error {
	for _, m := range r.Made {
		fmt.Fprintf(w, "made %s\n", m)
	}
	fmt.Fprintf(w, "log %s goes on from log %s, %d events, signed up to %d, root %s\n", r.Log, r.Cites.Log, r.Cites.Size, r.Cites.Signed, r.Cites.Root)
	if r.Cites.Beyond > 0 {
		fmt.Fprintf(w, "events %d to %d of it were signed and are not in the backup: they may have been acted on\n", r.Cites.Size+1, r.Cites.Beyond)
	}
	_, err := fmt.Fprintf(w, "public key %s\nnext: waybill serve; hosts list the tools again, and call ids begin afresh\n", r.PublicKey)
	return err
}
