package migrations_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"waybill/migrations"
)

const first = `
CREATE TABLE migrations_done (version INTEGER PRIMARY KEY, release TEXT NOT NULL) STRICT;
CREATE TABLE a (x INTEGER) STRICT;
INSERT INTO migrations_done VALUES (1, '0.1');`

const second = `
CREATE TABLE b (x INTEGER) STRICT;
INSERT INTO migrations_done VALUES (2, '0.2');`

// broken fails at its end, after it has made its table.
const broken = second + `
INSERT INTO no_such_table VALUES (1);`

// source makes numbered migrations of the given SQL.
func source(scripts ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for i, sql := range scripts {
		fs[fmt.Sprintf("%04d_x.up.sql", i+1)] = &fstest.MapFile{Data: []byte(sql)}
	}
	return fs
}

// emptyFile makes a database in WAL mode without a table.
func emptyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, path, "PRAGMA journal_mode = WAL")
	return path
}

func openFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", migrations.DSN(path, "mode=rw", "_busy_timeout=5000"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func run(t *testing.T, path string, queries ...string) {
	t.Helper()
	db := openFile(t, path)
	defer db.Close()
	for _, q := range queries {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// ask returns the only column of the rows of a query, joined by spaces.
func ask(t *testing.T, path, query string) string {
	t.Helper()
	db := openFile(t, path)
	defer db.Close()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

func wantSchema(t *testing.T, path, version, tables string) {
	t.Helper()
	if got := ask(t, path, `SELECT version || CASE dirty WHEN 0 THEN '' ELSE ' dirty' END FROM schema_migrations`); got != version {
		t.Errorf("schema is %q, want %q", got, version)
	}
	got := ask(t, path, `SELECT name FROM sqlite_schema WHERE type = 'table'
		AND name NOT IN ('schema_migrations', 'migrations_done') ORDER BY name`)
	if got != tables {
		t.Errorf("tables are %q, want %q", got, tables)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want one that matches %q", err, want)
	}
}

func wantText(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Fatalf("got error %v, want one that says %q", err, text)
	}
}

// eventually polls until done, and fails the test if that takes too long.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}
