-- The log. Rows are only ever added: triggers refuse everything else, as a
-- guard against mistakes. The guard against people is the tree.

CREATE TABLE migrations_done (
    version INTEGER PRIMARY KEY,
    release TEXT NOT NULL -- the first release that knows this schema
) STRICT;

CREATE TABLE log (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    id         TEXT NOT NULL CHECK (id <> ''),
    public_key TEXT NOT NULL CHECK (public_key <> '')
) STRICT;

-- leaf stands before bytes, so that it is read without following a long row.
CREATE TABLE events (
    seq   INTEGER PRIMARY KEY,
    type  TEXT NOT NULL CHECK (type <> ''),
    peer  TEXT NOT NULL,
    call  TEXT NOT NULL,
    leaf  BLOB NOT NULL CHECK (length(leaf) = 32),
    bytes BLOB NOT NULL CHECK (length(bytes) BETWEEN 1 AND 61440)
) STRICT;

CREATE INDEX events_by_call ON events (call) WHERE call <> '';

CREATE TABLE evidence (
    digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
    bytes  BLOB NOT NULL
) STRICT;

-- Complete tiles of the tree: 256 hashes each, in the coordinates of
-- golang.org/x/mod/sumdb/tlog with tile height 8.
CREATE TABLE tiles (
    level  INTEGER NOT NULL,
    idx    INTEGER NOT NULL,
    hashes BLOB NOT NULL CHECK (length(hashes) = 8192),
    PRIMARY KEY (level, idx)
) STRICT;

-- The root after each transaction that added events.
CREATE TABLE roots (
    size INTEGER PRIMARY KEY,
    root BLOB NOT NULL CHECK (length(root) = 32)
) STRICT;

-- Signed tree heads.
CREATE TABLE checkpoints (
    size INTEGER PRIMARY KEY,
    note BLOB NOT NULL
) STRICT;

CREATE TRIGGER log_once BEFORE INSERT ON log WHEN EXISTS (SELECT 1 FROM log)
BEGIN SELECT RAISE(ABORT, 'log: the identity is written once'); END;
CREATE TRIGGER log_no_update BEFORE UPDATE ON log
BEGIN SELECT RAISE(ABORT, 'log: the identity cannot be changed'); END;
CREATE TRIGGER log_no_delete BEFORE DELETE ON log
BEGIN SELECT RAISE(ABORT, 'log: the identity cannot be deleted'); END;

CREATE TRIGGER events_in_order BEFORE INSERT ON events
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM events)
BEGIN SELECT RAISE(ABORT, 'events: seq must be the one after the last'); END;
CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events: append only, no update'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events: append only, no delete'); END;

CREATE TRIGGER evidence_once BEFORE INSERT ON evidence
WHEN EXISTS (SELECT 1 FROM evidence WHERE digest = NEW.digest)
BEGIN SELECT RAISE(ABORT, 'evidence: this digest is already kept'); END;
CREATE TRIGGER evidence_no_update BEFORE UPDATE ON evidence
BEGIN SELECT RAISE(ABORT, 'evidence: append only, no update'); END;
CREATE TRIGGER evidence_no_delete BEFORE DELETE ON evidence
BEGIN SELECT RAISE(ABORT, 'evidence: append only, no delete'); END;

CREATE TRIGGER tiles_once BEFORE INSERT ON tiles
WHEN EXISTS (SELECT 1 FROM tiles WHERE level = NEW.level AND idx = NEW.idx)
BEGIN SELECT RAISE(ABORT, 'tiles: this tile is already kept'); END;
CREATE TRIGGER tiles_no_update BEFORE UPDATE ON tiles
BEGIN SELECT RAISE(ABORT, 'tiles: append only, no update'); END;
CREATE TRIGGER tiles_no_delete BEFORE DELETE ON tiles
BEGIN SELECT RAISE(ABORT, 'tiles: append only, no delete'); END;

CREATE TRIGGER roots_in_order BEFORE INSERT ON roots
WHEN NEW.size IS NOT (SELECT max(seq) FROM events)
  OR NEW.size <= (SELECT coalesce(max(size), 0) FROM roots)
BEGIN SELECT RAISE(ABORT, 'roots: size must be the number of events, once'); END;
CREATE TRIGGER roots_no_update BEFORE UPDATE ON roots
BEGIN SELECT RAISE(ABORT, 'roots: append only, no update'); END;
CREATE TRIGGER roots_no_delete BEFORE DELETE ON roots
BEGIN SELECT RAISE(ABORT, 'roots: append only, no delete'); END;

CREATE TRIGGER checkpoints_in_order BEFORE INSERT ON checkpoints
WHEN NEW.size <= (SELECT coalesce(max(size), -1) FROM checkpoints)
  OR NEW.size > (SELECT coalesce(max(seq), 0) FROM events)
BEGIN SELECT RAISE(ABORT, 'checkpoints: size must grow and be within the log'); END;
CREATE TRIGGER checkpoints_no_update BEFORE UPDATE ON checkpoints
BEGIN SELECT RAISE(ABORT, 'checkpoints: append only, no update'); END;
CREATE TRIGGER checkpoints_no_delete BEFORE DELETE ON checkpoints
BEGIN SELECT RAISE(ABORT, 'checkpoints: append only, no delete'); END;

INSERT INTO migrations_done (version, release) VALUES (1, '0.1');
