package peer

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"waybill/domain"
	"waybill/harness/peer/credential"
	"waybill/harness/peer/message"
	"waybill/harness/peer/web"
)

// lane performs the effects on one peer, one after the other, in a goroutine of its own. It may wait for the peer's pipe
// for as long as the peer likes; whoever gives it work does not. What must not wait behind such a write is done at once:
// deadlines, withdrawals and the end of an incarnation.
type lane struct {
	m    *Manager
	peer string
	spec Spec
	done chan struct{} // closed when run has returned: every incarnation is gone

	mu     sync.Mutex
	wake   sync.Cond // of mu
	queue  []task
	sweep  int // length of the queue at which it is looked through for dead tasks
	closed bool
	newest int64

	// Of a peer over HTTP. The clients are there from its first start on.
	client      *web.Client                   // for requests
	aside       *web.Client                   // for what is sent beside them, and must not wait for them
	credentials map[string]*credential.Source // by authorization context

	live   map[int64]*link // from Launch until it has been reported as gone
	stderr *tail           // of the newest
}

// task is one piece of work. It is dead once the request it would write has been settled.
type task struct {
	do  func()
	req *request
}

const leastSweep = 64

func newLane(m *Manager, peer string) *lane {
	l := &lane{m: m, peer: peer, spec: m.cfg.Specs[peer], done: make(chan struct{}), sweep: leastSweep, live: map[int64]*link{}}
	l.wake.L = &l.mu
	if l.spec.Web != nil {
		l.credentials = map[string]*credential.Source{}
		for name, spec := range l.spec.Web.Credentials {
			l.credentials[name] = credential.New(spec, l.m.keeper, l.spec.Web.Learn)
		}
	}
	return l
}

// run works until the lane is closed and nothing is left to do, and waits for the last incarnations.
func (l *lane) run() {
	defer close(l.done)
	for t, ok := l.next(); ok; t, ok = l.next() {
		t.do()
	}
	for _, c := range l.incarnations() {
		<-c.done
	}
	for _, k := range l.credentials {
		k.Close()
	}
	if l.client != nil {
		l.client.Close()
		l.aside.Close()
	}
}

// connect makes what requests are sent by, once: the connections are used by one incarnation after the other. The lane's own goroutine
// alone calls it.
func (l *lane) connect() error {
	if l.client != nil {
		return nil
	}
	client, err := web.New(l.spec.Web.Options)
	if err != nil {
		return err
	}
	aside, err := web.New(l.spec.Web.Options)
	if err != nil {
		return err
	}
	l.client, l.aside = client, aside
	return nil
}

func (l *lane) next() (task, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 {
		if l.closed {
			return task{}, false
		}
		l.wake.Wait()
	}
	t := l.queue[0]
	l.queue[0] = task{}
	l.queue = l.queue[1:]
	return t, true
}

// put queues a task. Requests that ended while the peer did not read are cleared away, so that the queue is bounded by what is
// under way.
func (l *lane) put(t task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.putLocked(t)
}

func (l *lane) putLocked(t task) {
	if len(l.queue) >= l.sweep {
		l.queue = slices.DeleteFunc(l.queue, func(t task) bool { return t.req != nil && t.req.settled.Load() })
		l.sweep = max(leastSweep, 2*len(l.queue))
	}
	l.queue = append(l.queue, t)
	l.wake.Signal()
}

// launch starts an incarnation when its delay is over and what came before it
// is gone. Until then the lane has nothing else to do: nothing is sent to what
// is not there. An older one that waits out its delay is given up.
func (l *lane) launch(e domain.Launch) {
	at := e.At
	l.mu.Lock()
	defer l.mu.Unlock()
	if at.Incarnation <= l.newest {
		return
	}
	if l.closed {
		l.m.report(domain.SpawnFailed{At: at, Code: domain.CodeSpawnFailed, Reason: "the service is stopping"})
		return
	}
	before := l.incarnationsLocked()
	for _, b := range before {
		b.passed.give()
	}
	c := l.incarnate(at)
	l.newest, l.live[at.Incarnation], l.stderr = at.Incarnation, c, &c.stderrTail
	l.putLocked(task{do: func() {
		for _, b := range before {
			if b.carrier.exclusive() {
				<-b.done
			}
		}
		c.pause(milliseconds(e.Delay))
		c.carrier.start()
	}})
}

// incarnate makes an incarnation of the peer's kind.
func (l *lane) incarnate(at domain.At) *link {
	if l.spec.Web != nil {
		return &newEndpoint(l, at).link
	}
	return &newIncarnation(l, at).link
}

func (l *lane) send(s domain.Send, body *domain.Body) {
	c := l.incarnation(s.At)
	var r *request
	if c != nil {
		r = c.table.add(s, body)
	}
	if r == nil {
		l.m.report(domain.ExchangeFailed{At: s.At, RequestID: s.RequestID, Call: s.Call, Written: writtenNo, Code: domain.CodeTransportLost})
		return
	}
	l.put(task{req: r, do: func() { c.carrier.send(r) }})
}

// selectEra tells the reader at once, and a legacy peer in the order of what is written to it.
func (l *lane) selectEra(e domain.SelectEra) {
	c := l.incarnation(e.At)
	if c == nil {
		return
	}
	c.table.selectEra(e.Era)
	c.carrier.selected(e)
}

func (l *lane) withdraw(w domain.Withdraw) {
	c := l.incarnation(w.At)
	if c == nil {
		return
	}
	r := c.table.withdraw(w.RequestID)
	if r == nil || !c.table.cancellable(r) {
		return
	}
	l.put(task{do: func() {
		if c.table.cancellable(r) {
			c.carrier.tell(message.Cancel(w.RequestID, w.Reason))
		}
	}})
}

func (l *lane) stop(e domain.Stop) {
	c := l.incarnation(e.At)
	switch {
	case c == nil:
	case e.Kill:
		c.kill(causeStopped)
	default:
		c.end(causeStopped)
	}
}

// grace is how long each rung of the ladder takes that ends a process of this peer.
func (l *lane) grace() time.Duration { return cmp.Or(l.spec.Grace, l.m.cfg.Grace) }

func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.wake.Signal()
	for _, c := range l.live {
		c.end(causeStopped)
		c.carrier.abort()
	}
}

func (l *lane) incarnation(at domain.At) *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live[at.Incarnation]
}

func (l *lane) incarnations() []*link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.incarnationsLocked()
}

func (l *lane) incarnationsLocked() []*link {
	var all []*link
	for _, c := range l.live {
		all = append(all, c)
	}
	return all
}

func (l *lane) forget(c *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, c.at.Incarnation)
}

func (l *lane) stderrTail() []byte {
	l.mu.Lock()
	t := l.stderr
	l.mu.Unlock()
	if t == nil {
		return nil
	}
	kept := t.read()
	b := l.redact(kept)
	if len(kept) == tailKept { // what was cut off may have been the beginning of a secret
		b = commonEnd(b, l.redact(kept[tailKept-tailSize:]))
	}
	return b[max(0, len(b)-tailSize):]
}

// commonEnd returns what both end with.
func commonEnd(a, b []byte) []byte {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return a[len(a)-n:]
}

// redact may return its argument.
func (l *lane) redact(b []byte) []byte {
	if l.spec.Redact == nil {
		return b
	}
	return l.spec.Redact(b)
}
