package store

import "context"

// The points at which SetFault can make an append fail.
const (
	FaultBegin     = faultBegin
	FaultInsert    = faultInsert
	FaultCommit    = faultCommit
	FaultCommitted = faultCommitted
)

// SetFault makes f decide, at each point of an append, whether it fails there.
func (l *Log) SetFault(f func(point string) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
}

// Pragma returns what the writing connection answers to a pragma.
func (l *Log) Pragma(name string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var s string
	err := l.writer.conn.QueryRowContext(context.Background(), "PRAGMA "+name).Scan(&s)
	return s, err
}

// Exec runs SQL on the writing connection, with the settings of Open.
func (l *Log) Exec(query string, args ...any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.writer.conn.ExecContext(context.Background(), query, args...)
	return err
}
