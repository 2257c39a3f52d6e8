package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waybill/domain"
	"waybill/store/payloads"
)

// Erased is what an operator's erase was decided to be.
type Erased struct {
	Host   *string `json:"host"`   // null for none
	Before *string `json:"before"` // RFC 3339; null for none
	Calls  int64   `json:"calls"`  // of which anything was kept
}

// KeptPayloads is what the start of an engine needs of payloads: *payloads.DB is
// one.
type KeptPayloads interface {
	Payloads
	// Sweep erases what no event of the log cites.
	Sweep(ctx context.Context, head int64, event func(ctx context.Context, seq int64) ([]byte, error)) (int, error)
	// Erased returns the event up to which erasures were carried out.
	Erased(ctx context.Context) (int64, error)
	// CaughtUp notes that they were up to an event.
	CaughtUp(ctx context.Context, seq int64) error
}

func selection(x domain.Erase) payloads.Selection {
	out := payloads.Selection{Seq: x.Seq, Call: x.Call, Host: x.Host, Before: x.Before}
	switch x.Only {
	case domain.KeptPayloads:
		out.Only = payloads.Whole
	case domain.KeptOutcome:
		out.Only = payloads.Outcomes
	}
	return out
}

// Recover makes payloads agree with a log that nobody writes to: what no event
// cites is erased, and so is what the log says was erased and a crash has left.
func Recover(ctx context.Context, src Source, logID string, head int64, p KeptPayloads) error {
	_, err := p.Sweep(ctx, head, func(ctx context.Context, seq int64) ([]byte, error) {
		records, err := src.Read(ctx, seq-1, 1)
		if err != nil || len(records) == 0 || records[0].Seq != seq {
			return nil, err
		}
		return records[0].Bytes, nil
	})
	if err != nil {
		return err
	}
	after, err := p.Erased(ctx)
	for err == nil && after < head {
		after, err = eraseAgain(ctx, src, logID, after, p)
	}
	if err != nil {
		return err
	}
	return p.CaughtUp(ctx, head)
}

// eraseAgain carries out the erasures among the events after one, and returns the
// last of them.
func eraseAgain(ctx context.Context, src Source, logID string, after int64, p KeptPayloads) (int64, error) {
	records, err := src.Read(ctx, after, foldBatch)
	if err != nil || len(records) == 0 {
		return after, errors.Join(err, errors.New("the log is shorter than it was: run waybill-audit verify"))
	}
	for _, r := range records {
		after = r.Seq
		if r.Type != (domain.PayloadsErased{}).Kind() {
			continue
		}
		e, err := open(logID, r)
		if err != nil {
			return after, err
		}
		for _, effect := range domain.Effects(e) {
			if x, ok := effect.(domain.Erase); ok {
				if err := p.Erase(ctx, selection(x)); err != nil {
					return after, err
				}
			}
		}
	}
	return after, nil
}

// countErased counts what an order names, for the record.
func countErased(ctx context.Context, p Payloads, now int64, d domain.OperatorCommanded) (int64, error) {
	s := payloads.Selection{Call: d.Call, Host: d.Host}
	if d.OlderThan != 0 {
		s.Before = max(1, now/1_000_000-d.OlderThan)
	}
	return p.Count(ctx, s)
}

// erased is the part of a command's reply that says what is erased.
func erased(d domain.PayloadsErased) *Erased {
	out := &Erased{Host: wordOrNull(d.Host), Calls: d.Calls}
	if d.Before != 0 {
		at := time.UnixMilli(d.Before).UTC().Format(time.RFC3339Nano)
		out.Before = &at
	}
	return out
}

// erase carries an erasure out, beside the loop: it may take a while. Those of one
// log follow each other.
func (l *Loop) erase(x domain.Erase) {
	c := l.keeper.waiting[x.Seq]
	delete(l.keeper.waiting, x.Seq)
	if l.cfg.Payloads == nil {
		return // there is nothing to erase
	}
	l.keeper.erasers.put(func() {
		err := l.cfg.Payloads.Erase(context.Background(), selection(x))
		if err != nil {
			l.cfg.Logger.Error("payloads could not be erased; the next start tries again", "event", x.Seq, "err", err)
		}
		if c != nil {
			c.erased <- err
		}
	})
}

// awaitErasure waits until what was decided on is done.
func (c *command) awaitErasure(ctx context.Context, r CommandReply) (CommandReply, error) {
	select {
	case err := <-c.erased:
		if err != nil {
			return r, fmt.Errorf("the order is recorded, and the next start tries again: %w", err)
		}
		return r, nil
	case <-ctx.Done():
		return r, fmt.Errorf("the order is recorded and is being carried out: %w", context.Cause(ctx))
	}
}

// Bounds of how often it is looked whether anything is kept for too long.
const (
	retainAtLeast = time.Second
	retainAtMost  = time.Hour
)

// retain has erased what is kept for longer than the retention, by the policy or for
// idempotency keys, until ctx ends. What it finds is an observation: the loop decides.
func (e *Engine) retain(ctx context.Context, p Payloads, now func() int64, retention time.Duration, only payloads.Only) error {
	tick := time.NewTicker(min(max(retention/10, retainAtLeast), retainAtMost))
	defer tick.Stop()
	for {
		n, err := p.Count(ctx, payloads.Selection{Before: max(1, now()/1_000_000-retention.Milliseconds()), Only: only})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			e.logger.Error("it cannot be seen whether payloads are kept for too long", "err", err)
		case n > 0:
			e.Loop.Report(domain.RetentionPassed{Calls: n, Outcomes: only == payloads.Outcomes}, nil, nil)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
