-- Of some calls only what their peer answered is kept, because they were made under
-- an idempotency key; it has a time of its own.

ALTER TABLE stories ADD COLUMN outcome INTEGER NOT NULL DEFAULT 0 CHECK (outcome IN (0, 1));

DROP INDEX stories_by_age;
CREATE INDEX stories_by_age ON stories (outcome, created) WHERE erased IS NULL;

INSERT INTO migrations_done (version, release) VALUES (2, '0.3');
