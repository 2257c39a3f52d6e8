package care

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"waybill/domain"
	"waybill/events"
	"waybill/events/checkpoint"
	"waybill/harness"
	"waybill/harness/heads"
	"waybill/store"
)

// ErrLogThere is matched by the error for a directory that has a log.
var ErrLogThere = errors.New("there is a log here: restore begins a new one only where there is none; " +
	"stop the service, and move the log.db away with everything whose name begins with log.db")

// Restoring says what to restore and how.
type Restoring struct {
	Dir    harness.DataDir // whose lock the caller holds
	Node   string          // of the new log
	Backup string          // the file of the other log
	Now    time.Time

	// Verify refuses a log file that is altered.
	Verify func(ctx context.Context, path string) error
	// Progress is told how many events are copied; nil for nobody.
	Progress func(copied, of int64)
}

// Restored is what Restore has made.
type Restored struct {
	Log   string             // id of the new log
	Cites domain.LogRestored // what its first event says
	Kept  string             // where the other log is kept, whole
	Made  []string           // files of the new log, and those kept of the other one
}

// Restore begins a new log, with a new id and a new key, in a directory that has
// none. Its first event, log.restored, cites the log in the backup: id, key, size,
// root, the last checkpoint in it, and how many events that log had by a newer
// checkpoint that is still in the directory. The backup itself is verified and
// kept in restored/ID, which is a data directory by itself, with the old keys,
// checkpoint and payloads if they are there. Nothing of its state is taken over:
// names, call ids and generations begin afresh.
//
// A backup that is altered, or does not belong to the keys and checkpoint in the
// directory, is refused before anything is changed. A crash leaves no log.db, and
// a mark by which [harness.DataDir.Init] refuses; Restore with the same backup
// then goes on from there.
func Restore(ctx context.Context, c Restoring) (Restored, error) {
	r := restorer{Restoring: c}
	if err := r.vacant(); err != nil {
		return Restored{}, err
	}
	if err := r.fits(ctx); err != nil {
		return Restored{}, err
	}
	if err := r.keep(ctx); err != nil {
		return Restored{}, err
	}
	note, err := r.cite(ctx)
	if err != nil {
		return Restored{}, err
	}
	if err := r.retire(); err != nil {
		return Restored{}, err
	}
	return r.begin(note)
}

type restorer struct {
	Restoring
	log    string // id of the other log
	old    harness.DataDir
	cites  domain.LogRestored
	beyond int64
	made   []string
}

