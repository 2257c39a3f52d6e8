package domain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Classes of an HTTP answer, or of its absence, that carried no message.
const (
	ClassUnauthorized = "unauthorized" // 401, 403, or no credential could be had
	ClassUnavailable  = "unavailable"  // nobody is there, or not now
	ClassAmbiguous    = "ambiguous"    // another refusal: perhaps a server from before 2026-07-28
	ClassForeign      = "foreign"      // a success that is no answer of this protocol
	ClassRedirect     = "redirect"     // to somewhere that is not followed
)

// Causes of the end of an incarnation over HTTP; harness/peer names them.
const (
	causeUnreachable    = "unreachable"
	causeSessionGone    = "session_gone"
	causeSessionRefused = "session_refused"
)

// http reports whether the peer is an endpoint and no process.
func (p *Peer) http() bool { return p.Config.Transport == TransportHTTP }

// firstContext is the authorization context of the first probe, as events carry
// it.
func (c PeerConfig) firstContext() string { return contextWord(c.contexts()[0]) }

// nextContext is the context that a probe is sent in when the credential of the
// present one was refused: another may be good. false where all were.
func (p *Peer) nextContext() (string, bool) {
	all := p.Config.contexts()
	i := slices.Index(all, contextKey(p.probe.context)) + 1
	if i >= len(all) {
		return "", false
	}
	return contextWord(all[i]), true
}

// decideProbeFailed is the part of the probe table that is read off the HTTP
// answer, where its body says nothing: only what is ambiguous may lead to
// initialize, and only with allow_legacy (design, Streamable HTTP).
func (s *State) decideProbeFailed(d ProbeFailed) []Data {
	p := s.current(d.At)
	if p == nil || !p.probing(d.RequestID) {
		return nil
	}
	method, initialize := p.probe.method, p.probe.method == MethodInitialize
	switch d.Class {
	case ClassUnauthorized:
		return s.decideUnauthorized(p, d)
	case ClassUnavailable:
		return refuse(p, CodeUnavailable, d.words(method)+"; it is tried again", d.Frame.Digest)
	case ClassRedirect:
		return refuse(p, CodeRedirect, d.words(method)+"; the peer stays closed: put the address that is meant into endpoint", d.Frame.Digest)
	case ClassAmbiguous:
		if !initialize {
			return s.decideAmbiguous(p, CodeAmbiguousStatus, d.words(method), d.Frame.Digest)
		}
		return refuse(p, CodeLegacyStatus, d.words(method)+"; legacy is not selected and the peer stays closed. "+
			"If it is a server of revision 2024-11-05 (HTTP+SSE): that transport is not spoken here", d.Frame.Digest)
	}
	return refuse(p, CodeBrokenAnswer, d.words(method)+"; that is no answer of this protocol, and never taken for a legacy server", d.Frame.Digest)
}

// words says what became of a request.
func (d ProbeFailed) words(method string) string {
	if d.Status != 0 {
		return fmt.Sprintf("%s was answered with HTTP %d (%s)", method, d.Status, clipped(d.Reason))
	}
	return method + " was not answered: " + clipped(d.Reason)
}

// clipped keeps the beginning of a reason, so that whatever repeats it fits an event.
func clipped(reason string) string {
	const most = 1024 // bytes
	if len(reason) <= most {
		return reason
	}
	return strings.ToValidUTF8(reason[:most], "") + "..."
}

// decideUnauthorized closes a peer that takes none of its credentials. That says
// nothing about its era.
func (s *State) decideUnauthorized(p *Peer, d ProbeFailed) []Data {
	if next, ok := p.nextContext(); ok && p.probe.method == MethodDiscover {
		again := s.issueDiscover(p, p.probe.version, p.probe.capabilities, AuthorityCredential)
		again.Context = next
		return []Data{again}
	}
	advice := "See to its authorization"
	if len(p.Config.Credentials) == 0 {
		advice = "It has no authorization here: name one"
	}
	return refuse(p, CodeUnauthorized, d.words(p.probe.method)+
		"; that says nothing about its era. "+advice+", then start the service again, or say waybill peers revive "+p.Name+" --by NAME", d.Frame.Digest)
}

