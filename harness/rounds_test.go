package harness

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
)

// asksFor is a result that asks for a form, with a state whose spelling matters.
const asksFor = `{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"which?"}}},"requestState":"s\u0041\/1"}`

// forms configures a peer that may ask for forms.
func forms(p *domain.PeerConfig) {
	p.InputRounds, p.InputWindow, p.Capabilities = 3, 600_000, []byte(`{"elicitation":{}}`)
}

// ask submits a call under the id a, which asks for a form.
func (s *sim) asked() Reply {
	s.t.Helper()
	got := s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n": 1},"capabilities":{ "elicitation":{} }}`)
	s.finish(s.sent(0), asksFor, "elicitation.form")
	reply := s.wantReply(got, domain.StatusInputRequired, domain.CodeInputRequired, domain.RanMaybe)
	if string(reply.Result) != asksFor {
		s.t.Errorf("the result is %s", reply.Result)
	}
	return reply
}

const theInput = `"inputResponses":{"q":{"action":"accept"}},"requestState":"sA/1"`

func TestRoundsOfInputAreOneStory(t *testing.T) {
	inSim(t, forms, func(s *sim) {
		first := s.asked()
		s.pass(time.Minute)
		got := s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n": 1},`+theInput+`}`)
		x := s.sent(1)
		if string(x.body.Arguments) != `{"n": 1}` || string(x.body.InputResponses) != `{"q":{"action":"accept"}}` || string(x.body.RequestState) != `"sA/1"` {
			s.t.Errorf("sent: %s", x.body)
		}
		under, _, err := Outcome(s.t.Context(), s.disk.Reader, domain.CallID{Host: "local", ID: "a"})
		if err != nil || under.Status != StatusUnderWay || under.Code != "" || under.Attempts != 2 {
			s.t.Errorf("a call that goes on is %s, %v", under.Encode(), err)
		}
		s.finish(x, `{"done":true}`)
		reply := s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
		if reply.CallID != "a" || reply.Attempts != 2 || len(reply.Seqs) != len(first.Seqs)+4 || reply.Seqs[0] != first.Seqs[0] || reply.Route.Generation != 1 {
			s.t.Errorf("reply: %s", reply.Encode())
		}
		s.wantStory("local/a", "call.received", "call.routed", "call.answered", "call.settled",
			"call.received", "call.resent", "call.answered", "call.settled")
		s.wantOutcome("local", reply)
	})
}

