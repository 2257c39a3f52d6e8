package domain

import "fmt"

// subscription is the state of one list's subscription.
type subscription struct {
	id       int64 // its request; 0 for none
	acked    bool
	attempt  int   // in a row
	within   int64 // for its acknowledgement, milliseconds
	openedAt int64 // monotonic clock of the acknowledgement
	due      bool  // a subscription.due is to come
}

// Delays before a subscription that ended is opened again, in milliseconds.
const (
	firstReopen   = 1_000
	longestReopen = 300_000
)

// subscribes reports whether the peer is asked for notices: it advertises them, in
// the modern era, and the configuration wants them (specification,
// basic/patterns/subscriptions).
func (p *Peer) subscribes() bool {
	return p.canList() && p.Era == EraModern && p.listChanged && p.rules().Listen > 0
}

func (s *State) subscribe(l *line, skip int64) SubscriptionRequested {
	p := l.peer
	attempt := l.sub.attempt + 1
	return SubscriptionRequested{At: p.at(), Context: contextWord(l.context), RequestID: s.nextRequest + 1 + skip,
		Types: []string{TypeToolsChanged}, Attempt: attempt, Version: p.Version, Capabilities: p.capabilities, Deadline: p.rules().Listen}
}

// listening returns the list whose subscription a request is.
func (s *State) listening(at At, request int64) *line {
	p := s.current(at)
	if p == nil || request == 0 {
		return nil
	}
	var found *line
	p.each(func(l *line) {
		if l.sub.id == request {
			found = l
		}
	})
	return found
}

// decideAcknowledged judges the first message of a subscription: what it leaves
// out is recorded, and without notices of changed tools there is nothing to listen
// to. A list that was read before may have missed a change.
func (s *State) decideAcknowledged(e Event, d SubscriptionAcknowledged) []Data {
	l := s.listening(d.At, d.RequestID)
	if l == nil || l.sub.acked {
		return []Data{AnswerDropped{At: d.At, RequestID: d.RequestID, Reason: "no subscription waits for this acknowledgement"}}
	}
	granted, missing := acknowledged(e.Evidence, []string{TypeToolsChanged})
	opened := SubscriptionOpened{At: d.At, Context: contextWord(l.context), RequestID: d.RequestID, Granted: granted, Missing: missing}
	if len(missing) > 0 {
		return []Data{opened, SubscriptionClosed{At: d.At, Context: contextWord(l.context), RequestID: d.RequestID, Code: CodeNotSubscribed, Withdrawn: true,
			Reason: "the peer advertises notices of changed tools and does not agree to send them; its list is as fresh as its ttl says"}}
	}
	out := []Data{opened}
	if l.listed && l.fetch == nil {
		out = append(out, one(s.want(l, WhyListen, e.Mono, 0))...)
	}
	return out
}

// acknowledged reads which of the types that were asked for a peer agreed to.
func acknowledged(frame []byte, asked []string) (granted, missing []string) {
	granted = []string{}
	m, err := ParseMessage(frame)
	if err != nil {
		return granted, asked
	}
	types := object(object(m.Params)["notifications"])
	for _, t := range asked {
		if types[t].Kind() == 't' {
			granted = append(granted, t)
		} else {
			missing = append(missing, t)
		}
	}
	return granted, missing
}

// decideSubscriptionEnded closes what the peer has ended, and opens it again
// later, under a new id; the list is then read again.
func (s *State) decideSubscriptionEnded(mono int64, d SubscriptionEnded) []Data {
	l := s.listening(d.At, d.RequestID)
	if l == nil {
		return nil
	}
	out := SubscriptionClosed{At: d.At, Context: contextWord(l.context), RequestID: d.RequestID, Code: CodeSubscriptionEnded, Reopen: l.reopen(mono)}
	switch d.How {
	case EndedError:
		out.Code, out.Reason = CodeSubscriptionError, fmt.Sprintf("subscriptions/listen was answered with error %d", d.ErrorCode)
		if d.ErrorCode == -32601 {
			out.Reopen, out.Reason = 0, out.Reason+": the peer advertises what it does not have"
		}
	case EndedBroken:
		out.Code, out.Reason = CodeSubscriptionError, "subscriptions/listen was answered with something that is no result and no error"
	case EndedCancelled:
		out.Reason = "the peer cancelled the subscription"
	default:
		out.Reason = "the peer ended the subscription in good order"
	}
	return []Data{out}
}

