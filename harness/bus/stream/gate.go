package stream

import "sync/atomic"

// Gate says when the copy is too far behind for new work. It shuts above a limit
// and opens again a tenth below it, so that it does not swing with every event.
// Its methods may be called at once.
type Gate struct {
	limit int64
	lag   func() int64
	shut  atomic.Bool
}

// NewGate makes a gate, open, that asks lag, which must not block, how far behind
// the copy is. A limit of 0 never shuts it.
func NewGate(limit int64, lag func() int64) *Gate { return &Gate{limit: limit, lag: lag} }

// Shut reports whether new work is to be refused, and how far behind the copy is;
// 0 where there is no limit.
func (g *Gate) Shut() (lag int64, shut bool) {
	if g.limit == 0 {
		return 0, false
	}
	lag = g.lag()
	switch {
	case lag > g.limit:
		g.shut.Store(true)
	case lag <= g.limit-g.limit/10:
		g.shut.Store(false)
	}
	return lag, g.shut.Load()
}
