package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
	"waybill/store"
	"waybill/store/payloads"
)

const theKey = "order-4711-of-ann"

// keyedCall is a submission under theKey.
func keyedCall(more string) string {
	return `{"tool":"notes","arguments":{"canary":"of the arguments"},"idempotency_key":"` + theKey + `"` + more + `}`
}

// wantJoined checks the reply of a submission that got the outcome of another.
func (s *keptSim) wantJoined(got <-chan Reply, first Reply) Reply {
	s.t.Helper()
	r := s.reply(got)
	joined := find[domain.CallJoined](s.events())
	if r.Joined == 0 || s.events()[r.Joined-1].Data != domain.Data(joined[len(joined)-1]) {
		s.t.Errorf("the reply names event %d, of %+v", r.Joined, joined)
	}
	if string(r.Result) != string(first.Result) || string(r.Error) != string(first.Error) {
		s.t.Errorf("the result is %s, want %s", r.Result, first.Result)
	}
	first.Joined = r.Joined
	if string(r.Encode()) != string(first.Encode()) {
		s.t.Errorf("the reply is\n%s, want\n%s", r.Encode(), first.Encode())
	}
	return r
}

// TestARepeatedCallHasTheFirstOutcome: while the first is under way, after it has
// ended, and after a restart of the service; nothing is kept but what was answered.
func TestARepeatedCallHasTheFirstOutcome(t *testing.T) {
	dir := filepath.Dir(newLogFile(t))
	synctest.Test(t, func(t *testing.T) {
		s := startKept(t, dir, nil)
		one := s.submit("local", keyedCall(`,"call_id":"a"`))
		x := s.sent(0)
		two, three := s.submit("local", keyedCall(`,"call_id":"a"`)), s.submit("local", keyedCall(`,"call_id":"b","timeout_ms":5`))
		s.sent(0)
		s.finish(x, `{ "n" : 1.0 }`)
		first := s.wantReply(one, domain.StatusComplete, "", domain.RanYes)
		if first.CallID != "a" || first.Joined != 0 {
			t.Errorf("the first reply is %s", first.Encode())
		}
		if r := s.reply(two); r.CallID != "a" || r.Joined == 0 || string(r.Result) != `{ "n" : 1.0 }` || !slices.Equal(r.Seqs, first.Seqs) {
			t.Errorf("the second reply is %s", r.Encode())
		}
		s.wantJoined(three, first)
		s.wantJoined(s.submit("local", keyedCall(``)), first)
		s.wantStory("local/a", "call.received", "call.routed", "call.answered", "call.settled")
		s.wantStory("local/b", "call.received", "call.joined")
		s.wantResult("b", `{ "n" : 1.0 }`)
		if r := s.outcome("b"); r.CallID != "a" || r.Joined == 0 {
			t.Errorf("the outcome of what joined is %s", r.Encode())
		}
		s.quit()
		noErr(t, s.payloads.Close())
		s = startKept(t, dir, nil)
		s.wantJoined(s.submit("local", keyedCall(``)), first)
		s.onlyTheOutcomeIsKept()
		s.end()
		audit(t, s.disk)
	})
}

func (s *keptSim) onlyTheOutcomeIsKept() {
	s.t.Helper()
	all := s.files()
	for _, word := range []string{theKey, "canary", "of the arguments"} {
		if bytes.Contains(all, []byte(word)) {
			s.t.Errorf("%q is in a file", word)
		}
	}
	for _, e := range s.events() {
		d, ok := e.Data.(domain.CallReceived)
		if _, kept, err := s.payloads.Read(s.t.Context(), e.Seq, payloads.Arguments); kept || err != nil {
			s.t.Errorf("the arguments of event %d are kept, %v", e.Seq, err)
		}
		if ok && (len(d.Key) != 64 || len(d.Same) != 64 || d.Kept != d.OutcomeOnly || d.Kept != (d.ID == "a")) {
			s.t.Errorf("recorded: %+v", d)
		}
	}
	if n, err := s.payloads.Count(s.t.Context(), payloads.Selection{Host: "local"}); n != 1 || err != nil {
		s.t.Errorf("of %d calls something is kept, %v", n, err)
	}
}

// together has the loop take everything that f hands it in one batch.
func (s *keptSim) together(f func()) {
	s.t.Helper()
	held, holds := make(chan struct{}), make(chan struct{})
	go func() { _ = s.loop.Ask(context.Background(), func(*domain.State) { close(holds); <-held }) }()
	<-holds
	f()
	close(held)
	synctest.Wait()
}

