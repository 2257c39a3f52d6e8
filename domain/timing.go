package domain

import "github.com/go-json-experiment/json/jsontext"

// timing says how long one exchange of a call may take, in milliseconds.
type timing struct {
	deadline int64 // without an answer or progress
	idle     int64 // after progress; 0 where progress extends nothing
	limit    int64 // in all
	progress bool  // a progressToken goes with it
}

// timing joins what the host asked for with what the peer is configured for. A
// progressToken is sent where somebody listens or where progress buys time
// (specification, basic/patterns/progress and cancellation, "Timeouts").
func (p *Peer) timing(d CallReceived) timing {
	t := timing{deadline: d.Timeout, limit: d.Limit, progress: d.Progress}
	if t.deadline == 0 {
		t.deadline = p.Config.CallTimeout
	}
	if t.limit == 0 {
		t.limit = p.Config.CallLimit
	}
	if d.Limit != 0 {
		t.deadline = min(t.deadline, d.Limit)
	}
	if most := p.Config.CallLimit; most != 0 { // the operator's, whatever the host asks for
		t.deadline, t.limit = min(t.deadline, most), min(t.limit, most)
	}
	if t.limit <= t.deadline {
		t.limit = 0
		return t
	}
	t.progress = true
	t.idle = p.Config.IdleTimeout
	if t.idle == 0 {
		t.idle = t.deadline
	}
	return t
}

// within shortens a timing to what is left of an earlier one, in milliseconds.
func (t timing) within(left int64) timing {
	t.deadline = min(t.deadline, left)
	if t.limit = min(t.limit, left); t.limit <= t.deadline {
		t.limit, t.idle = 0, 0
	}
	return t
}

// declared are the capabilities a call carries: what the host says it can do, as
// far as capabilities: of the peer allows it. A host that says nothing is taken
// to be able to do what the probe declared. The legacy era declares them once,
// in initialize.
func (p *Peer) declared(d CallReceived) jsontext.Value {
	if d.Capabilities == nil || p.Era != EraModern {
		return p.capabilities
	}
	return commonCapabilities(d.Capabilities, p.Config.Capabilities)
}

// commonCapabilities keeps what both sides hold, in the order of allowed.
func commonCapabilities(said, allowed jsontext.Value) jsontext.Value {
	out := []byte("{")
	have := object(said)
	_ = members(allowed, func(key string, a jsontext.Value) {
		h, ok := have[key]
		if !ok {
			return
		}
		if key == "elicitation" {
			h, a = withModes(h), withModes(a)
		}
		v := commonValue(h, a)
		if v == nil || key == "elicitation" && len(object(v)) == 0 {
			return
		}
		out = appendMember(out, key, v)
	})
	return append(out, '}')
}

// commonValue is what two values of one capability have in common; nil for
// nothing.
func commonValue(said, allowed jsontext.Value) jsontext.Value {
	if isObject(said) && isObject(allowed) {
		have := object(said)
		out := []byte("{")
		_ = members(allowed, func(key string, a jsontext.Value) {
			if h, ok := have[key]; ok {
				if v := commonValue(h, a); v != nil {
					out = appendMember(out, key, v)
				}
			}
		})
		return append(out, '}')
	}
	if string(said) == string(allowed) {
		return allowed
	}
	return nil
}

// withModes spells out an elicitation that names no mode: it stands for forms
// (specification, client/elicitation).
func withModes(v jsontext.Value) jsontext.Value {
	if m := object(v); m != nil && len(m) == 0 {
		return jsontext.Value(`{"form":{}}`)
	}
	return v
}

// appendMember appends a member to the open object in b.
func appendMember(b []byte, key string, v jsontext.Value) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b, _ = jsontext.AppendQuote(b, key) // a key of parsed JSON can be quoted
	return append(append(b, ':'), v...)
}
