package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"waybill/domain"
)

// Report reads what check and peers show, as of the last batch folded in.
func (v *Views) Report(ctx context.Context) (domain.Report, error) {
	r := domain.Report{Log: v.log, Peers: []domain.PeerReport{}, Namespaces: []domain.NamespaceReport{}, Collisions: []domain.CollisionReport{}}
	tx, err := v.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return r, fmt.Errorf("views: %w", err)
	}
	err = errors.Join(
		rows(ctx, tx, `SELECT doc FROM peers ORDER BY name`, func(scan func(...any) error) error {
			var doc string
			var p domain.PeerReport
			if err := scan(&doc); err != nil {
				return err
			}
			err := json.Unmarshal([]byte(doc), &p)
			r.Peers = append(r.Peers, p)
			return err
		}),
		rows(ctx, tx, `SELECT context, generation, digest, policy, tools FROM namespaces ORDER BY seq DESC LIMIT 1`,
			func(scan func(...any) error) error {
				var n domain.NamespaceReport
				err := scan(&n.Context, &n.Generation, &n.Digest, &n.Policy, &n.Tools)
				r.Namespaces = append(r.Namespaces, n)
				return err
			}),
		rows(ctx, tx, `SELECT name, policy, candidates, winner, seq FROM collisions ORDER BY name`,
			func(scan func(...any) error) error {
				c, err := scanCollision(scan)
				r.Collisions = append(r.Collisions, c)
				return err
			}),
		tx.Rollback())
	return r, err
}

func scanCollision(scan func(...any) error) (c domain.CollisionReport, err error) {
	var candidates string
	var winner sql.NullString
	if err := scan(&c.Name, &c.Policy, &candidates, &winner, &c.Seq); err != nil {
		return c, err
	}
	if err := json.Unmarshal([]byte(candidates), &c.Candidates); err != nil {
		return c, err
	}
	if winner.Valid {
		c.Winner = &domain.Owner{}
		err = json.Unmarshal([]byte(winner.String), c.Winner)
	}
	return c, err
}

// Tools reads the routable tools, sorted by canonical name, and their
// generation.
func (v *Views) Tools(ctx context.Context) (generation int64, tools []domain.ToolEntry, err error) {
	tools = []domain.ToolEntry{}
	tx, err := v.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return 0, nil, fmt.Errorf("views: %w", err)
	}
	err = rows(ctx, tx, `SELECT generation FROM namespaces ORDER BY seq DESC LIMIT 1`, func(scan func(...any) error) error {
		return scan(&generation)
	})
	if err != nil {
		return 0, nil, errors.Join(err, tx.Rollback())
	}
	err = rows(ctx, tx, `SELECT canonical, peer, local, definition FROM tools ORDER BY canonical`,
		func(scan func(...any) error) error {
			var t domain.ToolEntry
			var definition sql.NullString
			err := scan(&t.Canonical, &t.Peer, &t.Local, &definition)
			if definition.Valid {
				t.Definition = []byte(definition.String)
			}
			tools = append(tools, t)
			return err
		})
	return generation, tools, errors.Join(err, tx.Rollback())
}

// Call is one call as the views know it. Status is "" while it is under way.
type Call struct {
	Call, Host, Tool, Status, Code, Ran, Peer, Local string
	ReceivedSeq, SettledSeq                          int64
}

// Calls reads the last calls received, newest first, at most max.
func (v *Views) Calls(ctx context.Context, max int) (out []Call, err error) {
	tx, err := v.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("views: %w", err)
	}
	const q = `SELECT call, host, tool, coalesce(status, ''), coalesce(code, ''), coalesce(ran, ''), coalesce(peer, ''),
		coalesce(local, ''), received_seq, coalesce(settled_seq, 0) FROM calls ORDER BY received_seq DESC LIMIT ?`
	err = rows(ctx, tx, q, func(scan func(...any) error) error {
		var c Call
		err := scan(&c.Call, &c.Host, &c.Tool, &c.Status, &c.Code, &c.Ran, &c.Peer, &c.Local, &c.ReceivedSeq, &c.SettledSeq)
		out = append(out, c)
		return err
	}, max)
	return out, errors.Join(err, tx.Rollback())
}

func rows(ctx context.Context, tx *sql.Tx, query string, f func(scan func(...any) error) error, args ...any) error {
	rs, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rs.Close()
	for rs.Next() {
		if err := f(rs.Scan); err != nil {
			return err
		}
	}
	return rs.Err()
}
