package replaytest

import "waybill/domain"

// Keys is a log of calls under idempotency keys: repeated while the first is under
// way, after its end, after a crash and after its outcome was erased; refused, held,
// expired; and of calls that say where they belong in what their host is doing.
func Keys() *Log {
	w := NewWorld()
	w.keysOfOneLife()
	w.keysOfAnother()
	return Make(w.Events)
}

func keysConfig() domain.Config {
	c := fireConfig()
	c.Idempotency = 600_000
	return c
}

func keysPeers() map[string]*Peer {
	return map[string]*Peer{
		"notes": {Modern: true, Pages: [][]string{{"search", "add"}}},
		"wiki":  {Modern: true, Pages: [][]string{{"page"}}},
	}
}

// keyed is a call under a key, of which only the outcome is kept. What is the same
// call is told by a word.
func (w *World) keyed(id, tool, key, same string, change ...func(*domain.CallReceived)) {
	w.submit(id, tool, func(d *domain.CallReceived) {
		d.Arguments.Size = int64(len(same))
		d.Key, d.Same = payload("key "+key).HMAC, payload("same "+same).HMAC
		for _, f := range change {
			f(d)
		}
	})
}

func outcomeOnly(d *domain.CallReceived) { d.Kept, d.OutcomeOnly = true, true }

func (w *World) keysOfOneLife() {
	w.Start(keysConfig(), keysPeers())
	w.keyed("nothing", "nosuch", "one", "nothing", outcomeOnly)
	w.keyed("first", "search", "one", "search", outcomeOnly, func(d *domain.CallReceived) {
		d.Trace = domain.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "rojo=00f067aa0ba902b7"}
	})
	w.keyed("again", "search", "one", "search")
	w.Answer("first", Complete)
	w.keyed("wb-retry", "search", "one", "search", func(d *domain.CallReceived) { d.DuplicateOf = "first" })
	w.keyed("other", "search", "one", "other")
	w.peers["notes"].Missing = true
	w.Call("breaks", "add", 0)
	w.Lose("breaks")
	w.keyed("held", "add", "two", "add", outcomeOnly, func(d *domain.CallReceived) { d.Wait = 5_000 })
	w.keyed("waits", "add", "two", "add")
	w.Observe(domain.WaitPassed{CallID: callID("held")}, nil)
	w.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbErase, Call: "local/first", Calls: 1}, nil)
	w.keyed("erased", "search", "one", "search")
	w.keyed("crossing", "page", "three", "page", outcomeOnly)
	w.keyed("crosses", "page", "three", "page")
}

// keysOfAnother begins behind a crash.
func (w *World) keysOfAnother() {
	w.Start(keysConfig(), keysPeers())
	w.keyed("lost", "page", "three", "page")
	right := domain.Payload{Size: int64(len("page")), HMAC: payload("crossing").HMAC}
	w.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbResend, Call: "local/crossing", Arguments: &right}, nil)
	w.keyed("resent", "page", "three", "page")
	w.Answer("crossing", Complete)
	w.keyed("late", "add", "two", "add", outcomeOnly)
	w.Answer("late", ToolError)
	w.Pass(600_000)
	w.keyed("expired", "page", "three", "page")
	w.Observe(domain.RetentionPassed{Calls: 2, Outcomes: true}, nil)
	w.Observe(domain.ServiceStopped{Reason: "interrupt"}, nil)
	w.keyed("stopped", "add", "two", "add")
}
