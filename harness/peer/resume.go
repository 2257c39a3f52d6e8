package peer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"waybill/domain"
	rules "waybill/domain/web"
	"waybill/harness/peer/web"
)

// Times between two tries to go on with a stream of a legacy peer.
const (
	firstRetry   = time.Second // where it does not say itself
	leastRetry   = 100 * time.Millisecond
	longestRetry = 30 * time.Second // where it does not say more
	mostRetries  = 10               // in a row that brought nothing
)

// tape is what is known of a stream that may break off: where it was, and when it may be asked for again.
type tape struct {
	last    string // id of the last event
	said    bool   // the peer said how long to wait
	retry   time.Duration
	nothing int  // tries in a row that brought no event
	over    bool // it cannot be gone on with
}

func (t *tape) note(e web.Event) {
	if e.HasID {
		t.last = e.ID
	}
	if e.HasRetry {
		t.said, t.retry = true, e.Retry
	}
	if e.HasID || len(e.Data) > 0 {
		t.nothing = 0
	}
}

// wait is the time before the next try. It is never less than the peer said, and grows while tries bring nothing.
func (t *tape) wait() time.Duration {
	pause := firstRetry
	if t.said {
		pause = max(t.retry, leastRetry)
	}
	if pause < longestRetry {
		pause = min(pause<<min(t.nothing, mostRetries), longestRetry)
	}
	t.nothing++
	return pause
}

// resumable reports whether a stream that broke off before the answer can be gone on with: in the legacy era, where the peer numbers its
// events (specification 2025-11-25, basic/transports, "Resumability and Redelivery"). The modern era has nothing of the kind.
func (t *tape) resumable(c *endpoint, r *request, err error) bool {
	return r.send.Era == domain.EraLegacy && t.last != "" && !t.over && t.nothing < mostRetries && !errors.Is(err, web.ErrTooLarge) &&
		!r.settled.Load() && c.ctx.Err() == nil
}

// resume asks for the rest of a stream, when it is time. The caller closes what it gets. After an error it may be tried again, unless the
// tape is over.
func (c *endpoint) resume(ctx context.Context, r *request, t *tape) (*web.Answer, error) {
	if err := pause(ctx, t.wait()); err != nil {
		return nil, err
	}
	a, err := c.get(ctx, r.send.Context, t.last, false)
	if err != nil || carries(a) {
		return a, err
	}
	defer a.Finish(finishWithin)
	c.checkSession(a.Status) // the request was taken while there was one: it is lost, not turned away
	t.over = a.Status != http.StatusUnauthorized && rules.Fallback(a.Status) != rules.Unavailable
	return nil, fmt.Errorf("the stream ended without the answer, and could not be gone on with (HTTP %d)", a.Status)
}

// carries reports whether an answer is a stream.
func carries(a *web.Answer) bool {
	return a.Status == http.StatusOK && rules.Judge(a.Status, a.Type()) == rules.Stream
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *endpoint) get(ctx context.Context, authorization, after string, stays bool) (*web.Answer, error) {
	credential, err := c.credentials(ctx, authorization)
	if err != nil {
		return nil, err
	}
	h := append([]web.Header{{Name: "Accept", Value: "text/event-stream"}}, c.sessionHeader()...)
	if after != "" {
		h = append(h, web.Header{Name: rules.LastEventField, Value: after})
	}
	a, err := c.client.Do(ctx, web.Request{Method: "GET", Header: append(h, credential...), Stays: stays, To: c.whereTo(domain.Send{})})
	if err == nil {
		c.noteCredential(authorization, credential, a.Status)
	}
	return a, err
}

// listen hears what a legacy peer says unasked, for as long as the incarnation lasts, if it has anything to say (specification 2025-11-25,
// basic/transports, "Listening for Messages from the Server").
func (c *endpoint) listen() {
	t := tape{}
	for !c.ended() {
		if !c.hear(c.hearing, &t) || pause(c.hearing, t.wait()) != nil {
			return
		}
	}
}

// hear plays the stream once; false where there is none to be had.
func (c *endpoint) hear(ctx context.Context, t *tape) bool {
	a, err := c.get(ctx, c.initializedIn(), t.last, true)
	if err != nil {
		return ctx.Err() == nil
	}
	if !carries(a) {
		defer a.Finish(finishWithin)
		c.checkSession(a.Status)
		return t.again(a.Status)
	}
	defer a.Close()
	for e, err := range a.Events() {
		if err != nil {
			break
		}
		t.note(e)
		c.table.heard.Add(int64(len(e.Data)) + 1)
		if len(e.Data) > 0 {
			c.unsolicited(e.Data)
		}
	}
	return true
}

// again reports whether a stream that was refused may be had yet: later, with another token, or from its beginning.
func (t *tape) again(status int) bool {
	switch {
	case rules.Fallback(status) == rules.Unavailable:
		return true
	case status == http.StatusUnauthorized:
		return t.nothing < mostRetries
	case t.last != "" && rules.Fallback(status) == rules.Ambiguous:
		t.last = ""
		return true
	}
	return false
}

// unsolicited takes a message that is on nobody's stream. An answer there is nobody's.
func (c *endpoint) unsolicited(line []byte) {
	m, err := domain.ParseMessage(line)
	if err == nil {
		c.beside(m, line)
		return
	}
	if _, answers := domain.DoubtfulID(line); answers {
		c.stranger(line)
		return
	}
	c.receive(line)
}
