package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"waybill/domain"
	"waybill/events/checkpoint"
)

// heads are the signed tree heads that a log is held to: those stored in it, and
// those kept elsewhere. Each is compared when the tree has come to its size.
type heads struct {
	ctx   context.Context // of the one verification
	src   Source
	key   string
	rows  []Checkpoint // read ahead
	after int64        // size of the last row that was compared
	done  bool         // all rows were read; a log that grows may have more by now
	kept  []keptHead   // by size

	right, last int64
	rotated     int64  // seq of the last key.rotated
	want        string // the key that was kept elsewhere
	met         bool   // the log has had it
}

// keptHead is a checkpoint kept elsewhere. Its signature is looked at when the
// tree has come to its size: the key may have changed by then.
type keptHead struct {
	checkpoint.Head
	note []byte
}

// open takes what was kept elsewhere. A stored key is only looked at where a
// signature needs it.
func (h *heads) open(ctx context.Context, src Source, kept Kept) error {
	h.ctx, h.src, h.key, h.after = ctx, src, src.PublicKey(), first
	if kept.Key != "" {
		if _, err := checkpoint.PublicKey(kept.Key, src.ID()); err != nil {
			return fmt.Errorf("the key that was kept: %w", err)
		}
		h.want, h.met = kept.Key, checkpoint.SameKey(kept.Key, h.key)
	}
	for _, b := range kept.Checkpoints {
		c, err := checkpoint.Peek(b)
		if err != nil {
			return fmt.Errorf("kept elsewhere: %w", err)
		}
		if c.Log != src.ID() {
			return foreign(fmt.Errorf("it is of log %s", c.Log))
		}
		h.kept = append(h.kept, keptHead{c, b})
	}
	slices.SortFunc(h.kept, func(a, b keptHead) int { return int(min(max(a.Size-b.Size, -1), 1)) })
	return nil
}

func foreign(err error) error {
	return &AlteredError{What: "a checkpoint kept elsewhere is not one of this log: " + err.Error()}
}

// rotate takes another key, if the event hands the log over from the present one.
func (h *heads) rotate(seq int64, d domain.KeyRotated) error {
	to, err := checkpoint.OpenRotation([]byte(d.Note), h.src.ID(), h.key)
	if err == nil && (d.To != to || !checkpoint.SameKey(d.From, h.key)) {
		err = errors.New("its note is about other keys")
	}
	if err != nil {
		return &AlteredError{Seq: seq, What: "it does not hand the log over to another key: " + err.Error()}
	}
	h.key, h.rotated = to, seq
	h.met = h.met || h.want != "" && checkpoint.SameKey(h.want, to)
	return nil
}

func (h *heads) opened(b []byte) (checkpoint.Head, error) {
	c, err := checkpoint.Open(b, h.key)
	if err == nil && c.Log != h.src.ID() {
		err = fmt.Errorf("it is of log %s", c.Log)
	}
	return c, err
}

// reach compares the heads of the size that a tree has come to.
func (h *heads) reach(t *tree) error {
	for len(h.kept) > 0 && h.kept[0].Size <= t.size {
		if _, err := h.opened(h.kept[0].note); err != nil {
			return foreign(err)
		}
		if h.kept[0].Root != t.root() {
			return &AlteredError{Seq: t.size, What: fmt.Sprintf("the first %d events are not those of the checkpoint kept elsewhere", t.size)}
		}
		h.kept = h.kept[1:]
	}
	for {
		row, err := h.next()
		if err != nil || row == nil || row.Size > t.size {
			return err
		}
		c, err := h.stored(row)
		if err != nil {
			return err
		}
		if c.Root != t.root() {
			return &AlteredError{Seq: t.size, What: fmt.Sprintf("the checkpoint stored for the first %d events is not theirs", t.size)}
		}
		h.right, h.last = h.right+1, row.Size
		h.rows, h.after = h.rows[1:], row.Size
	}
}

// next returns the first stored checkpoint that was not compared yet, nil if
// there is none.
func (h *heads) next() (*Checkpoint, error) {
	if len(h.rows) == 0 && !h.done {
		var err error
		if h.rows, err = h.src.Checkpoints(h.ctx, h.after, batch); err != nil {
			return nil, fmt.Errorf("read checkpoints: %w", err)
		}
		h.done = len(h.rows) == 0
	}
	if len(h.rows) == 0 {
		return nil, nil
	}
	return &h.rows[0], nil
}

// stored opens a stored checkpoint.
func (h *heads) stored(row *Checkpoint) (checkpoint.Head, error) {
	c, err := h.opened(row.Note)
	if err == nil && c.Size != row.Size {
		err = fmt.Errorf("it is for %d events", c.Size)
	}
	if err != nil {
		return c, &AlteredError{Seq: max(row.Size, 0), What: fmt.Sprintf("the checkpoint stored for the first %d events: %v", row.Size, err)}
	}
	return c, nil
}

// beyond gives an error for a key that the log never had, and for a head of a
// longer log than there is.
func (h *heads) beyond(size int64) error {
	if h.want != "" && !h.met {
		return &AlteredError{What: fmt.Sprintf("the log names %s as its key, and not %s, which was kept elsewhere", h.src.PublicKey(), h.want)}
	}
	if len(h.kept) > 0 {
		if _, err := h.opened(h.kept[0].note); err != nil && h.rotated == 0 {
			return foreign(err)
		}
		return &AlteredError{Seq: size + 1, What: fmt.Sprintf("missing; a checkpoint kept elsewhere is of %d events", h.kept[0].Size)}
	}
	row, err := h.next()
	if err != nil || row == nil {
		return err
	}
	if _, err := h.stored(row); err != nil {
		return err
	}
	return &AlteredError{Seq: size + 1, What: fmt.Sprintf("missing; a checkpoint was stored for %d events", row.Size)}
}
