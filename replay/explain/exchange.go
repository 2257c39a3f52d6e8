package explain

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

// tellRouted tells how a call found its peer, and what was sent.
func (n *narrator) tellRouted(x note, d domain.CallRouted) {
	n.sent[d.RequestID], n.at, n.waiting = x, d.At, true
	n.told.section = sectionName
	if n.asked.Form == domain.ModelForm {
		n.told.say("model_name", []note{x}, Facts{"model_name": n.asked.Tool, "name": d.Tool}, "The model_name %s stands for the name %s.", word(n.asked.Tool), word(d.Tool))
	}
	n.tellName(&n.told, n.asked.Context, d.Tool, domain.Owner{Peer: d.Peer, Local: d.Local}, x)
	n.tellList(x, d)
	n.tellPeer(d.At)
	n.told.section = sectionExchange
	facts := sentFacts(d.At, d.RequestID, d.Local, d.Version, d.Context, d.Capabilities, d.Deadline, d.Idle, d.Limit)
	facts["size"], facts["hmac"] = n.asked.Arguments.Size, n.asked.Arguments.HMAC
	n.told.say("sent", []note{x}, facts, "At %s the call was given to peer %s as request %d: tools/call of %s at version %s in context %s, with the client capabilities %s. It had %s.",
		when(x.time), d.Peer, d.RequestID, word(d.Local), word(d.Version), contextOf(d.Context), short(d.Capabilities), timeText(d.Deadline, d.Idle, d.Limit))
}

func sentFacts(at domain.At, request int64, local, version, context string, capabilities jsontext.Value, deadline, idle, limit int64) Facts {
	return Facts{"peer": at.Peer, "incarnation": at.Incarnation, "request": request, "local": local, "version": version, "context": contextOf(context),
		"capabilities": capabilities, "deadline_ms": deadline, "idle_ms": idle, "limit_ms": limit}
}

func timeText(deadline, idle, limit int64) string {
	out := fmt.Sprintf("%d ms for its answer", deadline)
	if idle != 0 {
		out += fmt.Sprintf(", %d ms more after each sign of progress", idle)
	}
	if limit != 0 {
		out += fmt.Sprintf(", and %d ms in all", limit)
	}
	return out
}

// short keeps a sentence readable where somebody else chose how long a value is; the
// facts have the whole.
func short(v jsontext.Value) string {
	if len(v) == 0 {
		return "{}"
	}
	return cut(string(v), 300)
}

func (n *narrator) tellHeld(x note, d domain.CallHeld) {
	n.waiting = true
	n.told.section = sectionExchange
	facts := Facts{"peer": d.Peer, "code": d.Code, "rule": d.Rule, "wait_ms": d.Wait, "ran": d.Ran, "time": when(x.time)}
	then := "to be sent when it can be"
	if d.Rule != "" {
		then = fmt.Sprintf("to be sent again by the rule %s", word(d.Rule))
	}
	n.told.say("held", []note{x}, facts, "At %s the call was held for at most %d ms, %s: %s (%s).", when(x.time), d.Wait, then, codeText(d.Code), word(string(d.Code)))
	if d.Peer != "" && d.Rule == "" {
		n.tellDown(&n.told, d.Peer, n.asked.Context)
	}
	n.at.Peer = d.Peer
}

func (n *narrator) tellResent(x note, d domain.CallResent) {
	rests := []note{x}
	words := ruleWords[d.Rule]
	authority := words[1]
	switch d.Rule {
	case domain.RuleOperator:
		authority, rests = "operator "+word(d.By), append(rests, n.command)
	case domain.RuleInput:
		authority, rests = "host "+word(d.By), append(rests, n.input)
	default:
		rests = append(rests, n.config)
	}
	n.tellPeer(d.At)
	n.sent[d.RequestID], n.at, n.waiting, n.proof = x, d.At, true, note{}
	n.told.section = sectionExchange
	facts := sentFacts(d.At, d.RequestID, d.Local, d.Version, d.Context, d.Capabilities, d.Deadline, d.Idle, d.Limit)
	facts["after"], facts["attempt"], facts["rule"], facts["by"], facts["time"] = d.After, d.Attempt, d.Rule, d.By, when(x.time)
	n.told.say("resent", rests, facts, "At %s the call was sent again, to peer %s in its incarnation %d, as request %d after request %d: %s. That is the rule %s; the authority for it is %s. It was exchange %d of the call, and had %s.",
		when(x.time), d.Peer, d.Incarnation, d.RequestID, d.After, words[0], word(d.Rule), authority, d.Attempt, timeText(d.Deadline, d.Idle, d.Limit))
}

