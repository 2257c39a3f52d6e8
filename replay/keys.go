package replay

import (
	"context"
	"fmt"

	"waybill/domain"
)

// KeyFrom is a key of a log with the seq from which on it signs; 0 for the one
// that the log was made with.
type KeyFrom struct {
	Seq    int64
	Public string
}

// Keys returns the keys that a log has had, in order. Each but the first was
// handed over by the one before it; an event that only claims so gives an
// *AlteredError. It reads every event's type, and opens the rotations only.
func Keys(ctx context.Context, src Source) ([]KeyFrom, error) {
	h := heads{src: src, key: src.PublicKey()}
	keys := []KeyFrom{{0, h.key}}
	err := each(ctx, src, func(r Record) error {
		if r.Type != (domain.KeyRotated{}).Kind() {
			return nil
		}
		e, err := open(src, r)
		if err != nil {
			return err
		}
		d, ok := e.Data.(domain.KeyRotated)
		if !ok {
			return &AlteredError{Seq: r.Seq, What: fmt.Sprintf("it is stored as %s and is none", r.Type)}
		}
		if err := h.rotate(r.Seq, d); err != nil {
			return err
		}
		keys = append(keys, KeyFrom{r.Seq, h.key})
		return nil
	})
	return keys, err
}
