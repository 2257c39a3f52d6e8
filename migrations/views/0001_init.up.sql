-- The views: what the log folds into. Everything here can be rebuilt.

CREATE TABLE migrations_done (
    version INTEGER PRIMARY KEY,
    release TEXT NOT NULL -- the first release that knows this schema
) STRICT;

-- How far which log has been folded in.
CREATE TABLE position (
    id  INTEGER PRIMARY KEY CHECK (id = 1),
    log TEXT NOT NULL,
    seq INTEGER NOT NULL
) STRICT;

CREATE TABLE peers (
    name TEXT PRIMARY KEY,
    doc  TEXT NOT NULL
) STRICT;

CREATE TABLE tools (
    canonical  TEXT PRIMARY KEY,
    peer       TEXT NOT NULL,
    local      TEXT NOT NULL,
    generation INTEGER NOT NULL,
    definition TEXT
) STRICT;

CREATE TABLE namespaces (
    context    TEXT NOT NULL,
    generation INTEGER NOT NULL,
    digest     TEXT NOT NULL,
    policy     TEXT NOT NULL,
    tools      INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    PRIMARY KEY (context, generation)
) STRICT;

CREATE TABLE collisions (
    name       TEXT PRIMARY KEY,
    policy     TEXT NOT NULL,
    candidates TEXT NOT NULL,
    winner     TEXT,
    seq        INTEGER NOT NULL
) STRICT;

CREATE TABLE calls (
    call         TEXT PRIMARY KEY,
    host         TEXT NOT NULL,
    tool         TEXT NOT NULL,
    status       TEXT,
    code         TEXT,
    ran          TEXT,
    peer         TEXT,
    local        TEXT,
    received_seq INTEGER NOT NULL,
    settled_seq  INTEGER
) STRICT;

INSERT INTO migrations_done (version, release) VALUES (1, '0.1');
