package harness

import (
	"bytes"
	"context"
	"fmt"

	"waybill/domain"
	"waybill/events"
	"waybill/store"
)

// checkedTail is how many events at the end of its log a service decides again when it
// starts. The whole log is the auditor's, and doctor's.
const checkedTail = 2000

// TailError says that a decision near the end of the log does not follow from what was
// recorded before it. The log was folded all the same: what it says is what happened.
type TailError struct {
	Seq      int64
	Recorded string // kind of the decision; "" for none
	Due      string // kind of the one that follows; "" for none
}

func (e *TailError) Error() string {
	return fmt.Sprintf("event %d does not follow from what was recorded before it: there is %s, and %s is due; run waybill-audit replay", e.Seq, orNothing(e.Recorded), orNothing(e.Due))
}

func orNothing(kind string) string {
	if kind == "" {
		return "no decision"
	}
	return kind
}

// FoldChecked is Fold that decides the last events of a log again, up to head, and
// returns the first divergence beside its error.
func FoldChecked(ctx context.Context, src Source, logID string, s *domain.State, head int64) (*TailError, error) {
	c := &tailChecker{logID: logID, s: s, after: max(head-checkedTail, s.Head), head: head}
	err := fold(ctx, src, logID, s, c.apply)
	if err == nil {
		c.finish(s.Head + 1)
	}
	return c.found, err
}

// tailChecker applies events, and from the first observation of the tail on holds each
// decision against the one that is due.
type tailChecker struct {
	logID string
	s     *domain.State
	after int64
	head  int64
	steps *domain.Steps // nil before the tail, and after a divergence
	begun bool
	found *TailError
}

func (c *tailChecker) apply(e domain.Event, r store.Record) {
	switch {
	case c.found != nil || e.Seq <= c.after || e.IsDecision() && !c.begun || !e.IsDecision() && e.Seq > c.head:
		c.s.Apply(e)
	case e.IsDecision():
		c.decision(e, r)
	default:
		if c.finish(e.Seq); c.found != nil {
			c.s.Apply(e)
			return
		}
		c.steps, c.begun = c.s.Begin(e), true
	}
}

func (c *tailChecker) decision(e domain.Event, r store.Record) {
	due, ok := c.steps.Due(0)
	if ok {
		if again, err := events.Seal(c.logID, due); err == nil && bytes.Equal(again, r.Bytes) {
			c.steps.Drop(1)
			c.steps.Take(e)
			return
		}
	}
	c.found = &TailError{Seq: e.Seq, Recorded: e.Data.Kind()}
	if ok {
		c.found.Due = due.Data.Kind()
	}
	c.s.Apply(e)
}

// finish notes what is due and was not recorded before an event.
func (c *tailChecker) finish(seq int64) {
	if c.found != nil || c.steps == nil {
		return
	}
	if due, ok := c.steps.Due(0); ok {
		c.found = &TailError{Seq: seq, Due: due.Data.Kind()}
	}
}
