package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/mattn/go-sqlite3"

	"waybill/migrations"
)

const (
	pageSize      = 8192
	applicationID = 0x57424c47 // "WBLG", which file(1) and Open can tell from another program's
)

// settings are the pragmas of the writing connection, in the order in which
// they are set. Each is read back: the driver's build would otherwise make WAL
// mean synchronous=NORMAL, and that loses acknowledged commits in a power cut.
var settings = []struct{ name, value, reads string }{
	{"busy_timeout", "5000", "5000"},
	{"journal_mode", "WAL", "wal"},
	{"synchronous", "FULL", "2"},
	{"fullfsync", "ON", "1"},
	{"checkpoint_fullfsync", "ON", "1"},
	{"foreign_keys", "ON", "1"},
	{"recursive_triggers", "ON", "1"}, // REPLACE would slip past the delete triggers
	{"trusted_schema", "OFF", "0"},
	{"wal_autocheckpoint", "4000", "4000"},
	{"journal_size_limit", "67108864", "67108864"},
}

// A writer is the one connection that writes, with its statements prepared.
type writer struct {
	db   *sql.DB
	conn *sql.Conn

	begin, commit, rollback           *sql.Stmt
	event, evidence, tile, root, note *sql.Stmt

	stmts []*sql.Stmt // all of them, to close
}

// connect opens the file at path for writing, without preparing anything that
// needs the schema. It never creates a file.
func connect(ctx context.Context, path string) (*writer, error) {
	db, err := sql.Open("sqlite3", migrations.DSN(path, "mode=rw", "_busy_timeout=5000"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &writer{db: db, conn: conn}, nil
}

// openWriter opens a log whose schema is current.
func openWriter(ctx context.Context, path string) (*writer, error) {
	w, err := connect(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := w.configure(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	if err := w.prepare(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// configure sets the pragmas and reads each one back.
func (w *writer) configure(ctx context.Context) error {
	for _, s := range settings {
		if err := w.exec(ctx, "PRAGMA "+s.name+" = "+s.value); err != nil {
			return err
		}
	}
	for _, s := range settings {
		got, err := w.text(ctx, "PRAGMA "+s.name)
		if err != nil {
			return err
		}
		if got != s.reads {
			return fmt.Errorf("pragma %s is %s, want %s: this build of SQLite cannot keep a log safely", s.name, got, s.reads)
		}
	}
	return nil
}

func (w *writer) prepare(ctx context.Context) error {
	for _, p := range []struct {
		stmt  **sql.Stmt
		query string
	}{
		{&w.begin, `BEGIN IMMEDIATE`},
		{&w.commit, `COMMIT`},
		{&w.rollback, `ROLLBACK`},
		{&w.event, `INSERT INTO events (seq, type, peer, call, leaf, bytes) VALUES (?, ?, ?, ?, ?, ?)`},
		{&w.evidence, `INSERT INTO evidence (digest, bytes) SELECT ?1, ?2
			WHERE NOT EXISTS (SELECT 1 FROM evidence WHERE digest = ?1)`},
		{&w.tile, `INSERT INTO tiles (level, idx, hashes) VALUES (?, ?, ?)`},
		{&w.root, `INSERT INTO roots (size, root) VALUES (?, ?)`},
		{&w.note, `INSERT INTO checkpoints (size, note) VALUES (?, ?)`},
	} {
		stmt, err := w.conn.PrepareContext(ctx, p.query)
		if err != nil {
			return err
		}
		*p.stmt = stmt
		w.stmts = append(w.stmts, stmt)
	}
	return nil
}

func (w *writer) exec(ctx context.Context, query string, args ...any) error {
	if _, err := w.conn.ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("%s: %w", firstWords(query), err)
	}
	return nil
}

func (w *writer) text(ctx context.Context, query string) (string, error) {
	var s string
	if err := w.conn.QueryRowContext(ctx, query).Scan(&s); err != nil {
		return "", fmt.Errorf("%s: %w", firstWords(query), err)
	}
	return s, nil
}

// inTransaction reports whether a transaction is still open.
func (w *writer) inTransaction() bool {
	open := true
	err := w.conn.Raw(func(c any) error {
		open = !c.(*sqlite3.SQLiteConn).AutoCommit()
		return nil
	})
	return err != nil || open
}

// abandon ends the transaction without its changes, whether or not SQLite has
// done so already, as it does after some errors.
func (w *writer) abandon() error {
	if !w.inTransaction() {
		return nil
	}
	_, err := w.rollback.Exec()
	if err != nil {
		return fmt.Errorf("roll back: %w", err)
	}
	return nil
}

// close ends the statements, without which SQLite would keep the connection
// alive, and then the connection. The last connection to a file moves what the
// write-ahead log holds into the file and removes it.
func (w *writer) close() error {
	var errs []error
	for _, s := range w.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, w.conn.Close(), w.db.Close())...)
}

func firstWords(query string) string {
	words := strings.Fields(query)
	return strings.Join(words[:min(3, len(words))], " ")
}
