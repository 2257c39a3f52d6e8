package projections

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"waybill/domain"
)

// writeState writes what differs from what is in the file: of the peers and the
// namespaces in force, and where names may have changed, of tools and collisions.
func (v *Views) writeState(ctx context.Context, tx *sql.Tx, names bool) (err error) {
	if v.filed == nil {
		if v.filed, err = readFiled(ctx, tx); err != nil {
			return err
		}
	}
	report := v.state.Report(v.log)
	if err := v.writePeers(ctx, tx, report.Peers); err != nil {
		return err
	}
	if err := v.writeSpaces(ctx, tx, report.Namespaces); err != nil || !names {
		return err
	}
	if err := v.writeTools(ctx, tx, report.Namespaces); err != nil {
		return err
	}
	return v.writeCollisions(ctx, tx, report.Collisions)
}

// writePeers leaves the tools of the peers to the table of tools.
func (v *Views) writePeers(ctx context.Context, tx *sql.Tx, peers []domain.PeerReport) error {
	now := make(map[string]bool, len(peers))
	for _, p := range peers {
		now[p.Name], p.Tools = true, []domain.ToolReport{}
		b, err := json.Marshal(p)
		if err != nil {
			return err
		}
		doc := string(b)
		if v.filed.peers[p.Name] == doc {
			continue
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO peers (name, doc) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET doc = excluded.doc`, p.Name, doc); err != nil {
			return err
		}
		v.filed.peers[p.Name] = doc
	}
	for name := range v.filed.peers { // in no order: each row is deleted alone
		if now[name] {
			continue
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM peers WHERE name = ?`, name); err != nil {
			return err
		}
		delete(v.filed.peers, name)
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

// writeSpaces writes which namespaces are in force: few rows, all of them.
func (v *Views) writeSpaces(ctx context.Context, tx *sql.Tx, spaces []domain.NamespaceReport) error {
	if slices.Equal(v.filed.spaces, spaces) {
		return nil
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM in_force`); err != nil {
		return err
	}
	for _, n := range spaces {
		_, err := tx.ExecContext(ctx, `INSERT INTO in_force (context, generation, digest, policy, tools) VALUES (?, ?, ?, ?, ?)`,
			n.Context, n.Generation, n.Digest, n.Policy, n.Tools)
		if err != nil {
			return err
		}
	}
	v.filed.spaces = spaces
	return nil
}

// writeTools writes the tools of each namespace in force. Contexts that have none
// any more lose their rows.
func (v *Views) writeTools(ctx context.Context, tx *sql.Tx, spaces []domain.NamespaceReport) error {
	was := v.filed.tools
	v.filed.tools = make(map[string][]toolRow, len(spaces))
	for _, n := range spaces {
		list := v.state.Tools(n.Context, "", 0, 0).Tools
		now := make([]toolRow, len(list))
		for i, e := range list {
			var err error
			if now[i], err = rowOf(e); err != nil {
				return err
			}
		}
		if err := writeSpace(ctx, tx, n.Context, was[n.Context], now, list); err != nil {
			return err
		}
		v.filed.tools[n.Context] = now
		delete(was, n.Context)
	}
	for space := range was { // in no order: each context is emptied alone
		if _, err := tx.ExecContext(ctx, `DELETE FROM tools WHERE context = ?`, space); err != nil {
			return err
		}
	}
	return nil
}

// writeSpace goes through two sorted lists of rows at once and writes what differs.
// list has the definitions of the rows now.
func writeSpace(ctx context.Context, tx *sql.Tx, space string, was, now []toolRow, list []domain.ToolEntry) error {
	drop := func(canonical string) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM tools WHERE context = ? AND canonical = ?`, space, canonical)
		return err
	}
	for i, r := range now {
		for len(was) > 0 && strings.Compare(was[0].canonical, r.canonical) < 0 {
			if err := drop(was[0].canonical); err != nil {
				return err
			}
			was = was[1:]
		}
		same := false
		if len(was) > 0 && was[0].canonical == r.canonical {
			same, was = was[0] == r, was[1:]
		}
		if same {
			continue
		}
		if err := putTool(ctx, tx, space, r, list[i].Definition); err != nil {
			return err
		}
	}
	for _, r := range was {
		if err := drop(r.canonical); err != nil {
			return err
		}
	}
	return nil
}

func putTool(ctx context.Context, tx *sql.Tx, space string, r toolRow, definition []byte) error {
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO tools
		(context, canonical, peer, local, model_name, since, since_generation, collided, held, digest, definition)
		VALUES (?, ?, ?, ?, ?, ?, ?, NULLIF(?, ''), NULLIF(?, ''), ?, ?)`,
		space, r.canonical, r.peer, r.local, r.model, r.since, r.sinceGen, r.collided, r.held, r.digest, nullable(definition))
	return err
}

func nullable(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

func (v *Views) writeCollisions(ctx context.Context, tx *sql.Tx, collisions []domain.CollisionReport) error {
	now := make(map[contested]int64, len(collisions))
	for _, c := range collisions {
		key := contested{spaceOf(c), c.Name}
		if now[key] = c.Seq; v.filed.collisions[key] == c.Seq {
			continue
		}
		if err := writeCollision(ctx, tx, c); err != nil {
			return err
		}
	}
	for key := range v.filed.collisions { // in no order: each row is deleted alone
		if now[key] != 0 {
			continue
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM collisions WHERE context = ? AND name = ?`, key.context, key.name); err != nil {
			return err
		}
	}
	v.filed.collisions = now
	return nil
}

// spaceOf is the context of a collision, which a report leaves out where it is the
// default one.
func spaceOf(c domain.CollisionReport) string {
	if c.Context == "" {
		return domain.DefaultContext
	}
	return c.Context
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
	_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO collisions (context, name, policy, candidates, winner, seq) VALUES (?, ?, ?, ?, ?, ?)`,
		spaceOf(c), c.Name, c.Policy, string(candidates), winner, c.Seq)
	return err
}
