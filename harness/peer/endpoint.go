package peer

import (
	"context"
	"net/url"
	"sync"
	"time"

	"waybill/domain"
	"waybill/harness/peer/message"
	"waybill/harness/peer/web"
)

// Causes of the end of an incarnation that is an endpoint.
const (
	causeUnreachable    = "unreachable"     // no connection to it could be had
	causeSessionGone    = "session_gone"    // HTTP 404 under its session
	causeSessionRefused = "session_refused" // HTTP 400 under its session
)

// notifyWithin bounds a message that nobody answers, and the end of a session.
const notifyWithin = 5 * time.Second

// finishWithin is what an answer gets to come to its end once all that was wanted of it is there: then its connection can be used again.
const finishWithin = 50 * time.Millisecond

// endpoint is one incarnation of a peer over HTTP: the time from one probe to the next. Each request is a POST of its own, by a
// goroutine that ends with it; a supervisor waits for all of them. The connections are the lane's, and outlast it.
//
// An incarnation that is found to be unreachable, or to have lost its session, is reported as gone at once: the calls under way
// at it go on until each has its outcome, on connections of their own.
type endpoint struct {
	link

	client  *web.Client     // for requests
	aside   *web.Client     // for what is sent beside them, which a peer may wait for before it answers
	ctx     context.Context // ends everything
	cancel  context.CancelFunc
	hearing context.Context // ends what is heard unasked, with the incarnation
	deafen  context.CancelFunc
	flights sync.WaitGroup // requests, and what else is under way

	mu      sync.Mutex
	closed  bool // nothing is begun any more
	era     domain.Era
	version string   // of the legacy era
	session string   // of the legacy era; "" for none
	context string   // in which it was initialized
	target  *url.URL // where the probe was answered; nil before
	retired bool     // it was reported as gone: the lane begins nothing any more
}

func newEndpoint(l *lane, at domain.At) *endpoint {
	c := &endpoint{era: domain.EraUnknown}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.hearing, c.deafen = context.WithCancel(c.ctx)
	c.init(l, at, c)
	c.keep = func(b []byte) []byte { return b } // each message has bytes of its own
	return c
}

// exclusive implements carrier.
func (c *endpoint) exclusive() bool { return false }

// start implements carrier. Nothing is sent yet.
func (c *endpoint) start() {
	code, reason := c.prepare()
	if code != "" {
		c.stillborn(code, reason)
		return
	}
	c.lane.m.report(domain.PeerSpawned{At: c.at})
	go c.supervise()
}

func (c *endpoint) prepare() (domain.Code, string) {
	if c.ended() {
		return domain.CodeSpawnFailed, "it was stopped before it was started"
	}
	if verify := c.lane.spec.Verify; verify != nil {
		if code, reason := verify(); code != "" {
			return code, reason
		}
	}
	if err := c.lane.connect(); err != nil {
		return domain.CodeSpawnFailed, err.Error()
	}
	c.client, c.aside = c.lane.client, c.lane.aside
	return "", ""
}

// supervise owns the incarnation from its start to its end.
func (c *endpoint) supervise() {
	<-c.ending
	c.deafen()
	retired := c.isRetired()
	if retired {
		c.table.failOthers(domain.CodeTransportLost)
	} else {
		c.table.fail(domain.CodeTransportLost)
		c.stop()
	}
	c.flights.Wait()
	c.cancel()
	c.table.fail(domain.CodeTransportLost) // nothing waits any more; what was said meanwhile is still to be reported
	c.noise.close()
	if !retired {
		c.lane.m.report(domain.PeerExited{At: c.at, Cause: c.cause})
	}
	c.lane.forget(&c.link)
	close(c.done)
}

// stop ends what is under way, and the session of a legacy peer.
func (c *endpoint) stop() {
	c.mu.Lock()
	c.closed = true
	session := c.session
	c.mu.Unlock()
	c.cancel()
	if session != "" && !c.killing.isGiven() {
		c.farewell()
	}
}

