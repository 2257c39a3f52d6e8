package harness

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
)

func TestWhatASubmissionBringsIsRecordedWithoutItsBytes(t *testing.T) {
	key := func(p *domain.PeerConfig) { p.Idempotency = map[string]string{"notes": "key"} }
	inSim(t, key, func(s *sim) {
		s.finishNext(s.submit("local", `{"tool":"notes","arguments":{"key":"k1"},"timeout_ms":1000,"limit_ms":9000,"wait_ms":50,"progress":true,`+
			`"capabilities":{ "roots" : {} }}`), 0)
		_, d := only[domain.CallReceived](s)
		if d.Timeout != 1000 || d.Limit != 9000 || d.Wait != 50 || !d.Progress || string(d.Capabilities) != `{"roots":{}}` || !d.CarriesKey ||
			d.Arguments != simDigest([]byte(`{"key":"k1"}`)) || d.Input != nil || d.RequestState != nil {
			s.t.Errorf("recorded: %+v", d)
		}
		if x := s.sent(0); !x.Progress || x.Limit != 9000 {
			s.t.Errorf("sent: %+v", x.Send)
		}
		s.wantReply(s.submit("local", `{"tool":"notes","call_id":"x","inputResponses":{"a":1},"requestState":"s\u0041"}`),
			domain.StatusRefused, domain.CodeNotWaiting, domain.RanNo)
		last := find[domain.CallReceived](s.events())[1]
		if *last.Input != simDigest([]byte(`{"a":1}`)) || *last.RequestState != simDigest([]byte("sA")) || last.CarriesKey || last.DuplicateOf != "x" {
			s.t.Errorf("recorded: %+v", last)
		}
	})
}

func TestInputThatNamesNoCallIsRefusedUnderOneID(t *testing.T) {
	inSim(t, forms, func(s *sim) {
		reply := s.wantReply(s.submit("local", `{"tool":"notes","inputResponses":{}}`), domain.StatusRefused, domain.CodeBadRequest, domain.RanNo)
		if _, d := only[domain.CallReceived](s); d.ID != reply.CallID || d.DuplicateOf != "" || !strings.HasPrefix(d.ID, domain.GeneratedPrefix) {
			s.t.Errorf("recorded %+v, replied %s", d, reply.Encode())
		}
	})
}

func TestCapabilitiesThatHoldASecretAreNotRecorded(t *testing.T) {
	log := newMemLog(t)
	redact := func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "hunter2hunter2", "[redacted]")) }
	r := newRig(t, log, func(c *Config) { c.Redact = redact }).start("notes")
	r.wantReply(r.submit("local", `{"tool":"notes","capabilities":{"x":"hunter2hunter2"}}`), domain.StatusRefused, domain.CodeBadRequest, domain.RanNo)
	r.stop()
	for _, rec := range log.records {
		if strings.Contains(string(rec.Bytes), "hunter2") {
			t.Errorf("a secret is in event %s", rec.Bytes)
		}
	}
}

func TestTheSchemaOfTheToolGoesWithTheCall(t *testing.T) {
	const schema = `{"type":"object","x":9007199254740993}`
	refuse := func(p *domain.PeerConfig) { p.RefuseOutput = true }
	with := func(c *EngineConfig) {
		inner := c.NewPeers
		c.NewPeers = func(report func(domain.Data, []byte, []byte)) (Peers, error) {
			p, err := inner(report)
			p.(*simPeers).schema = schema
			return p, err
		}
	}
	inSim(t, refuse, func(s *sim) {
		got := s.submit("local", `{"tool":"notes","call_id":"a"}`)
		x := s.sent(0)
		if string(x.body.OutputSchema) != schema {
			s.t.Errorf("the schema is %s", x.body.OutputSchema)
		}
		s.tell(domain.CallAnswered{CallID: domain.CallID{Host: "local", ID: "a"}, At: x.At, RequestID: x.RequestID, Result: simDigest(nil),
			Facts: domain.Facts{Kind: domain.FactResult, ResultType: "complete", Schema: domain.SchemaInvalid}}, nil, []byte(`{"wrong":1}`))
		reply := s.wantReply(got, domain.StatusProtocolError, domain.CodeOutputInvalid, domain.RanYes)
		if reply.Result != nil || reply.Error != nil {
			s.t.Errorf("the result is not withheld: %s", reply.Encode())
		}
	}, with)
}

