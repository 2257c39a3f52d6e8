package bus

import (
	"context"
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
