package harness

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/sys/unix"

	"waybill/domain"
	"waybill/events/checkpoint"
	"waybill/store"
)

// DataDir is a data directory: the log and everything beside it.
//
//	log.db            the log: sacred
//	checkpoint        the last signed tree head, for whoever keeps a copy of it
//	keys/log.key      signs tree heads; keys/log.pub is its public half
//	keys/payload.key  names payloads in events
//	nats/             credentials of the NATS users
//	payloads.db       kept bytes of calls: may be erased
//	views.db          projections: may be deleted at any time
//	jetstream/        the embedded server's copy: may be deleted while stopped
//	lock              held by the one process that writes
//	run.json          where the running service is; stale without the lock
//	restored/ID/      a log that this one was begun from, with its keys
type DataDir string

// ErrNoLog is matched by the error for a directory without a log.
var ErrNoLog = errors.New("no log here; run waybill init")

func (d DataDir) file(name ...string) string {
	return filepath.Join(append([]string{string(d)}, name...)...)
}

// LogFile returns the path of the log.
func (d DataDir) LogFile() string { return d.file("log.db") }

// PayloadsFile returns the path of the kept bytes of calls.
func (d DataDir) PayloadsFile() string { return d.file("payloads.db") }

// ViewsFile returns the path of the projections.
func (d DataDir) ViewsFile() string { return d.file("views.db") }

// CheckpointFile returns the path of the last signed tree head.
func (d DataDir) CheckpointFile() string { return d.file("checkpoint") }

// NATSDir returns the folder of the NATS credentials.
func (d DataDir) NATSDir() string { return d.file("nats") }

// KeysDir returns the folder of the keys of the log.
func (d DataDir) KeysDir() string { return d.file("keys") }

// InitMark returns the path of the mark of an Init that has not finished.
func (d DataDir) InitMark() string { return d.file("init.partial") }

// RestoreMark returns the path of the mark of a restore that has not finished.
func (d DataDir) RestoreMark() string { return d.file("restore.partial") }

// RunFile returns the path of what WriteRun writes.
func (d DataDir) RunFile() string { return d.file("run.json") }

// Exists reports whether there is a log, with an error matching ErrNoLog where
// there is none.
func (d DataDir) Exists() error {
	if _, err := os.Stat(d.LogFile()); errors.Is(err, fs.ErrNotExist) {
		if !missing(d.file("keys", "log.key")) && missing(d.InitMark()) {
			return fmt.Errorf("%s: %w; the keys of a log are here, so that would begin a second history: put log.db back, or run waybill restore BACKUP", d.LogFile(), ErrNoLog)
		}
		return fmt.Errorf("%s: %w", d.LogFile(), ErrNoLog)
	} else if err != nil {
		return err
	}
	return nil
}

// Init makes the log of a node with its keys, and adds files that are missing.
// It never touches a log, an id or a key that is there. It returns the log id
// and the files it made. The caller holds the lock.
//
// A crash half way leaves keys and init.partial but no log; the next Init goes
// on from there.
func (d DataDir) Init(node string) (id string, made []string, err error) {
	if d.Exists() != nil && !missing(d.RestoreMark()) {
		return "", nil, fmt.Errorf("a restore has not finished in %s: run waybill restore again, or remove %s to begin a log that cites no other", string(d), d.RestoreMark())
	}
	return d.InitWith(node, func(string) ([]store.Entry, error) { return nil, nil })
}

// InitWith is Init of a log that begins with the events that first makes under
// its id: they are in it from the moment it is there.
func (d DataDir) InitWith(node string, first func(id string) ([]store.Entry, error)) (id string, made []string, err error) {
	if err := d.checkPartial(); err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(d.file("keys"), 0o700); err != nil {
		return "", nil, err
	}
	made, err = d.makeKeys(node)
	if err != nil {
		return "", made, err
	}
	public, err := d.PublicKey()
	if err != nil {
		return "", made, err
	}
	if id, err = checkpoint.LogID(node, public); err != nil {
		return "", made, err
	}
	entries, err := first(id)
	if err != nil {
		return "", made, err
	}
	switch err := store.Create(d.LogFile(), id, public, entries...); {
	case err == nil:
		made = append(made, d.LogFile())
	case errors.Is(err, store.ErrExists):
		if id, err = d.sameKey(public); err != nil {
			return "", made, err
		}
	default:
		return "", made, err
	}
	if err := removeFile(d.InitMark()); err != nil {
		return "", made, err
	}
	return id, made, nil
}

