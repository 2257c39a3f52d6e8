package replaytest

import "waybill/domain"

// Kept is a log of calls whose payloads are kept, and erased: by an operator, in
// each way, also while the service is stopped, and because their time was over.
func Kept() *Log {
	w := NewWorld()
	c := fireConfig()
	c.Retention = 1
	for i := range c.Peers {
		c.Peers[i].Keep = true
	}
	w.Start(c, map[string]*Peer{
		"notes": {Modern: true, Pages: [][]string{{"search", "add"}}},
		"wiki":  {Modern: true, Pages: [][]string{{"page"}}},
	})
	keep := func(d *domain.CallReceived) { d.Kept = true }
	w.submit("first", "search", keep)
	w.Answer("first", Complete)
	w.submit("asks", "search", func(d *domain.CallReceived) { d.Kept, d.Capabilities = true, []byte(`{"elicitation":{}}`) })
	state, input := payload("state"), payload("input")
	w.answerState("asks", asks, &state)
	w.submit("hung", "add", keep)
	w.Expire("hung")
	w.submit("under", "add", keep)
	w.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbErase, Call: "local/hung", Calls: 1}, nil)
	right := payload("hung")
	w.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbResend, Call: "local/hung", Arguments: &right}, nil)
	w.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbErase, Host: "local", Calls: 3}, nil)
	w.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbErase}, nil)
	w.submit("wb-late", "search", func(d *domain.CallReceived) {
		d.DuplicateOf, d.Input, d.RequestState, d.Arguments = "asks", &input, &state, payload("asks")
	})
	w.Answer("under", Complete)
	w.submit("second", "page", keep)
	w.Answer("second", Complete)
	w.Observe(domain.RetentionPassed{Calls: 1}, nil)
	w.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbErase, OlderThan: 1, Calls: 1}, nil)
	w.Observe(domain.ServiceStopped{Reason: "interrupt"}, nil)
	w.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbErase, Host: "local"}, nil)
	w.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbRevive, Peer: "notes"}, nil) // there is nobody
	return Make(w.Events)
}
