package peer

import (
	"errors"
	"io"
	"sync/atomic"

	"waybill/domain"
	"waybill/harness/peer/frame"
)

// read is the reader of one incarnation. It waits for nothing but the pipe, and ends with it; then no answer can come.
func (c *incarnation) read() {
	c.in = frame.NewReader(listener{c.stdout, &c.table.heard}, c.lane.m.cfg.FrameLimit)
	code := domain.CodeTransportLost
	if err := c.readLines(); errors.Is(err, frame.ErrTooLong) || errors.Is(err, frame.ErrEndless) {
		code, c.choked = domain.CodeFrameTooLarge, true
		c.end(causeTooLong)
	}
	c.broke(causeStdoutClosed)
	_ = c.stdout.Close() // a peer that goes on writing is told so
	c.table.fail(code)
}

// listener counts what a peer writes.
type listener struct {
	r     io.Reader
	heard *atomic.Int64
}

func (l listener) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	l.heard.Add(int64(n))
	return n, err
}

// readLines takes lines until no more can be taken, and says why.
func (c *incarnation) readLines() error {
	for {
		line, unfinished, err := c.in.Next()
		switch {
		case err == nil:
			c.receive(line)
		case !errors.Is(err, frame.ErrTooLong):
			if unfinished > 0 {
				c.noise.count(noiseHalfLine, unfinished)
			}
			return err
		case c.table.selected() == domain.EraUnknown:
			// It may have shown what rules legacy out: nothing may follow from what comes after it.
			c.noise.count(noiseTooLong, unfinished)
			return err
		default:
			if err := c.skip(); err != nil {
				return err
			}
		}
	}
}

// skip passes over a line that exceeds the limit. It costs the request it answers, and no other.
func (c *incarnation) skip() error {
	raw, size, err := c.in.PassOver()
	c.noise.count(noiseTooLong, size)
	if id, ok := (domain.Message{ID: raw}).RequestID(); ok {
		c.table.oversized(id)
	}
	return err
}

// reply has an answer to a request of the peer's own written in its turn.
func (c *incarnation) reply(answer []byte) {
	c.lane.put(task{do: func() {
		c.replies.Add(-1)
		c.write(answer)
	}})
}