// tellExchange tells what became of a request.
func (n *narrator) tellExchange(x note) {
	n.told.section = sectionExchange
	switch x.data.(type) {
	case domain.CallAnswered, domain.ExchangeFailed, domain.DeadlinePassed:
		n.proof = x
	}
	switch d := x.data.(type) {
	case domain.CallAnswered:
		n.tellAnswered(x, d)
	case domain.ExchangeFailed:
		n.tellFailed(x, d)
	case domain.DeadlinePassed:
		silent := ""
		if d.Silent {
			silent = ", and the peer had written nothing at all since"
		}
		n.told.say("deadline", []note{x}, Facts{"request": d.RequestID, "silent": d.Silent, "written": d.Written, "time": when(x.time)},
			"At %s the time for an answer to request %d was over%s.", when(x.time), d.RequestID, silent)
	case domain.CallCancelled:
		n.told.say("cancelled", []note{x}, Facts{"by": d.By, "time": when(x.time)}, "At %s the call was cancelled by the %s.", when(x.time), word(d.By))
	case domain.CallAbandoned:
		n.told.say("abandoned", []note{x}, Facts{"request": d.RequestID, "reason": d.Reason}, "The service gave up waiting for request %d and told the peer so: %s", d.RequestID, stop(d.Reason))
	case domain.WaitPassed:
		n.told.say("wait_passed", []note{x}, Facts{"time": when(x.time)}, "At %s the time was over for which the call could be held.", when(x.time))
	case domain.AnswerDropped:
		n.told.section = sectionAfter
		n.told.say("dropped", []note{x}, Facts{"request": d.RequestID, "reason": d.Reason}, "What came of request %d after its end was dropped, and changed nothing: %s", d.RequestID, stop(d.Reason))
	}
}

// took is how long a request had been under way, in milliseconds; false where that
// cannot be known.
func (n *narrator) took(x note, request int64) (int64, bool) {
	s := n.sent[request]
	return (x.mono - s.mono) / 1_000_000, s.seq > n.life.seq
}

func (n *narrator) tellAnswered(x note, d domain.CallAnswered) {
	facts := Facts{"request": d.RequestID, "size": d.Result.Size, "hmac": d.Result.HMAC, "facts": d.Facts, "time": when(x.time)}
	after := ""
	if ms, ok := n.took(x, d.RequestID); ok {
		after, facts["after_ms"] = fmt.Sprintf(", %d ms after it was sent,", ms), ms
	}
	more := ""
	switch d.Facts.Schema {
	case "valid":
		more = " It matched the tool's outputSchema."
	case domain.SchemaInvalid:
		more = " It did not match the tool's outputSchema."
	}
	n.told.say("answered", []note{x}, facts, "At %s%s peer %s answered request %d with %s: %d bytes with the keyed digest %s.%s",
		when(x.time), after, d.Peer, d.RequestID, factsText(d.Facts), d.Result.Size, brief(d.Result.HMAC), more)
	if d.RequestState != nil {
		n.told.say("state", []note{x}, Facts{"size": d.RequestState.Size, "hmac": d.RequestState.HMAC},
			"With it came a requestState of %d bytes with the keyed digest %s, to be brought back.", d.RequestState.Size, brief(d.RequestState.HMAC))
	}
}

func (n *narrator) tellFailed(x note, d domain.ExchangeFailed) {
	reach := "it may have reached the peer"
	if d.Written == "no" {
		reach = "it certainly did not reach the peer"
	}
	facts := Facts{"request": d.RequestID, "code": d.Code, "written": d.Written, "status": d.Status, "reason": d.Reason, "time": when(x.time)}
	how := "will have no answer"
	if d.Status != 0 {
		how = fmt.Sprintf("was answered with HTTP %d and no message", d.Status)
	}
	reason := ""
	if d.Reason != "" {
		reason = " What was there: " + stop(d.Reason)
	}
	n.told.say("failed", []note{x}, facts, "At %s request %d %s: %s (%s); %s.%s", when(x.time), d.RequestID, how, codeText(d.Code), word(string(d.Code)), reach, reason)
}

func (n *narrator) tellSettled(x note, d domain.CallSettled) {
	n.waiting = false
	n.outcome = Outcome{Kind: Settled, Seq: x.seq, Status: d.Status, Code: d.Code, Ran: d.Ran}
	n.told.section = sectionEnd
	why := ""
	if d.Code != "" && string(d.Code) != string(d.Status) {
		why = fmt.Sprintf(", because %s (%s)", codeText(d.Code), word(string(d.Code)))
	}
	n.told.say("settled", []note{x}, Facts{"status": d.Status, "code": d.Code, "ran": d.Ran, "time": when(x.time)},
		"At %s the call ended as %s%s.", when(x.time), statusText(d.Status), why)
	n.told.say("ran", []note{n.proof, x}, Facts{"ran": d.Ran}, "%s: %s.", ranWords[d.Ran], n.ranText(d))
}

// ranText says from what it follows whether the tool ran.
func (n *narrator) ranText(d domain.CallSettled) string {
	switch x := n.proof.data.(type) {
	case domain.CallAnswered:
		return answerRan(d, x.Facts)
	case domain.ExchangeFailed:
		switch {
		case d.Ran == domain.RanNo && x.Written == "no":
			return "its request certainly never reached the peer"
		case d.Ran == domain.RanNo:
			return "the endpoint turned its request away before it could run"
		}
		return "a request may have reached the peer, and there was no answer to it"
	case domain.DeadlinePassed:
		if d.Ran == domain.RanNo {
			return "its request certainly never reached the peer"
		}
		return "a request was sent, and there was no answer to it in time"
	}
	if len(n.sent) == 0 {
		return "no request had been sent"
	}
	return "a request had been sent, and had no answer"
}

func answerRan(d domain.CallSettled, f domain.Facts) string {
	switch {
	case d.Ran == domain.RanYes:
		return "the peer answered with its result"
	case d.Ran == domain.RanNo:
		return fmt.Sprintf("the peer rejected the request before it ran it (%d)", f.ErrorCode)
	case f.Kind == domain.FactError:
		return "an error does not say whether the tool had begun, or an exchange before may have run it"
	}
	return "the peer's answer does not say"
}
