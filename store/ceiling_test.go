package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"waybill/migrations"
	"waybill/store"
)

// A bareLog is what a short SQLite program would do with the same bytes: the same
// rows and index, hashes and tiles, roots and durability, and nothing to guard,
// check or recover them. It is the ceiling that appends are measured against.
type bareLog struct {
	db     *sql.DB
	conn   *sql.Conn
	hashes []tlog.Hash // in the order of tlog
	size   int64

	begin, commit, event, tile, root *sql.Stmt
}

func newBareLog(t testing.TB) *bareLog {
	t.Helper()
	db, err := sql.Open("sqlite3", migrations.DSN(filepath.Join(t.TempDir(), "bare.db")))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	l := &bareLog{db: db, conn: conn}
	for _, q := range []string{
		`PRAGMA page_size = 8192`, `PRAGMA journal_mode = WAL`, `PRAGMA synchronous = FULL`, `PRAGMA wal_autocheckpoint = 4000`,
		`CREATE TABLE events (seq INTEGER PRIMARY KEY, type TEXT NOT NULL, peer TEXT NOT NULL, call TEXT NOT NULL,
			leaf BLOB NOT NULL, bytes BLOB NOT NULL) STRICT`,
		`CREATE INDEX events_by_call ON events (call) WHERE call <> ''`,
		`CREATE TABLE tiles (level INTEGER NOT NULL, idx INTEGER NOT NULL, hashes BLOB NOT NULL, PRIMARY KEY (level, idx)) STRICT`,
		`CREATE TABLE roots (size INTEGER PRIMARY KEY, root BLOB NOT NULL) STRICT`,
	} {
		if _, err := conn.ExecContext(context.Background(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	t.Cleanup(func() { closed(t, conn); closed(t, db) })
	l.prepare(t)
	return l
}

func (l *bareLog) prepare(t testing.TB) {
	t.Helper()
	for q, to := range map[string]**sql.Stmt{
		`BEGIN IMMEDIATE`: &l.begin, `COMMIT`: &l.commit,
		`INSERT INTO events (seq, type, peer, call, leaf, bytes) VALUES (?, ?, ?, ?, ?, ?)`: &l.event,
		`INSERT INTO tiles (level, idx, hashes) VALUES (?, ?, ?)`:                           &l.tile,
		`INSERT INTO roots (size, root) VALUES (?, ?)`:                                      &l.root,
	} {
		stmt, err := l.conn.PrepareContext(context.Background(), q)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		t.Cleanup(func() { closed(t, stmt) })
		*to = stmt
	}
}

// ReadHashes implements tlog.HashReader.
func (l *bareLog) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		out[i] = l.hashes[x]
	}
	return out, nil
}

func (l *bareLog) append(entries []store.Entry) error {
	if _, err := l.begin.Exec(); err != nil {
		return err
	}
	for i := range entries {
		if err := l.insert(&entries[i]); err != nil {
			return err
		}
	}
	root, err := tlog.TreeHash(l.size, l)
	if err != nil {
		return err
	}
	if _, err := l.root.Exec(l.size, root[:]); err != nil {
		return err
	}
	_, err = l.commit.Exec()
	return err
}

func (l *bareLog) insert(e *store.Entry) error {
	hashes, err := tlog.StoredHashes(l.size, e.Bytes, l)
	if err != nil {
		return err
	}
	l.hashes = append(l.hashes, hashes...)
	l.size++
	if _, err := l.event.Exec(l.size, e.Type, e.Peer, e.Call, hashes[0][:], e.Bytes); err != nil {
		return err
	}
	for level := 0; l.size%(1<<(8*(level+1))) == 0; level++ {
		index := l.size>>(8*(level+1)) - 1
		b, err := tlog.ReadTileData(tlog.Tile{H: 8, L: level, N: index, W: 256}, l)
		if err != nil {
			return err
		}
		if _, err := l.tile.Exec(level, index, b); err != nil {
			return err
		}
	}
	return nil
}

// appendTo returns what commitGroups does with a group on a real log.
func appendTo(l *store.Log) func([]store.Entry) error {
	return func(entries []store.Entry) error {
		_, err := l.Append(context.Background(), l.Head().Size, entries)
		return err
	}
}

// A crew is a number of producers before one log.
type crew struct {
	producers int
	requests  chan request
	next      int // events produced so far
}

func startCrew(b *testing.B, producers int, write func([]store.Entry) error) *crew {
	c := &crew{producers: producers, requests: make(chan request, 4096)}
	var writer sync.WaitGroup
	writer.Go(func() { commitGroups(write, c.requests) })
	b.Cleanup(func() {
		close(c.requests)
		writer.Wait()
	})
	return c
}

// run has the producers append n events, each waiting for its own before the
// next, and returns the time it took.
func (c *crew) run(b *testing.B, entries []store.Entry, n int) time.Duration {
	begun := time.Now()
	var all sync.WaitGroup
	for p := range c.producers {
		all.Go(func() { produce(b, c.requests, entries, c.next+p, c.next+n, c.producers) })
	}
	all.Wait()
	c.next += n
	return time.Since(begun)
}

// BenchmarkCeiling measures the log beside a bare SQLite program, in turn, and
// reports what the log reaches of it: ratio is the median over the turns.
func BenchmarkCeiling(b *testing.B) {
	entries := benchEntries()
	for _, producers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("producers=%d", producers), func(b *testing.B) {
			log := startCrew(b, producers, appendTo(openLog(b, newLog(b))))
			bare := startCrew(b, producers, newBareLog(b).append)
			compare(b, log, bare, entries)
		})
	}
}

// compare lets the two have b.N events each, in turns.
func compare(b *testing.B, log, bare *crew, entries []store.Entry) {
	const turns = 50 // short ones: what else the machine does then bears on both alike
	var logTook, bareTook time.Duration
	var ratios []float64
	n := max(b.N/turns, log.producers)
	b.ResetTimer()
	for turn := range turns {
		var l, r time.Duration
		if turn%2 == 0 {
			l, r = log.run(b, entries, n), bare.run(b, entries, n)
		} else {
			r, l = bare.run(b, entries, n), log.run(b, entries, n)
		}
		logTook, bareTook = logTook+l, bareTook+r
		ratios = append(ratios, r.Seconds()/l.Seconds())
	}
	b.StopTimer()
	slices.Sort(ratios)
	b.ReportMetric(float64(n*turns)/logTook.Seconds(), "events/s")
	b.ReportMetric(float64(n*turns)/bareTook.Seconds(), "bare-events/s")
	b.ReportMetric((ratios[turns/2-1]+ratios[turns/2])/2, "ratio")
	b.ReportMetric(0, "ns/op") // of both together
}