// checkPartial refuses a directory that lost its log but kept its keys: a new
// log under the same id would be a second history.
func (d DataDir) checkPartial() error {
	keys := !missing(d.file("keys", "log.key")) || !missing(d.file("keys", "log.pub"))
	switch err := d.Exists(); {
	case err == nil:
		return nil
	case !errors.Is(err, ErrNoLog):
		return err
	case keys && missing(d.InitMark()):
		return fmt.Errorf("%s has the keys of a log but no log.db: put the log back from a backup, or move keys away to begin a new log", string(d))
	}
	return WriteFile(d.InitMark(), []byte("waybill init has not finished\n"), 0o600)
}

func (d DataDir) makeKeys(node string) (made []string, err error) {
	private, public := d.file("keys", "log.key"), d.file("keys", "log.pub")
	if d.Exists() != nil && missing(public) {
		skey, vkey, err := checkpoint.GenerateKey(rand.Reader, node)
		if err != nil {
			return nil, fmt.Errorf("make the key of the log: %w", err)
		}
		if err := WriteFile(private, []byte(skey+"\n"), 0o600); err != nil {
			return nil, err
		}
		if err := WriteFile(public, []byte(vkey+"\n"), 0o644); err != nil {
			return nil, err
		}
		made = append(made, private, public)
	}
	if missing(private) || missing(public) {
		return made, fmt.Errorf("%s: a key of the log is missing and cannot be made again: put it back from a backup", d.file("keys"))
	}
	if err := d.checkPair(); err != nil {
		return made, err
	}
	if payload := d.file("keys", "payload.key"); missing(payload) {
		key := make([]byte, 32)
		if _, err := rand.Read(key); err != nil {
			return made, err
		}
		if err := WriteFile(payload, []byte(hex.EncodeToString(key)+"\n"), 0o600); err != nil {
			return made, err
		}
		made = append(made, payload)
	}
	return made, nil
}

