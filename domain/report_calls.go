package domain

import "strings"

// CallReport is a call that is under way. Its JSON form is a contract.
type CallReport struct {
	Call        string `json:"call"` // key: host/call_id
	Host        string `json:"host"`
	Seq         int64  `json:"seq"`  // of its first event
	Tool        string `json:"tool"` // as its host named it
	State       string `json:"state"`
	Peer        string `json:"peer,omitempty"` // "" where no peer was chosen yet
	Local       string `json:"local,omitempty"`
	Incarnation int64  `json:"incarnation,omitempty"`
	RequestID   int64  `json:"request_id,omitempty"`
	Attempts    int    `json:"attempts"`
	Context     string `json:"context"`
}

// Calls lists the calls under way, in the order of their routing: those whose request
// waits for its answer are sent, the others held.
func (s *State) Calls() []CallReport {
	out := []CallReport{}
	for _, c := range s.unended() {
		r := CallReport{Call: c.id.CallKey(), Seq: c.seq, Tool: c.received.Tool, State: "sent", Peer: c.owner.Peer, Local: c.owner.Local,
			Incarnation: c.at.Incarnation, RequestID: c.reqID, Attempts: c.attempts, Context: contextKey(c.received.Context)}
		if c.story != 0 {
			r.Seq = c.story
		}
		r.Host, _, _ = strings.Cut(r.Call, "/")
		if c.held != nil {
			r.State, r.RequestID = "held", 0
		}
		out = append(out, r)
	}
	return out
}
