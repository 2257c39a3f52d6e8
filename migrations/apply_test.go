package migrations_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"waybill/migrations"
)

var embedded = map[string]fs.FS{"log": migrations.Log, "views": migrations.Views, "payloads": migrations.Payloads}

func TestEmbeddedMigrationsAreNumberedWithoutAGapAndOnlyGoForward(t *testing.T) {
	for name, source := range embedded {
		files, err := fs.Glob(source, "*")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", name, files, err)
		}
		newest, err := migrations.Newest(source)
		if err != nil {
			t.Fatal(err)
		}
		if newest != len(files) {
			t.Errorf("%s: the newest migration is %d, and there are %d files", name, newest, len(files))
		}
		for _, f := range files {
			if !strings.HasSuffix(f, ".up.sql") {
				t.Errorf("%s: %s does not go forward", name, f)
			}
		}
	}
}

func TestEmbeddedMigrationsBringAnEmptyFileToTheNewestSchema(t *testing.T) {
	for name, source := range embedded {
		path := emptyFile(t)
		if err := migrations.Apply(context.Background(), path, source); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		done := ask(t, path, `SELECT count(*) || ' ' || max(version) FROM migrations_done WHERE release <> ''`)
		if version := ask(t, path, `SELECT version || ' ' || version FROM schema_migrations`); done != version {
			t.Errorf("%s: migrations done %q, schema %q", name, done, version)
		}
		loose := ask(t, path, `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
			AND strict = 0 AND name NOT LIKE 'sqlite_%' AND name <> 'schema_migrations'`)
		if loose != "" {
			t.Errorf("%s: tables that are not STRICT: %s", name, loose)
		}
	}
}

func TestApplyRunsOnlyWhatIsMissing(t *testing.T) {
	path := emptyFile(t)
	for _, step := range []struct {
		source          fstest.MapFS
		version, tables string
	}{
		{source(first), "1", "a"},
		{source(first), "1", "a"},
		{source(first, second), "2", "a b"},
	} {
		if err := migrations.Apply(context.Background(), path, step.source); err != nil {
			t.Fatal(err)
		}
		wantSchema(t, path, step.version, step.tables)
	}
}

func TestApplyToACurrentFileNeitherLocksNorWrites(t *testing.T) {
	path := emptyFile(t)
	if err := migrations.Apply(context.Background(), path, source(first)); err != nil {
		t.Fatal(err)
	}
	before := readFile(t, path)
	release, err := migrations.Lock(path + ".migrate")
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() { result <- migrations.Apply(context.Background(), path, source(first)) }()
	select {
	case err := <-result:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it waits for the lock")
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if after := readFile(t, path); after != before {
		t.Error("the file was written")
	}
}

func TestApplyLeavesNothingBesideTheFile(t *testing.T) {
	path := emptyFile(t)
	if err := migrations.Apply(context.Background(), path, source(first, second)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("there are %v", entries)
	}
}

func TestApplyDoesNotCreateAMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	wantErr(t, migrations.Apply(context.Background(), path, source(first)), fs.ErrNotExist)
	if _, err := os.Lstat(path); err == nil {
		t.Error("it was created")
	}
}

func TestApplyRefusesANewerSchemaAndSaysWhoCanReadIt(t *testing.T) {
	path := emptyFile(t)
	if err := migrations.Apply(context.Background(), path, source(first, second)); err != nil {
		t.Fatal(err)
	}
	err := migrations.Apply(context.Background(), path, source(first))
	wantErr(t, err, migrations.ErrNewerSchema)
	wantText(t, err, "schema 2")
	wantText(t, err, "release 0.2 or later")
	wantSchema(t, path, "2", "a b")
}

func TestApplyRefusesTheFileOfAnotherProgram(t *testing.T) {
	path := emptyFile(t)
	run(t, path, "CREATE TABLE theirs (x)")
	wantText(t, migrations.Apply(context.Background(), path, source(first)), "another program")
	if got := ask(t, path, "SELECT name FROM sqlite_schema"); got != "theirs" {
		t.Errorf("the file now has %q", got)
	}
}

func TestApplyRefusesAFileItCannotReadRatherThanBeginAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	text := strings.Repeat("this is not a database\n", 400)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	wantText(t, migrations.Apply(context.Background(), path, source(first)), "not a database")
	if readFile(t, path) != text {
		t.Error("the file was written")
	}
}

func TestApplyWithACancelledContextChangesNothing(t *testing.T) {
	path := emptyFile(t)
	before := readFile(t, path)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	wantErr(t, migrations.Apply(ctx, path, source(first)), context.Canceled)
	if readFile(t, path) != before {
		t.Error("the file was written")
	}
}

func TestApplyNoticesAMigrationThatDoesNotSayItIsDone(t *testing.T) {
	path := emptyFile(t)
	err := migrations.Apply(context.Background(), path, source(first, `CREATE TABLE b (x INTEGER) STRICT;`))
	wantText(t, err, "migration 2 was begun last and that 1 was completed last")
}

func TestApplyRefusesASourceWithoutMigrations(t *testing.T) {
	wantText(t, migrations.Apply(context.Background(), emptyFile(t), fstest.MapFS{}), "no migrations")
}

func TestDSNOpensExactlyTheNamedFile(t *testing.T) {
	for _, name := range []string{"plain.db", "a?mode=memory.db", "50%41#x.db", "a b;c&d.db", "é.db"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, path, "CREATE TABLE t (x)")
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(entries) != 1 || entries[0].Name() != name {
			t.Errorf("for %q there is %v, %v", name, entries, err)
		}
		if readFile(t, path) == "" {
			t.Errorf("nothing was written to %q", name)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