func TestProgressReachesTheHostThatAskedForItUntilItsReply(t *testing.T) {
	var told []string
	listen := func(c *EngineConfig) {
		c.Progress = func(id domain.CallID, p []byte) { told = append(told, id.CallKey()+" "+string(p)) }
	}
	inSim(t, nil, func(s *sim) {
		told = nil
		got := s.submit("local", `{"tool":"notes","call_id":"a","progress":true}`)
		s.sent(0)
		other := s.submit("local", `{"tool":"notes","call_id":"b"}`)
		y := s.sent(1)
		s.loop.Progress("local/a", []byte(`{"progress":1}`))
		s.loop.Progress("local/b", []byte(`{"progress":1}`))
		s.loop.Progress("local/none", []byte(`{"progress":1}`))
		s.finish(s.peers.calls[0], `{}`)
		s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
		s.loop.Progress("local/a", []byte(`{"progress":2}`))
		s.finish(y, `{}`)
		s.wantReply(other, domain.StatusComplete, "", domain.RanYes)
		if !slices.Equal(told, []string{`local/a {"progress":1}`}) {
			s.t.Errorf("told: %q", told)
		}
		if n := len(s.loop.listening.calls); n != 0 {
			s.t.Errorf("%d calls are listened for after their end", n)
		}
	}, listen)
}

func TestAnAlarmThatWasReplacedOrStoppedIsNotHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []domain.Data
		a := alarms{report: func(d domain.Data) { heard = append(heard, d) }}
		at := func(n int64) domain.At { return domain.At{Peer: "notes", Incarnation: n} }
		call := domain.WaitPassed{CallID: domain.CallID{Host: "local", ID: "a"}}
		a.start("local/a", domain.At{}, 100, domain.WaitPassed{})
		a.start("local/a", domain.At{}, 200, call)
		a.start("local/b", domain.At{}, 100, domain.WaitPassed{})
		late := a.set["local/b"]
		a.stop("local/b")
		a.ring("local/b", late, domain.WaitPassed{}) // its time came at the same moment
		a.start(peerAlarm("notes"), at(2), 300, domain.HealthDue{At: at(2)})
		a.stopPeer(at(1)) // it went long ago
		<-time.After(time.Second)
		synctest.Wait()
		if !slices.Equal(heard, []domain.Data{call, domain.HealthDue{At: at(2)}}) {
			t.Errorf("heard %v", heard)
		}
		a.start(peerAlarm("notes"), at(3), 300, domain.HealthDue{At: at(3)})
		a.stopPeer(at(3))
		a.start("local/c", domain.At{}, 100, domain.WaitPassed{})
		a.close()
		a.start("local/d", domain.At{}, 100, domain.WaitPassed{})
		<-time.After(time.Second)
		synctest.Wait()
		if len(heard) != 2 || len(a.set) != 0 {
			t.Errorf("heard %v, and %d are set", heard, len(a.set))
		}
	})
}

