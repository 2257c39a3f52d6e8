package projections_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"waybill/domain"
	"waybill/migrations"
	"waybill/projections"
)

// vast is a history of peers with many tools each, whose lists are kept by rules,
// up to where every name is merged.
func vast(t testing.TB, peers, tools int) *history {
	t.Helper()
	h := &history{t: t, state: domain.NewState(), now: 1_700_000_000_000_000_000, tools: map[string][]string{},
		keeping: keeping{rules: &domain.ListRules{Interval: 1, Stale: 3_600_000, Listen: 1000, Hold: true}, words: map[string]string{}}}
	var names []string
	for i := range peers {
		peer := fmt.Sprintf("peer%03d", i)
		names = append(names, peer)
		for j := range tools {
			h.tools[peer] = append(h.tools[peer], fmt.Sprintf("%s_tool_%03d", peer, j))
		}
		h.words[peer] = strings.Repeat("what it is good for ", 25)
	}
	for _, peer := range names[1:3] { // contested from the beginning
		h.tools[peer][0] = "shared"
	}
	h.start(domain.PrefixOnCollision, names...)
	return h
}

// watch counts the rows that are written to each table from now on.
func watch(t testing.TB, path string) func() map[string]int {
	t.Helper()
	do(t, path, `CREATE TABLE written (name TEXT NOT NULL)`)
	for _, table := range []string{"peers", "tools", "collisions", "in_force"} {
		for _, act := range []string{"INSERT", "UPDATE", "DELETE"} {
			do(t, path, fmt.Sprintf(`CREATE TRIGGER watch_%[1]s_%[2]s AFTER %[2]s ON %[1]s BEGIN INSERT INTO written VALUES ('%[1]s'); END`, table, act))
		}
	}
	return func() map[string]int {
		counts := map[string]int{}
		db, err := sql.Open("sqlite3", migrations.DSN(path, "mode=rw", "_busy_timeout=5000"))
		noErr(t, err)
		defer db.Close()
		noErr(t, each(db, `SELECT name FROM written`, func(row []string) { counts[row[0]]++ }))
		_, err = db.Exec(`DELETE FROM written`)
		noErr(t, err)
		return counts
	}
}

func do(t testing.TB, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite3", migrations.DSN(path, "_busy_timeout=5000"))
	noErr(t, err)
	_, err = db.Exec(statement)
	noErr(t, errors.Join(err, db.Close()))
}

func TestAChangeOfOnePeerWritesItsRowsAlone(t *testing.T) {
	h := vast(t, 20, 50)
	path := viewsFile(t)
	v := open(t, path, len(h.list))
	feed(t, v, h.list, allAtOnce)
	written := watch(t, path)
	for _, c := range []struct {
		name, peer string
		change     func()
		want       map[string]int
	}{
		{"a reading that finds every list as it was", "", func() {}, map[string]int{"peers": 20}},
		{"one tool more", "peer007", func() { h.tools["peer007"] = append(h.tools["peer007"], "one_more") },
			map[string]int{"peers": 1, "tools": 1, "in_force": 2}},
		{"one tool less", "peer007", func() { h.tools["peer007"] = h.tools["peer007"][1:] },
			map[string]int{"peers": 1, "tools": 1, "in_force": 2}},
		{"a name comes to be contested", "peer019", func() { h.tools["peer019"] = append(h.tools["peer019"], "one_more") },
			map[string]int{"peers": 1, "tools": 2, "collisions": 1, "in_force": 2}},
		{"by one more", "peer018", func() { h.tools["peer018"] = append(h.tools["peer018"], "one_more") },
			map[string]int{"peers": 1, "tools": 3, "collisions": 1, "in_force": 2}},
		{"and by one less", "peer018", func() { h.tools["peer018"] = h.tools["peer018"][:50] },
			map[string]int{"peers": 1, "tools": 3, "collisions": 1, "in_force": 2}},
		{"and no more", "peer019", func() { h.tools["peer019"] = h.tools["peer019"][:50] },
			map[string]int{"peers": 1, "tools": 2, "collisions": 1, "in_force": 2}},
		{"its tools are held", "peer007", func() { h.words["peer007"] = "another" }, map[string]int{"peers": 1, "tools": 50}},
		{"one is approved", "-", func() { h.approve("one_more") }, map[string]int{"tools": 1}},
	} {
		switch c.change(); c.peer {
		case "":
			h.tell(domain.ToolsRead{Reads: 1}, nil)
		case "-":
		default:
			h.changed(c.peer, "")
		}
		feed(t, v, h.list, allAtOnce)
		if got := written(); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: rows written %v, want %v", c.name, got, c.want)
		}
		sameTools(t, c.name, v, h.state, "")
	}
	noErr(t, v.Close())
	fresh := viewsFile(t)
	w := open(t, fresh, len(h.list))
	defer w.Close()
	feed(t, w, h.list, allAtOnce)
	do(t, path, `DROP TABLE written`)
	same(t, "kept", dump(t, path), dump(t, fresh))
}

