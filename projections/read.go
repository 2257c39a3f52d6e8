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
	r := domain.Report{Log: v.log, Collisions: []domain.CollisionReport{}}
	tx, err := v.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return r, fmt.Errorf("views: %w", err)
	}
	r.Peers, err = readPeers(ctx, tx)
	spaces, spacesErr := readSpaces(ctx, tx)
	r.Namespaces = spaces
	err = errors.Join(err, spacesErr,
		nameTools(ctx, tx, r.Peers),
		rows(ctx, tx, `SELECT context, name, policy, candidates, winner, seq FROM collisions ORDER BY context, name`,
			func(scan func(...any) error) error {
				c, err := scanCollision(scan)
				r.Collisions = append(r.Collisions, c)
				return err
			}),
		tx.Rollback())
	return r, err
}

// readPeers reads the peers but for their tools, sorted by name.
func readPeers(ctx context.Context, tx *sql.Tx) ([]domain.PeerReport, error) {
	peers := []domain.PeerReport{}
	err := rows(ctx, tx, `SELECT doc FROM peers ORDER BY name`, func(scan func(...any) error) error {
		var doc string
		var p domain.PeerReport
		if err := scan(&doc); err != nil {
			return err
		}
		err := json.Unmarshal([]byte(doc), &p)
		peers = append(peers, p)
		return err
	})
	return peers, err
}

// nameTools gives each peer its tools of the default context.
func nameTools(ctx context.Context, tx *sql.Tx, peers []domain.PeerReport) error {
	tools := map[string][]domain.ToolReport{}
	err := rows(ctx, tx, `SELECT peer, canonical, local FROM tools WHERE context = ? ORDER BY canonical`,
		func(scan func(...any) error) error {
			var peer string
			var t domain.ToolReport
			err := scan(&peer, &t.Canonical, &t.Local)
			tools[peer] = append(tools[peer], t)
			return err
		}, domain.DefaultContext)
	for i, p := range peers {
		if list := tools[p.Name]; list != nil {
			peers[i].Tools = list
		}
	}
	return err
}

// readSpaces reads the namespaces in force, sorted by context.
func readSpaces(ctx context.Context, tx *sql.Tx) ([]domain.NamespaceReport, error) {
	spaces := []domain.NamespaceReport{}
	err := rows(ctx, tx, `SELECT context, generation, digest, policy, tools FROM in_force ORDER BY context`,
		func(scan func(...any) error) error {
			var n domain.NamespaceReport
			err := scan(&n.Context, &n.Generation, &n.Digest, &n.Policy, &n.Tools)
			spaces = append(spaces, n)
			return err
		})
	return spaces, err
}

func scanCollision(scan func(...any) error) (c domain.CollisionReport, err error) {
	var candidates string
	var winner sql.NullString
	if err := scan(&c.Context, &c.Name, &c.Policy, &candidates, &winner, &c.Seq); err != nil {
		return c, err
	}
	if c.Context == domain.DefaultContext {
		c.Context = "" // as reports have it
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

// Tools reads what a context can call, "" for the default one, sorted by canonical
// name. The entries are those that a service gives. Nobody keeps the lists up to
// date while none runs, so every peer's list is stale, or missing.
func (v *Views) Tools(ctx context.Context, space string) (list domain.ToolList, err error) {
	if space == "" {
		space = domain.DefaultContext
	}
	list = domain.ToolList{Context: space, Tools: []domain.ToolEntry{}, Stale: []string{}, Missing: []string{}}
	tx, err := v.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return list, fmt.Errorf("views: %w", err)
	}
	spaces, err := readSpaces(ctx, tx)
	for _, n := range spaces {
		if n.Context == space {
			list.Generation, list.Digest = n.Generation, n.Digest
		}
	}
	peers, peersErr := readPeers(ctx, tx)
	for _, p := range peers {
		judge(&list, p)
	}
	const q = `SELECT canonical, peer, local, model_name, since, since_generation, collided, held, digest, definition
		FROM tools WHERE context = ? ORDER BY canonical`
	err = errors.Join(err, peersErr, rows(ctx, tx, q, func(scan func(...any) error) error {
		e, err := scanTool(scan)
		list.Tools = append(list.Tools, e)
		return err
	}, space), tx.Rollback())
	return list, err
}

// judge says of a peer whether it has a list for the context. One that keeps a
// single list answers everybody alike.
func judge(list *domain.ToolList, p domain.PeerReport) {
	for _, l := range p.Lists {
		switch {
		case l.Context != list.Context && len(p.Lists) > 1:
		case l.Seq == 0:
			list.Missing = append(list.Missing, p.Name)
		default:
			list.Stale = append(list.Stale, p.Name)
		}
	}
}

func scanTool(scan func(...any) error) (e domain.ToolEntry, err error) {
	var collided, held, definition sql.NullString
	err = scan(&e.Canonical, &e.Peer, &e.Local, &e.Model, &e.Since, &e.SinceGen, &collided, &held, &e.Digest, &definition)
	if definition.Valid {
		e.Definition = []byte(definition.String)
	}
	if err == nil && collided.Valid {
		err = json.Unmarshal([]byte(collided.String), &e.Collided)
	}
	if err == nil && held.Valid {
		err = json.Unmarshal([]byte(held.String), &e.Held)
	}
	return e, err
}

// Call is one call as the views know it. Status is "" while it is under way, and joined
// for a submission that got the outcome of another call: Joined is then the key of that.
type Call struct {
	Call, Host, Tool, Status, Code, Ran, Peer, Local, Joined string
	ReceivedSeq, SettledSeq                                  int64
}

// Calls reads the last calls received, newest first, at most max.
func (v *Views) Calls(ctx context.Context, max int) (out []Call, err error) {
	tx, err := v.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("views: %w", err)
	}
	const q = `SELECT call, host, tool, coalesce(status, ''), coalesce(code, ''), coalesce(ran, ''), coalesce(peer, ''),
		coalesce(local, ''), coalesce(joined, ''), received_seq, coalesce(settled_seq, 0) FROM calls ORDER BY received_seq DESC LIMIT ?`
	err = rows(ctx, tx, q, func(scan func(...any) error) error {
		var c Call
		err := scan(&c.Call, &c.Host, &c.Tool, &c.Status, &c.Code, &c.Ran, &c.Peer, &c.Local, &c.Joined, &c.ReceivedSeq, &c.SettledSeq)
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
