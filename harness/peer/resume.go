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

// Times between two tries to go on with a stream of a legacy peer, where it does not say itself.
const (
	firstRetry   = time.Second
	longestRetry = 30 * time.Second
	mostRetries  = 10 // in a row that brought nothing
)

// tape is what is known of a stream that may break off: where it was, and when it may be asked for again.
type tape struct {
	last    string // id of the last event
	pause   time.Duration
	said    bool // the pause is the peer's
	nothing int  // tries in a row that brought no event
}

func (t *tape) note(e web.Event) {
	if e.ID != "" {
		t.last = e.ID
	}
	if e.Retry > 0 {
		t.pause, t.said = min(e.Retry, longestRetry), true
	}
	if e.ID != "" || len(e.Data) > 0 {
		t.nothing = 0
	}
}

// wait is the time before the next try, which grows while they bring nothing.
func (t *tape) wait() time.Duration {
	if t.pause == 0 {
		t.pause = firstRetry
	}
	pause := t.pause
	if t.nothing > 0 && !t.said {
		t.pause = min(2*t.pause, longestRetry)
	}
	t.nothing++
	return pause
}

// resumable reports whether a stream that broke off before the answer can be gone on with: in the legacy era, where the peer numbers its
// events (specification 2025-11-25, basic/transports, "Resumability and Redelivery"). The modern era has nothing of the kind.
func (t *tape) resumable(c *endpoint, r *request, err error) bool {
	return r.send.Era == domain.EraLegacy && t.last != "" && t.nothing < mostRetries && !errors.Is(err, web.ErrTooLarge) && c.ctx.Err() == nil
}

// resume asks for the rest of a stream. The caller closes what it gets.
func (c *endpoint) resume(ctx context.Context, r *request, t *tape) (*web.Answer, error) {
	if err := pause(ctx, t.wait()); err != nil {
		return nil, err
	}
	a, err := c.get(ctx, r.send.Context, t.last)
	if err != nil {
		return nil, err
	}
	if a.Status != http.StatusOK || rules.Judge(a.Status, a.Type()) != rules.Stream {
		a.Close()
		return nil, fmt.Errorf("the stream ended without the answer, and could not be gone on with (HTTP %d)", a.Status)
	}
	return a, nil
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

func (c *endpoint) get(ctx context.Context, authorization, after string) (*web.Answer, error) {
	credential, err := c.credentials(ctx, authorization)
	if err != nil {
		return nil, err
	}
	h := append([]web.Header{{Name: "Accept", Value: "text/event-stream"}}, c.sessionHeader()...)
	if after != "" {
		h = append(h, web.Header{Name: rules.LastEventField, Value: after})
	}
	return c.client.Do(ctx, web.Request{Method: "GET", Header: append(h, credential...), Stays: true})
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
	a, err := c.get(ctx, c.initializedIn(), t.last)
	if err != nil {
		return ctx.Err() == nil
	}
	defer a.Close()
	c.checkSession(a.Status)
	if rules.Judge(a.Status, a.Type()) != rules.Stream {
		return rules.Fallback(a.Status) == rules.Unavailable
	}
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

// unsolicited takes a message that is on nobody's stream. An answer there is nobody's.
func (c *endpoint) unsolicited(line []byte) {
	m, err := domain.ParseMessage(line)
	if err != nil || m.Method != nil {
		c.receive(line)
		return
	}
	c.aside(m, line)
}
