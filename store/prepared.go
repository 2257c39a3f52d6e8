package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// prepared runs each query by a statement that is made once: a log is read by few
// queries, and by some of them a million times. It may be used by several goroutines.
type prepared struct {
	db *sql.DB

	mu         sync.Mutex
	statements map[string]*sql.Stmt
}

func (p *prepared) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.statements[query]; s != nil {
		return s, nil
	}
	s, err := p.db.PrepareContext(ctx, query) //nolint:sqlclosecheck // closed by close
	if err != nil {
		return nil, err
	}
	if p.statements == nil {
		p.statements = map[string]*sql.Stmt{}
	}
	p.statements[query] = s
	return s, nil
}

// QueryContext implements querier.
func (p *prepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := p.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

// QueryRowContext implements querier.
func (p *prepared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	s, err := p.statement(ctx, query)
	if err != nil {
		return p.db.QueryRowContext(ctx, query, args...) // which fails the same way, and says so
	}
	return s.QueryRowContext(ctx, args...)
}

func (p *prepared) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, s := range p.statements { // in no order: each alone
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, p.db.Close())...)
}
