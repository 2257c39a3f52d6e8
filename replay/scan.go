package replay

import (
	"context"

	"waybill/domain"
)

// Scan calls f with every event of the log in order, as it was recorded, with the
// evidence that it cites. It stops at the first error of f and returns it; any other is
// as Replay has them. The evidence is f's only until it returns.
func Scan(ctx context.Context, src Source, f func(domain.Event, Record) error) error {
	src = readAhead(src)
	return each(ctx, src, func(rec Record) error {
		e, err := open(src, rec)
		if err != nil {
			return err
		}
		if _, _, err := join(ctx, src, &e); err != nil {
			return err
		}
		return f(e, rec)
	})
}
