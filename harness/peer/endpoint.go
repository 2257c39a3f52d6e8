package peer

import (
	"context"
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

// endpoint is one incarnation of a peer over HTTP: the time from one probe to the next. Each request is a POST of its own, by a
// goroutine that ends with it; a supervisor waits for all of them. The connections are the lane's, and outlast it.
//
// An incarnation that is found to be unreachable, or to have lost its session, is reported as gone at once: the calls under way
// at it go on until each has its outcome, on connections of their own.
type endpoint struct {
	link

	client  *web.Client
	ctx     context.Context // ends everything
	cancel  context.CancelFunc
	hearing context.Context // ends what is heard unasked, with the incarnation
	deafen  context.CancelFunc
	flights sync.WaitGroup // requests, and what else is under way

	mu      sync.Mutex
	closed  bool // nothing is begun any more
	era     domain.Era
	version string // of the legacy era
	session string // of the legacy era; "" for none
	context string // in which it was initialized
	retired bool   // it was reported as gone
}

func newEndpoint(l *lane, at domain.At) *endpoint {
	c := &endpoint{era: domain.EraUnknown}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.hearing, c.deafen = context.WithCancel(c.ctx)
	c.link.init(l, at, c)
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
	client, err := c.lane.httpClient()
	if err != nil {
		return domain.CodeSpawnFailed, err.Error()
	}
	c.client = client
	return "", ""
}

// supervise owns the incarnation from its start to its end.
func (c *endpoint) supervise() {
	<-c.ending
	c.deafen()
	if c.isRetired() {
		c.table.failOthers(domain.CodeTransportLost)
	} else {
		c.table.fail(domain.CodeTransportLost)
		c.stop()
	}
	c.flights.Wait()
	c.cancel()
	c.noise.close()
	if !c.isRetired() {
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
	if session != "" {
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

// fly runs f in a goroutine that the supervisor waits for; false where nothing is begun any more.
func (c *endpoint) fly(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
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

// send implements carrier.
func (c *endpoint) send(r *request) {
	frame, body, ok := c.compose(r)
	if !ok || c.ended() {
		return
	}
	c.fly(func() { c.exchange(r, frame, body) })
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
		c.write(message.Initialized())
		c.fly(c.listen)
	}})
}

// write implements carrier: a notification to a legacy peer. The modern era has none over HTTP.
func (c *endpoint) write(frame []byte) int {
	c.mu.Lock()
	legacy := c.era == domain.EraLegacy
	c.mu.Unlock()
	if !legacy || c.ended() {
		return 0
	}
	return c.notify(frame)
}

// reply implements carrier.
func (c *endpoint) reply(answer []byte) {
	if !c.fly(func() {
		defer c.replies.Add(-1)
		c.notify(answer)
	}) {
		c.replies.Add(-1)
	}
}

// notify posts a message that nobody answers.
func (c *endpoint) notify(frame []byte) int {
	ctx, cancel := context.WithTimeout(c.ctx, notifyWithin)
	defer cancel()
	header, err := c.credentials(ctx, c.initializedIn())
	if err != nil {
		return 0
	}
	began := false
	a, err := c.client.Do(ctx, web.Request{Method: "POST", Header: append(header, c.legacyHeader()...), Body: frame, Began: func() { began = true }})
	if err == nil {
		c.checkSession(a.Status)
		a.Close()
	}
	if !began {
		return 0
	}
	return len(frame)
}

// farewell ends the session of a legacy peer (specification 2025-11-25, basic/transports, "Session Management"). Whether it
// heard that makes no difference.
func (c *endpoint) farewell() {
	ctx, cancel := context.WithTimeout(context.Background(), min(notifyWithin, c.lane.grace()))
	defer cancel()
	header, err := c.credentials(ctx, c.initializedIn())
	if err != nil {
		return
	}
	if a, err := c.client.Do(ctx, web.Request{Method: "DELETE", Header: append(header, c.legacyHeader()...)}); err == nil {
		a.Close()
	}
}
