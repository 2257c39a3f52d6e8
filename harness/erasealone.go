package harness

import (
	"context"
	"fmt"

	"waybill/domain"
	"waybill/store"
)

// EraseAlone records an order to erase and carries it out, where no service runs.
// The caller holds the lock of the data directory; the log must have no other
// writer. Payloads are first made to agree with the log. When it returns nil the
// bytes are gone. After an error the order may be recorded; then the next start
// carries it out. redact takes secrets out by value.
func EraseAlone(ctx context.Context, log *store.Log, p KeptPayloads, clock Clock, redact func([]byte) []byte, d domain.OperatorCommanded) (CommandReply, error) {
	l := &Loop{cfg: Config{Log: logReader{log, log.Reader()}, Payloads: p, Redact: redact}, state: domain.NewState()}
	if r, refused := l.refuseCommand(ctx, d); refused {
		return r, nil
	}
	if err := Fold(ctx, log.Reader(), log.ID(), l.state); err != nil {
		return CommandReply{}, err
	}
	if err := Recover(ctx, log.Reader(), log.ID(), l.state.Head, p); err != nil {
		return CommandReply{}, err
	}
	var err error
	if d.Calls, err = countErased(ctx, p, clock.Wall(), d); err != nil {
		return CommandReply{}, err
	}
	after := l.state.Head
	facts := l.state.Step(domain.Event{Time: clock.Wall(), Data: d})
	var entries []store.Entry
	for _, e := range facts {
		entry, err := seal(log.ID(), e)
		if err != nil {
			return CommandReply{}, err
		}
		entries = append(entries, entry)
	}
	if _, err := log.Append(context.WithoutCancel(ctx), after, entries); err != nil {
		return CommandReply{}, fmt.Errorf("record the order: %w; whether it was recorded is in waybill events --type operator", err)
	}
	r := l.commandReply(d)
	r.follow(facts)
	for _, e := range facts {
		for _, effect := range domain.Effects(e) {
			if x, ok := effect.(domain.Erase); ok {
				if err := p.Erase(context.WithoutCancel(ctx), selection(x)); err != nil {
					return r, fmt.Errorf("the order is recorded, and the next start tries again: %w", err)
				}
			}
		}
	}
	return r, nil
}

// follow says what came of a command.
func (r *CommandReply) follow(facts []domain.Event) {
	r.Done = true
	for _, e := range facts {
		r.Seqs = append(r.Seqs, e.Seq)
		switch x := e.Data.(type) {
		case domain.CommandRefused:
			r.Done, r.Code, r.Reason = false, x.Code, x.Reason
		case domain.PayloadsErased:
			r.Erased = erased(x)
		}
	}
}