// What goes on with a call may come while the call's end is on its way to the log:
// the end and its reply come first.
func TestInputAndACommandThatComeWithTheEndOfTheirCallFindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log)
		c := testConfig("notes")
		forms(&c.Peers[0])
		r.configure(c)
		r.run()
		r.settle()
		r.setAnswer(r.silent)
		first := r.submit("local", `{"tool":"notes","call_id":"a","capabilities":{"elicitation":{}}}`)
		lost := r.submit("local", `{"tool":"notes","call_id":"b"}`)
		synctest.Wait()
		sends := r.peers.sends()
		log.hold()
		r.submit("local", `{"tool":"none"}`)
		synctest.Wait()
		r.report(sends[0], domain.Facts{Kind: domain.FactResult, ResultType: "input_required", Asks: []string{"elicitation.form"}}, []byte(`{"ask":1}`))
		goesOn := r.submit("local", `{"tool":"notes","call_id":"a","inputResponses":{}}`)
		r.loop.Report(domain.DeadlinePassed{At: sends[1].At, RequestID: sends[1].RequestID}, nil, nil)
		commanded := make(chan CommandReply, 1)
		go func() {
			reply, _ := r.loop.Command(context.Background(), resend("local/b"), []byte(`{}`))
			commanded <- reply
		}()
		synctest.Wait()
		log.pass()
		r.wantReply(first, domain.StatusInputRequired, domain.CodeInputRequired, domain.RanMaybe)
		r.wantReply(lost, domain.StatusTimedOut, domain.CodeTimedOut, domain.RanMaybe)
		synctest.Wait()
		for _, s := range r.peers.sends()[2:] {
			r.answer(s, "complete", []byte(`{}`))
		}
		if reply := r.wantReply(goesOn, domain.StatusComplete, "", domain.RanYes); reply.Attempts != 2 || len(reply.Seqs) != 8 {
			t.Errorf("reply: %s", reply.Encode())
		}
		if reply := <-commanded; reply.Reply == nil || reply.Reply.Status != domain.StatusComplete || reply.Reply.Attempts != 2 {
			t.Errorf("reply: %s", reply.Encode())
		}
		r.stop()
	})
}

func TestACommandThatIsGivenUpBeforeItIsTakenIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log).start("notes")
		log.hold()
		r.submit("local", `{"tool":"none"}`)
		synctest.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		given := make(chan error, 1)
		go func() {
			_, err := r.loop.Command(ctx, domain.OperatorCommanded{By: "ann", Verb: domain.VerbRevive, Peer: "notes"}, nil)
			given <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Errorf("Command: %v", err)
		}
		log.pass()
		r.stop()
		if n := len(find[domain.OperatorCommanded](readAll(t, log, 0))); n != 0 {
			t.Errorf("%d commands were recorded", n)
		}
	})
}

func TestACommandIsAnsweredWhenTheLogCannotTakeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log).start("notes")
		synctest.Wait()
		log.expect(moved)
		reply, err := r.loop.Command(context.Background(), domain.OperatorCommanded{By: "ann", Verb: domain.VerbRevive, Peer: "notes"}, nil)
		if !errors.Is(err, errStopping) || reply.Done {
			t.Errorf("%s, %v", reply.Encode(), err)
		}
		if err := r.wait(); !errors.Is(err, errLogMoved) {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestInputsOfATurnThatFailedHalfWayAreAllAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log)
		c := testConfig("notes")
		forms(&c.Peers[0])
		r.configure(c)
		r.run()
		r.settle()
		r.setAnswer(r.silent)
		first := r.submit("local", `{"tool":"notes","call_id":"a","capabilities":{"elicitation":{}}}`)
		synctest.Wait()
		log.hold()
		r.submit("local", `{"tool":"none"}`)
		synctest.Wait()
		r.report(r.peers.sends()[0], domain.Facts{Kind: domain.FactResult, ResultType: "input_required", Asks: []string{"elicitation.form"}}, []byte(`{}`))
		goesOn := r.submit("local", `{"tool":"notes","call_id":"a","inputResponses":{}}`)
		log.expect(kept, moved)
		log.pass()
		if err := r.wait(); !errors.Is(err, errLogMoved) {
			t.Errorf("Run: %v", err)
		}
		r.reply(first)
		r.wantReply(goesOn, domain.StatusRefused, domain.CodeShuttingDown, domain.RanNo)
	})
}

func TestTheRequestStateOfAResultIsFoundAsItIsWritten(t *testing.T) {
	for result, want := range map[string]string{
		`{"requestState":"s"}`: `"s"`,
		`{"a":{"requestState":"x"},"requestSt\u0061te":"\u0041\/ "}`: `"\u0041\/ "`,
		`{"a":[{"requestState":"x"}]}`:                               "",
		`{"a":1`:                                                     "",
		`["requestState","x"]`:                                       "",
		`{"requestState":"x`:                                         "",
		``:                                                           "",
	} {
		if got := string(requestState([]byte(result))); got != want {
			t.Errorf("%s: %s, want %s", result, got, want)
		}
	}
}
