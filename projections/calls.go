package projections

import (
	"context"
	"database/sql"

	"waybill/domain"
)

// callRows gathers what a batch says of calls, so that each row is written once: most
// calls begin and end in one batch.
type callRows struct {
	rows  map[string]*callRow
	order []*callRow
}

// callRow is what is to be written of one call; what is nil stays as it is in the file.
type callRow struct {
	call       string
	received   *received
	peer       *string
	local      *string
	end        *callEnd
	everything bool // the row begins anew
}

type received struct {
	host, tool string
	seq        int64
}

type callEnd struct {
	status, code, ran string
	joined            string // the call whose outcome is this one's
	seq               int64
}

// take folds one event of a call into its row.
func (c *callRows) take(e domain.Event) {
	switch d := e.Data.(type) {
	case domain.CallReceived:
		*c.row(e.Call()) = callRow{call: e.Call(), received: &received{d.Host, d.Tool, e.Seq}, everything: true}
	case domain.CallRouted:
		r := c.row(e.Call())
		r.peer, r.local = &d.Peer, &d.Local
	case domain.CallRefused:
		c.row(e.Call()).end = &callEnd{status: "refused", code: string(d.Code), ran: string(d.Ran()), seq: e.Seq}
	case domain.CallJoined:
		c.row(e.Call()).end = &callEnd{status: "joined", joined: d.First, seq: e.Seq}
	case domain.CallSettled:
		c.row(e.Call()).end = &callEnd{status: string(d.Status), code: string(d.Code), ran: string(d.Ran), seq: e.Seq}
	}
}

func (c *callRows) row(call string) *callRow {
	r := c.rows[call]
	if r == nil {
		if c.rows == nil {
			c.rows = map[string]*callRow{}
		}
		r = &callRow{call: call}
		c.rows[call], c.order = r, append(c.order, r)
	}
	return r
}

// write writes the rows in the order in which their calls came first.
func (c *callRows) write(ctx context.Context, tx *sql.Tx) error {
	for _, r := range c.order {
		if err := r.write(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

func (r *callRow) write(ctx context.Context, tx *sql.Tx) (err error) {
	end := callEnd{}
	if r.end != nil {
		end = *r.end
	}
	switch {
	case r.everything:
		_, err = tx.ExecContext(ctx, `INSERT INTO calls (call, host, tool, received_seq, peer, local, status, code, ran, joined, settled_seq)
			VALUES (?, ?, ?, ?, ?, ?, NULLIF(?, ''), NULLIF(?, ''), NULLIF(?, ''), NULLIF(?, ''), NULLIF(?, 0))
			ON CONFLICT (call) DO UPDATE SET tool = excluded.tool, received_seq = excluded.received_seq, peer = excluded.peer, local = excluded.local,
			status = excluded.status, code = excluded.code, ran = excluded.ran, joined = excluded.joined, settled_seq = excluded.settled_seq`,
			r.call, r.received.host, r.received.tool, r.received.seq, r.peer, r.local, end.status, end.code, end.ran, end.joined, end.seq)
	case r.end == nil:
		_, err = tx.ExecContext(ctx, `UPDATE calls SET peer = coalesce(?, peer), local = coalesce(?, local) WHERE call = ?`, r.peer, r.local, r.call)
	default:
		_, err = tx.ExecContext(ctx, `UPDATE calls SET peer = coalesce(?, peer), local = coalesce(?, local), status = ?, code = NULLIF(?, ''), ran = NULLIF(?, ''), joined = NULLIF(?, ''),
			settled_seq = ? WHERE call = ?`, r.peer, r.local, end.status, end.code, end.ran, end.joined, end.seq, r.call)
	}
	return err
}
