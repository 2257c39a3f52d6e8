-- A submission that got the outcome of another call has the status joined, and that
-- call's key. No row there is has one.

ALTER TABLE calls ADD COLUMN joined TEXT;

INSERT INTO migrations_done (version, release) VALUES (3, '0.3');