// decideSilent ends a probe over HTTP that had no answer in time: nobody is there,
// and that is no sign of a legacy server.
func decideSilent(p *Peer, within int64, key string) []Data {
	return refuse(p, CodeUnavailable, fmt.Sprintf("%s was not answered within %d ms (%s); it is tried again", p.probe.method, within, key), "")
}

// decideGone handles the end of an incarnation over HTTP: the peer is probed again
// with a growing delay, also where it has never been up: an endpoint that is not
// there yet is no program that could not be probed.
func (p *Peer) decideGone(mono int64, d PeerExited) []Data {
	switch {
	case p.selectedAt != 0, p.probe.closed && p.Code == CodeUnavailable:
		return append(p.unlisted(), p.decideRecovery(mono)...)
	case p.probe.closed:
		return p.unlisted()
	}
	return refuse(p, CodeUnavailable, "the endpoint was given up during "+p.probe.method+" ("+exitWords(d)+")", "")
}

// decideReread follows -32020 on a call over HTTP: the peer's list is read again,
// for the headers that it asks for, and the call waits for that.
func (s *State) decideReread(mono int64, c *call, p *Peer) []Data {
	l := p.line(p.asked(contextKey(c.received.Context)))
	wait := min(resendWait, c.left(mono))
	if l == nil || !p.canList() || wait < 1 {
		return nil
	}
	d, act := s.want(l, WhyHeader, mono, 0)
	verdict, _ := p.verdict(l.context, mono)
	use := CacheUse{Peer: p.Name, Verdict: verdict, Act: act, Age: l.age(mono)}
	if l.catalog != nil {
		use.List = l.catalog.Seq
	}
	ran := RanNo
	if c.mayHaveRun {
		ran = RanMaybe
	}
	out := cacheDecisions(l.context, WhyHeader, []CacheUse{use}, one(d, act))
	return append(out, CallHeld{CallID: c.id, Peer: p.Name, Code: CodeHeaderMismatch, Rule: RuleHeader, Ran: ran, Wait: wait})
}

// rereading reports whether a call that is held for a fresh list waits on: the list
// has not been read since, and is going to be, perhaps once the peer is back.
func (s *State) rereading(c *call) bool {
	p := s.Peer(c.owner.Peer)
	if c.held.rule != RuleHeader || p == nil {
		return false
	}
	l := p.line(p.asked(contextKey(c.received.Context)))
	return l != nil && (l.fetch != nil || l.dueAt != 0 || !p.canList()) && !l.readSince(c.held.seq)
}

func (l *line) readSince(seq int64) bool { return l.catalog != nil && l.catalog.Seq > seq }

// unreread reports whether the list that a call was held for could not be read.
func (s *State) unreread(c *call) bool {
	p := s.Peer(c.owner.Peer)
	if c.held.rule != RuleHeader || p == nil {
		return false
	}
	l := p.line(p.asked(contextKey(c.received.Context)))
	return l == nil || !l.readSince(c.held.seq)
}

// InputSchema is what says which arguments of a routed call are mirrored in
// headers: that of the tool as its peer last listed it for the call's context; nil
// where the call goes to no modern peer over HTTP. It aliases the state.
func (s *State) InputSchema(key string) jsontext.Value {
	c := s.calls[key]
	if c == nil {
		return nil
	}
	p := s.Peer(c.owner.Peer)
	if p == nil || !p.http() || p.Era != EraModern {
		return nil
	}
	list, _ := p.catalogFor(contextKey(c.received.Context))
	if list == nil {
		return nil
	}
	return object(list.Definition(c.owner.Local))["inputSchema"]
}
