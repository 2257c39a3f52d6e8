package explain

import (
	"fmt"
	"strings"

	"waybill/domain"
)

// Sections of an explanation, in the order in which they come first.
const (
	sectionRequest  = "request"
	sectionName     = "name"
	sectionList     = "list"
	sectionPeer     = "peer"
	sectionExchange = "exchange"
	sectionRefusal  = "refusal"
	sectionEnd      = "end"
	sectionAfter    = "afterwards"
)

func (n *narrator) tellReceived(x note, d domain.CallReceived, e domain.Event, earlier callBook) {
	if n.begun.Seq != 0 {
		n.tellInput(x, d)
		return
	}
	e.Evidence = nil
	n.asked, n.begun, n.waiting = d, e, true
	n.told.section = sectionRequest
	form := ""
	if d.Form == domain.ModelForm {
		form = ", by its model_name"
	}
	n.told.say("asked", []note{x}, Facts{"host": d.Host, "call_id": d.ID, "tool": d.Tool, "form": d.Form, "context": contextOf(d.Context), "time": when(x.time)},
		"Host %s asked for the tool %s%s at %s, under the call id %s, in the authorization context %s.", word(d.Host), word(d.Tool), form, when(x.time), word(d.ID), contextOf(d.Context))
	if d.DuplicateOf != "" {
		n.told.say("renamed", []note{x}, Facts{"duplicate_of": d.DuplicateOf}, "The host had named it %s, which was taken; the service chose the id.", word(d.DuplicateOf))
	}
	n.tellLimits(x, d)
	n.tellBytes(x, d)
	n.tellKey(x, d)
	n.prior = earlier
}

func (n *narrator) tellLimits(x note, d domain.CallReceived) {
	var set []string
	for _, l := range []struct {
		value int64
		words string
	}{
		{d.Timeout, "it gives %d ms for the answer"}, {d.Limit, "%d ms in all, however much progress there is"},
		{d.Wait, "it waits up to %d ms for a peer that is not there"}, {d.Generation, "it had read the names of generation %d"},
	} {
		if l.value != 0 {
			set = append(set, fmt.Sprintf(l.words, l.value))
		}
	}
	facts := Facts{"timeout_ms": d.Timeout, "limit_ms": d.Limit, "wait_ms": d.Wait, "generation": d.Generation, "progress": d.Progress}
	if d.Capabilities != nil {
		facts["capabilities"] = d.Capabilities
	}
	if len(set) == 0 {
		n.told.say("limits", []note{x}, facts, "It set no limits of its own and named no generation of the names.")
		return
	}
	n.told.say("limits", []note{x}, facts, "It said of itself: %s.", strings.Join(set, "; "))
}

func (n *narrator) tellBytes(x note, d domain.CallReceived) {
	kept := "the bytes themselves are not kept"
	switch {
	case d.OutcomeOnly:
		kept = "the bytes themselves are not kept, and what its peer answers is, under a key of this call's own, for idempotency_window"
	case d.Kept:
		kept = "the bytes were kept beside the log, under a key of this call's own"
	}
	n.told.say("arguments", []note{x}, Facts{"size": d.Arguments.Size, "hmac": d.Arguments.HMAC, "kept": d.Kept, "outcome_only": d.OutcomeOnly, "carries_key": d.CarriesKey},
		"Its arguments were %d bytes with the keyed digest %s; %s.", d.Arguments.Size, brief(d.Arguments.HMAC), kept)
}

// tellKey tells of what a submission says besides: its idempotency key, of which the log
// has a digest, and where it belongs in what its host is doing.
func (n *narrator) tellKey(x note, d domain.CallReceived) {
	if d.Key != "" {
		n.told.say("key", []note{x}, Facts{"key": d.Key, "call": d.Same},
			"It came under an idempotency key, with the keyed digest %s; the same call has the digest %s under it.", brief(d.Key), brief(d.Same))
	}
	if trace := d.Trace; trace.Parent != "" {
		n.told.say("trace", []note{x}, Facts{"traceparent": trace.Parent, "tracestate": trace.State},
			"The host said where it belongs: traceparent %s, which goes to the peer with it.", word(trace.Parent))
	}
}

// brief is the beginning of a digest, enough to know it by; the facts have the whole.
func brief(digest string) string {
	switch {
	case digest == "":
		return "(none)"
	case len(digest) <= 12:
		return word(digest)
	}
	return word(digest[:12])
}

// tellInput tells of a submission that goes on with the call.
func (n *narrator) tellInput(x note, d domain.CallReceived) {
	n.input = x
	n.told.section = sectionExchange
	facts := Facts{"time": when(x.time)}
	if trace := d.Trace; trace.Parent != "" {
		facts["traceparent"], facts["tracestate"] = trace.Parent, trace.State
	}
	var brought []string
	if d.Input != nil {
		facts["input_size"], facts["input_hmac"] = d.Input.Size, d.Input.HMAC
		brought = append(brought, fmt.Sprintf("answers to what the tool had asked for (%d bytes, keyed digest %s)", d.Input.Size, brief(d.Input.HMAC)))
	}
	if d.RequestState != nil {
		facts["state_size"], facts["state_hmac"] = d.RequestState.Size, d.RequestState.HMAC
		brought = append(brought, fmt.Sprintf("the requestState (%d bytes, keyed digest %s)", d.RequestState.Size, brief(d.RequestState.HMAC)))
	}
	n.told.say("input", []note{x}, facts, "The host went on with the call at %s: it brought %s.", when(x.time), strings.Join(brought, " and "))
}

func (n *narrator) tellCommand(x note, d domain.OperatorCommanded) {
	n.told.section = sectionAfter
	if d.Verb == domain.VerbResend {
		n.told.section = sectionExchange
	}
	facts := Facts{"by": d.By, "verb": d.Verb, "time": when(x.time)}
	if d.Arguments != nil {
		facts["size"], facts["hmac"] = d.Arguments.Size, d.Arguments.HMAC
	}
	n.told.say("command", []note{x}, facts, "Operator %s ordered at %s: %s this call.", word(d.By), when(x.time), word(d.Verb))
}
