package domain

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// noCapabilities is what is declared to a peer until it asks for more.
var noCapabilities = jsontext.Value("{}")

// decideConfig admits or refuses each configured peer. Refused peers do not
// keep the others from going on.
func (s *State) decideConfig(e Event) []Data {
	if s.ConfigSeq != e.Seq {
		return nil // it could not be read, and is not in force
	}
	var out []Data
	for _, name := range s.names {
		p := s.peers[name]
		if p.Config.Refusal != "" {
			out = append(out, PeerRefused{Peer: name, Code: p.Config.Refusal, Reason: p.Config.RefusalReason})
			continue
		}
		out = append(out, PeerAdmitted{Peer: name, Pin: p.Config.Pin},
			PeerLaunched{At: At{name, p.Incarnation + 1}, First: MethodDiscover})
	}
	if len(s.names) == 0 {
		return s.decideMerge()
	}
	return out
}

// decideSpawned sends the first message of a fresh process.
func (s *State) decideSpawned(d PeerSpawned) []Data {
	p := s.current(d.At)
	if !p.starting() {
		return nil
	}
	if p.probe.method == MethodInitialize {
		return []Data{s.issueInitialize(p)}
	}
	first := s.issueDiscover(p, ModernVersions[0], noCapabilities, AuthorityFirst)
	if p.http() { // a process hears nothing of contexts
		first.Context = p.Config.firstContext()
	}
	return []Data{first}
}

// starting reports whether the peer's process was ordered and has not been
// spoken to yet. A nil peer is not starting.
func (p *Peer) starting() bool { return p != nil && p.live && p.probe.id == 0 && !p.probe.closed }

func (s *State) issueDiscover(p *Peer, version string, capabilities jsontext.Value, authority string) ProbeIssued {
	return ProbeIssued{At: p.at(), RequestID: s.nextRequest + 1, Method: MethodDiscover, Version: version,
		Attempt: p.probe.attempt + 1, Deadline: p.Config.ProbeTimeout, Authority: authority, Capabilities: capabilities, Context: p.probe.context}
}

func (s *State) issueInitialize(p *Peer) ProbeIssued {
	return ProbeIssued{At: p.at(), RequestID: s.nextRequest + 1, Method: MethodInitialize,
		Version: p.Config.LegacyRevisions[0], Attempt: p.probe.attempt + 1,
		Deadline: p.Config.LegacyProbeTimeout, Authority: AuthorityAllowLegacy, Capabilities: noCapabilities, Context: p.probe.context}
}

func (p *Peer) at() At { return At{Peer: p.Name, Incarnation: p.Incarnation} }

func (s *State) decideSpawnFailed(d SpawnFailed) []Data {
	if p := s.current(d.At); p == nil || p.live || p.probe.closed {
		return nil
	}
	return []Data{PeerRefused{Peer: d.Peer, Code: d.Code, Reason: d.Reason}}
}

// decideExited handles the end of a process: while its era is being determined
// by the probe table, later by starting it again. The calls it costs were ended
// by exchange.failed.
func (s *State) decideExited(mono int64, d PeerExited) []Data {
	p := s.current(d.At)
	switch {
	case p == nil:
		return nil
	case p.http():
		return p.decideGone(mono, d)
	case p.probe.closed && p.selectedAt != 0 && (d.Cause != causeWatchdogLost || d.Replaced):
		return append(p.unlisted(), p.decideRecovery(mono)...)
	case p.probe.closed:
		return p.unlisted()
	}
	how := exitWords(d)
	switch {
	case d.Cause == causeWatchdogLost && d.Replaced: // our own end of it, whatever the probe had seen
		return refuse(p, CodeWatchdogLost, "the process was ended because "+how+"; that says nothing about the peer"+p.unproven(), "")
	case d.Cause == causeFrameTooLarge:
		return refuse(p, CodeFrameTooLarge, "the answer to "+p.probe.method+" was longer than limits.frame; the peer stays closed", "")
	case p.probe.method == MethodInitialize:
		return refuse(p, CodeLegacyExit, "the process ended during initialize ("+how+"); the peer stays closed, see its stderr", "")
	case p.probe.legacyExcluded:
		return refuse(p, CodeModernEvidence, "the process ended after it had shown modern behaviour ("+how+"); no downgrade is made", "")
	case d.Cause == causeWatchdogLost: // our own end of it, which is no signal of the peer's
		return refuse(p, CodeWatchdogLost, "the process was ended because "+how+"; the peer stays closed until then", "")
	case p.Config.mayInitialize():
		return []Data{PeerLaunched{At: At{p.Name, p.Incarnation + 1}, First: MethodInitialize}}
	}
	return refuse(p, CodeAmbiguousExit, ambiguous("the process ended ("+how+")"), "")
}