func (r *restorer) vacant() error {
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if path := r.Dir.LogFile() + suffix; !missing(path) {
			return fmt.Errorf("%s: %w", path, ErrLogThere)
		}
	}
	return nil
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// fits holds the backup to what is in the directory of the log it is of.
func (r *restorer) fits(ctx context.Context) error {
	l, err := store.OpenReader(r.Backup)
	if err != nil {
		return err
	}
	defer l.Close()
	r.log = l.ID()
	r.old = harness.DataDir(filepath.Join(string(r.Dir), "restored", r.log))
	if r.log != filepath.Base(r.log) { // it names files
		return fmt.Errorf("%s is of a log with the id %.80q, which no waybill gives", r.Backup, r.log)
	}
	mark, err := harness.ReadSmall(r.Dir.RestoreMark())
	if err == nil && strings.TrimSpace(string(mark)) != r.log {
		return fmt.Errorf("a restore of log %s has not finished here, and %s is of log %s: restore that one first, or remove %s", strings.TrimSpace(string(mark)), r.Backup, r.log, r.Dir.RestoreMark())
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	keys, err := r.keys(l.PublicKey())
	if err != nil {
		return err
	}
	for _, file := range []string{r.Dir.CheckpointFile(), r.old.CheckpointFile()} {
		if err := r.held(ctx, l, keys, file); err != nil {
			return err
		}
	}
	return nil
}

// held holds the backup to a checkpoint that may be in the directory.
func (r *restorer) held(ctx context.Context, l *store.Reader, keys []string, file string) error {
	b, err := harness.ReadSmall(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	h, err := heads.Held(ctx, l, keys, b, file)
	if err != nil {
		return fmt.Errorf("%s does not belong to the checkpoint here: %w", r.Backup, err)
	}
	r.beyond = max(r.beyond, h.Size)
	return nil
}

// keys returns the keys that the log of the backup has had, as far as the
// directory shows. It refuses keys that are of another log: that one would go
// uncited. What an init or a restore has made and not finished is of no log.
func (r *restorer) keys(first string) ([]string, error) {
	if !r.owned() {
		return r.old.Keys(r.log, first)
	}
	keys, err := r.Dir.Keys(r.log, first)
	own := ""
	if err == nil {
		own, err = r.Dir.PublicKey()
	}
	if err == nil && !slices.ContainsFunc(keys, func(key string) bool { return checkpoint.SameKey(key, own) }) {
		err = errors.New("they are of another log")
	}
	if err != nil {
		return nil, fmt.Errorf("%s does not belong to the keys in %s (%w): restore a backup of that log, or move keys and checkpoint away", r.Backup, r.Dir.KeysDir(), err)
	}
	return keys, nil
}

// owned reports whether the directory has the keys of a log that was.
func (r *restorer) owned() bool {
	f := r.Dir.KeyFiles()
	return missing(r.Dir.InitMark()) && (!missing(f.Private) || !missing(f.Public))
}

// keep copies the backup into the directory, whole and verified.
func (r *restorer) keep(ctx context.Context) error {
	if err := harness.WriteFile(r.Dir.RestoreMark(), []byte(r.log+"\n"), 0o600); err != nil {
		return err
	}
	if err := os.MkdirAll(string(r.old), 0o700); err != nil {
		return err
	}
	if err := r.copyOrCompare(ctx); err != nil {
		return errors.Join(err, r.forget())
	}
	return nil
}

func (r *restorer) copyOrCompare(ctx context.Context) error {
	check := func(path string) error { return r.Verify(ctx, path) }
	if missing(r.old.LogFile()) {
		_, err := store.Backup(ctx, r.Backup, r.old.LogFile(), check, r.Progress)
		r.made = append(r.made, r.old.LogFile())
		return err
	}
	if err := r.sameAsKept(ctx); err != nil {
		return err
	}
	return check(r.old.LogFile())
}

// forget takes the mark away where nothing has been changed yet.
func (r *restorer) forget() error {
	if !missing(r.Dir.InitMark()) || !missing(r.old.KeysDir()) || !missing(r.old.CheckpointFile()) {
		return nil
	}
	return os.Remove(r.Dir.RestoreMark())
}

// sameAsKept compares the backup with what an earlier restore has kept.
func (r *restorer) sameAsKept(ctx context.Context) error {
	var h [2]store.Head
	for i, path := range []string{r.Backup, r.old.LogFile()} {
		l, err := store.OpenReader(path)
		if err != nil {
			return err
		}
		h[i], err = l.Head(ctx)
		if err := errors.Join(err, l.Close()); err != nil {
			return err
		}
	}
	if h[0] != h[1] {
		return fmt.Errorf("%s has %d events and %s has %d or others: move that one away, or restore from it", r.Backup, h[0].Size, r.old.LogFile(), h[1].Size)
	}
	return nil
}

// cite makes the first event from the copy that is kept.
func (r *restorer) cite(ctx context.Context) (note []byte, err error) {
	l, err := store.OpenReader(r.old.LogFile())
	if err != nil {
		return nil, err
	}
	defer l.Close()
	head, err := l.Head(ctx)
	if err != nil {
		return nil, err
	}
	r.cites = domain.LogRestored{Log: r.log, Key: l.PublicKey(), Size: head.Size, Root: hex.EncodeToString(head.Root[:])}
	if key, err := checkpoint.PublicKey(l.PublicKey(), r.log); err == nil {
		r.cites.Key = key
	}
	if r.beyond > head.Size {
		r.cites.Beyond = r.beyond
	}
	last, err := l.LastCheckpoint(ctx)
	if errors.Is(err, store.ErrNoCheckpoint) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	r.cites.Signed, r.cites.Checkpoint = last.Size, domain.RefTo(last.Note)
	return last.Note, nil
}

// retire moves the old keys, checkpoint and payloads beside the copy: payloads are
// kept by the seq of their event, which is another event in the new log. The key
// that names payloads stays in use: what it named before can still be compared.
func (r *restorer) retire() error {
	if r.owned() {
		if err := r.move(r.Dir.KeysDir(), r.old.KeysDir()); err != nil {
			return err
		}
	}
	for from, to := range r.others() {
		if missing(r.Dir.InitMark()) && !missing(from) {
			if err := r.move(from, to); err != nil {
				return err
			}
		}
	}
	from, to := filepath.Join(r.old.KeysDir(), payloadKey), filepath.Join(r.Dir.KeysDir(), payloadKey)
	if missing(from) || !missing(to) {
		return nil
	}
	b, err := harness.ReadSmall(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.Dir.KeysDir(), 0o700); err != nil {
		return err
	}
	return harness.WriteFile(to, b, 0o600)
}

// others are the files of the old log beside log.db and keys, with where they go;
// in any order, since each is moved by itself.
func (r *restorer) others() map[string]string {
	out := map[string]string{r.Dir.CheckpointFile(): r.old.CheckpointFile()}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		out[r.Dir.PayloadsFile()+suffix] = r.old.PayloadsFile() + suffix
	}
	return out
}

const payloadKey = "payload.key"

// move renames a file or a folder, on disk in both places when it returns.
func (r *restorer) move(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	for _, path := range []string{to, from} {
		dir, err := os.Open(filepath.Dir(path))
		if err != nil {
			return err
		}
		if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
			return fmt.Errorf("move %s to %s: %w", from, to, err)
		}
	}
	r.made = append(r.made, to)
	return nil
}

// begin makes the new log with its first event.
func (r *restorer) begin(note []byte) (Restored, error) {
	id, made, err := r.Dir.InitWith(r.Node, func(id string) ([]store.Entry, error) {
		return r.first(id, note)
	})
	if err == nil {
		err = os.Remove(r.Dir.RestoreMark())
	}
	return Restored{Log: id, Cites: r.cites, Kept: r.old.LogFile(), Made: append(r.made, made...)}, err
}

func (r *restorer) first(id string, note []byte) ([]store.Entry, error) {
	b, err := events.Seal(id, domain.Event{Seq: 1, Time: r.Now.UnixNano(), Data: r.cites})
	if err != nil {
		return nil, err
	}
	e := store.Entry{Type: r.cites.Kind(), Bytes: b}
	if note != nil {
		digest, err := events.DigestOf(r.cites.Checkpoint)
		if err != nil {
			return nil, err
		}
		e.Evidence = []store.Evidence{{Digest: digest, Bytes: note}}
	}
	return []store.Entry{e}, nil
}
