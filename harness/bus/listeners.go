package bus

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// What waits to be published at most. Beyond it progress is dropped: it is news,
// and the next one replaces it.
const (
	progressQueue = 1024
	progressBytes = 4 << 20
)

// Listeners publishes the progress of calls to the hosts that listen for it. It is
// never in the way: what cannot leave at once is dropped and counted. Its methods
// may be called at once.
type Listeners struct {
	nc     *nats.Conn
	prefix string

	publishing sync.Mutex // held while anything is published, so that Settle waits for it

	mu      sync.Mutex
	queue   []progress
	size    int
	stopped bool
	wake    chan struct{}
	worker  sync.WaitGroup

	dropped atomic.Int64
}

type progress struct {
	host, call string
	body       []byte
}

// StartListeners begins to publish on nc, the connection of the replier, which
// stays the caller's. End it with Stop.
func StartListeners(nc *nats.Conn, prefix string) *Listeners {
	l := &Listeners{nc: nc, prefix: prefix, wake: make(chan struct{}, 1)}
	l.worker.Go(l.run)
	return l
}

// Publish sends the progress of a call to its host, sometime soon. It never blocks
// and copies body. While the connection is away, or when too much waits, the
// progress is dropped.
func (l *Listeners) Publish(host, call string, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped || len(l.queue) == progressQueue || l.size+len(body) > progressBytes || len(body) > MaxMessage {
		l.dropped.Add(1)
		return
	}
	l.queue = append(l.queue, progress{host, call, bytes.Clone(body)})
	l.size += len(body)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Settle publishes what waits of one call and returns when it has left. Called
// before the reply of the call is sent, it keeps every progress before it.
func (l *Listeners) Settle(host, call string) {
	l.flush(func(p progress) bool { return p.host == host && p.call == call })
}

// Dropped is how much progress was not published.
func (l *Listeners) Dropped() int64 { return l.dropped.Load() }

// Stop publishes what waits and ends. What comes later is dropped.
func (l *Listeners) Stop() {
	l.mu.Lock()
	if !l.stopped {
		l.stopped = true
		close(l.wake)
	}
	l.mu.Unlock()
	l.worker.Wait()
}

func (l *Listeners) run() {
	all := func(progress) bool { return true }
	for range l.wake {
		l.flush(all)
	}
	l.flush(all)
}

// flush publishes what waits and is wanted, in order.
func (l *Listeners) flush(wanted func(progress) bool) {
	l.publishing.Lock()
	defer l.publishing.Unlock()
	for _, p := range l.take(wanted) {
		// Else the client library would keep it until the connection is back.
		if !l.nc.IsConnected() || l.nc.Publish(ProgressSubject(l.prefix, p.host, p.call), p.body) != nil {
			l.dropped.Add(1)
		}
	}
}

func (l *Listeners) take(wanted func(progress) bool) (taken []progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.queue[:0]
	for _, p := range l.queue {
		if wanted(p) {
			taken, l.size = append(taken, p), l.size-len(p.body)
		} else {
			rest = append(rest, p)
		}
	}
	clear(l.queue[len(rest):])
	l.queue = rest
	return taken
}
