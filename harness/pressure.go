package harness

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"waybill/domain"
)

// pressure holds each host to its limits, so that one that floods is turned away
// before it costs the others anything.
type pressure struct {
	most int     // calls of one host from Submit to reply
	rate float64 // calls of one host a second; 0 for no limit
	mono func() int64

	mu    sync.Mutex
	busy  int // hosts with calls under way
	hosts map[string]*hostLoad
}

type hostLoad struct {
	calls int
	pace  *rate.Limiter // nil for none
}

func newPressure(most int, perSecond float64, mono func() int64) *pressure {
	return &pressure{most: most, rate: perSecond, mono: mono, hosts: map[string]*hostLoad{}}
}

// enter takes a place for a call of a host, or says why there is none.
func (l *Loop) enter(host string) (code domain.Code, reason string) {
	if l.gate != nil {
		if code, reason = l.gate(); code != "" {
			return code, reason
		}
	}
	if reason = l.pressure.enter(host); reason != "" {
		return domain.CodeOverloaded, reason
	}
	return "", ""
}

// enter takes a place for a call of a host; reason says why there is none. A call
// that finds no place costs the host nothing of its rate.
func (p *pressure) enter(host string) (reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hosts[host]
	if h == nil {
		h = &hostLoad{}
		if p.rate > 0 {
			h.pace = rate.NewLimiter(rate.Limit(p.rate), int(math.Ceil(p.rate)))
		}
		p.hosts[host] = h
	}
	if h.calls >= p.most {
		return fmt.Sprintf("%d calls of this host are under way (limits.host_inflight); try again when one has ended", h.calls)
	}
	if h.pace != nil && !h.pace.AllowN(time.Unix(0, p.mono()), 1) {
		return fmt.Sprintf("this host may make %g calls a second (limits.host_rate); try again later", p.rate)
	}
	if h.calls++; h.calls == 1 {
		p.busy++
	}
	return ""
}

// leave gives the place of a call back. A host without calls is forgotten, unless
// its rate must be remembered: hosts are those of the configuration, a few.
func (p *pressure) leave(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hosts[host]
	if h.calls--; h.calls > 0 {
		return
	}
	p.busy--
	if h.pace == nil {
		delete(p.hosts, host)
	}
}

// shared reports whether more than one host has calls under way.
func (p *pressure) shared() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy > 1
}
