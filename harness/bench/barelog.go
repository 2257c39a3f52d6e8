package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver
	"golang.org/x/mod/sumdb/tlog"
)

// The bare log is what a log needs at least: events that are numbered and named once,
// the root of their tree with each commit.
const bareSchema = `
CREATE TABLE events(seq INTEGER PRIMARY KEY, stream TEXT NOT NULL, version INTEGER NOT NULL, event_id TEXT NOT NULL UNIQUE,
	ts INTEGER NOT NULL, data BLOB NOT NULL, hash BLOB NOT NULL, UNIQUE(stream, version)) STRICT;
CREATE TABLE roots(size INTEGER PRIMARY KEY, root BLOB NOT NULL) STRICT;`

const (
	bareDSN   = "?_busy_timeout=5000&_journal_mode=WAL&_synchronous=FULL"
	bareGroup = 1024 // events of a commit, at most
)

type bareAppend struct {
	events [][]byte
	done   chan struct{}
}

// bareLog has one writer that commits whatever has gathered.
type bareLog struct {
	db     *sql.DB
	conn   *sql.Conn
	queue  chan bareAppend
	relay  func([][]byte)
	ended  sync.WaitGroup
	hashes []tlog.Hash
	size   int64
	err    error

	begin, commit, insert, root *sql.Stmt
}

func startBareLog(path string, relay func([][]byte)) (*bareLog, error) {
	db, err := sql.Open("sqlite3", "file:"+path+bareDSN)
	if err != nil {
		return nil, err
	}
	l := &bareLog{db: db, queue: make(chan bareAppend, 4096), relay: relay}
	if err := l.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("bare log %s: %w", path, err), db.Close())
	}
	l.ended.Go(l.run)
	return l, nil
}

func (l *bareLog) prepare() (err error) {
	ctx := context.Background()
	if l.conn, err = l.db.Conn(ctx); err != nil {
		return err
	}
	if _, err = l.conn.ExecContext(ctx, bareSchema); err != nil {
		return err
	}
	for query, to := range map[string]**sql.Stmt{"BEGIN IMMEDIATE": &l.begin, "COMMIT": &l.commit,
		"INSERT INTO events VALUES(?,?,?,?,?,?,?)": &l.insert, "INSERT INTO roots VALUES(?,?)": &l.root} {
		if *to, err = l.conn.PrepareContext(ctx, query); err != nil { //nolint:sqlclosecheck // they end with the connection
			return err
		}
	}
	return nil
}

// append returns when the events are durable.
func (l *bareLog) append(events [][]byte) {
	a := bareAppend{events, make(chan struct{})}
	l.queue <- a
	<-a.done
}

func (l *bareLog) run() {
	for first := range l.queue {
		batch, n := []bareAppend{first}, len(first.events)
		for n < bareGroup && len(l.queue) > 0 {
			next := <-l.queue
			batch, n = append(batch, next), n+len(next.events)
		}
		events := make([][]byte, 0, n)
		for _, a := range batch {
			events = append(events, a.events...)
		}
		if err := l.write(events); err != nil && l.err == nil {
			l.err = fmt.Errorf("bare log: %w", err)
		}
		for _, a := range batch {
			close(a.done)
		}
		l.relay(events)
	}
}

func (l *bareLog) write(events [][]byte) error {
	if _, err := l.begin.Exec(); err != nil {
		return err
	}
	for _, b := range events {
		hashes, err := tlog.StoredHashes(l.size, b, l)
		if err != nil {
			return err
		}
		l.hashes = append(l.hashes, hashes...)
		if _, err := l.insert.Exec(l.size, "caller", l.size, fmt.Sprintf("01JC%022d", l.size), time.Now().UnixNano(), b, hashes[0][:]); err != nil {
			return err
		}
		l.size++
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

// ReadHashes implements tlog.HashReader.
func (l *bareLog) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		out[i] = l.hashes[x]
	}
	return out, nil
}

func (l *bareLog) close() error {
	close(l.queue)
	l.ended.Wait()
	return errors.Join(l.err, l.conn.Close(), l.db.Close())
}
