-- Tools and collisions by authorization context, and what is to be said of each
-- tool. What there was is dropped and the position with it, so that the views are
-- folded from the beginning of the log again: none of the rows can be kept.

DELETE FROM position;
DELETE FROM peers;
DELETE FROM namespaces;
DELETE FROM calls;
DROP TABLE tools;
DROP TABLE collisions;

-- The namespaces in force; every generation there was is in namespaces.
CREATE TABLE in_force (
    context    TEXT PRIMARY KEY,
    generation INTEGER NOT NULL,
    digest     TEXT NOT NULL,
    policy     TEXT NOT NULL,
    tools      INTEGER NOT NULL
) STRICT;

CREATE TABLE tools (
    context          TEXT NOT NULL,
    canonical        TEXT NOT NULL,
    peer             TEXT NOT NULL,
    local            TEXT NOT NULL,
    model_name       TEXT NOT NULL, -- '' where two tools share it
    since            TEXT NOT NULL,
    since_generation INTEGER NOT NULL,
    collided         TEXT, -- JSON; NULL for nothing
    held             TEXT, -- JSON: why it is in quarantine; NULL where it is not
    digest           TEXT NOT NULL, -- of the definition
    definition       TEXT, -- NULL where it is not served
    PRIMARY KEY (context, canonical)
) STRICT;

CREATE TABLE collisions (
    context    TEXT NOT NULL,
    name       TEXT NOT NULL,
    policy     TEXT NOT NULL,
    candidates TEXT NOT NULL,
    winner     TEXT,
    seq        INTEGER NOT NULL,
    PRIMARY KEY (context, name)
) STRICT;

INSERT INTO migrations_done (version, release) VALUES (2, '0.2');
