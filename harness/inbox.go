package harness

import (
	"slices"
	"sync"

	"waybill/domain"
)

// input is one thing that waits for the loop: an observation, a question or a
// command.
type input struct {
	data      domain.Data
	evidence  []byte
	payload   []byte      // result bytes on their way to a host
	arguments []byte      // of a call that is received or commanded
	responses []byte      // inputResponses of a call that is received
	state     []byte      // its requestState, quoted
	reply     func(Reply) // of a call that is received; called once
	keeping   *keeping    // in case its bytes are to be kept; nil for no
	ask       func(*domain.State)
	command   *command
	flight    *flight // of hosts that read the tools
	host      string  // whose queue it waits in; "" for none, unless it is a call
	order     int64   // of its arrival
}

// inbox is the queue in front of the loop. Only calls are bounded; every other
// input is the outcome of an effect, and each effect has reserved its place.
// Calls wait in a queue for each host, and the hosts take turns: a flood of one
// host delays no call of another by more than the turns of a batch. Nothing else
// waits behind calls.
type inbox struct {
	mu     sync.Mutex
	items  []input            // of no host, in order of arrival
	queues map[string][]input // of hosts, each in order of arrival; none is empty
	turns  []string           // hosts with a queue, the next one first
	orders int64
	calls  int // in queues
	most   int // calls that may wait
	closed bool
	drains bool // no call is taken any more
	shut   bool // intake answers log_unavailable
	ready  chan struct{}
	ended  chan struct{}
}

func newInbox(most int) *inbox {
	return &inbox{most: most, queues: map[string][]input{}, ready: make(chan struct{}, 1), ended: make(chan struct{})}
}

// put adds an input; false if the loop has ended.
func (b *inbox) put(in input) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	b.add(in)
	b.mu.Unlock()
	b.wake()
	return true
}

func (b *inbox) add(in input) {
	b.orders++
	in.order = b.orders
	if in.host == "" && in.reply == nil {
		b.items = append(b.items, in)
		return
	}
	if len(b.queues[in.host]) == 0 {
		b.turns = append(b.turns, in.host)
	}
	b.queues[in.host] = append(b.queues[in.host], in)
}

// offer adds a call, unless it must be turned away: the code says why.
func (b *inbox) offer(in input) domain.Code {
	b.mu.Lock()
	switch {
	case b.closed, b.drains:
		b.mu.Unlock()
		return domain.CodeShuttingDown
	case b.shut:
		b.mu.Unlock()
		return domain.CodeLogUnavailable
	case b.calls >= b.most:
		b.mu.Unlock()
		return domain.CodeOverloaded
	}
	b.add(in)
	b.calls++
	b.mu.Unlock()
	b.wake()
	return ""
}

// drain turns calls away from now on.
func (b *inbox) drain() {
	b.mu.Lock()
	b.drains = true
	b.mu.Unlock()
}

func (b *inbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// await returns when there are inputs.
func (b *inbox) await() {
	for {
		b.mu.Lock()
		n := len(b.items) + len(b.turns)
		b.mu.Unlock()
		if n > 0 {
			return
		}
		<-b.ready
	}
}

// take returns at most n inputs of no host and at most calls of hosts, each of
// them of one host, in order of arrival.
func (b *inbox) take(n, calls, each int) []input {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, len(b.items))
	out := b.items[:n:n]
	b.items = b.items[n:]
	if len(b.items) == 0 {
		b.items = nil
	}
	taken, full := map[string]int{}, []string(nil)
	for len(b.turns) > 0 && calls > 0 {
		host := b.turns[0]
		if taken[host] == each {
			b.turns, full = b.turns[1:], append(full, host)
			continue
		}
		taken[host]++
		calls--
		out = append(out, b.next())
	}
	b.turns = append(b.turns, full...)
	slices.SortFunc(out, func(x, y input) int { return int(x.order - y.order) })
	return out
}

// next takes the oldest input of the host whose turn it is.
func (b *inbox) next() input {
	host := b.turns[0]
	b.turns = b.turns[1:]
	queue := b.queues[host]
	in := queue[0]
	queue[0] = input{} // its bytes are not to be kept by the array
	if queue = queue[1:]; len(queue) > 0 {
		b.queues[host] = queue
		b.turns = append(b.turns, host)
	} else {
		delete(b.queues, host)
	}
	if in.reply != nil {
		b.calls--
	}
	return in
}

// open says whether calls are taken.
func (b *inbox) open(yes bool) {
	b.mu.Lock()
	b.shut = !yes
	b.mu.Unlock()
}

// close ends the intake and returns what was not taken, in order of arrival.
func (b *inbox) close() []input {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	left := b.items
	for len(b.turns) > 0 {
		left = append(left, b.next())
	}
	b.items = nil
	slices.SortFunc(left, func(x, y input) int { return int(x.order - y.order) })
	close(b.ended)
	return left
}
