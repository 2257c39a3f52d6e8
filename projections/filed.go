package projections

import (
	"context"
	"database/sql"

	"github.com/go-json-experiment/json"

	"waybill/domain"
)

// filed is what the file holds of the state as it is, so that only what differs is
// written: a change of one peer must not cost the rows of all.
type filed struct {
	peers      map[string]string // document by name
	spaces     []domain.NamespaceReport
	tools      map[string][]toolRow // by context, sorted by canonical name
	collisions map[contested]int64  // seq: what one event decided never changes
}

// contested is a name that is contested in a context.
type contested struct{ context, name string }

// toolRow is a row of tools but for the definition: it is that of the digest, and
// none where the tool is held.
type toolRow struct {
	canonical, peer, local, model, since string
	sinceGen                             int64
	collided, held                       string // JSON; "" for none
	digest                               string
}

// readFiled reads what is in the file.
func readFiled(ctx context.Context, tx *sql.Tx) (*filed, error) {
	f := &filed{peers: map[string]string{}, tools: map[string][]toolRow{}, collisions: map[contested]int64{}}
	err := rows(ctx, tx, `SELECT name, doc FROM peers`, func(scan func(...any) error) error {
		var name, doc string
		err := scan(&name, &doc)
		f.peers[name] = doc
		return err
	})
	if err != nil {
		return nil, err
	}
	if f.spaces, err = readSpaces(ctx, tx); err != nil {
		return nil, err
	}
	err = rows(ctx, tx, `SELECT context, name, seq FROM collisions`, func(scan func(...any) error) error {
		var c contested
		var seq int64
		err := scan(&c.context, &c.name, &seq)
		f.collisions[c] = seq
		return err
	})
	if err != nil {
		return nil, err
	}
	const q = `SELECT context, canonical, peer, local, model_name, since, since_generation, coalesce(collided, ''), coalesce(held, ''), digest
		FROM tools ORDER BY context, canonical`
	return f, rows(ctx, tx, q, func(scan func(...any) error) error {
		var space string
		var r toolRow
		err := scan(&space, &r.canonical, &r.peer, &r.local, &r.model, &r.since, &r.sinceGen, &r.collided, &r.held, &r.digest)
		f.tools[space] = append(f.tools[space], r)
		return err
	})
}

// rowOf is the row of a tool.
func rowOf(e domain.ToolEntry) (toolRow, error) {
	r := toolRow{canonical: e.Canonical, peer: e.Peer, local: e.Local, model: e.Model, since: e.Since, sinceGen: e.SinceGen, digest: e.Digest}
	if len(e.Collided) > 0 {
		b, err := json.Marshal(e.Collided)
		if err != nil {
			return r, err
		}
		r.collided = string(b)
	}
	if e.Held != nil {
		b, err := json.Marshal(e.Held)
		if err != nil {
			return r, err
		}
		r.held = string(b)
	}
	return r, nil
}