// retire reports the incarnation as gone while calls are under way at it. Whoever calls it reports what it learnt of its own
// request afterwards, so that nothing is sent again to what is gone.
func (c *endpoint) retire(cause string) {
	c.endOnce.Do(func() {
		c.mu.Lock()
		c.retired = true
		c.mu.Unlock()
		c.cause = cause
		c.noise.tick()
		c.lane.m.report(domain.PeerExited{At: c.at, Cause: cause})
		close(c.ending)
	})
}

func (c *endpoint) isRetired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.retired
}

// abort implements carrier.
func (c *endpoint) abort() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.table.fail(domain.CodeTransportLost)
	if c.isRetired() {
		c.cancel()
	}
}

// fly runs f in a goroutine that the supervisor waits for; false where nothing is begun any more. What is under way may begin more,
// within says, where the lane may not: the supervisor may have waited by then.
func (c *endpoint) fly(within bool, f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.retired && !within {
		return false
	}
	c.flights.Go(f)
	return true
}

// initializedIn is the authorization context of a legacy peer.
func (c *endpoint) initializedIn() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.context
}

// send implements carrier. What is not begun any more was not written.
func (c *endpoint) send(r *request) {
	if !c.fly(false, func() { c.exchange(r) }) {
		c.table.refuse(r, domain.CodeTransportLost)
	}
}

// selected implements carrier. A legacy peer is told, and then listened to; what is sent later waits for that.
func (c *endpoint) selected(e domain.SelectEra) {
	c.mu.Lock()
	c.era = e.Era
	if e.Era == domain.EraLegacy {
		c.version = e.Version
	}
	c.mu.Unlock()
	if e.Era != domain.EraLegacy {
		return
	}
	c.lane.put(task{do: func() {
		if c.ended() {
			return
		}
		c.notify(message.Initialized())
		c.fly(false, c.listen)
	}})
}

// tell implements carrier: a legacy peer has a notification posted, by nobody who waits for it. The modern era has none over HTTP.
func (c *endpoint) tell(frame []byte) {
	c.mu.Lock()
	legacy := c.era == domain.EraLegacy
	c.mu.Unlock()
	if legacy {
		c.fly(false, func() { c.notify(frame) })
	}
}

// reply implements carrier.
func (c *endpoint) reply(answer []byte) {
	if !c.fly(true, func() {
		defer c.replies.Add(-1)
		c.notify(answer)
	}) {
		c.replies.Add(-1)
	}
}

// notify posts a message that nobody answers.
func (c *endpoint) notify(frame []byte) {
	ctx, cancel := context.WithTimeout(c.ctx, notifyWithin)
	defer cancel()
	credential, err := c.credentials(ctx, c.initializedIn())
	if err != nil {
		return
	}
	header := append(bodyHeader(), c.sessionHeader()...)
	a, err := c.aside.Do(ctx, web.Request{Method: "POST", Header: append(header, credential...), Body: frame, To: c.whereTo(domain.Send{})})
	if err != nil {
		return
	}
	defer a.Finish(finishWithin)
	c.noteCredential(c.initializedIn(), credential, a.Status)
	c.checkSession(a.Status)
}

// farewell ends the session of a legacy peer (specification 2025-11-25, basic/transports, "Session Management"). Whether it
// heard that makes no difference.
func (c *endpoint) farewell() {
	ctx, cancel := context.WithTimeout(context.Background(), min(notifyWithin, c.lane.grace()))
	defer cancel()
	c.flights.Go(func() {
		select {
		case <-c.killing.given:
			cancel()
		case <-ctx.Done():
		}
	})
	credential, err := c.credentials(ctx, c.initializedIn())
	if err != nil {
		return
	}
	a, err := c.aside.Do(ctx, web.Request{Method: "DELETE", Header: append(c.sessionHeader(), credential...), To: c.whereTo(domain.Send{})})
	if err == nil {
		a.Finish(finishWithin)
	}
}