// unproven says what becomes of a peer that has not worked in this life of the
// service: nothing is recovered by itself.
func (p *Peer) unproven() string {
	if p.attempt > 0 {
		return ""
	}
	return ", which had not come up yet and stays closed; waybill peers revive starts it again"
}

// unlisted says that a peer whose process ended before its first list was
// accepted or refused has none in this incarnation.
func (p *Peer) unlisted() []Data {
	var out []Data
	p.each(func(l *line) {
		if !p.settled && !l.settled {
			out = append(out, CatalogRefused{At: p.at(), Context: contextWord(l.context), Code: CodeListLost, Reason: p.ended() + " while tools/list was under way"})
		}
	})
	return out
}

// ended says in words that an incarnation is over.
func (p *Peer) ended() string {
	if p.http() {
		return "the endpoint was given up"
	}
	return "the process ended"
}

// mayInitialize reports whether the operator's word allows one initialize.
func (c PeerConfig) mayInitialize() bool { return c.AllowLegacy && len(c.LegacyRevisions) > 0 }

// Causes of an exit that say more than its status; harness/peer names them.
const (
	causeFrameTooLarge = "frame_too_large"
	causeStdoutClosed  = "stdout_closed"
	causeWriteFailed   = "write_failed"
	causeWatchdogLost  = "watchdog_lost"
)

func exitWords(d PeerExited) string {
	switch {
	case d.Cause == causeFrameTooLarge:
		return "ended by us, because it wrote a line longer than limits.frame"
	case d.Cause == causeStdoutClosed:
		return "it closed its output"
	case d.Cause == causeUnreachable:
		return "it could not be reached"
	case d.Cause == causeSessionGone:
		return "its session is gone"
	case d.Cause == causeSessionRefused:
		return "it refused its session"
	case d.Cause == causeWriteFailed:
		return "it closed its input"
	case d.Cause == causeWatchdogLost && d.Replaced:
		return "the watchdog was lost, and another takes its place"
	case d.Cause == causeWatchdogLost:
		return "the watchdog is gone; start the service again"
	case d.Signal != "":
		return "signal " + d.Signal
	}
	return fmt.Sprintf("status %d", d.Status)
}

func refuse(p *Peer, code Code, reason, evidence string) []Data {
	return []Data{EraRefused{At: p.at(), Code: code, Reason: reason, Evidence: evidence}}
}

func ambiguous(signal string) string {
	return "ambiguous: " + signal + ". If this is a server from before 2026-07-28 and you trust it, set allow_legacy for this peer"
}

// decideProbeAnswered is the probe table (seed 2.1.0, rules 3 and 4; seed lesson,
// "stdio compatibility probe"). e carries the frame.
func (s *State) decideProbeAnswered(e Event, d ProbeAnswered) []Data {
	p := s.current(d.At)
	switch {
	case p == nil:
		return s.decideBeforeRespawn(e, d)
	case p.probe.closed:
		return nil
	}
	m, err := ParseMessage(e.Evidence)
	if err != nil {
		return s.decideUnreadable(p, d)
	}
	id, ok := m.RequestID()
	switch {
	case d.Modern && !ModernEvidence(e.Evidence):
		return refuse(p, CodeModernEvidence, "modern behaviour was seen in a line of which redaction left nothing that can be judged; no downgrade is made", d.Frame.Digest)
	case ok && id == p.probe.id && p.probe.method == MethodDiscover:
		return s.decideDiscovered(p, e.Evidence, d.Frame.Digest)
	case ok && id == p.probe.id:
		return s.decideInitialized(p, e.Evidence, d.Frame.Digest)
	case ok && id == p.probe.discoverID:
		return s.decideLateDiscovered(p, e.Evidence, d.Frame.Digest)
	}
	return s.decideUncorrelated(p, m, d.Modern || ModernEvidence(e.Evidence), d.Frame.Digest)
}

// decideUnreadable handles a line that is no message, or none any more after
// redaction. As an answer it is broken; as a sign of modern behaviour it counts
// like any other.
func (s *State) decideUnreadable(p *Peer, d ProbeAnswered) []Data {
	if d.RequestID != 0 && d.RequestID == p.probe.id {
		return refuse(p, CodeBrokenAnswer, p.probe.method+" was answered with something that is no JSON-RPC message once secrets are redacted; the peer stays closed", d.Frame.Digest)
	}
	return s.decideUncorrelated(p, Message{}, d.Modern, d.Frame.Digest)
}