func TestInputThatDoesNotMatchIsRefusedAndTheCallStillWaits(t *testing.T) {
	for name, request := range map[string]string{
		"other arguments":   `{"tool":"notes","call_id":"a","arguments":{"n":1},` + theInput + `}`,
		"another state":     `{"tool":"notes","call_id":"a","arguments":{"n": 1},"inputResponses":{},"requestState":"sB/1"}`,
		"no state":          `{"tool":"notes","call_id":"a","arguments":{"n": 1},"inputResponses":{}}`,
		"no responses":      `{"tool":"notes","call_id":"a","arguments":{"n": 1},"requestState":"sA/1"}`,
		"an unknown member": `{"tool":"notes","call_id":"a","arguments":{"n": 1},"more":1,` + theInput + `}`,
	} {
		inSim(t, forms, func(s *sim) {
			s.asked()
			reply := s.reply(s.submit("local", request))
			want := domain.CodeInputMismatch
			if strings.Contains(name, "member") {
				want = domain.CodeBadRequest
			}
			if reply.Status != domain.StatusRefused || reply.Code != want || reply.CallID != "a" {
				s.t.Errorf("%s: %s", name, reply.Encode())
			}
			s.wantStory("local/a", "call.received", "call.routed", "call.answered", "call.settled")
			s.finishNext(s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n": 1},`+theInput+`}`), 1)
		})
	}
}

func TestTheOutcomeOfAnIDThatIsUsedAgainAfterARefusalIsThatOfTheLastUse(t *testing.T) {
	inSim(t, nil, func(s *sim) {
		s.wantReply(s.submit("local", `{"tool":"none","call_id":"a"}`), domain.StatusRefused, domain.CodeUnknownTool, domain.RanNo)
		s.wantOutcome("local", s.finishNext(s.submit("local", `{"tool":"notes","call_id":"a"}`), 0))
	})
}

func TestAnotherHostCannotGoOnWithACall(t *testing.T) {
	inSim(t, forms, func(s *sim) {
		s.asked()
		got := s.submit("other", `{"tool":"notes","call_id":"a","arguments":{"n": 1},`+theInput+`}`)
		s.wantReply(got, domain.StatusRefused, domain.CodeNotWaiting, domain.RanNo)
	})
}

func TestInputAfterItsWindowIsRefused(t *testing.T) {
	inSim(t, forms, func(s *sim) {
		s.asked()
		s.pass(600*time.Second + time.Millisecond)
		got := s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n": 1},`+theInput+`}`)
		s.wantReply(got, domain.StatusRefused, domain.CodeInputExpired, domain.RanNo)
		s.wantStory("local/a", "call.received", "call.routed", "call.answered", "call.settled")
	})
}

func TestAStateAloneIsSentBackAsItCame(t *testing.T) {
	inSim(t, forms, func(s *sim) {
		s.asked()
		got := s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n": 1},`+theInput+`}`)
		s.finish(s.sent(1), `{ "requestState" : "t\u0042\/2" , "resultType":"input_required" }`)
		x := s.sent(2)
		if string(x.body.RequestState) != `"t\u0042\/2"` || x.body.InputResponses != nil || string(x.body.Arguments) != `{"n": 1}` {
			s.t.Errorf("sent: %s", x.body)
		}
		s.finish(x, `{"done":true}`)
		reply := s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
		if reply.Attempts != 3 {
			s.t.Errorf("reply: %s", reply.Encode())
		}
	})
}

func TestInputMayComeAfterARestartOfTheService(t *testing.T) {
	path := newLogFile(t)
	synctest.Test(t, func(t *testing.T) {
		disk := openDisk(t, path)
		s := startSim(t, disk, forms)
		first := s.asked()
		s.quit()
		s = startSim(t, disk, forms)
		got := s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n": 1},`+theInput+`}`)
		s.finish(s.sent(0), `{"done":true}`)
		reply := s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
		if reply.Seqs[0] != first.Seqs[0] || reply.Attempts != 2 || reply.Route.Generation == 0 {
			t.Errorf("reply: %s", reply.Encode())
		}
		s.end()
		audit(t, disk)
	})
}

// timedOut leaves a call under the id a that timed out.
func (s *sim) timedOut() {
	s.t.Helper()
	got := s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n":1},"timeout_ms":1000}`)
	s.wantReply(got, domain.StatusTimedOut, domain.CodeTimedOut, domain.RanMaybe)
}

func resend(call string) domain.OperatorCommanded {
	return domain.OperatorCommanded{By: "ann", Verb: domain.VerbResend, Call: call}
}

func TestAnOperatorSendsACallAgain(t *testing.T) {
	inSim(t, nil, func(s *sim) {
		s.timedOut()
		for _, arguments := range [][]byte{nil, []byte(`{"n":2}`)} {
			reply, err := s.loop.Command(s.t.Context(), resend("local/a"), arguments)
			if err != nil || reply.Done || reply.Code != domain.CodePayloadNotKept || reply.Reply != nil || len(reply.Seqs) != 2 {
				s.t.Errorf("with %s: %s, %v", arguments, reply.Encode(), err)
			}
		}
		type result struct {
			reply CommandReply
			err   error
		}
		done := make(chan result, 1)
		go func() {
			r, err := s.loop.Command(context.Background(), resend("local/a"), []byte(`{"n":1}`))
			done <- result{r, err}
		}()
		x := s.sent(1)
		if string(x.body.Arguments) != `{"n":1}` || len(done) != 0 {
			s.t.Errorf("sent: %+v", x)
		}
		s.finish(x, `{"done":true}`)
		r := <-done
		if r.err != nil || !r.reply.Done || r.reply.Reply == nil || r.reply.Reply.Status != domain.StatusComplete {
			s.t.Fatalf("%s, %v", r.reply.Encode(), r.err)
		}
		if outcome := r.reply.Reply; string(outcome.Result) != `{"done":true}` || outcome.Attempts != 2 || outcome.Route.Generation != 1 {
			s.t.Errorf("%s", outcome.Encode())
		}
		s.wantOutcome("local", *r.reply.Reply)
		if _, d := only[domain.CallResent](s); d.Rule != domain.RuleOperator || d.By != "ann" {
			s.t.Errorf("%+v", d)
		}
	})
}

func TestACommandThatIsGivenUpLetsTheCallGoOn(t *testing.T) {
	inSim(t, nil, func(s *sim) {
		s.timedOut()
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		reply, err := s.loop.Command(ctx, resend("local/a"), []byte(`{"n":1}`))
		if !errors.Is(err, context.DeadlineExceeded) || !reply.Done || reply.Reply != nil {
			s.t.Errorf("%s, %v", reply.Encode(), err)
		}
		if !s.finish(s.sent(1), `{"done":true}`) {
			s.t.Error("the call did not go on")
		}
		s.pass(time.Second)
		outcome, _, err := Outcome(s.t.Context(), s.disk.Reader, domain.CallID{Host: "local", ID: "a"})
		if err != nil || outcome.Status != domain.StatusComplete {
			s.t.Errorf("%s, %v", outcome.Encode(), err)
		}
	})
}

func TestACommandWhoseCallIsEndedByAStopSaysSo(t *testing.T) {
	inSim(t, nil, func(s *sim) {
		s.timedOut()
		done := make(chan CommandReply, 1)
		go func() {
			r, _ := s.loop.Command(context.Background(), resend("local/a"), []byte(`{"n":1}`))
			done <- r
		}()
		s.sent(1)
		s.quit()
		if r := <-done; r.Reply == nil || r.Reply.Status != domain.StatusCancelled {
			s.t.Errorf("%s", r.Encode())
		}
		if _, err := s.loop.Command(context.Background(), resend("local/a"), nil); !errors.Is(err, errStopping) {
			s.t.Errorf("a command after the stop: %v", err)
		}
	})
}

func TestTheReplyOfACommandHasAllItsKeys(t *testing.T) {
	inSim(t, nil, func(s *sim) {
		reply, err := s.loop.Command(s.t.Context(), domain.OperatorCommanded{By: "ann", Verb: "dance"}, nil)
		noErr(s.t, err)
		var d decoded
		noErr(s.t, json.Unmarshal(reply.Encode(), &d))
		d.want(s.t, map[string]string{"by": `"ann"`, "verb": `"dance"`, "peer": "null", "call": "null", "code": `"unknown_command"`,
			"outcome": "null", "log": `"` + testLog + `"`})
		if len(d) != 9 || string(d["reason"]) == "null" || string(d["seqs"]) == "[]" {
			s.t.Errorf("%s", reply.Encode())
		}
		reply.Reply = &Reply{CallID: "a", Result: []byte(`{ "n" : 1.0 }`)}
		if !strings.HasSuffix(string(reply.Encode()), `"outcome":`+string(reply.Reply.Encode())+`}`) {
			s.t.Errorf("%s does not hold the call's reply as it is", reply.Encode())
		}
	})
}

func TestACommandThatCannotBeRecordedIsRefused(t *testing.T) {
	redact := func(c *EngineConfig) {
		c.Redact = func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "hunter2", "[redacted]")) }
	}
	inSim(t, nil, func(s *sim) {
		before := len(s.events())
		for _, d := range []domain.OperatorCommanded{
			{By: "", Verb: domain.VerbRevive, Peer: "notes"},
			{By: "Ann", Verb: domain.VerbRevive, Peer: "notes"},
			{By: "ann", Verb: strings.Repeat("x", 61<<10)},
			{By: "ann", Verb: domain.VerbResend, Call: "local/\xff"},
			{By: "ann", Verb: domain.VerbRevive, Peer: "hunter2"},
		} {
			reply, err := s.loop.Command(s.t.Context(), d, nil)
			if err != nil || reply.Done || reply.Code != domain.CodeBadRequest || reply.Reason == "" || len(reply.Seqs) != 0 {
				s.t.Errorf("%.80s, %v", reply.Encode(), err)
			}
		}
		if n := len(s.events()); n != before {
			s.t.Errorf("%d events were recorded", n-before)
		}
	}, redact)
}
