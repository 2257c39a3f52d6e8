package peer

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"waybill/domain"
	"waybill/harness/peer/message"
)

// carrier is what an incarnation is made of: a process, or an endpoint. The lane alone calls start, send and write, one at a time.
type carrier interface {
	start()                    // or reports why it could not
	send(r *request)           // if anybody still waits for its answer
	tell(frame []byte)         // a message that nobody answers
	reply(answer []byte)       // to a request of the peer's own; it returns at once, and takes one from replies when it is done
	selected(domain.SelectEra) // the era is known; it returns at once
	exclusive() bool           // an older incarnation must be gone first
	abort()                    // the service stops: whatever outlives the incarnation is ended. It returns at once
}

// link is one incarnation as its lane and the readers of its messages know it, whatever carries them.
type link struct {
	at      domain.At
	lane    *lane
	carrier carrier
	table   *table
	noise   *noise
	done    chan struct{} // closed after the last report

	keep       func([]byte) []byte // makes bytes of a message last
	schemas    schemas
	stderrTail tail
	replies    atomic.Int32 // answers to a legacy peer's requests that wait to be written

	endOnce sync.Once
	cause   string        // set before ending is closed
	ending  chan struct{} // closed when it shall end
	killing latch         // it shall end without being asked
	passed  latch         // a newer incarnation has been ordered: it shall not begin if it still waits
}

func (c *link) init(l *lane, at domain.At, by carrier) {
	c.at, c.lane, c.carrier = at, l, by
	c.table, c.noise, c.done = newTable(at, l.m.report), newNoise(at, l.m.report), make(chan struct{})
	c.ending, c.killing, c.passed = make(chan struct{}), newLatch(), newLatch()
	c.table.tell = l.m.cfg.Progress
}

// latch is given once, and stays.
type latch struct {
	once  *sync.Once
	given chan struct{}
}

func newLatch() latch { return latch{&sync.Once{}, make(chan struct{})} }

func (l latch) give() { l.once.Do(func() { close(l.given) }) }

func (l latch) isGiven() bool {
	select {
	case <-l.given:
		return true
	default:
		return false
	}
}

// end has the incarnation ended, for a cause that holds if it is the first. It returns at once.
func (c *link) end(cause string) {
	c.endOnce.Do(func() {
		c.cause = cause
		close(c.ending)
	})
}

// kill has it ended without the ladder, also where that is under way. It returns at once.
func (c *link) kill(cause string) {
	c.killing.give()
	c.end(cause)
}

// ended reports whether it shall end, or has.
func (c *link) ended() bool {
	select {
	case <-c.ending:
		return true
	default:
		return false
	}
}

// pause waits before the start, unless the incarnation is ended meanwhile. A newer one ends it: nobody waits for it any more.
func (c *link) pause(delay time.Duration) {
	if delay <= 0 {
		return
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.ending:
	case <-c.passed.given:
		c.end(causeStopped)
	}
}

// stillborn reports that it could not be started. Nothing of it is left.
func (c *link) stillborn(code domain.Code, reason string) {
	c.table.fail(domain.CodeTransportLost)
	c.lane.forget(c)
	c.lane.m.report(domain.SpawnFailed{At: c.at, Code: code, Reason: string(c.lane.redact([]byte(reason)))})
	close(c.done)
}

// compose writes what asks for r; false if nobody waits for it, or it cannot be written: then it has its outcome.
func (c *link) compose(r *request) ([]byte, *domain.Body, bool) {
	body, wanted := c.table.wanted(r)
	if !wanted {
		return nil, nil, false
	}
	frame, err := c.lane.m.stamper.Request(r.send, body)
	switch {
	case errors.Is(err, message.ErrTooLarge):
		c.table.refuse(r, domain.CodeRequestTooLarge)
		return nil, nil, false
	case err != nil:
		c.lane.m.cfg.Logger.Error("a request was not written", "peer", c.at.Peer, "request", r.send.RequestID, "method", r.send.Method,
			"error", err)
		c.table.refuse(r, domain.CodeBadRequest)
		return nil, nil, false
	}
	return frame, body, true
}
