package store

import (
	"context"
	"fmt"
)

// strays finds rows outside the ranges in which a log has any, which a reader that
// goes from the first to the last does not meet.
const straysQuery = `SELECT coalesce(
	(SELECT 'event ' || seq FROM events WHERE seq < 1 LIMIT 1),
	(SELECT 'a root of ' || size || ' events' FROM roots WHERE size < 1 LIMIT 1),
	(SELECT 'a checkpoint of ' || size || ' events' FROM checkpoints WHERE size < 0 LIMIT 1),
	(SELECT 'tile ' || level || '/' || idx FROM tiles WHERE level NOT BETWEEN 0 AND 7 OR idx < 0 LIMIT 1),
	(SELECT 'evidence under a digest of zeros' FROM evidence WHERE digest = zeroblob(32)),
	'')`

// Strays names a row that stands where no log has one: an event before the first,
// a tile of a level that does not exist, and the like; "" for none.
func (r *Reader) Strays(ctx context.Context) (what string, err error) {
	err = r.pool.read(ctx, func(q querier) error { return q.QueryRowContext(ctx, straysQuery).Scan(&what) })
	if err != nil {
		return "", fmt.Errorf("look for strays: %w", err)
	}
	return what, nil
}