// Rows that a reopened file has already are not written again.
func TestAReopenedFileIsWrittenWhereItDiffers(t *testing.T) {
	h := vast(t, 5, 20)
	path := viewsFile(t)
	v := open(t, path, len(h.list))
	feed(t, v, h.list, allAtOnce)
	noErr(t, v.Close())
	written := watch(t, path)
	v = open(t, path, len(h.list))
	defer v.Close()
	h.tools["peer003"] = append(h.tools["peer003"], "one_more")
	h.changed("peer003", "")
	feed(t, v, h.list, someAtOnce)
	if got := written(); got["tools"] != 1 || got["peers"] > 10 {
		t.Errorf("rows written %v", got)
	}
	sameTools(t, "reopened", v, h.state, "")
}

// A peer that nothing is known of but its configuration says the same whenever it
// is named again.
func TestAPeerThatComesBackHasItsRowAgain(t *testing.T) {
	h := &history{t: t, state: domain.NewState(), now: 1_700_000_000_000_000_000}
	v := open(t, viewsFile(t), 1000)
	defer v.Close()
	for _, peers := range [][]string{{"alpha", "unpinned"}, {"alpha"}, {"alpha", "unpinned"}} {
		h.start(domain.PrefixOnCollision, peers...)
		feed(t, v, h.list, allAtOnce)
		got, err := v.Report(t.Context())
		noErr(t, err)
		if a, b := inJSON(t, got), inJSON(t, h.state.Report(logID)); a != b {
			t.Errorf("%v: the views report\n%s\nthe state\n%s", peers, a, b)
		}
	}
}

// firstSchema is the migration that older releases end with.
func firstSchema(t *testing.T) fs.FS {
	t.Helper()
	const name = "0001_init.up.sql"
	b, err := fs.ReadFile(migrations.Views, name)
	noErr(t, err)
	return fstest.MapFS{name: {Data: b}}
}

// Views of an older release are folded again from the beginning, also where they
// were up to date: nothing of their rows may be left, and nothing may be missing.
func TestViewsOfAnOlderReleaseBecomeComplete(t *testing.T) {
	list := makeHistory(t)
	want := dumps(t, list)
	for _, at := range []int{0, len(list) / 2, len(list)} {
		path := viewsFile(t)
		noErr(t, os.WriteFile(path, nil, 0o600))
		noErr(t, migrations.Apply(t.Context(), path, firstSchema(t)))
		do(t, path, `INSERT INTO peers VALUES ('old', '{}'); INSERT INTO calls (call, host, tool, received_seq) VALUES ('local/old', 'local', 'old', 1);
			INSERT INTO tools VALUES ('search', 'old', 'search', 1, NULL); INSERT INTO collisions VALUES ('old', 'p', '[]', NULL, 3);
			INSERT INTO namespaces VALUES ('default', 99, 'd', 'p', 1, 99)`)
		if at > 0 {
			do(t, path, fmt.Sprintf(`INSERT INTO position VALUES (1, '%s', %d)`, logID, at))
		}
		v := open(t, path, len(list))
		if v.Holds(1) {
			t.Errorf("at %d: old views hold what was never folded into them", at)
		}
		same(t, fmt.Sprintf("old views at %d, opened", at), dump(t, path), want[0])
		if log, seq, err := projections.Look(t.Context(), path); log != "" || seq != 0 || err != nil {
			t.Errorf("at %d: log %q, seq %d, %v", at, log, seq, err)
		}
		feed(t, v, list, someAtOnce)
		same(t, fmt.Sprintf("old views at %d", at), dump(t, path), want[len(list)])
		noErr(t, v.Close())
	}
}

