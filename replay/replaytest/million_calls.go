package replaytest

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

var millionCapabilities = jsontext.Value(`{"elicitation":{"form":{},"url":{}}}`)

// submitOne is a call of one of the hosts. Most name a tool that exists.
func (m *million) submitOne() {
	m.census.Calls++
	id := fmt.Sprintf("%08x-%d", m.chance.next()>>32, m.census.Calls)
	host := pick(&m.chance, millionHosts).Name
	d := domain.CallReceived{CallID: domain.CallID{Host: host, ID: id}, Context: m.State.Config.ContextOf(host),
		Tool: m.tool(host), Arguments: payload(id)}
	d.Kept = m.State.Keeps(d)
	if m.chance.in(300) {
		d.Capabilities, d.Progress = millionCapabilities, true
	}
	switch n := m.chance.below(1_000); {
	case n < 100:
		d.Wait = 2_000
	case n < 110:
		d.Generation = 1
	case n < 115:
		d.Generation = 1 << 40
	case n < 125:
		d.Context = "nowhere"
	case n < 130:
		d.Problem = "arguments are no object"
	}
	keyed := m.chance.in(10) && d.Problem == ""
	if keyed {
		d.Key, d.Same = payload("key of "+id).HMAC, payload("same as "+id).HMAC
		d.OutcomeOnly = m.State.KeepsOutcome(d)
		d.Kept = d.Kept || d.OutcomeOnly
	}
	m.observe(d, nil)
	if keyed && m.chance.in(500) {
		again := d
		again.ID, again.DuplicateOf, again.Kept, again.OutcomeOnly = domain.GeneratedPrefix+id, id, false, false
		m.observe(again, nil)
	}
	if m.chance.in(10) && m.byCall[d.CallKey()] == nil { // under an id that may be taken by now
		m.observe(d, nil)
	}
}

// tool is mostly one that the host has been told of.
func (m *million) tool(host string) string {
	if _, told := m.names[host]; !told {
		m.names[host] = nil
		for _, t := range m.State.ToolsFor(host, "", 1_000, m.mono).Tools {
			m.names[host] = append(m.names[host], t.Canonical)
		}
	}
	switch n := m.chance.below(100); {
	case n < 1:
		return "nosuch"
	case n < 2:
		return pick(&m.chance, shared) // which may have no owner
	case n < 3 || len(m.names[host]) == 0:
		return pick(&m.chance, crew).name + "_" + pick(&m.chance, verbs)
	}
	return pick(&m.chance, m.names[host])
}

// endOne is what comes of a call that is under way.
func (m *million) endOne(f *flight) {
	switch n := m.chance.below(1_000); {
	case f.heldBy != 0:
		if n < 100 {
			m.observe(domain.CallCancelled{CallID: f.received.CallID, By: "host"}, nil)
		}
	case m.mono-f.since > 60_000_000_000 || n < 10:
		m.observe(domain.DeadlinePassed{At: f.at, RequestID: f.request, Call: f.received.CallKey(), Silent: m.chance.in(200)}, nil)
	case n < 25:
		m.observe(domain.CallCancelled{CallID: f.received.CallID, By: "host"}, nil)
	case n < 40 && m.peers[f.at.Peer].HTTP:
		m.observe(domain.ExchangeFailed{At: f.at, RequestID: f.request, Call: f.received.CallKey(), Written: "maybe", Code: domain.CodeHTTPStatus,
			Status: 500, Reason: "no message in it"}, nil)
	default:
		m.answerSomehow(f, n)
	}
}

func (m *million) answerSomehow(f *flight, n int) {
	state := payload(fmt.Sprint("state of ", f.request))
	failed := func(code int64) domain.Facts { return domain.Facts{Kind: domain.FactError, ErrorCode: code} }
	switch modern := m.peers[f.at.Peer].Modern; {
	case n < 120:
		m.answer(f, ToolError, nil)
	case n < 140:
		m.answer(f, failed(-32603), nil)
	case n < 155:
		m.answer(f, failed(-32602), nil)
	case n < 170 && modern:
		m.answer(f, failed(-32020), nil)
	case n < 185 && modern:
		m.answer(f, unversion, nil)
	case n < 215 && modern:
		m.answer(f, asks, &state)
	case n < 235 && modern:
		m.answer(f, states, &state)
	default:
		facts := Complete
		if !modern {
			facts.ResultType = ""
		}
		m.answer(f, facts, nil)
	}
}

func (m *million) answer(f *flight, facts domain.Facts, state *domain.Payload) {
	m.observe(domain.CallAnswered{CallID: f.received.CallID, At: f.at, RequestID: f.request, Result: payload("of " + f.received.ID),
		RequestState: state, Facts: facts}, nil)
	if state != nil && f.status == domain.StatusInputRequired {
		f.received.RequestState = state
	}
}

// lateAnswer is one to a call that has ended.
func (m *million) lateAnswer() {
	if len(m.late) > 0 {
		f := m.late[len(m.late)-1]
		m.late = m.late[:len(m.late)-1]
		m.observe(domain.CallAnswered{CallID: f.received.CallID, At: f.at, RequestID: f.request, Result: payload("late"), Facts: Complete}, nil)
	}
}

// resume goes on with a call that asked for input.
func (m *million) resume() {
	if len(m.paused) == 0 {
		return
	}
	f := m.paused[0]
	m.paused = m.paused[1:]
	input := payload("input of " + f.received.ID)
	f.received.Input = &input
	if !m.State.Continues(m.now, m.mono, f.received) {
		return
	}
	m.byCall[f.received.CallKey()] = f
	m.observe(f.received, nil)
}

// operate is an operator's command.
func (m *million) operate() {
	d := domain.OperatorCommanded{By: "oncall"}
	switch n := m.chance.below(10); {
	case n < 3:
		d.Verb, d.Peer = domain.VerbRevive, pick(&m.chance, m.crew).name
	case n < 4:
		d.Verb, d.Host, d.Calls = domain.VerbErase, pick(&m.chance, millionHosts).Name, int64(m.chance.below(9))
	case len(m.ended) > 0:
		f := pick(&m.chance, m.ended)
		d.Verb, d.Call, d.Arguments = domain.VerbResend, f.received.CallKey(), &f.received.Arguments
	default:
		return
	}
	m.observe(d, nil)
}

// approve lets tools be routed again that have changed.
func (m *million) approve() {
	if len(m.quarantined) == 0 {
		return
	}
	d := m.quarantined[0]
	m.quarantined = m.quarantined[1:]
	context := d.Context
	if context == "" {
		context = domain.DefaultContext
	}
	m.observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbApprove, Tool: d.Local, Context: context, Digest: d.To}, nil)
}