// decideBeforeRespawn handles what the first process of a launch had still said
// when it ended: modern evidence closes the process that was started in its
// place for an initialize.
func (s *State) decideBeforeRespawn(e Event, d ProbeAnswered) []Data {
	p := s.Peer(d.Peer)
	if p == nil || !p.probe.respawned || p.probe.closed || p.Incarnation != d.Incarnation+1 || !d.Modern && !ModernEvidence(e.Evidence) {
		return nil
	}
	return refuse(p, CodeModernEvidence, "the process that ended had shown modern behaviour; no downgrade is made", d.Frame.Digest)
}

// decideDiscovered handles the probe's own answer.
func (s *State) decideDiscovered(p *Peer, frame []byte, evidence string) []Data {
	a := ClassifyDiscover(frame)
	switch a.Kind {
	case DiscoverValid:
		return p.selectModern(a, evidence)
	case DiscoverVersionRefused:
		return s.decideVersionRefused(p, a, evidence)
	case DiscoverCapabilityMissing:
		return s.decideCapability(p, a, evidence)
	case DiscoverHeaderMismatch:
		if p.probe.stamped {
			return refuse(p, CodeHeaderMismatch, "the server says its metadata does not match (-32020), again after stamping again; no downgrade is made", evidence)
		}
		return []Data{s.issueDiscover(p, p.probe.version, p.probe.capabilities, AuthorityStamp)}
	case DiscoverAmbiguousError:
		return s.decideAmbiguous(p, CodeAmbiguousError, a.Signal, evidence)
	case DiscoverAmbiguousEmpty:
		return s.decideAmbiguous(p, CodeAmbiguousEmpty, a.Signal, evidence)
	}
	return refuse(p, CodeBrokenAnswer, "server/discover was answered with "+a.Signal+"; a broken answer is never taken for a legacy server", evidence)
}

func (p *Peer) selectModern(a Discovery, evidence string) []Data {
	version := commonVersion(a.Versions)
	if version == "" {
		legacy := ""
		if p.http() && legacyOnly(a.Versions) {
			legacy = ", which are legacy revisions, and knows the modern vocabulary"
		}
		return refuse(p, CodeNoCommonVersion, "the server offers only "+offered(a.Versions)+legacy+"; no common modern version, and no downgrade is made", evidence)
	}
	return []Data{EraDetermined{At: p.at(), Era: EraModern, Version: version, Evidence: evidence,
		HasTools: a.HasTools, Capabilities: p.probe.capabilities, Warnings: a.Warnings, HealthEvery: p.Config.HealthEvery,
		ListChanged: a.ListChanged && p.rules() != nil}}
}

func offered(versions []string) string {
	const most = 5
	out := ""
	for i, v := range versions {
		if i == most {
			return out + " and more"
		}
		if i > 0 {
			out += ", "
		}
		out += shorten(v)
	}
	return out
}

func (s *State) decideVersionRefused(p *Peer, a Discovery, evidence string) []Data {
	if a.Versions == nil {
		return refuse(p, CodeNoVersionList, "the server refused "+p.probe.version+" (-32022) without a usable list of versions; no downgrade is made", evidence)
	}
	version := commonVersion(a.Versions)
	switch {
	case version == "" && legacyOnly(a.Versions):
		return refuse(p, CodeLegacyOnly, "the server offers only "+offered(a.Versions)+" (-32022); it knows the modern vocabulary, so no downgrade is made", evidence)
	case version == "":
		return refuse(p, CodeNoCommonVersion, "the server offers only "+offered(a.Versions)+" (-32022); no common modern version, and no downgrade is made", evidence)
	case contains(p.probe.refused, version):
		return refuse(p, CodeVersionRefused, "the server refused "+version+" (-32022) twice although it offers it; no downgrade is made", evidence)
	}
	return []Data{s.issueDiscover(p, version, p.probe.capabilities, AuthorityVersion)}
}

func (s *State) decideCapability(p *Peer, a Discovery, evidence string) []Data {
	missing := uncovered(a.Required, p.Config.Capabilities)
	switch {
	case !isObject(a.Required):
		return refuse(p, CodeCapabilityMissing, "the server asks for client capabilities (-32021) without naming them; no downgrade is made", evidence)
	case missing != "":
		return refuse(p, CodeCapabilityMissing, "the server requires the client capability "+shorten(missing)+" (-32021), which capabilities: of this peer does not allow; no downgrade is made", evidence)
	case p.probe.raised:
		return refuse(p, CodeCapabilityMissing, "the server requires capabilities (-32021) again after they were declared; no downgrade is made", evidence)
	}
	required := a.Required.Clone()
	_ = required.Compact() // of the peer's white space; it was parsed before
	return []Data{s.issueDiscover(p, p.probe.version, required, AuthorityCapability)}
}

