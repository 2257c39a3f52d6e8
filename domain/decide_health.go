package domain

import "fmt"

// decideHealthDue asks a peer for a sign of life. The era is not in question: it
// belongs to the incarnation. The answer is due well before the next request is,
// so that there is never more than one and the row of them does not break off.
func (s *State) decideHealthDue(d HealthDue) []Data {
	p := s.current(d.At)
	if p == nil || p.Era == EraUnknown || p.closing || !p.live || p.health != 0 || p.Config.HealthEvery == 0 {
		return nil
	}
	method := MethodDiscover
	if p.Era == EraLegacy {
		method = MethodPing
	}
	within := p.Config.HealthWithin
	if within == 0 {
		within = p.Config.ProbeTimeout
	}
	return []Data{HealthRequested{At: p.at(), RequestID: s.nextRequest + 1, Method: method, Era: p.Era, Version: p.Version,
		Capabilities: p.capabilities, Deadline: min(within, max(1, p.Config.HealthEvery/2)), Every: p.Config.HealthEvery,
		Context: p.probe.context}}
}

// decideHung gives up an incarnation that let as many calls in a row pass as
// hung_after says, and wrote nothing at all meanwhile.
func (p *Peer) decideHung() []Data {
	if p.Config.HungAfter == 0 || p.silent < p.Config.HungAfter || p.closing || !p.live {
		return nil
	}
	return []Data{PeerAbandoned{At: p.at(), Code: CodePeerHung,
		Reason: fmt.Sprintf("the peer wrote nothing while its calls reached their deadlines (%d in a row, hung_after); %s", p.silent, p.afresh())}}
}

// decideUnhealthy gives up an incarnation that did not answer when it was asked
// for a sign of life.
func (p *Peer) decideUnhealthy() []Data {
	if p.closing || !p.live {
		return nil
	}
	return []Data{PeerAbandoned{At: p.at(), Code: CodePeerHung,
		Reason: "the peer did not answer when it was asked for a sign of life (health_timeout); " + p.afresh()}}
}

// afresh says what becomes of a peer that is given up.
func (p *Peer) afresh() string {
	if p.http() {
		return "it is given up and probed again"
	}
	return "it is killed and started again"
}

// noteLife counts the deadlines that a peer let pass without a sign of life. Only
// calls that had as long as the configuration gives count: a host in a hurry
// proves nothing.
func (s *State) noteLife(c *call, d DeadlinePassed) {
	p := s.current(d.At)
	switch {
	case p == nil || d.Written == "no":
	case d.Silent && c.timeout >= p.Config.CallTimeout:
		p.silent++
	case !d.Silent:
		p.silent = 0
	}
}
