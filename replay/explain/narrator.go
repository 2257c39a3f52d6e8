package explain

import (
	"context"
	"errors"

	"waybill/domain"
	"waybill/events"
	"waybill/replay"
)

// errDone ends the fold: nothing further concerns the call.
var errDone = errors.New("done")

// narrator tells of one call while the log is folded, so that each sentence is made
// of what stood at its moment.
type narrator struct {
	*book
	told    telling
	found   found
	asked   domain.CallReceived
	begun   domain.Event // the first call.received, for erasures
	sent    map[int64]note
	at      domain.At // the incarnation that has the call, or is waited for
	waiting bool      // a request is under way, or the call is held
	input   note      // the host's last submission
	proof   note      // what became of the last request
	command note      // the operator's last word on the call
	stories map[domain.At]bool
	outcome Outcome
	last    note     // of the call
	prior   callBook // what was known of the id when the call came
	joiners []note   // call.joined of submissions that had its outcome
}

func newNarrator(f found) *narrator {
	asked := []string{f.story.received.Tool}
	if r := f.story.routed; r != nil {
		asked = append(asked, r.Tool, r.Local)
	}
	n := &narrator{book: newBook(asked...), found: f, sent: map[int64]note{}, stories: map[domain.At]bool{}}
	n.calls[f.key], n.key = &callBook{}, f.story.received.Key
	if id := f.story.received.DuplicateOf; id != "" {
		n.calls[f.story.received.Host+"/"+id] = &callBook{}
	}
	return n
}

// event takes the next event of the log.
func (n *narrator) event(e domain.Event, _ replay.Record) error {
	if e.Seq > n.found.story.last && !n.found.story.has[e.Cause] { // a late answer is followed by what became of it
		return errDone
	}
	earlier := n.earlier(e)
	n.take(e)
	x := noteOf(e)
	if n.concerns(e) {
		n.found.story.has[e.Seq] = true
		switch e.Data.(type) {
		case domain.PayloadsErased, domain.OperatorCommanded, domain.CommandRefused: // about it, and no step of it
		default:
			n.last = x
		}
		n.tell(x, e, earlier)
		return nil
	}
	n.aside(x)
	return nil
}

// earlier is what was known of the calls that matter before this one came.
func (n *narrator) earlier(e domain.Event) callBook {
	d, ok := e.Data.(domain.CallReceived)
	if !ok || e.Seq != n.found.story.first {
		return callBook{}
	}
	key := d.CallKey()
	if d.DuplicateOf != "" {
		key = d.Host + "/" + d.DuplicateOf
	}
	return *n.calls[key]
}

// concerns reports whether an event is part of the story: by its key, or because it
// speaks of one of its requests.
func (n *narrator) concerns(e domain.Event) bool {
	if n.found.story.has[e.Seq] {
		return true
	}
	switch d := e.Data.(type) {
	case domain.ExchangeFailed:
		return n.isOf(d.At, d.RequestID)
	case domain.DeadlinePassed:
		return n.isOf(d.At, d.RequestID)
	case domain.AnswerDropped:
		return n.isOf(d.At, d.RequestID)
	}
	return false
}

func (n *narrator) isOf(at domain.At, request int64) bool {
	switch d := n.sent[request].data.(type) {
	case domain.CallRouted:
		return d.At == at
	case domain.CallResent:
		return d.At == at
	}
	return false
}

// tell says what an event of the call means.
func (n *narrator) tell(x note, e domain.Event, earlier callBook) {
	switch d := x.data.(type) {
	case domain.CallReceived:
		n.tellReceived(x, d, e, earlier)
	case domain.CallRouted:
		n.tellRouted(x, d)
	case domain.CallHeld:
		n.tellHeld(x, d)
	case domain.CallResent:
		n.tellResent(x, d)
	case domain.CallRefused:
		n.tellRefused(x, d)
	case domain.CallJoined:
		n.tellJoined(x, d)
	case domain.CallSettled:
		n.tellSettled(x, d)
	case domain.OperatorCommanded:
		n.command = x
		n.tellCommand(x, d)
	case domain.CommandRefused:
		n.told.section = sectionAfter
		n.told.say("command_refused", []note{n.command, x}, Facts{"by": d.By, "verb": d.Verb, "code": d.Code, "reason": d.Reason},
			"That order changed nothing: %s.", word(string(d.Code)))
	default:
		n.tellExchange(x)
	}
}