func TestARepeatedCallInTheBatchOfTheFirstOnesEnd(t *testing.T) {
	for _, endsFirst := range []bool{true, false} {
		inKept(t, nil, func(s *keptSim) {
			one := s.submit("local", keyedCall(`,"call_id":"a"`))
			x := s.sent(0)
			var two <-chan Reply
			s.together(func() {
				if endsFirst {
					s.finish(x, `{"n":1}`)
				}
				two = s.submit("local", keyedCall(``))
				if !endsFirst {
					s.finish(x, `{"n":1}`)
				}
			})
			s.wantJoined(two, s.wantReply(one, domain.StatusComplete, "", domain.RanYes))
			s.sent(0)
		})
	}
}

func TestTwoSubmissionsOfOneBatchAreOneCall(t *testing.T) {
	inKept(t, nil, func(s *keptSim) {
		var one, two <-chan Reply
		s.together(func() {
			one, two = s.submit("local", keyedCall(`,"call_id":"a"`)), s.submit("local", keyedCall(`,"call_id":"a"`))
		})
		s.wantJoined(two, s.finishNext(one, 0))
	})
}

// TestOutcomesOfEveryKindAreRepeated: what a peer says is an error, what asks for
// input, and what never had an answer.
func TestOutcomesOfEveryKindAreRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(s *keptSim, x *exchange)
		status domain.Status
		code   domain.Code
		ran    domain.Ran
	}{
		"a JSON-RPC error": {func(s *keptSim, x *exchange) {
			s.report(x.Send, domain.Facts{Kind: domain.FactError, ErrorCode: -32603}, []byte(`{"code":-32603,"message":"no"}`))
		}, domain.StatusProtocolError, domain.CodePeerError, domain.RanMaybe},
		"an error of the tool": {func(s *keptSim, x *exchange) {
			s.report(x.Send, domain.Facts{Kind: domain.FactResult, ResultType: "complete", IsError: true}, []byte(`{"isError":true}`))
		}, domain.StatusToolError, domain.CodeToolError, domain.RanYes},
		"input":       {func(s *keptSim, x *exchange) { s.finish(x, asksFor, "elicitation.form") }, domain.StatusInputRequired, domain.CodeInputRequired, domain.RanMaybe},
		"silence":     {func(s *keptSim, _ *exchange) { s.pass(time.Minute) }, domain.StatusTimedOut, domain.CodeTimedOut, domain.RanMaybe},
		"a loss":      {func(s *keptSim, _ *exchange) { s.exit("notes") }, domain.StatusLost, domain.CodeTransportLost, domain.RanMaybe},
		"a cancelled": {func(s *keptSim, _ *exchange) { _, _ = s.loop.Cancel(s.t.Context(), id("a")) }, domain.StatusCancelled, domain.CodeCancelled, domain.RanMaybe},
	} {
		t.Run(name, func(t *testing.T) {
			inKept(t, forms, func(s *keptSim) {
				request := keyedCall(`,"call_id":"a","capabilities":{"elicitation":{}}`)
				one := s.submit("local", request)
				x := s.sent(0)
				two := s.submit("local", request)
				synctest.Wait()
				c.end(s, x)
				first := s.wantReply(one, c.status, c.code, c.ran)
				s.wantJoined(two, first)
				s.wantJoined(s.submit("local", request), first)
				s.sent(0)
			})
		})
	}
}

func TestAKeyThatIsAnotherCallsIsRefused(t *testing.T) {
	inKept(t, nil, func(s *keptSim) {
		s.finishNext(s.submit("local", keyedCall(`,"call_id":"a"`)), 0)
		for _, request := range []string{
			strings.Replace(keyedCall(``), `"canary":`, `"canary": `, 1),
			strings.Replace(keyedCall(``), `"tool"`, `"model_name"`, 1),
			strings.Replace(keyedCall(``), `"notes"`, `"other"`, 1),
		} {
			r := s.wantReply(s.submit("local", request), domain.StatusRefused, domain.CodeIdempotencyConflict, domain.RanNo)
			if !strings.Contains(r.Reason, "local/a") || r.Joined != 0 {
				s.t.Errorf("%s", r.Encode())
			}
		}
		s.finishNext(s.submit("ann", keyedCall(``)), 1) // a key is its host's own
	})
}

