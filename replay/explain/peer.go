package explain

import (
	"fmt"

	"waybill/domain"
)

func (b *book) configOf(peer string) domain.PeerConfig {
	for _, p := range b.state.Config.Peers {
		if p.Name == peer {
			return p
		}
	}
	return domain.PeerConfig{Name: peer}
}

// tellPeer says what a peer is, and how its era was found, once for each incarnation.
func (n *narrator) tellPeer(at domain.At) {
	if n.stories[at] {
		return
	}
	n.stories[at] = true
	n.told.section = sectionPeer
	p := entry(n.peers, at.Peer)
	n.tellConfig(&n.told, at.Peer)
	p.tellStart(&n.told, at)
	for _, x := range append(p.before, p.probes...) {
		tellProbe(&n.told, x)
	}
	tellEra(&n.told, p.era)
}

// tellConfig says how the configuration has a peer reached, and that it is pinned.
func (b *book) tellConfig(t *telling, peer string) {
	c := b.configOf(peer)
	loaded, _ := b.config.data.(domain.ConfigLoaded)
	facts := Facts{"peer": peer, "transport": c.Transport, "command": c.Command, "endpoint": c.Endpoint, "allow_legacy": c.AllowLegacy, "credentials": c.Credentials,
		"evidence": loaded.Config.Digest, "time": when(b.config.time)}
	if c.Transport == domain.TransportHTTP {
		t.say("config", []note{b.config}, facts, "By the configuration loaded at %s, peer %s is the endpoint %s, spoken to over Streamable HTTP.", when(b.config.time), peer, word(c.Endpoint))
	} else {
		t.say("config", []note{b.config}, facts, "By the configuration loaded at %s, peer %s is a process that is started with the command %s and spoken to over stdio.", when(b.config.time), peer, word(c.Command))
	}
	if a, ok := entry(b.peers, peer).admitted.data.(domain.PeerAdmitted); ok {
		t.say("pinned", []note{entry(b.peers, peer).admitted}, Facts{"pin": a.Pin}, "What is there was found to be what is pinned: the entry in waybill.lock has the digest %s.", brief(a.Pin))
	}
}

// tellStart says how an incarnation came to be.
func (p *peerBook) tellStart(t *telling, at domain.At) {
	facts := Facts{"incarnation": at.Incarnation, "time": when(p.launched.time)}
	how := ""
	switch d := p.launched.data.(type) {
	case domain.PeerRestarted:
		facts["attempt"], facts["after"], facts["by"], facts["delay_ms"] = d.Attempt, d.After, d.By, d.Delay
		how = fmt.Sprintf(": attempt %d to start it again, %d ms after the one before had ended (%s)", d.Attempt, d.Delay, word(string(d.After)))
		if d.By != "" {
			how = ", by operator " + word(d.By)
		}
	case domain.PeerLaunched:
		facts["first"] = d.First
		how = ", to be spoken to with " + word(d.First) + " first"
	}
	process := ""
	if d, ok := p.spawned.data.(domain.PeerSpawned); ok && d.PID != 0 {
		process = fmt.Sprintf(", process %d", d.PID)
		facts["pid"] = d.PID
	}
	t.say("incarnation", []note{p.launched, p.spawned}, facts, "The call fell to its incarnation %d%s, which was ordered at %s%s.", at.Incarnation, process, when(p.launched.time), how)
}

// tellProbe tells one step of the determination of an era.
func tellProbe(t *telling, x note) {
	switch d := x.data.(type) {
	case domain.ProbeIssued:
		t.say("probe", []note{x}, Facts{"method": d.Method, "version": d.Version, "request": d.RequestID, "authority": d.Authority, "attempt": d.Attempt, "context": contextOf(d.Context)},
			"The service asked it %s at version %s (request %d), %s.", word(d.Method), word(d.Version), d.RequestID, authorityWords[d.Authority])
	case domain.ProbeAnswered:
		what := "What the peer wrote then"
		if d.RequestID != 0 {
			what = fmt.Sprintf("The peer's answer to request %d", d.RequestID)
		}
		t.say("probe_answer", []note{x}, Facts{"request": d.RequestID, "evidence": d.Frame.Digest, "size": d.Frame.Size, "signal": x.says, "modern": d.Modern},
			"%s was %s; it is kept as the evidence %s.", what, x.says, brief(d.Frame.Digest))
	case domain.ProbeFailed:
		facts := Facts{"request": d.RequestID, "class": d.Class, "status": d.Status, "reason": d.Reason, "evidence": d.Frame.Digest}
		if d.Status != 0 {
			t.say("probe_failed", []note{x}, facts, "Request %d was answered with HTTP %d and no message (%s): %s", d.RequestID, d.Status, word(d.Class), stop(d.Reason))
			return
		}
		t.say("probe_failed", []note{x}, facts, "Request %d was not answered (%s): %s", d.RequestID, word(d.Class), stop(d.Reason))
	case domain.LegacyExcluded:
		t.say("legacy_excluded", []note{x}, Facts{"reason": d.Reason}, "The legacy era was ruled out: %s", stop(d.Reason))
	}
}

