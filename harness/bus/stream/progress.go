package stream

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Position is the sequence of the last event known to be in the stream, 0
// before the stream was first reached. It can go back if the server lost the
// end of the stream, as a power cut can make it do.
func (p *Publisher) Position() int64 {
	position, _ := p.where()
	return position
}

// Err is nil while copying goes well or has not begun, the last failure while
// it is tried again, and what ended it after Run returned with an error.
func (p *Publisher) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Lag is how many events up to head are not known to be in the stream. Until the
// stream was first reached nobody knows of those before this life, which are not
// counted.
func (p *Publisher) Lag(head int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lag(head)
}

func (p *Publisher) lag(head int64) int64 {
	if !p.known {
		return max(head-p.cfg.Since, 0)
	}
	return max(head-p.position, 0)
}

// Health says how a publisher does. Its JSON form is a contract.
type Health struct {
	State    string `json:"state"`           // ok, behind, forked or stopped
	Position int64  `json:"position"`        // as Position
	First    int64  `json:"first,omitzero"`  // the oldest event in the stream, where that is not 1: the head has aged out
	Lag      int64  `json:"lag"`             // as Lag
	Error    string `json:"error,omitempty"` // as Err
}

// The states of a publisher. One that is behind is trying again, or has more to
// catch up than two batches.
const (
	StateOK      = "ok"
	StateBehind  = "behind"
	StateForked  = "forked"
	StateStopped = "stopped"
)

// Health is how the publisher does while the log ends at head.
func (p *Publisher) Health(head int64) Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := Health{State: StateOK, Position: p.position, Lag: p.lag(head)}
	if p.first > 1 {
		h.First = p.first
	}
	if p.err != nil {
		h.Error = p.err.Error()
	}
	switch {
	case errors.Is(p.err, ErrForked):
		h.State = StateForked
	case p.ended:
		h.State = StateStopped
	case p.err != nil || !p.known || h.Lag > 2*int64(p.cfg.Batch):
		h.State = StateBehind
	}
	return h
}

// CaughtUp waits until the stream has the event seq. It fails if ctx ends or
// the publisher does.
func (p *Publisher) CaughtUp(ctx context.Context, seq int64) error {
	for {
		p.mu.Lock()
		position, ended, err, changed := p.position, p.ended, p.err, p.changed
		p.mu.Unlock()
		switch {
		case position >= seq:
			return nil
		case ended && err != nil:
			return err
		case ended:
			return fmt.Errorf("wait for %d in the stream, which has %d: %w", seq, position, ErrPublisherStopped)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %d in the stream, which has %d: %w", seq, position, context.Cause(ctx))
		}
	}
}

func (p *Publisher) where() (position int64, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.position, p.known
}

// begin notes the oldest message of the stream, and says if it is not the first
// event.
func (p *Publisher) begin(first int64) {
	p.update(func() {
		if first > 1 && first != p.first {
			p.cfg.Logger.Info("the head of the stream has aged out; the log has it", "stream", p.stream(), "first", first)
		}
		p.first = first
	})
}

// advance notes a position that the server has confirmed.
func (p *Publisher) advance(position int64) {
	p.update(func() {
		if p.err != nil {
			p.cfg.Logger.Info("publishing again", "stream", p.stream(), "position", position)
		}
		p.position, p.known, p.err = position, true, nil
	})
}

func (p *Publisher) fail(err error, pause time.Duration) {
	p.update(func() {
		if p.err == nil {
			p.cfg.Logger.Warn("publishing interrupted, trying again", "stream", p.stream(), "pause", pause, "error", err)
		}
		p.err = err
	})
}

func (p *Publisher) end(err error) {
	p.update(func() {
		if err != nil {
			p.cfg.Logger.Error("publishing stopped", "stream", p.stream(), "error", err)
		}
		p.err, p.ended = err, true
	})
}

func (p *Publisher) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}