func TestACallThatWasRefusedLeavesItsKey(t *testing.T) {
	inKept(t, nil, func(s *keptSim) {
		s.wantReply(s.submit("local", `{"tool":"nosuch","call_id":"a","idempotency_key":"k"}`), domain.StatusRefused, domain.CodeUnknownTool, domain.RanNo)
		s.set(s.peers.broken, "notes", true)
		s.exit("notes")
		waits := `{"tool":"notes","call_id":"a","wait_ms":1000,"idempotency_key":"k"}`
		one, two := s.submit("local", waits), s.submit("local", waits)
		synctest.Wait()
		first := s.wantReply(one, domain.StatusRefused, domain.CodePeerUnavailable, domain.RanNo)
		s.wantJoined(two, first)
		s.set(s.peers.broken, "notes", false)
		s.pass(time.Minute)
		s.finishNext(s.submit("local", waits), 0)
	})
}

// TestAnOutcomeIsKeptForTheWindow and no longer; the key leads to no second run then
// either, and what the log says of the first is there for ever.
func TestAnOutcomeIsKeptForTheWindow(t *testing.T) {
	inKept(t, nil, func(s *keptSim) {
		first := s.finishNext(s.submit("local", keyedCall(`,"call_id":"a"`)), 0)
		s.pass(24*time.Hour - time.Minute)
		s.wantJoined(s.submit("local", keyedCall(``)), first)
		s.pass(time.Minute)
		r := s.wantReply(s.submit("local", keyedCall(``)), domain.StatusRefused, domain.CodeOutcomeExpired, domain.RanMaybe)
		if !strings.Contains(r.Reason, "local/a") {
			s.t.Errorf("%s", r.Encode())
		}
		s.pass(time.Hour)
		s.wantErased("a", "")
		if _, d := only[domain.PayloadsErased](s.sim); !d.Outcomes || d.Calls != 1 {
			s.t.Errorf("erased: %+v", d)
		}
		s.sent(0)
	})
}

func TestAnOutcomeThatIsGoneIsLostAndNotRunAgain(t *testing.T) {
	lost := func(s *keptSim, first Reply, words string) Reply {
		s.t.Helper()
		r := s.wantReply(s.submit("local", keyedCall(``)), domain.StatusComplete, domain.CodeOutcomeLost, domain.RanYes)
		if r.Result != nil || r.CallID != "a" || *r.Route != *first.Route || r.Joined == 0 || !strings.Contains(r.Reason, words) {
			s.t.Errorf("the reply is %s", r.Encode())
		}
		return r
	}
	inKept(t, nil, func(s *keptSim) {
		first := s.finishNext(s.submit("local", keyedCall(`,"call_id":"a"`)), 0)
		s.erase(domain.OperatorCommanded{Call: "local/a"})
		if r := lost(s, first, "was erased"); r.Erased == nil || r.Erased.By != "ann" {
			s.t.Errorf("the reply is %s", r.Encode())
		}
		s.sent(0)
	})
	file := newLogFile(t)
	synctest.Test(t, func(t *testing.T) {
		s := startKept(t, filepath.Dir(file), nil)
		first := s.finishNext(s.submit("local", keyedCall(`,"call_id":"a"`)), 0)
		s.crash()
		noErr(t, s.payloads.Close())
		s = &keptSim{startSim(t, openDisk(t, file), nil), "", nil} // payloads.db is gone
		if r := lost(s, first, "was not kept"); r.Erased != nil {
			t.Errorf("the reply is %s", r.Encode())
		}
		s.end()
		empty := openPayloads(t, filepath.Join(t.TempDir(), "payloads.db"))
		s = &keptSim{startSim(t, openDisk(t, file), nil, func(c *EngineConfig) { c.Payloads = empty }), "", empty}
		lost(s, first, "is not there any more")
		s.end()
	})
}