// reopen is the time until a subscription that ended is opened again, longer each
// time until one has lasted a minute.
func (l *line) reopen(mono int64) int64 {
	n := l.sub.attempt - 1
	if l.sub.steady(mono) {
		n = 0
	}
	base := grow(firstReopen, n, longestReopen)
	return base + l.peer.at().jitter(base/10)
}

// steady reports whether a subscription has lasted a minute.
func (u subscription) steady(mono int64) bool {
	return u.openedAt != 0 && mono-u.openedAt >= steadyAfter
}

// decideSubscriptionDue opens a subscription again, and reads the list that it
// covers: a change may have been missed.
func (s *State) decideSubscriptionDue(mono int64, d SubscriptionDue) []Data {
	l := s.current(d.At).line(d.Context)
	if l == nil || !l.sub.due || l.sub.id != 0 || !l.peer.subscribes() {
		return nil
	}
	out := []Data{s.subscribe(l, 0)}
	return append(out, one(s.want(l, WhyListen, mono, 1))...)
}

// decideUnheard closes a subscription that was not acknowledged in time. The list
// is then as fresh as its ttl says.
func (l *line) decideUnheard() []Data {
	if l.sub.acked {
		return nil
	}
	return []Data{SubscriptionClosed{At: l.peer.at(), Context: contextWord(l.context), RequestID: l.sub.id, Code: CodeNotAcknowledged, Withdrawn: true,
		Reason: fmt.Sprintf("the subscription was not acknowledged within %d ms (listen_timeout); the list is as fresh as its ttl says", l.sub.within)}}
}

// decideListenLost closes a subscription whose request will have no answer. Where
// the transport is gone, the next incarnation opens another.
func (l *line) decideListenLost(mono int64, d ExchangeFailed) []Data {
	out := SubscriptionClosed{At: d.At, Context: contextWord(l.context), RequestID: d.RequestID, Code: d.Code,
		Reason: "the transport was lost while the subscription was open"}
	if d.Code != CodeTransportLost {
		out.Reason = d.unreadable(MethodListen)
	}
	if d.Code == CodeFrameTooLarge || l.peer.http() { // there the stream is lost, and perhaps nothing else
		out.Reopen = l.reopen(mono)
	}
	return []Data{out}
}

// applySubscription folds what became of subscriptions.
func (s *State) applySubscription(mono int64, data Data) {
	switch d := data.(type) {
	case SubscriptionRequested:
		s.nextRequest = max(s.nextRequest, d.RequestID)
		if l := s.current(d.At).line(d.Context); l != nil {
			l.sub = subscription{id: d.RequestID, attempt: d.Attempt, within: d.Deadline}
		}
	case SubscriptionOpened:
		if l := s.listening(d.At, d.RequestID); l != nil {
			l.sub.acked, l.sub.openedAt = true, max(1, mono)
			l.dirty = l.dirty || l.fetch != nil && len(l.fetch.pages) > 0 // a change may have fallen between
		}
	case SubscriptionClosed:
		if l := s.listening(d.At, d.RequestID); l != nil {
			if l.sub.steady(mono) {
				l.sub.attempt = 0
			}
			l.sub.id, l.sub.acked, l.sub.openedAt, l.sub.due = 0, false, 0, d.Reopen > 0
			if d.Code == CodeNotAcknowledged || d.Code == CodeNotSubscribed {
				l.peer.Warnings = addNew(l.peer.Warnings, "no notices of changes: "+d.Reason)
			}
		}
	}
}

// applyChanged makes a list stale at once; one that is being read is stale on
// arrival.
func (s *State) applyChanged(d ListChanged) {
	l := s.current(d.At).line(d.Context)
	if l == nil || l.peer.rules() == nil || !l.concerns(d) {
		return
	}
	l.freshUntil, l.dirty = 0, l.fetch != nil
	if l.peer.Era == EraModern && !l.sub.acked {
		l.peer.Warnings = addNew(l.peer.Warnings, "a change was announced before the subscription was acknowledged")
	}
}

// state says in a word how a subscription stands.
func (u subscription) state() string {
	switch {
	case u.acked:
		return "active"
	case u.id != 0:
		return "asked"
	case u.due:
		return "ended"
	}
	return "none"
}