// uncovered returns the path of the first capability in required that allowed
// does not hold, or "". Objects are compared member by member, all the way down.
func uncovered(required, allowed jsontext.Value) string {
	have := object(allowed)
	found := ""
	_ = members(required, func(key string, value jsontext.Value) {
		if found != "" {
			return
		}
		switch h, ok := have[key]; {
		case !ok:
			found = key
		case isObject(value) && isObject(h):
			if inner := uncovered(value, h); inner != "" {
				found = key + "." + inner
			}
		case isObject(value) != isObject(h) || !isObject(value) && string(value) != string(h):
			found = key
		}
	})
	return found
}

func (s *State) decideAmbiguous(p *Peer, code Code, signal, evidence string) []Data {
	if p.probe.legacyExcluded {
		return refuse(p, CodeModernEvidence, "after modern behaviour was seen, the probe ended with "+signal+"; no downgrade is made", evidence)
	}
	if !p.Config.mayInitialize() {
		if p.http() {
			signal += ": see that the endpoint is right"
		}
		return refuse(p, code, ambiguous(signal), evidence)
	}
	return []Data{s.issueInitialize(p)}
}

func (s *State) decideInitialized(p *Peer, frame []byte, evidence string) []Data {
	a := ClassifyInitialize(frame, p.Config.LegacyRevisions)
	if a.Code == "" && p.probe.legacyExcluded {
		a = Initialization{Code: CodeModernEvidence, Signal: "an initialize result after modern behaviour was seen"}
	}
	if a.Code != "" {
		return refuse(p, a.Code, "initialize was answered with "+a.Signal+"; legacy is not selected and the peer stays closed", evidence)
	}
	return []Data{EraDetermined{At: p.at(), Era: EraLegacy, Version: a.Revision, Evidence: evidence,
		HasTools: a.HasTools, Capabilities: noCapabilities, HealthEvery: p.Config.HealthEvery}}
}

// decideLateDiscovered handles the answer to server/discover that comes while
// initialize is under way.
func (s *State) decideLateDiscovered(p *Peer, frame []byte, evidence string) []Data {
	if a := ClassifyDiscover(frame); a.Kind == DiscoverValid {
		return p.selectModern(a, evidence)
	}
	if ModernEvidence(frame) {
		return refuse(p, CodeModernEvidence, "modern behaviour came late, while initialize was under way; no downgrade is made", evidence)
	}
	return nil
}

// decideUncorrelated handles modern evidence under another id. A modern code
// under a null or absent id closes; anything else rules legacy out and the wait
// goes on, unless initialize is already under way.
func (s *State) decideUncorrelated(p *Peer, m Message, modern bool, evidence string) []Data {
	if !modern {
		return nil
	}
	code, _, isError := rpcError(m.Error)
	switch {
	case isError && isModernCode(code) && !m.HasID():
		return refuse(p, CodeModernEvidence, fmt.Sprintf("a modern error (%d) came without an id; it cannot be an answer, and no downgrade is made", code), evidence)
	case p.probe.method == MethodInitialize:
		return refuse(p, CodeModernEvidence, "modern behaviour was seen under an unknown id while initialize was under way; no downgrade is made", evidence)
	case p.probe.legacyExcluded:
		return nil
	}
	return []Data{LegacyExcluded{At: p.at(), Reason: "modern behaviour was seen under an unknown id"}}
}

func (s *State) decideProbeDeadline(p *Peer) []Data {
	switch initialize := p.probe.method == MethodInitialize; {
	case p.http() && initialize:
		return decideSilent(p, p.Config.LegacyProbeTimeout, "legacy_probe_timeout")
	case p.http():
		return decideSilent(p, p.Config.ProbeTimeout, "probe_timeout")
	case initialize:
		return refuse(p, CodeLegacySilence, fmt.Sprintf("initialize was not answered within %d ms; legacy is not selected and the peer stays closed", p.Config.LegacyProbeTimeout), "")
	}
	return s.decideAmbiguous(p, CodeAmbiguousSilence, fmt.Sprintf("no answer to server/discover within %d ms (probe_timeout)", p.Config.ProbeTimeout), "")
}
