package bus

import (
	"context"
	"sync"
	"time"
)

// pool runs reads: a fixed number at once, a fixed number waiting.
type pool struct {
	jobs    chan job
	timeout time.Duration
	close   sync.Once
	workers sync.WaitGroup
}

type job struct {
	request *Request
	run     func(context.Context, *Request)
}

// newPool starts the workers; stop ends them.
func newPool(workers, queue int, timeout time.Duration) *pool {
	p := &pool{jobs: make(chan job, queue), timeout: timeout}
	for range workers {
		p.workers.Go(p.work)
	}
	return p
}

func (p *pool) work() {
	for j := range p.jobs {
		p.run(j)
	}
}

func (p *pool) run(j job) {
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
	defer cancel()
	j.run(ctx, j.request)
}

// offer reports false if every place is taken. It must not be called after
// stop.
func (p *pool) offer(r *Request, run func(context.Context, *Request)) bool {
	select {
	case p.jobs <- job{r, run}:
		return true
	default:
		return false
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
