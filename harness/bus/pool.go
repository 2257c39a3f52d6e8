package bus

import (
	"context"
	"sync"
	"time"
)

// pool runs reads: a fixed number at once, a fixed number waiting, and no more than a
// quarter of all of one host, so that a host that asks without end leaves the others room.
type pool struct {
	jobs    chan job
	timeout time.Duration
	close   sync.Once
	workers sync.WaitGroup

	mu    sync.Mutex
	most  int            // of one host
	taken map[string]int // by host
}

type job struct {
	request *Request
	run     func(context.Context, *Request)
}

// newPool starts the workers; stop ends them.
func newPool(workers, queue int, timeout time.Duration) *pool {
	p := &pool{jobs: make(chan job, queue), timeout: timeout, most: max(1, (workers+queue)/4), taken: map[string]int{}}
	for range workers {
		p.workers.Go(p.work)
	}
	return p
}

func (p *pool) work() {
	for j := range p.jobs {
		p.run(j)
		p.leave(j.request.Host)
	}
}

func (p *pool) run(j job) {
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
	defer cancel()
	j.run(ctx, j.request)
}

// offer reports false if every place is taken, or every one that its host may have. It
// must not be called after stop.
func (p *pool) offer(r *Request, run func(context.Context, *Request)) bool {
	if !p.enter(r.Host) {
		return false
	}
	select {
	case p.jobs <- job{r, run}:
		return true
	default:
		p.leave(r.Host)
		return false
	}
}

func (p *pool) enter(host string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[host] >= p.most {
		return false
	}
	p.taken[host]++
	return true
}

func (p *pool) leave(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[host]--; p.taken[host] == 0 {
		delete(p.taken, host)
	}
}

// stop runs what waits and returns when the workers have ended.
func (p *pool) stop() {
	p.close.Do(func() { close(p.jobs) })
	p.workers.Wait()
}

// orders runs what operators order: each on a goroutine of its own, because an
// order may wait for long, and only so many at once.
type orders struct {
	slots   chan struct{}
	wait    time.Duration
	running sync.WaitGroup
}

// offer reports false if every place is taken.
func (o *orders) offer(r *Request, run func(context.Context, *Request)) bool {
	select {
	case o.slots <- struct{}{}:
	default:
		return false
	}
	o.running.Go(func() {
		defer func() { <-o.slots }()
		ctx, cancel := context.WithTimeout(context.Background(), o.wait)
		defer cancel()
		run(ctx, r)
	})
	return true
}
