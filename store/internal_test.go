package store

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

func TestTheTreeInMemoryStaysSmallOverAMillionEvents(t *testing.T) {
	var tr tree
	var h tlog.Hash
	for n := range 1 << 20 {
		next := tr.fork()
		h[0] = byte(n)
		next.grow(h, nil)
		tr = next
	}
	bytes := 0
	for _, tile := range tr.tiles {
		bytes += cap(tile)
	}
	if len(tr.edge) != 1 || bytes > 4*tileBytes || tr.size != 1<<20 {
		t.Errorf("%d hashes and %d bytes of tiles at size %d", len(tr.edge), bytes, tr.size)
	}
}

func TestAForkThatIsDroppedLeavesTheTreeAsItWas(t *testing.T) {
	for size := range 600 {
		kept, dropped := grown(size), grown(size)
		fork := dropped.fork()
		for range 300 {
			fork.grow(tlog.Hash{0xff}, nil)
		}
		for n := range 300 {
			dropped.grow(tlog.Hash{byte(n)}, nil)
			kept.grow(tlog.Hash{byte(n)}, nil)
		}
		if kept.root() != dropped.root() || string(kept.tiles[0]) != string(dropped.tiles[0]) {
			t.Fatalf("at size %d a fork has changed the tree it came from", size)
		}
	}
}

func grown(size int) tree {
	var tr tree
	for n := range size {
		tr.grow(tlog.Hash{1, byte(n)}, nil)
	}
	return tr
}

func TestEveryQueryOfAReaderUsesAnIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	if err := Create(path, "id", "key"); err != nil {
		t.Fatal(err)
	}
	w, err := connect(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for _, query := range []string{readQuery, byCallQuery, evidenceQuery, digestsQuery, tilesQuery, tileQuery, rootsQuery,
		checkpointsQuery, leavesQuery, tileRunQuery, tailQuery, cutQuery, piecesQuery, runQuery} {
		rows, err := w.conn.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+query, 1, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		plan := ""
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan += detail + "; "
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan, "SEARCH") || strings.Contains(plan, "SCAN") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s\n\t%s", query, plan)
		}
	}
}

// A log that moves must be read under SQLite's locks; that two readers see the
// same rows does not show it.
func TestOnlyALogAtRestIsReadWithoutLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	if err := Create(path, "id", "key"); err != nil {
		t.Fatal(err)
	}
	for _, running := range []bool{false, true} {
		if running {
			l, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
		r, err := OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if locks := r.pool.still == nil; locks != running {
			t.Errorf("running %v, read under locks %v", running, locks)
		}
	}
}
