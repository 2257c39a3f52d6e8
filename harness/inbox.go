package harness

import (
	"sync"

	"waybill/domain"
)

// input is one thing that waits for the loop: an observation, or a question.
type input struct {
	data      domain.Data
	evidence  []byte
	payload   []byte      // result bytes on their way to a host
	arguments []byte      // of a call that is received
	reply     func(Reply) // of a call that is received; called once
	ask       func(*domain.State)
}

// inbox is the queue in front of the loop. Only calls are bounded; every other
// input is the outcome of an effect, and each effect has reserved its place.
type inbox struct {
	mu     sync.Mutex
	items  []input
	calls  int // among items
	most   int // calls that may wait
	closed bool
	shut   bool // intake answers log_unavailable
	ready  chan struct{}
	ended  chan struct{}
}

func newInbox(most int) *inbox {
	return &inbox{most: most, ready: make(chan struct{}, 1), ended: make(chan struct{})}
}

// put adds an input; false if the loop has ended.
func (b *inbox) put(in input) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	b.items = append(b.items, in)
	b.mu.Unlock()
	b.wake()
	return true
}

// offer adds a call, unless it must be turned away: the code says why.
func (b *inbox) offer(in input) domain.Code {
	b.mu.Lock()
	switch {
	case b.closed:
		b.mu.Unlock()
		return domain.CodeShuttingDown
	case b.shut:
		b.mu.Unlock()
		return domain.CodeLogUnavailable
	case b.calls >= b.most:
		b.mu.Unlock()
		return domain.CodeOverloaded
	}
	b.items = append(b.items, in)
	b.calls++
	b.mu.Unlock()
	b.wake()
	return ""
}

func (b *inbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take waits for inputs and returns at most n of them, in order of arrival.
func (b *inbox) take(n int) []input {
	for {
		b.mu.Lock()
		if len(b.items) > 0 {
			break
		}
		b.mu.Unlock()
		<-b.ready
	}
	defer b.mu.Unlock()
	n = min(n, len(b.items))
	out := b.items[:n:n]
	b.items = b.items[n:]
	if len(b.items) == 0 {
		b.items = nil
	}
	for _, in := range out {
		if in.reply != nil {
			b.calls--
		}
	}
	return out
}

// open says whether calls are taken.
func (b *inbox) open(yes bool) {
	b.mu.Lock()
	b.shut = !yes
	b.mu.Unlock()
}

// close ends the intake and returns what was not taken.
func (b *inbox) close() []input {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	left := b.items
	b.items, b.calls = nil, 0
	close(b.ended)
	return left
}
