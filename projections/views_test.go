package projections_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"waybill/domain"
	"waybill/migrations"
	"waybill/projections"
)

func noErr(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func viewsFile(t testing.TB) string { return filepath.Join(t.TempDir(), "views.db") }

// emptyViews is a file of views that has seen nothing yet.
func emptyViews(t testing.TB) []byte {
	t.Helper()
	path := viewsFile(t)
	noErr(t, open(t, path, 0).Close())
	b, err := os.ReadFile(path)
	noErr(t, err)
	return b
}

func open(t testing.TB, path string, head int) *projections.Views {
	t.Helper()
	v, err := projections.Open(t.Context(), path, logID, int64(head))
	noErr(t, err)
	return v
}

// feed applies what comes after the position, in batches of at most most events.
func feed(t testing.TB, v *projections.Views, list []domain.Event, most func() int) {
	t.Helper()
	for v.Position() < int64(len(list)) {
		rest := list[v.Position():]
		n := min(most(), len(rest))
		noErr(t, v.Apply(t.Context(), rest[:n]))
		if v.Position() != rest[n-1].Seq {
			t.Fatalf("position is %d after event %d", v.Position(), rest[n-1].Seq)
		}
	}
}

func oneByOne() int   { return 1 }
func allAtOnce() int  { return 1 << 30 }
func fewAtOnce() int  { return 3 }
func manyAtOnce() int { return 40 }
func someAtOnce() int { return 1 + rand.IntN(9) }

// dump is every row of every table of the views, in order.
func dump(t testing.TB, path string) string {
	t.Helper()
	db, err := sql.Open("sqlite3", migrations.DSN(path, "mode=ro", "_busy_timeout=5000"))
	noErr(t, err)
	defer db.Close()
	var tables []string
	noErr(t, each(db, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('schema_migrations', 'migrations_done') ORDER BY name`,
		func(row []string) { tables = append(tables, row[0]) }))
	if len(tables) != 7 {
		t.Fatalf("tables are %v", tables)
	}
	var out strings.Builder
	for _, table := range tables {
		var lines []string
		noErr(t, each(db, `SELECT * FROM `+table, func(row []string) { lines = append(lines, fmt.Sprint(table, " ", strings.Join(row, "|"))) }))
		slices.Sort(lines)
		out.WriteString(strings.Join(lines, "\n") + "\n")
	}
	return out.String()
}

func each(db *sql.DB, query string, f func(row []string)) error {
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		row := make([]string, len(columns))
		for i, v := range values {
			row[i] = "NULL"
			if v.Valid {
				row[i] = v.String
			}
		}
		f(row)
	}
	return rows.Err()
}

// folded is the state after the first n events.
func folded(list []domain.Event, n int) *domain.State {
	s := domain.NewState()
	for _, e := range list[:n] {
		s.Apply(e)
	}
	return s
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: the views are\n%s\nwant\n%s", what, got, want)
	}
}

// dumps feeds event by event and returns the dump after each.
func dumps(t *testing.T, list []domain.Event) []string {
	t.Helper()
	path := viewsFile(t)
	v := open(t, path, len(list))
	defer v.Close()
	out := []string{dump(t, path)}
	for n := 1; n <= len(list); n++ {
		feed(t, v, list[:n], oneByOne)
		out = append(out, dump(t, path))
	}
	return out
}

func TestViewsAtEachEventSayWhatTheStateSays(t *testing.T) {
	list := makeHistory(t)
	v := open(t, viewsFile(t), len(list))
	defer v.Close()
	for n := 1; n <= len(list); n++ {
		feed(t, v, list[:n], oneByOne)
		state := folded(list, n)
		got, err := v.Report(t.Context())
		noErr(t, err)
		if want := state.Report(logID); !reflect.DeepEqual(got, want) {
			t.Fatalf("after event %d (%s) the views report %+v, the state %+v", n, list[n-1].Data.Kind(), got, want)
		}
		for _, space := range []string{"", "ann"} {
			sameTools(t, fmt.Sprintf("after event %d (%s)", n, list[n-1].Data.Kind()), v, state, space)
		}
	}
}

// sameTools holds the tools of the views to those of the state. Freshness is
// another thing: the state's is that of a service.
func sameTools(t *testing.T, what string, v *projections.Views, state *domain.State, space string) {
	t.Helper()
	got, err := v.Tools(t.Context(), space)
	noErr(t, err)
	want := state.Tools(space, "", 0, 0)
	want.Stale, want.Missing = got.Stale, got.Missing
	if a, b := inJSON(t, got), inJSON(t, want); a != b {
		t.Fatalf("%s the tools of %q are\n%s\nthe state's\n%s", what, space, a, b)
	}
}

func inJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	noErr(t, err)
	return string(b)
}

func TestViewsResumedAtAnyEventAreThoseRebuiltFromZero(t *testing.T) {
	t.Parallel()
	list := makeHistory(t)
	want := dumps(t, list)
	empty := emptyViews(t)
	for n := 1; n <= len(list); n++ {
		path := viewsFile(t)
		noErr(t, os.WriteFile(path, empty, 0o600))
		v := open(t, path, n)
		feed(t, v, list[:n], allAtOnce)
		same(t, fmt.Sprintf("%d events in one batch", n), dump(t, path), want[n])
		noErr(t, v.Close())
		v = open(t, path, len(list))
		if v.Position() != 0 {
			t.Fatalf("views begin to fold at %d", v.Position())
		}
		feed(t, v, list, []func() int{manyAtOnce, fewAtOnce, someAtOnce, allAtOnce}[n%4])
		same(t, fmt.Sprintf("resumed at %d", n), dump(t, path), want[len(list)])
		noErr(t, v.Close())
	}
}

func TestWhileTheyFoldAgainViewsStayAsTheyWere(t *testing.T) {
	list := makeHistory(t)
	path := viewsFile(t)
	v := open(t, path, len(list))
	feed(t, v, list, allAtOnce)
	noErr(t, v.Close())
	want := dump(t, path)
	v = open(t, path, len(list))
	defer v.Close()
	for n := range list {
		feed(t, v, list[:n+1], oneByOne)
		same(t, fmt.Sprintf("folding event %d again", n+1), dump(t, path), want)
	}
}

func TestTheFileMayBeDeletedAtAnyTime(t *testing.T) {
	list := makeHistory(t)
	want := dumps(t, list)[len(list)]
	for _, gone := range [][]string{{""}, {"-wal"}, {"-shm"}, {"-wal", "-shm"}, {"", "-shm"}, {"", "-wal", "-shm"}} {
		for _, n := range []int{1, len(list) / 2, len(list)} {
			path := viewsFile(t)
			crashed(t, path, list[:n])
			for _, end := range gone {
				noErr(t, os.Remove(path+end))
			}
			v := open(t, path, len(list))
			feed(t, v, list, someAtOnce)
			same(t, fmt.Sprintf("without %q at %d", gone, n), dump(t, path), want)
			noErr(t, v.Close())
		}
	}
}

// crashed leaves the files as a process that was killed does.
func crashed(t *testing.T, path string, list []domain.Event) {
	t.Helper()
	running := viewsFile(t)
	v := open(t, running, len(list))
	defer v.Close()
	feed(t, v, list, fewAtOnce)
	for _, end := range []string{"", "-wal", "-shm"} {
		b, err := os.ReadFile(running + end)
		noErr(t, err)
		noErr(t, os.WriteFile(path+end, b, 0o600))
	}
}

func TestViewsDeletedUnderARunningFollowerAreMadeAgainAtTheNextStart(t *testing.T) {
	list := makeHistory(t)
	path := viewsFile(t)
	v := open(t, path, len(list))
	feed(t, v, list[:len(list)/2], fewAtOnce)
	for _, end := range []string{"", "-wal", "-shm"} {
		noErr(t, os.Remove(path+end))
	}
	if err := v.Apply(t.Context(), list[len(list)/2:]); err == nil {
		if _, err := v.Report(t.Context()); err != nil {
			t.Error(err)
		}
	}
	noErr(t, v.Close())
	v = open(t, path, len(list))
	defer v.Close()
	feed(t, v, list, fewAtOnce)
	same(t, "made again", dump(t, path), dumps(t, list)[len(list)])
}

func TestViewsThatAreNotOfThisLogAreThrownAway(t *testing.T) {
	list := makeHistory(t)
	half := len(list) / 2
	want := dumps(t, list[:half])[half]
	for _, c := range []struct {
		name string
		make func(path string)
	}{
		{"ahead of the log", func(path string) {
			v := open(t, path, len(list))
			feed(t, v, list, allAtOnce)
			noErr(t, v.Close())
		}},
		{"ahead of the log, after a crash", func(path string) { crashed(t, path, list) }},
		{"of another log", func(path string) {
			v, err := projections.Open(t.Context(), path, "other-11111111", int64(half))
			noErr(t, err)
			feed(t, v, list[:half], allAtOnce)
			noErr(t, v.Close())
		}},
		{"not a database", func(path string) { noErr(t, os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600)) }},
		{"cut off", func(path string) {
			v := open(t, path, len(list))
			feed(t, v, list, allAtOnce)
			noErr(t, v.Close())
			noErr(t, os.Truncate(path, 5000))
		}},
		{"empty", func(path string) { noErr(t, os.WriteFile(path, nil, 0o600)) }},
		{"of another program", func(path string) {
			db, err := sql.Open("sqlite3", migrations.DSN(path))
			noErr(t, err)
			_, err = db.Exec(`CREATE TABLE theirs (x)`)
			noErr(t, errors.Join(err, db.Close()))
		}},
	} {
		path := viewsFile(t)
		c.make(path)
		v := open(t, path, half)
		feed(t, v, list[:half], fewAtOnce)
		same(t, c.name, dump(t, path), want)
		noErr(t, v.Close())
	}
}

func TestViewsOfALaterReleaseAreLeftAlone(t *testing.T) {
	list := makeHistory(t)
	path := viewsFile(t)
	v := open(t, path, len(list))
	feed(t, v, list, allAtOnce)
	noErr(t, v.Close())
	db, err := sql.Open("sqlite3", migrations.DSN(path))
	noErr(t, err)
	_, err = db.Exec(`INSERT INTO migrations_done VALUES (99, '9.9'); UPDATE schema_migrations SET version = 99`)
	noErr(t, errors.Join(err, db.Close()))
	before := dump(t, path)
	if _, err := projections.Open(t.Context(), path, logID, int64(len(list))); !errors.Is(err, migrations.ErrNewerSchema) || !strings.Contains(err.Error(), "9.9") {
		t.Errorf("Open: %v", err)
	}
	same(t, "of a later release", dump(t, path), before)
}

func TestAnOpenThatWasGivenUpKeepsTheViews(t *testing.T) {
	list := makeHistory(t)
	path := viewsFile(t)
	v := open(t, path, len(list))
	feed(t, v, list, allAtOnce)
	noErr(t, v.Close())
	before := dump(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := projections.Open(ctx, path, logID, int64(len(list))); err == nil {
		noErr(t, v.Close())
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("Open: %v", err)
	}
	same(t, "given up", dump(t, path), before)
}

func TestApplyLooksAtItsContextBeforeItBegins(t *testing.T) {
	list := makeHistory(t)
	path := viewsFile(t)
	v := open(t, path, len(list))
	defer v.Close()
	feed(t, v, list[:10], allAtOnce)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.Apply(ctx, list[10:20]); !errors.Is(err, context.Canceled) || v.Position() != 10 {
		t.Errorf("Apply: %v, position %d", err, v.Position())
	}
	noErr(t, v.Apply(t.Context(), nil))
	feed(t, v, list, fewAtOnce)
	same(t, "after a context that had ended", dump(t, path), dumps(t, list)[len(list)])
}

func TestAfterAnErrorViewsTakeNothingMoreUntilTheyAreOpenedAgain(t *testing.T) {
	list := makeHistory(t)
	want := dumps(t, list)
	path := viewsFile(t)
	v := open(t, path, len(list))
	feed(t, v, list[:10], allAtOnce)
	db, err := sql.Open("sqlite3", migrations.DSN(path))
	noErr(t, err)
	defer db.Close()
	_, err = db.Exec(`CREATE TRIGGER no BEFORE UPDATE ON position BEGIN SELECT raise(ABORT, 'no room'); END`)
	noErr(t, err)
	if err := v.Apply(t.Context(), list[10:30]); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("Apply: %v", err)
	}
	_, err = db.Exec(`DROP TRIGGER no`)
	noErr(t, err)
	same(t, "a batch that failed", dump(t, path), want[10])
	if err := v.Apply(t.Context(), list[10:12]); err == nil || v.Position() != 10 {
		t.Errorf("Apply after an error: %v, position %d", err, v.Position())
	}
	noErr(t, v.Close())
	v = open(t, path, len(list))
	defer v.Close()
	feed(t, v, list, fewAtOnce)
	same(t, "opened again", dump(t, path), want[len(list)])
}

func TestViewsThatAreLockedAreNotThrownAway(t *testing.T) {
	t.Parallel() // SQLite waits for seconds
	list := makeHistory(t)
	path := viewsFile(t)
	v := open(t, path, len(list))
	feed(t, v, list, allAtOnce)
	noErr(t, v.Close())
	before := dump(t, path)
	db, err := sql.Open("sqlite3", migrations.DSN(path, "_txlock=exclusive", "_journal_mode=DELETE"))
	noErr(t, err)
	defer db.Close()
	tx, err := db.Begin()
	noErr(t, err)
	if v, err := projections.Open(t.Context(), path, logID, int64(len(list))); err == nil {
		noErr(t, v.Close())
		t.Error("locked views were opened")
	} else if !strings.Contains(err.Error(), "locked") {
		t.Errorf("Open: %v", err)
	}
	noErr(t, tx.Rollback())
	same(t, "locked", dump(t, path), before)
}
