package domain

import (
	"crypto/sha256"
	"fmt"
	"strconv"
)

// Bounds of recovery. Times are in milliseconds, except steadyAfter.
const (
	firstDelay      = 100
	longestDelay    = 30_000
	quarantineDelay = 10 * 60_000
	mostAttempts    = 8              // starts in a row that may fail before a peer is quarantined
	steadyAfter     = 60_000_000_000 // nanoseconds an incarnation must have lasted to count as a success
)

// recoverable reports whether an incarnation that ended with this refusal ended
// because of its transport, which another process may not. What a rule of the
// probe closed stays closed, and so does what lost a watchdog that no other
// replaced.
func (p *Peer) recoverable(code Code) bool {
	switch code {
	case CodeAmbiguousExit, CodeLegacyExit, CodeSpawnFailed, CodeUnavailable:
		return true
	case CodeWatchdogLost:
		return p.exit != nil && p.exit.Replaced
	}
	return false
}

// decideAgain follows a refusal in the middle of a recovery: a peer that has
// worked is started again while its transport fails. A process that never worked in
// this life of the service stays closed: there is nothing to recover. An endpoint may
// not have been there yet.
func (s *State) decideAgain(mono int64, peer string, code Code) []Data {
	p := s.Peer(peer)
	if p == nil || p.live || p.attempt == 0 && !p.http() || !p.recoverable(code) {
		return nil
	}
	return p.decideRecovery(mono)
}

// decideRecovery starts a peer again whose process is gone, later each time, and
// each time from the beginning: a fresh probe, a fresh list. Calls that were
// under way have ended with the process. After mostAttempts in a row the peer is
// quarantined and tried only now and then.
func (p *Peer) decideRecovery(mono int64) []Data {
	if p.Config.Refusal != "" { // by a configuration that was loaded meanwhile
		return nil
	}
	attempt := p.attempt + 1
	if p.selectedAt != 0 && mono-p.selectedAt >= steadyAfter {
		attempt = 1
	}
	at := At{Peer: p.Name, Incarnation: p.Incarnation + 1}
	if most := p.Config.attempts(); attempt > most {
		reason := fmt.Sprintf("%d starts in a row failed; the last: %s", most, p.Reason)
		return []Data{PeerQuarantined{Peer: p.Name, Attempts: most, Reason: reason},
			PeerRestarted{At: at, Attempt: attempt, Delay: p.Config.quarantine(), After: p.Code}}
	}
	base := min(int64(firstDelay)<<(attempt-1), longestDelay)
	return []Data{PeerRestarted{At: at, Attempt: attempt, Delay: base + at.jitter(base/2), After: p.Code}}
}

func (c PeerConfig) attempts() int {
	if c.Attempts > 0 {
		return c.Attempts
	}
	return mostAttempts
}

func (c PeerConfig) quarantine() int64 {
	if c.Quarantine > 0 {
		return c.Quarantine
	}
	return quarantineDelay
}

// jitter spreads the starts of many peers: from 0 to most, by name and
// incarnation, so that it can be computed again.
func (a At) jitter(most int64) int64 {
	sum := sha256.Sum256(appendField(appendField(nil, a.Peer), strconv.FormatInt(a.Incarnation, 10)))
	return (int64(sum[0])<<8 | int64(sum[1])) % (most + 1)
}

// applyRestarted makes the next incarnation the present one; it runs when
// peer.spawned says so.
func (s *State) applyRestarted(now int64, d PeerRestarted) {
	p := s.Peer(d.Peer)
	if p == nil {
		return
	}
	code, reason := p.Code, p.Reason
	s.applyLaunched(PeerLaunched{At: d.At, First: MethodDiscover})
	p.waiting, p.attempt, p.selectedAt = true, d.Attempt, 0
	p.nextTry = now + d.Delay*1_000_000
	p.Code = code
	if d.By != "" {
		p.Reason = "it is started again by " + d.By
		return
	}
	p.Reason = fmt.Sprintf("%s; it is started again within %d ms (attempt %d)", reason, d.Delay, d.Attempt)
}

// applyQuarantined notes why the next attempt is far away.
func (s *State) applyQuarantined(d PeerQuarantined) {
	if p := s.Peer(d.Peer); p != nil {
		p.Reason = d.Reason
	}
}
