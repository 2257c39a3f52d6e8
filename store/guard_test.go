package store_test

import (
	"context"
	"database/sql"
	"testing"

	"waybill/migrations"
	"waybill/store"
)

// refused are statements that no connection may get through.
var refused = []string{
	`UPDATE events SET bytes = x'00' WHERE seq = 2`,
	`UPDATE OR REPLACE events SET seq = 1 WHERE seq = 2`,
	`UPDATE events SET type = type`,
	`DELETE FROM events WHERE seq = 300`,
	`DELETE FROM events`,
	`INSERT OR REPLACE INTO events SELECT * FROM events WHERE seq = 300`,
	`REPLACE INTO events SELECT seq, 'other', peer, call, leaf, bytes FROM events WHERE seq = 1`,
	`INSERT OR IGNORE INTO events SELECT * FROM events WHERE seq = 5`,
	`INSERT INTO events SELECT 302, type, peer, call, leaf, bytes FROM events WHERE seq = 1`,
	`INSERT INTO events SELECT 0, type, peer, call, leaf, bytes FROM events WHERE seq = 1`,
	`INSERT INTO events SELECT -1, type, peer, call, leaf, bytes FROM events WHERE seq = 1`,
	`INSERT INTO events SELECT NULL, type, peer, call, leaf, bytes FROM events WHERE seq = 1`,
	`INSERT INTO events SELECT 301, type, peer, call, leaf, x'' FROM events WHERE seq = 1`,
	`INSERT INTO events SELECT 301, type, peer, call, leaf, zeroblob(61441) FROM events WHERE seq = 1`,
	`INSERT INTO events SELECT 301, type, peer, call, x'00', bytes FROM events WHERE seq = 1`,
	`INSERT INTO events SELECT 301, '', peer, call, leaf, bytes FROM events WHERE seq = 1`,
	`INSERT INTO events SELECT 301, type, peer, call, leaf, 'text' FROM events WHERE seq = 1`,
	`UPDATE evidence SET bytes = x'00'`,
	`DELETE FROM evidence`,
	`INSERT OR REPLACE INTO evidence (digest, bytes) SELECT digest, x'00' FROM evidence`,
	`INSERT INTO evidence (digest, bytes) VALUES (x'00', x'00')`,
	`UPDATE tiles SET hashes = zeroblob(8192)`,
	`DELETE FROM tiles`,
	`INSERT OR REPLACE INTO tiles SELECT level, idx, zeroblob(8192) FROM tiles`,
	`INSERT INTO tiles VALUES (0, 1, x'00')`,
	`UPDATE roots SET root = zeroblob(32)`,
	`DELETE FROM roots`,
	`INSERT OR REPLACE INTO roots SELECT size, zeroblob(32) FROM roots`,
	`INSERT INTO roots VALUES (299, zeroblob(32))`,
	`INSERT INTO roots VALUES (301, zeroblob(32))`,
	`UPDATE checkpoints SET note = x'00'`,
	`DELETE FROM checkpoints`,
	`INSERT OR REPLACE INTO checkpoints SELECT size, x'00' FROM checkpoints`,
	`INSERT INTO checkpoints VALUES (301, x'00')`,
	`UPDATE log SET id = 'other'`,
	`DELETE FROM log`,
	`INSERT OR REPLACE INTO log VALUES (1, 'other', 'other')`,
	`INSERT INTO log VALUES (2, 'other', 'other')`,
}

func TestTheSchemaRefusesWhatIsNotAnAppendOnAnyConnection(t *testing.T) {
	ctx := context.Background()
	path := newLog(t)
	l := openLog(t, path)
	batch := entries(0, 300)
	batch[0].Evidence = []store.Evidence{evidenceOf("a list")}
	head, err := l.Append(ctx, 0, batch)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Checkpoint(ctx, 300, []byte("note")); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite3", migrations.DSN(path, "mode=rw", "_busy_timeout=5000"))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, other)
	for _, query := range refused {
		if err := l.Exec(query); err == nil {
			t.Errorf("the writing connection got through: %s", query)
		}
		if _, err := other.Exec(query); err == nil {
			t.Errorf("a connection without our settings got through: %s", query)
		}
	}
	if got, err := l.Reread(ctx); err != nil || got != head {
		t.Errorf("the head is %v, %v", got, err)
	}
}

// Without recursive triggers REPLACE deletes the row in its way unseen. The
// insert triggers stop it first; this is the second line.
func TestReplaceMeetsTheDeleteTriggerEvenWithoutTheInsertTrigger(t *testing.T) {
	path := newLog(t)
	l := openLog(t, path)
	grow(t, l, 3, 3)
	outside(t, path, `DROP TRIGGER events_in_order`)
	err := l.Exec(`INSERT OR REPLACE INTO events SELECT seq, 'other', peer, call, leaf, bytes FROM events WHERE seq = 2`)
	wantText(t, err, "append only, no delete")
}

func TestDurabilitySettingsHoldWhenReadBack(t *testing.T) {
	path := newLog(t)
	for range 2 { // after Create, and again after a reopening
		l := openLog(t, path)
		for name, want := range map[string]string{
			"journal_mode": "wal", "synchronous": "2", "page_size": "8192", "foreign_keys": "1",
			"recursive_triggers": "1", "busy_timeout": "5000", "wal_autocheckpoint": "4000",
			"checkpoint_fullfsync": "1", "fullfsync": "1", "trusted_schema": "0", "auto_vacuum": "0",
		} {
			if got, err := l.Pragma(name); err != nil || got != want {
				t.Errorf("%s is %q, want %q: %v", name, got, want, err)
			}
		}
		closed(t, l)
	}
}
