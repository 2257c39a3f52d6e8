package replaytest

import (
	"slices"

	"waybill/domain"
)

// live lets the world go on until the log has its size.
func (m *million) live() {
	m.begin()
	for m.err == nil && m.made < m.size-800 {
		m.Pass(int64(m.chance.below(400)))
		m.ring()
		switch {
		case m.made >= m.restartAt && m.made < m.size-3_000:
			m.restart()
		case m.census.Calls*10 <= m.made:
			m.submitOne()
		case len(m.flights) > 4+m.chance.below(16):
			m.endOne(pick(&m.chance, m.flights))
		default:
			m.somethingElse()
		}
	}
	m.close()
}

// close ends all calls and fills the log up to its size.
func (m *million) close() {
	m.alarms = nil
	for m.err == nil && len(m.flights) > 0 {
		if f := m.flights[0]; f.heldBy != 0 {
			m.observe(domain.WaitPassed{CallID: f.received.CallID}, nil)
		} else {
			m.answer(f, Complete, nil)
		}
	}
	for m.err == nil && m.made < m.size-1 {
		m.observe(domain.IntakeShed{Count: 1, Code: domain.CodeOverloaded}, nil)
	}
	m.observe(domain.ServiceStopped{Reason: "interrupt"}, nil)
	m.flush()
}

func (m *million) begin() {
	m.mono, m.alarms, m.opened, m.effects = 0, nil, nil, nil
	m.restartAt = m.made + max(m.size/10, MillionLeast/4)
	m.observe(domain.ServiceStarted{Version: "0.1", Rules: domain.RulesVersion}, nil)
	b, err := domain.EncodeConfig(m.config(m.configured))
	m.err = err
	m.configured++
	m.observe(domain.ConfigLoaded{Config: domain.RefTo(b), Peers: len(m.crew)}, b)
}

// restart is another life of the service: every other one begins after a crash.
func (m *million) restart() {
	if m.configured%2 == 0 {
		m.observe(domain.ServiceStopped{Reason: "interrupt"}, nil)
	}
	m.begin()
}

// ring rings what has become due.
func (m *million) ring() {
	for {
		i := slices.IndexFunc(m.alarms, func(a alarm) bool { return a.at <= m.mono })
		if i < 0 {
			return
		}
		a := m.alarms[i]
		m.alarms = slices.Delete(m.alarms, i, i+1)
		a.ring()
		m.note()
		m.settle()
	}
}

// somethingElse is what happens beside the calls.
func (m *million) somethingElse() {
	acts := []struct {
		weight int
		act    func()
	}{
		{510, m.health}, {90, m.readTools}, {90, m.announce}, {120, m.noise}, {20, m.shed},
		{25, m.endSubscription}, {8, m.crash}, {10, m.retireOne}, {3, m.mute}, {4, m.outage},
		{10, m.lateAnswer}, {30, m.resume}, {20, m.operate}, {40, m.approve}, {10, m.breakList}, {10, m.retention},
	}
	n := m.chance.below(1_000)
	for _, a := range acts {
		if n -= a.weight; n < 0 {
			a.act()
			return
		}
	}
}

func (m *million) health() {
	if p := m.any(); p != nil {
		m.observe(domain.HealthDue{At: m.at(p.name)}, nil)
	}
}

func (m *million) readTools() {
	h := pick(&m.chance, millionHosts)
	m.observe(domain.ToolsRead{Context: m.State.Config.ContextOf(h.Name), Reads: int64(1 + m.chance.below(3))}, nil)
}

// announce is a notice of a changed list. In half of the cases it is another one.
func (m *million) announce() {
	if m.chance.in(300) { // legacy servers announce unasked
		if p := m.any(); p != nil && p.legacy {
			p.version += m.chance.below(2)
			m.observe(domain.ListChanged{At: m.at(p.name), Count: 1}, nil)
		}
		return
	}
	if len(m.opened) == 0 {
		return
	}
	o := pick(&m.chance, m.opened)
	p := m.crew[slices.IndexFunc(m.crew, func(p *member) bool { return p.name == o.at.Peer })]
	p.version += m.chance.below(2)
	m.observe(domain.ListChanged{At: o.at, Context: o.context, Subscription: o.request, Count: int64(1 + m.chance.below(4))}, nil)
}