// aside says of an event of somebody else's what it means to the call, where that is
// anything.
func (n *narrator) aside(x note) {
	if !n.waiting {
		return
	}
	n.told.section = sectionExchange
	switch d := x.data.(type) {
	case domain.ServiceStarted:
		n.told.say("service_restarted", []note{x}, Facts{"time": when(x.time)}, "The service had ended meanwhile, and was started again at %s.", when(x.time))
	case domain.ServiceStopped:
		n.told.say("service_stopped", []note{x}, Facts{"time": when(x.time), "reason": d.Reason}, "The service was stopped at %s.", when(x.time))
	case domain.PeerExited:
		if d.At == n.at {
			n.told.say("peer_ended", []note{x}, Facts{"peer": d.Peer, "incarnation": d.Incarnation, "cause": d.Cause, "status": d.Status, "signal": d.Signal, "time": when(x.time)},
				"Incarnation %d of peer %s ended at %s: %s.", d.Incarnation, d.Peer, when(x.time), exitText(d))
		}
	case domain.PeerAbandoned:
		if d.At == n.at {
			n.told.say("peer_abandoned", []note{x}, Facts{"peer": d.Peer, "code": d.Code, "reason": d.Reason}, "The service gave up incarnation %d of peer %s: %s", d.Incarnation, d.Peer, stop(d.Reason))
		}
	}
}

// finish says how the call stands where it has no end.
func (n *narrator) finish() {
	if n.outcome.Kind != "" && !n.waiting {
		n.tellJoiners()
		n.others()
		return
	}
	n.outcome = Outcome{Kind: UnderWay, Seq: n.last.seq}
	n.told.section = sectionEnd
	n.told.say("no_end", []note{n.last}, Facts{}, "The log holds no end of the call: as far as it goes, the call is under way.")
	n.tellJoiners()
	n.others()
}

// others says that the id was used for other calls, too.
func (n *narrator) others() {
	var rests []note
	for _, s := range n.found.other {
		rests = append(rests, note{seq: s.first})
	}
	if len(rests) == 0 {
		return
	}
	n.told.section = sectionAfter
	n.told.say("other_submissions", rests[:min(len(rests), 20)], Facts{"count": len(rests)},
		"Under the same id this host submitted %s, which this explanation does not tell of: name them by the seqs.", counted(len(rests), "other call", "other calls"))
}

// erasures finds the events that erased what was kept of the call.
func (n *narrator) erasures(ctx context.Context, src replay.Source) error {
	if !n.asked.Kept {
		return nil
	}
	found := false // what is erased once is gone
	return columns(ctx, src, n.begun.Seq, func(r replay.Record) error {
		if found || r.Type != (domain.PayloadsErased{}).Kind() {
			return nil
		}
		_, e, err := events.Open(r.Bytes)
		if err != nil {
			return &replay.AlteredError{Seq: r.Seq, What: err.Error()}
		}
		d, ok := e.Data.(domain.PayloadsErased)
		if !ok || !d.Covers(n.begun) {
			return nil
		}
		found = true
		by := "operator " + word(d.By)
		switch {
		case d.By == "" && d.Outcomes:
			by = "idempotency_window of the configuration"
		case d.By == "":
			by = "payload_retention of the configuration"
		}
		n.told.section = sectionAfter
		n.told.say("erased", []note{noteOf(e)}, Facts{"by": d.By, "time": when(e.Time)},
			"What was kept of the call's bytes was erased at %s, on the word of %s, with the key under which its events name them.", when(e.Time), by)
		return nil
	})
}