func tellEra(t *telling, x note) {
	d, ok := x.data.(domain.EraDetermined)
	if !ok {
		return
	}
	t.say("era", []note{x}, Facts{"era": d.Era, "version": d.Version, "evidence": d.Evidence, "has_tools": d.HasTools, "capabilities": d.Capabilities, "warnings": d.Warnings, "time": when(x.time)},
		"So its era was found to be %s, with version %s, by the evidence %s: %s.", d.Era, word(d.Version), brief(d.Evidence), eraWords[d.Era])
}

// tellDown says why a peer could not be called: what ended it last, and when it was to
// be tried again.
func (b *book) tellDown(t *telling, peer, context string) {
	p := entry(b.peers, peer)
	if p.closed.seq < p.ended.seq {
		t.tellClosed(p.closed)
	}
	t.tellEnded(p.ended)
	if p.closed.seq > p.ended.seq {
		t.tellClosed(p.closed)
	}
	if d, ok := p.isolated.data.(domain.PeerQuarantined); ok {
		t.say("peer_quarantined", []note{p.isolated}, Facts{"peer": peer, "attempts": d.Attempts, "reason": d.Reason}, "Peer %s was in quarantine: %s", peer, stop(d.Reason))
	}
	list, _ := b.listOf(peer, context)
	r, restarting := p.restart.data.(domain.PeerRestarted)
	switch {
	case restarting && p.spawned.seq == 0:
		next := when(p.restart.time + r.Delay*1_000_000)
		t.say("peer_retry", []note{p.restart}, Facts{"peer": peer, "attempt": r.Attempt, "delay_ms": r.Delay, "next_try": next}, "Its next start was due at %s, as attempt %d.", next, r.Attempt)
	case p.era.seq == 0 && p.launched.seq != 0 && p.closed.seq == 0:
		t.say("peer_starting", []note{p.launched, p.spawned}, Facts{"peer": peer}, "Peer %s had been started at %s, and its era was not known yet.", peer, when(p.launched.time))
	case list.refused.seq != 0 && list.refused.seq > list.accepted.seq:
		d, _ := list.refused.data.(domain.CatalogRefused)
		t.say("list_refused", []note{list.refused}, Facts{"peer": peer, "code": d.Code, "reason": d.Reason}, "The last list of peer %s could not be taken (%s): %s", peer, word(string(d.Code)), stop(d.Reason))
	}
	if p.launched.seq == 0 && p.closed.seq == 0 {
		t.say("peer_unknown", []note{b.config, b.life}, Facts{"peer": peer}, "Peer %s had not been started since the configuration was loaded, or is none that it names.", peer)
	}
}

func (t *telling) tellEnded(x note) {
	switch d := x.data.(type) {
	case domain.PeerExited:
		t.say("peer_ended", []note{x}, Facts{"peer": d.Peer, "incarnation": d.Incarnation, "cause": d.Cause, "status": d.Status, "signal": d.Signal, "time": when(x.time)},
			"Incarnation %d of peer %s had ended at %s: %s.", d.Incarnation, d.Peer, when(x.time), exitText(d))
	case domain.SpawnFailed:
		t.say("spawn_failed", []note{x}, Facts{"peer": d.Peer, "incarnation": d.Incarnation, "code": d.Code, "reason": d.Reason, "time": when(x.time)},
			"Incarnation %d of peer %s could not be started at %s (%s): %s", d.Incarnation, d.Peer, when(x.time), word(string(d.Code)), stop(d.Reason))
	}
}

func (t *telling) tellClosed(x note) {
	var peer, reason string
	var code domain.Code
	switch d := x.data.(type) {
	case domain.PeerRefused:
		peer, code, reason = d.Peer, d.Code, d.Reason
	case domain.EraRefused:
		peer, code, reason = d.Peer, d.Code, d.Reason
	case domain.PeerAbandoned:
		peer, code, reason = d.Peer, d.Code, d.Reason
	default:
		return
	}
	t.say("peer_closed", []note{x}, Facts{"peer": peer, "code": code, "reason": reason, "time": when(x.time)}, "Peer %s had been closed at %s (%s): %s", peer, when(x.time), word(string(code)), stop(reason))
}
