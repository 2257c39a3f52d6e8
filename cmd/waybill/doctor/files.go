package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"waybill/events/checkpoint"
	"waybill/harness"
)

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// directory looks whether there is anything to look at.
func (c *checkup) directory() {
	info, err := os.Stat(string(c.dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.absent = true
		c.add(Error, "not_initialised", string(c.dir), "run waybill init, or name the right directory under data", "there is no data directory")
	case err != nil:
		c.absent = true
		c.add(Error, "unreadable", string(c.dir), "run as the user that the service runs as", "the data directory cannot be looked at: %v", err)
	case !info.IsDir():
		c.absent = true
		c.add(Error, "unreadable", string(c.dir), "name a directory under data", "it is no directory")
	case errors.Is(unix.Access(string(c.dir), unix.W_OK), unix.EROFS):
		c.add(Error, "read_only", string(c.dir), "mount the file system writable", "the file system is read-only: no service can start here")
	case unix.Access(string(c.dir), unix.W_OK) != nil:
		c.add(Error, "read_only", string(c.dir), "run as the user that the service runs as, or give that user the directory", "this user cannot write here")
	}
}

// marks looks for what has begun and not ended.
func (c *checkup) marks() {
	log := exists(c.dir.LogFile())
	f := c.dir.KeyFiles()
	switch {
	case c.absent || log:
	case exists(c.dir.RestoreMark()):
		c.add(Error, "half_restored", c.dir.RestoreMark(), "run waybill restore again with the same backup", "a restore has not finished; there is no log yet")
	case exists(c.dir.InitMark()):
		c.add(Error, "half_initialised", c.dir.InitMark(), "run waybill init again: it goes on from there", "an init has not finished; there is no log yet")
	case exists(f.Private) || exists(f.Public):
		c.add(Error, "log_missing", c.dir.LogFile(), "put log.db back; if it is lost, run waybill restore with a backup", "the keys of a log are here, but no log")
	default:
		c.add(Error, "not_initialised", c.dir.LogFile(), "run waybill init, or waybill restore with a backup", "there is no log here")
	}
	if log && exists(f.NextPrivate) {
		c.add(Note, "half_rotated", f.NextPrivate, "nothing: the next start ends it, as the log says", "a change of the key has not finished")
	}
	if !log && exists(c.dir.LogFile()+"-wal") {
		c.add(Error, "wal_alone", c.dir.LogFile()+"-wal", "put back the log.db it belongs to, and never the one without the other", "the end of a log is here without its beginning")
	}
}

// permissions looks at who may read what.
func (c *checkup) permissions() {
	if c.absent {
		return
	}
	if mode, ok := modeOf(string(c.dir)); ok && mode&0o077 != 0 {
		c.add(Warning, "permissions", string(c.dir), "chmod 700 "+string(c.dir), "other users may enter the data directory (mode %04o)", mode)
	}
	for _, pattern := range []string{filepath.Join(c.dir.KeysDir(), "*.key"), filepath.Join(c.Credentials, "*.nk")} {
		files, _ := filepath.Glob(pattern) // the pattern is well-formed
		for _, path := range files {
			c.secret(path)
		}
	}
	for _, path := range []string{c.dir.LogFile(), c.dir.ViewsFile(), c.dir.CheckpointFile(), c.dir.KeyFiles().Public} {
		if exists(path) {
			c.readable(path)
		}
	}
}

func modeOf(path string) (fs.FileMode, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	return info.Mode().Perm(), true
}

// secret looks at a file that only its owner may read.
func (c *checkup) secret(path string) {
	if mode, ok := modeOf(path); ok && mode&0o077 != 0 {
		c.add(Error, "permissions", path, "chmod 600 "+path+"; if somebody may have read it, make a new one", "other users may read this key (mode %04o)", mode)
	}
	c.readable(path)
}

func (c *checkup) readable(path string) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		c.add(Error, "unreadable", path, "put the right file in its place", "it is no regular file")
		return
	}
	f, err := os.Open(path)
	if err != nil {
		c.add(Error, "unreadable", path, "run as the user that the service runs as, or give that user the file", "it cannot be read: %v", err)
		return
	}
	_ = f.Close() // nothing was written
}

// keys looks at the keys by themselves.
func (c *checkup) keys() {
	if c.absent || !exists(c.dir.LogFile()) {
		return
	}
	f := c.dir.KeyFiles()
	for _, path := range []string{f.Private, f.Public} {
		if !exists(path) {
			c.add(Error, "key_missing", path, "put it back from a backup of the keys; if it is lost, begin a new log from this one: move log.db away and run waybill restore", "a key of the log is missing: no head can be signed")
		}
	}
	if _, err := c.dir.Digester(); errors.Is(err, fs.ErrNotExist) {
		c.add(Error, "key_missing", filepath.Join(c.dir.KeysDir(), "payload.key"), "put it back from a backup of the keys, or run waybill init for a new one", "the key that names payloads is missing")
	} else if err != nil {
		c.add(Error, "key_unusable", filepath.Join(c.dir.KeysDir(), "payload.key"), "put it back from a backup of the keys", "%v", err)
	}
}

// keysOf holds the keys to the log they are beside.
func (c *checkup) keysOf(log, first string) {
	f := c.dir.KeyFiles()
	if !exists(f.Private) || !exists(f.Public) {
		return // said already
	}
	keys, err := c.dir.Keys(log, first)
	if err != nil {
		c.add(Error, "key_unusable", f.Rotations, "put it back from a backup of the keys", "%v", err)
		return
	}
	last := keys[len(keys)-1]
	const back = "put back the keys that belong to this log, from a backup of the keys"
	switch _, signs, err := c.dir.Signer(log); {
	case err != nil:
		c.add(Error, "key_unusable", f.Private, back, "%v", err)
	case !checkpoint.SameKey(signs, last) && !exists(f.NextPrivate):
		c.add(Error, "key_differs", f.Private, back, "it is not the key of log %s", log)
	}
	switch public, err := c.dir.PublicKey(); {
	case err != nil:
		c.add(Error, "key_unusable", f.Public, back, "%v", err)
	case !checkpoint.SameKey(public, last) && !exists(f.NextPrivate):
		c.add(Error, "key_differs", f.Public, back, "it is not the key of log %s", log)
	}
}

// lock looks at who has the directory.
func (c *checkup) lock() {
	if c.absent {
		return
	}
	pid, held, err := c.dir.Held()
	switch {
	case err != nil:
		c.add(Error, "unreadable", string(c.dir), "run as the user that the service runs as", "the lock cannot be looked at: %v", err)
		return
	case !held && exists(c.dir.RunFile()):
		c.add(Note, "stale_run", c.dir.RunFile(), "nothing: the next start takes it away", "a service ended without taking it away; none runs now")
		return
	case !held:
		return
	}
	var other *harness.LockedError
	if c.run, err = c.dir.Running(); errors.As(err, &other) {
		c.add(Note, "locked", string(c.dir), "wait for it to end, or find out what it is: ps -p PID", "process %d has the directory and is not serving, or not yet", pid)
	} else if err != nil && !errors.Is(err, harness.ErrNoLog) {
		c.add(Error, "unreadable", c.dir.RunFile(), "run as the user that the service runs as", "%v", err)
	}
}