func TestAnOutcomeThatHeldASecretSaysSo(t *testing.T) {
	inKept(t, nil, func(s *keptSim) {
		one := s.submit("local", keyedCall(`,"call_id":"a"`))
		s.finish(s.sent(0), `{"s":"`+secret+`"}`)
		s.wantReply(one, domain.StatusComplete, "", domain.RanYes)
		r := s.wantReply(s.submit("local", keyedCall(``)), domain.StatusComplete, "", domain.RanYes)
		if string(r.Result) != `{"s":"[redacted]"}` || !strings.Contains(r.Reason, "a secret of the configuration was taken out") {
			s.t.Errorf("the reply is %s", r.Encode())
		}
	}, redacting)
	breaks := func(c *EngineConfig) {
		c.Redact = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"s":1`), []byte("[redacted]")) }
	}
	inKept(t, nil, func(s *keptSim) {
		one := s.submit("local", keyedCall(`,"call_id":"a"`))
		s.finish(s.sent(0), `{"s":1}`)
		s.wantReply(one, domain.StatusComplete, "", domain.RanYes)
		s.wantReply(s.submit("local", keyedCall(``)), domain.StatusComplete, domain.CodeOutcomeLost, domain.RanYes)
	}, breaks)
}

// TestACrashWhileTheFirstRunIsUnderWay leaves it lost, and the key with it.
func TestACrashWhileTheFirstRunIsUnderWay(t *testing.T) {
	dir := filepath.Dir(newLogFile(t))
	synctest.Test(t, func(t *testing.T) {
		s := startKept(t, dir, nil)
		one, two := s.submit("local", keyedCall(`,"call_id":"a"`)), s.submit("local", keyedCall(``))
		s.sent(0)
		s.crash()
		for _, got := range []<-chan Reply{one, two} {
			s.wantReply(got, domain.StatusLost, domain.CodeServiceRestarted, domain.RanMaybe)
		}
		noErr(t, s.payloads.Close())
		s = startKept(t, dir, nil)
		r := s.wantReply(s.submit("local", keyedCall(`,"call_id":"a"`)), domain.StatusLost, domain.CodeServiceRestarted, domain.RanMaybe)
		if r.CallID != "a" || r.Joined == 0 || len(s.peers.calls) != 0 {
			t.Errorf("the reply is %s, %d were sent", r.Encode(), len(s.peers.calls))
		}
		s.end()
		audit(t, s.disk)
	})
}

func TestWhoWaitsForACallIsBoundedAndAnswered(t *testing.T) {
	inKept(t, nil, func(s *keptSim) {
		one := s.submit("local", keyedCall(`,"call_id":"a"`))
		x := s.sent(0)
		var wait []<-chan Reply
		for i := range 64 {
			wait = append(wait, s.submit("local", keyedCall(fmt.Sprintf(`,"call_id":"b-%d"`, i))))
		}
		s.wantReply(s.submit("local", keyedCall(``)), domain.StatusRefused, domain.CodeOverloaded, domain.RanNo)
		if under, err := s.loop.Cancel(s.t.Context(), id("b-3")); under || err != nil {
			s.t.Errorf("what only waits can be cancelled: %t, %v", under, err)
		}
		s.finish(x, `{"n":1}`)
		first := s.wantReply(one, domain.StatusComplete, "", domain.RanYes)
		for _, got := range wait {
			r := s.reply(got)
			if first.Joined = r.Joined; r.Joined == 0 || string(r.Encode()) != string(first.Encode()) {
				s.t.Errorf("the reply is %s", r.Encode())
			}
		}
		if n := len(s.loop.calls); n != 0 {
			s.t.Errorf("%d calls are held", n)
		}
	})
}

func TestWhatWaitsCountsForItsHost(t *testing.T) {
	inKept(t, nil, func(s *keptSim) {
		one, two := s.submit("local", keyedCall(`,"call_id":"a"`)), s.submit("local", keyedCall(``))
		synctest.Wait()
		s.wantReply(s.submit("local", keyedCall(``)), domain.StatusRefused, domain.CodeOverloaded, domain.RanNo)
		s.wantJoined(two, s.finishNext(one, 0))
		s.wantReply(s.submit("local", keyedCall(``)), domain.StatusComplete, "", domain.RanYes)
	}, func(c *EngineConfig) { c.HostInflight = 2 })
}

// unreadable is a log whose events of calls cannot be read.
type unreadable struct{ *memLog }

func (unreadable) ByCall(context.Context, string) ([]store.Record, error) {
	return nil, errors.New("the disk cannot be read")
}

func TestAnOutcomeThatCannotBeReadIsNotRunAgain(t *testing.T) {
	r := newRig(t, unreadable{newMemLog(t)}).start("notes")
	r.wantReply(r.submit("local", keyedCall(`,"call_id":"a"`)), domain.StatusComplete, "", domain.RanYes)
	got := r.wantReply(r.submit("local", keyedCall(``)), domain.StatusRefused, domain.CodeLogUnavailable, domain.RanMaybe)
	if got.CallID != "a" || got.Joined == 0 || len(r.peers.sends()) != 1 {
		t.Errorf("the reply is %s", got.Encode())
	}
	r.stop()
}
