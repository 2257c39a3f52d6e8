package doctor

import (
	"errors"
	"io/fs"

	"waybill/harness/heads"
	"waybill/migrations"
	"waybill/projections"
	"waybill/store"
)

// log looks at the log by itself and against what was signed.
func (c *checkup) log() {
	path := c.dir.LogFile()
	if c.absent || !exists(path) {
		return
	}
	c.schema()
	r, err := store.OpenReader(path)
	if err == nil {
		c.reader = r
		c.head, err = r.Head(c.ctx)
	}
	if err != nil {
		c.logFault(path, err)
		return
	}
	c.keysOf(r.ID(), r.PublicKey())
	c.heads()
	if c.Verify == nil || c.ctx.Err() != nil {
		return
	}
	if err := c.Verify(c.ctx, path); err != nil {
		c.add(Error, "altered", path, "keep this file as a record, never edit it; put log.db back from a backup, or begin a new log: waybill restore BACKUP", "%v", err)
		return
	}
	if c.Replay == nil || c.ctx.Err() != nil {
		return
	}
	if err := c.Replay(c.ctx, path); err != nil {
		c.add(Error, "diverged", path, "somebody, or a defect, wrote what was not decided: waybill-audit replay --all shows both sides of each", "%v", err)
	}
}

// logFault says what to do about a log that cannot be read.
func (c *checkup) logFault(path string, err error) {
	switch {
	case errors.Is(err, store.ErrNewerSchema):
		return // said with the schema
	case errors.Is(err, store.ErrNotLog):
		c.add(Error, "not_a_log", path, "put the log back; if it is lost, waybill restore BACKUP", "%v", err)
	case errors.Is(err, store.ErrAltered):
		c.add(Error, "altered", path, "keep this file as a record, never edit it; put log.db back from a backup, or begin a new log: waybill restore BACKUP", "%v", err)
	default:
		c.add(Error, "unreadable", path, "look at the disk and the permissions; if the file is damaged, put it back, or waybill restore BACKUP", "%v", err)
	}
}

// schema looks at what the log says of its own schema.
func (c *checkup) schema() {
	path := c.dir.LogFile()
	known, err := migrations.Newest(migrations.Log)
	if err != nil {
		c.add(Error, "unreadable", path, "build waybill again", "%v", err)
		return
	}
	s, err := migrations.Look(c.ctx, path)
	switch {
	case err != nil:
		return // what cannot be read is said when the log is opened
	case s.Version > known:
		newer := &migrations.NewerSchemaError{Version: s.Version, Known: known, Release: s.Release}
		c.add(Error, "newer_schema", path, "use the release that it names, or a later one; nothing is wrong with the file", "%v", newer)
	case s.Dirty:
		c.add(Warning, "dirty_migration", path, "start the service: it finds out what was done and goes on; make a copy of the file first", "migration %d was begun and its end was not noted; %d is done", s.Version, max(s.Done, 0))
	case s.Version < known:
		c.add(Note, "older_schema", path, "nothing: the next start brings it up to date; make a backup first", "it has schema %d, and this program brings it to %d", max(s.Version, 0), known)
	}
}

// heads holds the log to its checkpoints.
func (c *checkup) heads() {
	seen, err := heads.Look(c.ctx, c.dir, c.reader)
	var refused *heads.RefusedError
	switch {
	case errors.As(err, &refused):
		c.add(Error, refused.Code, refused.File, "do as it says; no service starts before", "%s", refused.Reason)
	case err != nil:
		c.add(Error, "unreadable", c.dir.CheckpointFile(), "look at the disk and the permissions", "%v", err)
	case seen.Beside == 0 && seen.Stored > 0:
		c.add(Warning, "checkpoint_missing", c.dir.CheckpointFile(), "nothing, if you know why: the next start makes it again from the log; else compare with a checkpoint kept elsewhere", "the last signed head beside the log is missing; the log has one of %d events", seen.Stored)
	case seen.Beside > seen.Stored:
		c.add(Warning, "checkpoint_lost", c.dir.LogFile(), "run waybill-audit verify --checkpoint with the file; the next start stores it again", "the log has lost the checkpoint of %d events that is beside it", seen.Beside)
	}
}

// views looks at the projections, which may always be made again.
func (c *checkup) views() {
	path := c.dir.ViewsFile()
	if c.reader == nil || c.run != nil || !exists(path) {
		return // a service keeps them up to date, and they need not be there
	}
	known, err := migrations.Newest(migrations.Views)
	s, lookErr := migrations.Look(c.ctx, path)
	if err == nil && lookErr == nil && s.Version > known {
		newer := &migrations.NewerSchemaError{Version: s.Version, Known: known, Release: s.Release}
		c.add(Error, "newer_schema", path, "use the release that it names, or delete the file: it is made again", "%v", newer)
		return
	}
	const again = "nothing: it is made again from the log"
	log, seq, err := projections.Look(c.ctx, path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		// said with the permissions
	case err != nil:
		c.add(Note, "views_unreadable", path, again, "the views cannot be read: %v", err)
	case log != "" && log != c.reader.ID():
		c.add(Note, "views_other", path, again, "the views are of log %s", log)
	case seq > c.head.Size:
		c.add(Note, "views_ahead", path, again, "the views have seen event %d, and the log ends at %d", seq, c.head.Size)
	case seq < c.head.Size:
		c.add(Note, "views_behind", path, "nothing: the next command that needs them brings them up to date", "the views are at event %d of %d", seq, c.head.Size)
	}
}
