-- The kept bytes of calls, each sealed under the key of its call, and those keys.
-- Bytes are deleted with secure_delete on. That alone is not enough: when SQLite
-- moves a row from page to page, a copy can stay behind. So the keys are what is
-- erased for certain: their table only grows, so that no row of it ever moves, and
-- a key is written over in its place by as many zeros.

CREATE TABLE migrations_done (
    version INTEGER PRIMARY KEY,
    release TEXT NOT NULL -- the first release that knows this schema
) STRICT;

-- Whose they are, and how far this file has followed the log.
CREATE TABLE about (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    log    TEXT NOT NULL CHECK (log <> ''),
    first  INTEGER NOT NULL, -- the first event of the transaction that was saved last
    erased INTEGER NOT NULL  -- up to this event, what the log says was erased is
) STRICT;

-- One row for each call whose payloads are kept. It outlives them, and says then
-- which event erased them.
CREATE TABLE stories (
    seq     INTEGER PRIMARY KEY, -- of its first call.received
    call    TEXT NOT NULL,       -- host/call_id
    host    TEXT NOT NULL,
    created INTEGER NOT NULL,    -- wall clock of that event, nanoseconds since 1970
    erased  INTEGER              -- seq of payloads.erased
) STRICT;

CREATE INDEX stories_by_call ON stories (call);
CREATE INDEX stories_by_host ON stories (host) WHERE erased IS NULL;
CREATE INDEX stories_by_age ON stories (created) WHERE erased IS NULL;

CREATE TABLE keys (
    story INTEGER PRIMARY KEY,
    key   BLOB NOT NULL CHECK (length(key) = 32) -- zeros once it is erased
) STRICT;

CREATE TRIGGER keys_stay BEFORE DELETE ON keys
BEGIN SELECT RAISE(ABORT, 'keys: a row never moves, so none is deleted'); END;

CREATE TABLE payloads (
    seq      INTEGER NOT NULL, -- of the event that cites it
    role     TEXT NOT NULL CHECK (role IN ('arguments', 'result', 'error', 'input_responses', 'request_state', 'input_requests')),
    sum      BLOB NOT NULL CHECK (length(sum) = 32), -- SHA-256 of that event
    story    INTEGER NOT NULL,
    peer     TEXT NOT NULL,
    request  INTEGER NOT NULL, -- id of the request that was answered; 0 for what a host sent
    created  INTEGER NOT NULL, -- wall clock of the event, nanoseconds since 1970
    size     INTEGER NOT NULL, -- as it came
    redacted INTEGER NOT NULL CHECK (redacted IN (0, 1)),
    bytes    BLOB NOT NULL,    -- sealed
    PRIMARY KEY (seq, role)
) STRICT;

CREATE INDEX payloads_by_story ON payloads (story);

INSERT INTO migrations_done (version, release) VALUES (1, '0.1');
