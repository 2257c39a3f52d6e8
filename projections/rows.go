package projections

import (
	"context"
	"database/sql"

	"github.com/go-json-experiment/json"

	"waybill/domain"
)

func writePeers(ctx context.Context, tx *sql.Tx, r domain.Report) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM peers`); err != nil {
		return err
	}
	for _, p := range r.Peers {
		doc, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO peers (name, doc) VALUES (?, ?)`, p.Name, string(doc)); err != nil {
			return err
		}
	}
	return nil
}

func writeNamespace(ctx context.Context, tx *sql.Tx, seq int64, d domain.NamespaceMerged) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO namespaces (context, generation, digest, policy, tools, seq)
		VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (context, generation) DO UPDATE SET
		digest = excluded.digest, policy = excluded.policy, tools = excluded.tools, seq = excluded.seq`,
		d.Context, d.Generation, d.Digest, d.Policy, d.Tools, seq)
	return err
}

// writeNames writes the tools and collisions in force.
func (v *Views) writeNames(ctx context.Context, tx *sql.Tx, r domain.Report) error {
	for _, table := range []string{`DELETE FROM tools`, `DELETE FROM collisions`} {
		if _, err := tx.ExecContext(ctx, table); err != nil {
			return err
		}
	}
	generation, _, tools := v.state.Tools()
	insert, err := tx.PrepareContext(ctx, `INSERT INTO tools (canonical, peer, local, generation, definition) VALUES (?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, t := range tools {
		if _, err := insert.ExecContext(ctx, t.Canonical, t.Peer, t.Local, generation, nullable(t.Definition)); err != nil {
			return err
		}
	}
	for _, c := range r.Collisions {
		if err := writeCollision(ctx, tx, c); err != nil {
			return err
		}
	}
	return nil
}

func nullable(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

func writeCollision(ctx context.Context, tx *sql.Tx, c domain.CollisionReport) error {
	candidates, err := json.Marshal(c.Candidates)
	if err != nil {
		return err
	}
	var winner any
	if c.Winner != nil {
		b, err := json.Marshal(c.Winner)
		if err != nil {
			return err
		}
		winner = string(b)
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO collisions (name, policy, candidates, winner, seq) VALUES (?, ?, ?, ?, ?)`,
		c.Name, c.Policy, string(candidates), winner, c.Seq)
	return err
}

// writeCall folds one event of a call into its row.
func writeCall(ctx context.Context, tx *sql.Tx, e domain.Event) error {
	var err error
	switch d := e.Data.(type) {
	case domain.CallReceived:
		_, err = tx.ExecContext(ctx, `INSERT INTO calls (call, host, tool, received_seq) VALUES (?, ?, ?, ?)
			ON CONFLICT (call) DO UPDATE SET tool = excluded.tool, received_seq = excluded.received_seq,
			status = NULL, code = NULL, ran = NULL, peer = NULL, local = NULL, settled_seq = NULL`,
			e.Call(), d.Host, d.Tool, e.Seq)
	case domain.CallRouted:
		_, err = tx.ExecContext(ctx, `UPDATE calls SET peer = ?, local = ? WHERE call = ?`, d.Peer, d.Local, e.Call())
	case domain.CallRefused:
		_, err = tx.ExecContext(ctx, `UPDATE calls SET status = 'refused', code = ?, ran = 'no', settled_seq = ? WHERE call = ?`,
			string(d.Code), e.Seq, e.Call())
	case domain.CallSettled:
		_, err = tx.ExecContext(ctx, `UPDATE calls SET status = ?, code = NULLIF(?, ''), ran = ?, settled_seq = ? WHERE call = ?`,
			string(d.Status), string(d.Code), string(d.Ran), e.Seq, e.Call())
	}
	return err
}