// Without a service no list is kept up to date.
func TestListsAreStaleOrMissingWhereNoServiceRuns(t *testing.T) {
	h := &history{t: t, state: domain.NewState(), now: 1_700_000_000_000_000_000, tools: map[string][]string{"alpha": {"a"}, "beta": {"b"}, "betaann": {"c"}},
		keeping: keeping{rules: &domain.ListRules{Interval: 1, Stale: 1000}, contexts: map[string][]string{"beta": {"ann", "default"}}, private: true}}
	h.failing = "gamma"
	h.start(domain.PrefixOnCollision, "alpha", "beta", "gamma", "unpinned")
	v := open(t, viewsFile(t), len(h.list))
	defer v.Close()
	feed(t, v, h.list, allAtOnce)
	for space, want := range map[string]string{"": "a b", "default": "a b", "ann": "a c", "bob": ""} {
		list, err := v.Tools(t.Context(), space)
		noErr(t, err)
		var names []string
		for _, e := range list.Tools {
			names = append(names, e.Canonical)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("context %q has %q, want %q", space, got, want)
		}
		stale := []string{"alpha", "beta"}
		if space == "bob" {
			stale = stale[:1] // beta answers the contexts of its configuration only
		}
		if !slices.Equal(list.Stale, stale) || !slices.Equal(list.Missing, []string{"gamma", "unpinned"}) {
			t.Errorf("context %q: stale %v, missing %v", space, list.Stale, list.Missing)
		}
	}
}

// BenchmarkViewsChange folds in what a peer's list of 100 tools leads to when it
// has one tool more, or less, beside 199 other peers.
func BenchmarkViewsChange(b *testing.B) {
	h := vast(b, 200, 100)
	path := viewsFile(b)
	v := open(b, path, len(h.list))
	defer v.Close()
	feed(b, v, h.list, allAtOnce)
	whole := h.tools["peer100"]
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		h.tools["peer100"] = whole[:len(whole)-1+n%2]
		from := len(h.list)
		h.changed("peer100", "")
		b.StartTimer()
		noErr(b, v.Apply(b.Context(), h.list[from:]))
	}
}

// BenchmarkViewsBuild folds 20,000 tools of 200 peers into an empty file.
func BenchmarkViewsBuild(b *testing.B) {
	h := vast(b, 200, 100)
	for b.Loop() {
		v := open(b, viewsFile(b), len(h.list))
		feed(b, v, h.list, func() int { return 512 })
		noErr(b, v.Close())
	}
}

// BenchmarkViewsReread folds in what a reading of 200 lists leads to that finds
// every list as it was.
func BenchmarkViewsReread(b *testing.B) {
	h := vast(b, 200, 100)
	v := open(b, viewsFile(b), len(h.list))
	defer v.Close()
	feed(b, v, h.list, allAtOnce)
	for b.Loop() {
		b.StopTimer()
		from := len(h.list)
		h.tell(domain.ToolsRead{Reads: 1}, nil)
		b.StartTimer()
		noErr(b, v.Apply(b.Context(), h.list[from:]))
	}
}