// checkPair refuses two halves of different keys: heads signed with the one
// could never be verified with the other.
func (d DataDir) checkPair() error {
	private, err := ReadSmall(d.file("keys", "log.key"))
	if err != nil {
		return fmt.Errorf("read the private key of the log: %w", err)
	}
	public, err := d.PublicKey()
	if err != nil {
		return err
	}
	signer, err := note.NewSigner(strings.TrimSpace(string(private)))
	if err != nil {
		// The error of the parser is not wrapped: nothing of a private key may be printed.
		return fmt.Errorf("%s is no private key: put it back from a backup", d.file("keys", "log.key"))
	}
	verifier, err := note.NewVerifier(public)
	if err != nil {
		return fmt.Errorf("%s is no public key: put it back from a backup", d.file("keys", "log.pub"))
	}
	if signer.Name() != verifier.Name() || signer.KeyHash() != verifier.KeyHash() {
		return fmt.Errorf("%s: log.key and log.pub are not of one key: put the right ones back from a backup", d.file("keys"))
	}
	return nil
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// PublicKey returns the key that the log's tree heads are verified with.
func (d DataDir) PublicKey() (string, error) {
	b, err := ReadSmall(d.file("keys", "log.pub"))
	if err != nil {
		return "", fmt.Errorf("read the public key of the log: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// Signer returns the signer of a log's checkpoints, and the public key that they
// verify with. No error holds anything of the private key.
func (d DataDir) Signer(log string) (s note.Signer, public string, err error) {
	b, err := ReadSmall(d.file("keys", "log.key"))
	if err != nil {
		return nil, "", fmt.Errorf("read the private key of the log: %w; put it back from a backup", err)
	}
	s, public, err = checkpoint.NewSigner(strings.TrimSpace(string(b)), log)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w: put it back from a backup", d.file("keys", "log.key"), err)
	}
	return s, public, nil
}

func (d DataDir) sameKey(public string) (id string, err error) {
	r, err := store.OpenReader(d.LogFile())
	if err != nil {
		return "", err
	}
	defer r.Close()
	keys, err := d.Keys(r.ID(), r.PublicKey())
	if err != nil {
		return "", err
	}
	if !checkpoint.SameKey(keys[len(keys)-1], public) {
		return "", fmt.Errorf("%s belongs to another key than keys/log.pub: put the right key back", d.LogFile())
	}
	return r.ID(), nil
}

// Digester returns the function that names payloads: their size, and an
// HMAC-SHA-256 under the key of this directory. Plain digests of small values
// could be guessed.
func (d DataDir) Digester() (func([]byte) domain.Payload, error) {
	b, err := ReadSmall(d.file("keys", "payload.key"))
	if err != nil {
		return nil, fmt.Errorf("read the payload key: %w; run waybill init", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(key) < 32 {
		return nil, fmt.Errorf("%s is no key of 32 bytes in hex: put it back from a backup", d.file("keys", "payload.key"))
	}
	return func(p []byte) domain.Payload {
		m := hmac.New(sha256.New, key)
		m.Write(p)
		return domain.Payload{Size: int64(len(p)), HMAC: hex.EncodeToString(m.Sum(nil))}
	}, nil
}

// WriteFile makes a file durable under its name: when it returns nil the new
// content is there, after a crash the old one or the new one is, whole. A crash
// can leave a file ending in .new, which the next call replaces. Two calls must
// not run at once on one path.
func WriteFile(path string, b []byte, mode fs.FileMode) error {
	tmp := path + ".new"
	// What a crash left under this name may have another mode.
	if err := removeFile(tmp); err != nil {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// syncDir makes the names in a folder durable. Tests have it fail when it has.
var syncDir = func(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// LockedError says that another process holds the data directory.
type LockedError struct {
	Dir string
	PID int // 0 where it is not known
}

// Error says who holds it and what to do.
func (e *LockedError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = fmt.Sprintf("another process (pid %d)", e.PID)
	}
	return fmt.Sprintf("%s is held by %s: stop it, or wait for it to end", e.Dir, who)
}

// Lock is the right to write in a data directory. It ends with the process.
type Lock struct{ f *os.File }

// lockPatience is how long Lock tries: longer than Running looks at the lock.
const lockPatience = 300 * time.Millisecond

// Lock takes the directory for this process, or gives a *LockedError. It takes
// away what a crash left and what would mislead: the run.json of a service that
// is gone, because this process may have been given its pid, and the mark of an
// Init that had made the log, because one that outlived the log would let the
// next Init begin a second history.
func (d DataDir) Lock() (*Lock, error) {
	f, err := os.OpenFile(d.file("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", string(d), ErrNoLog)
	} else if err != nil {
		return nil, err
	}
	if err := d.seize(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &Lock{f}, nil
}

func (d DataDir) seize(f *os.File) error {
	deadline := time.Now().Add(lockPatience)
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("lock %s: %w", d.file("lock"), err)
		}
		if time.Now().After(deadline) {
			return &LockedError{Dir: string(d), PID: pidIn(f)}
		}
		time.Sleep(10 * time.Millisecond)
	}
	// The pid is for people only; the lock itself is what counts.
	if _, err := f.WriteAt(fmt.Appendf(nil, "%-10d\n", os.Getpid()), 0); err != nil {
		return err
	}
	if err := d.RemoveRun(); err != nil {
		return err
	}
	if missing(d.LogFile()) {
		return nil // an init goes on from its mark
	}
	return errors.Join(removeFile(d.InitMark()), removeFile(d.RestoreMark()))
}

// removeFile removes a file that need not be there.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func pidIn(f *os.File) (pid int) {
	b := make([]byte, 16)
	n, _ := f.ReadAt(b, 0)
	_, _ = fmt.Sscan(string(b[:n]), &pid)
	return pid
}

// Release gives the directory up.
func (l *Lock) Release() error { return l.f.Close() }

// Held reports whether a process holds the lock, and which; pid is 0 where it is
// not known. It looks with a shared lock, for an instant.
func (d DataDir) Held() (pid int, yes bool, err error) {
	f, err := os.Open(d.file("lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	} else if err != nil {
		return 0, false, err
	}
	defer f.Close()
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case err == nil:
		return 0, false, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return pidIn(f), true, nil
	default:
		return 0, false, fmt.Errorf("look at %s: %w", d.file("lock"), err)
	}
}

// Run is the content of run.json: where the running service is.
type Run struct {
	PID         int    `json:"pid"`
	URL         string `json:"url"` // NATS: one server, or several joined by commas
	TLS         RunTLS `json:"tls,omitzero"`
	Credentials string `json:"credentials"` // folder
	Log         string `json:"log"`
	Prefix      string `json:"prefix"`
}

// RunTLS says how the way to the NATS server is encrypted. The fields are those of
// package secure, which says what they mean; all are paths, or public.
type RunTLS struct {
	CA   string `json:"ca,omitzero"`
	Cert string `json:"cert,omitzero"`
	Key  string `json:"key,omitzero"`
	Pin  string `json:"pin,omitzero"`
}

// WriteRun says where the service is. The caller holds the lock.
func (d DataDir) WriteRun(r Run) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(d.RunFile(), append(b, '\n'), 0o600)
}

// RemoveRun takes run.json away, if it is there. The caller holds the lock.
func (d DataDir) RemoveRun() error { return removeFile(d.RunFile()) }

// Running returns where the service is, and nil if none runs: the lock counts,
// not the file. A lock that is held by a process that wrote no run.json is a
// *LockedError.
func (d DataDir) Running() (*Run, error) {
	if err := d.Exists(); err != nil {
		return nil, err
	}
	pid, held, err := d.Held()
	if err != nil || !held {
		return nil, err
	}
	b, err := ReadSmall(d.RunFile())
	var r Run
	if err != nil || json.Unmarshal(b, &r) != nil || r.PID != pid {
		return nil, &LockedError{Dir: string(d), PID: pid}
	}
	return &r, nil
}
