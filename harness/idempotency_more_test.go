package harness

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
	"waybill/store/payloads"
)

// TestACallThatAsksForInputKeepsItsKey: the host goes on with it under its id, with
// nothing of what it brings kept, and whoever repeats the call has its last outcome.
func TestACallThatAsksForInputKeepsItsKey(t *testing.T) {
	inKept(t, forms, func(s *keptSim) {
		begin := `{"tool":"notes","call_id":"a","arguments":{"n": 1},"capabilities":{"elicitation":{}},"idempotency_key":"k"}`
		got := s.submit("local", begin)
		s.finish(s.sent(0), asksFor, "elicitation.form")
		asked := s.wantReply(got, domain.StatusInputRequired, domain.CodeInputRequired, domain.RanMaybe)
		s.wantJoined(s.submit("local", begin), asked)
		s.wantReply(s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n": 1},"idempotency_key":"k",`+theInput+`}`),
			domain.StatusRefused, domain.CodeBadRequest, domain.RanNo)
		s.wantReply(s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n":1},`+theInput+`}`), domain.StatusRefused, domain.CodeInputMismatch, domain.RanNo)
		got = s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n": 1},`+theInput+`}`)
		x := s.sent(1)
		waits := s.submit("local", begin)
		synctest.Wait()
		s.finish(x, `{"done":true}`)
		last := s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
		s.wantJoined(waits, last)
		s.wantJoined(s.submit("local", begin), last)
		for _, e := range s.events() {
			for _, role := range []string{payloads.Arguments, payloads.InputResponses, payloads.RequestState} {
				if _, kept, err := s.payloads.Read(s.t.Context(), e.Seq, role); kept || err != nil {
					s.t.Errorf("%s of event %d is kept, %v", role, e.Seq, err)
				}
			}
		}
		if d := find[domain.CallReceived](s.events()); !d[len(d)-3].OutcomeOnly || d[len(d)-3].Input == nil {
			s.t.Errorf("recorded: %+v", d[len(d)-3])
		}
	})
}

// TestAPeerThatKeepsKeepsTheWholeOfAKeyedCall, unless that is erased before the window
// is over: then the outcome alone.
func TestAPeerThatKeepsKeepsTheWholeOfAKeyedCall(t *testing.T) {
	for retention, whole := range map[int64]bool{0: true, 24 * 3_600_000: true, 3_600_000: false} {
		inKept(t, keep, func(s *keptSim) {
			first := s.finishNext(s.submit("local", keyedCall(`,"call_id":"a"`)), 0)
			d := find[domain.CallReceived](s.events())[0]
			_, kept, err := s.payloads.Read(s.t.Context(), first.Seqs[0], payloads.Arguments)
			if !d.Kept || d.OutcomeOnly == whole || kept != whole || err != nil {
				s.t.Errorf("retention %d: kept %t, %+v, %v", retention, kept, d, err)
			}
			s.pass(23 * time.Hour)
			s.wantJoined(s.submit("local", keyedCall(``)), first)
		}, func(c *EngineConfig) { c.Config.Retention = retention })
	}
}

// TestAnIDThatIsUsedAgainIsNotTheFirstCall: ids are free again after a day, and a
// window may be longer.
func TestAnIDThatIsUsedAgainIsNotTheFirstCall(t *testing.T) {
	inKept(t, nil, func(s *keptSim) {
		first := s.finishNext(s.submit("local", keyedCall(`,"call_id":"a"`)), 0)
		s.pass(25 * time.Hour)
		s.reply(s.submit("local", `{"tool":"nosuch"}`))
		again := s.submit("local", `{"tool":"notes","call_id":"a"}`)
		x := s.sent(1)
		s.wantJoined(s.submit("local", keyedCall(`,"call_id":"a"`)), first) // not the one that is under way
		s.finish(x, `{"other":true}`)
		s.wantReply(again, domain.StatusComplete, "", domain.RanYes)
		s.wantJoined(s.submit("local", keyedCall(`,"call_id":"a"`)), first)
		s.pass(25 * time.Hour)
		s.wantJoined(s.submit("local", keyedCall(`,"call_id":"a"`)), first)
		s.wantJoined(s.submit("local", keyedCall(`,"call_id":"b"`)), first)
		s.finishNext(s.submit("local", `{"tool":"notes","call_id":"b"}`), 2)
		if r := s.outcome("b"); r.CallID != "b" || r.Joined != 0 || r.Status != domain.StatusComplete || len(r.Seqs) != 4 {
			s.t.Errorf("the outcome of an id that is used again is %s", r.Encode())
		}
	}, func(c *EngineConfig) { c.Config.Idempotency = 7 * 24 * 3_600_000 })
}

// TestAKeyThatIsForgottenIsAKeyLikeAnyOther: its outcome is kept again.
func TestAKeyThatIsForgottenIsAKeyLikeAnyOther(t *testing.T) {
	inKept(t, nil, func(s *keptSim) {
		s.finishNext(s.submit("local", keyedCall(`,"call_id":"a"`)), 0)
		s.pass(8*time.Hour + time.Second)
		again := s.finishNext(s.submit("local", keyedCall(`,"call_id":"b"`)), 1)
		if again.Joined != 0 || again.CallID != "b" {
			s.t.Errorf("the reply is %s", again.Encode())
		}
		s.wantJoined(s.submit("local", keyedCall(``)), again)
	}, func(c *EngineConfig) { c.Config.Idempotency = 3_600_000 })
}

func TestProgressOfARepeatedCallIsThatOfTheFirst(t *testing.T) {
	var told []string
	inKept(t, nil, func(s *keptSim) {
		told = nil
		one := s.submit("local", keyedCall(`,"call_id":"a"`))
		x := s.sent(0)
		s.loop.Progress("local/a", []byte(`1`))
		two := s.submit("local", keyedCall(`,"call_id":"b","progress":true`))
		synctest.Wait()
		s.loop.Progress("local/a", []byte(`2`))
		s.loop.Progress("local/b", []byte(`3`))
		s.finish(x, `{"n":1}`)
		s.wantJoined(two, s.wantReply(one, domain.StatusComplete, "", domain.RanYes))
		s.wantReply(s.submit("local", keyedCall(`,"call_id":"c","progress":true`)), domain.StatusComplete, "", domain.RanYes)
		if !slices.Equal(told, []string{"local/a 2"}) || len(s.loop.listening.calls) != 0 {
			s.t.Errorf("told: %q; listened for: %v", told, s.loop.listening.calls)
		}
	}, func(c *EngineConfig) {
		c.Progress = func(id domain.CallID, p []byte) { told = append(told, id.CallKey()+" "+string(p)) }
	})
}

func TestAnOperatorsResendIsWaitedFor(t *testing.T) {
	inKept(t, nil, func(s *keptSim) {
		request := keyedCall(`,"call_id":"a","timeout_ms":1000`)
		s.wantReply(s.submit("local", request), domain.StatusTimedOut, domain.CodeTimedOut, domain.RanMaybe)
		r, err := s.loop.Command(s.t.Context(), resend("local/a"), nil)
		if err != nil || r.Code != domain.CodePayloadNotKept {
			s.t.Errorf("the arguments are not kept: %s, %v", r.Encode(), err)
		}
		done := make(chan CommandReply, 1)
		go func() {
			r, _ := s.loop.Command(s.t.Context(), resend("local/a"), []byte(`{"canary":"of the arguments"}`))
			done <- r
		}()
		x := s.sent(1)
		two := s.submit("local", request)
		synctest.Wait()
		s.finish(x, `{"done":true}`)
		s.wantJoined(two, *(<-done).Reply)
		s.wantResult("a", `{"done":true}`)
	})
}

const (
	aTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	bTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// traced hands over a call with a trace.
func (s *sim) traced(request, parent, state string) <-chan Reply {
	got := make(chan Reply, 1)
	s.loop.SubmitTraced("local", []byte(request), domain.Trace{Parent: parent, State: state}, func(r Reply) { got <- r })
	return got
}

// TestATraceIsRecordedAndGoesOn with every exchange of its submission.
func TestATraceIsRecordedAndGoesOn(t *testing.T) {
	inSim(t, forms, func(s *sim) {
		got := s.traced(`{"tool":"notes","call_id":"a","arguments":{"n": 1},"capabilities":{"elicitation":{}},"timeout_ms":1000}`, aTrace, "a=b")
		want := domain.Trace{Parent: aTrace, State: "a=b"}
		x := s.sent(0)
		if _, d := only[domain.CallReceived](s); d.Trace != want || x.body.Trace != want {
			s.t.Errorf("recorded %+v, sent %+v", d.Trace, x.body.Trace)
		}
		s.finish(x, asksFor, "elicitation.form")
		s.wantReply(got, domain.StatusInputRequired, domain.CodeInputRequired, domain.RanMaybe)
		s.traced(`{"tool":"notes","call_id":"a","arguments":{"n": 1},"timeout_ms":1000,`+theInput+`}`, bTrace, "")
		if got := s.sent(1).body.Trace; got != (domain.Trace{Parent: bTrace}) {
			s.t.Errorf("what goes on was sent with %+v", got)
		}
		got = s.traced(`{"tool":"notes","call_id":"b","timeout_ms":1000}`, aTrace, "")
		s.wantReply(got, domain.StatusTimedOut, domain.CodeTimedOut, domain.RanMaybe)
		go func() { _, _ = s.loop.Command(s.t.Context(), resend("local/b"), []byte(`{}`)) }()
		if got := s.sent(3).body.Trace; got != (domain.Trace{Parent: aTrace}) {
			s.t.Errorf("what an operator sent again went with %+v", got)
		}
	})
}

func TestATraceOutlivesAHeldCall(t *testing.T) {
	inSim(t, nil, func(s *sim) {
		s.exit("notes")
		got := s.traced(`{"tool":"notes","call_id":"a","wait_ms":60000}`, aTrace, "")
		s.pass(time.Second)
		x := s.sent(0)
		if x.body.Trace.Parent != aTrace {
			s.t.Errorf("a held call was sent with %+v", x.body.Trace)
		}
		s.finish(x, `{}`)
		s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
	})
}

func TestATraceThatIsMalformedOrSecretIsDropped(t *testing.T) {
	redact := func(c *EngineConfig) {
		c.Redact = func(b []byte) []byte {
			return []byte(strings.NewReplacer("hunter2", "[redacted]", "a3ce929d", "[redacted]").Replace(string(b)))
		}
	}
	inSim(t, nil, func(s *sim) {
		for i, c := range []struct {
			parent, state string
			want          domain.Trace
		}{
			{"traceparent", "a=b", domain.Trace{}},
			{aTrace, "a=b", domain.Trace{}},
			{bTrace, "a=hunter2", domain.Trace{Parent: bTrace}},
			{bTrace, "not one", domain.Trace{Parent: bTrace}},
		} {
			got := s.traced(`{"tool":"notes"}`, c.parent, c.state)
			x := s.sent(i)
			received := find[domain.CallReceived](s.events())
			if x.body.Trace != c.want || received[i].Trace != c.want {
				s.t.Errorf("%+v: recorded %+v, sent %+v", c, received[i].Trace, x.body.Trace)
			}
			s.finish(x, `{}`)
			s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
		}
	}, redact)
}