func (m *million) breakList() {
	if p := m.any(); p != nil && p.Pages == nil {
		p.broken = true
	}
}

func (m *million) noise() {
	if p := m.any(); p != nil {
		n := int64(1 + m.chance.below(9))
		m.observe(domain.NoiseCounted{At: m.at(p.name), Kinds: []domain.NoiseCount{{What: "notification", Count: n, Bytes: 60 * n}}}, nil)
	}
}

func (m *million) shed() {
	m.observe(domain.IntakeShed{Count: int64(1 + m.chance.below(50)), Code: domain.CodeOverloaded}, nil)
}

func (m *million) endSubscription() {
	if len(m.opened) == 0 {
		return
	}
	o := pick(&m.chance, m.opened)
	m.observe(domain.SubscriptionEnded{At: o.at, Context: o.context, RequestID: o.request,
		How: pick(&m.chance, []string{domain.EndedAnswered, domain.EndedCancelled, domain.EndedBroken})}, nil)
}

// lose fails the requests that an incarnation has not answered.
func (m *million) lose(at domain.At, written string) {
	for _, o := range slices.Clone(m.opened) {
		if o.at == at {
			m.tell(domain.ExchangeFailed{At: at, RequestID: o.request, Written: "maybe", Code: domain.CodeTransportLost}, nil)
		}
	}
	for _, f := range slices.Clone(m.flights) {
		if f.at == at && f.heldBy == 0 {
			m.tell(domain.ExchangeFailed{At: at, RequestID: f.request, Call: f.received.CallKey(), Written: written, Code: domain.CodeTransportLost}, nil)
		}
	}
}

// crash is the end of a process, with what was under way at it.
func (m *million) crash() {
	p := m.up(false)
	if p == nil {
		return
	}
	at := m.at(p.name)
	m.lose(at, pick(&m.chance, []string{"maybe", "maybe", "no"}))
	m.observe(domain.PeerExited{At: at, Status: 1 + m.chance.below(3), Cause: "exited", StderrSize: int64(m.chance.below(4_000))}, nil)
}

// outage is a crash after which the system has no process to spare for a while.
func (m *million) outage() {
	if p := m.up(false); p != nil {
		p.Missing = true
		at := m.at(p.name)
		m.lose(at, "maybe")
		m.observe(domain.PeerExited{At: at, Status: -1, Signal: "killed", Cause: "exited"}, nil)
	}
}

// retireOne is an endpoint that is not there any more, or has forgotten its session.
func (m *million) retireOne() {
	p := m.up(true)
	if p == nil {
		return
	}
	at, cause, code, status := m.at(p.name), "unreachable", domain.CodeTransportLost, 0
	if p.legacy && m.chance.in(500) {
		cause, code, status = "session_gone", domain.CodeSessionGone, 404
	}
	switch {
	case m.chance.in(500):
	case p.legacy:
		p.Fails = []Failure{{domain.ClassAmbiguous, 404}}
	default:
		p.Fails = []Failure{{domain.ClassUnavailable, 503}}
	}
	m.tell(domain.PeerExited{At: at, Cause: cause}, nil)
	for _, f := range slices.Clone(m.flights) {
		if f.at == at && f.heldBy == 0 {
			m.tell(domain.ExchangeFailed{At: at, RequestID: f.request, Call: f.received.CallKey(), Written: "maybe", Code: code, Status: status}, nil)
		}
	}
	m.settle()
}

// mute is a peer that gives no sign of life any more.
func (m *million) mute() {
	if p := m.any(); p != nil {
		p.Mute = true
		m.observe(domain.HealthDue{At: m.at(p.name)}, nil)
	}
}

func (m *million) retention() {
	m.observe(domain.RetentionPassed{Calls: int64(m.chance.below(50))}, nil)
}
