package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"waybill/migrations"
)

// Look reads which log the views in the file at path are of and how far they
// are, and changes nothing. A missing file gives an error that matches
// [fs.ErrNotExist]; views that have seen no event yet give "" and 0.
func Look(ctx context.Context, path string) (log string, seq int64, err error) {
	db, err := migrations.OpenStill(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, `SELECT log, seq FROM position`).Scan(&log, &seq)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", 0, fmt.Errorf("views: read the position: %w", err)
	}
	return log, seq, nil
}
