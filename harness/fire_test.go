package harness

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
)

func TestAProbeThatIsNotAnsweredClosesThePeerAtItsDeadline(t *testing.T) {
	path := newLogFile(t)
	synctest.Test(t, func(t *testing.T) {
		s := startSim(t, openDisk(t, path), nil, func(c *EngineConfig) {
			inner := c.NewPeers
			c.NewPeers = func(report func(domain.Data, []byte, []byte)) (Peers, error) {
				p, err := inner(report)
				p.(*simPeers).mute["notes"] = true
				return p, err
			}
		})
		s.pass(10*time.Second - time.Millisecond)
		if n := len(find[domain.EraRefused](s.events())); n != 0 {
			t.Error("the peer was closed before its deadline")
		}
		s.pass(time.Millisecond)
		asked, _ := only[domain.ProbeIssued](s)
		closed, refused := only[domain.EraRefused](s)
		if refused.Code != domain.CodeAmbiguousSilence || since(closed, asked) != 10*time.Second {
			t.Errorf("closed with %s after %v", refused.Code, since(closed, asked))
		}
		noErr(t, s.engine.WaitSettled(within(t)))
		if len(s.peers.withdew) != 0 {
			t.Error("a probe was cancelled")
		}
		s.end()
		audit(t, s.disk)
	})
}

func TestACallEndsAtItsDeadlineAndALateAnswerIsDropped(t *testing.T) {
	inSim(t, nil, func(s *sim) {
		got := s.submit("local", `{"tool":"notes","call_id":"a","timeout_ms":1500}`)
		x := s.sent(0)
		reply := s.wantReply(got, domain.StatusTimedOut, domain.CodeTimedOut, domain.RanMaybe)
		if took := time.Since(x.at); took != 1500*time.Millisecond {
			s.t.Errorf("it took %v", took)
		}
		if len(s.peers.withdew) != 1 || s.peers.withdew[0].RequestID != x.RequestID {
			s.t.Errorf("the peer was told %+v", s.peers.withdew)
		}
		if s.finish(x, `{"late":true}`) {
			s.t.Error("the call waited on")
		}
		s.wantStory("local/a", "call.received", "call.routed", "deadline.passed", "call.abandoned", "call.settled", "call.answered")
		only[domain.AnswerDropped](s)
		later, _, err := Outcome(s.t.Context(), s.disk.Reader, domain.CallID{Host: "local", ID: "a"})
		if err != nil || later.Status != reply.Status || later.Code != reply.Code || later.Ran != reply.Ran {
			s.t.Errorf("the log says %s, %v", later.Encode(), err)
		}
	})
}

func TestACallThatWaitsIsRoutedWhenItsPeerIsReady(t *testing.T) {
	inSim(t, nil, func(s *sim) {
		s.exit("notes")
		refused := s.submit("local", `{"tool":"notes","call_id":"now"}`)
		s.wantReply(refused, domain.StatusRefused, domain.CodePeerUnavailable, domain.RanNo)
		got := s.submit("local", `{"tool":"notes","call_id":"a","wait_ms":5000}`)
		synctest.Wait()
		under, ok, err := Outcome(s.t.Context(), s.disk.Reader, domain.CallID{Host: "local", ID: "a"})
		if err != nil || !ok || under.Status != StatusUnderWay || under.Ran != domain.RanNo {
			s.t.Errorf("a held call is %s, %v", under.Encode(), err)
		}
		s.pass(10 * time.Second) // longer than it would have waited
		s.finish(s.sent(0), `{"ok":true}`)
		reply := s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
		if reply.Route.Incarnation != 2 || reply.Attempts != 0 {
			s.t.Errorf("reply: %s", reply.Encode())
		}
		s.wantStory("local/a", "call.received", "call.held", "call.routed", "call.answered", "call.settled")
		s.wantOutcome("local", reply)
		s.pass(time.Hour)
		if n := len(find[domain.WaitPassed](s.events())); n != 0 {
			s.t.Error("the wait of a call that was routed has passed")
		}
	})
}

func TestACallThatWaitedInVainIsRefusedWhenItsWaitIsOver(t *testing.T) {
	inSim(t, nil, func(s *sim) {
		s.set(s.peers.broken, "notes", true)
		s.exit("notes")
		begun := time.Now()
		got := s.submit("local", `{"tool":"notes","call_id":"a","wait_ms":777}`)
		reply := s.wantReply(got, domain.StatusRefused, domain.CodePeerUnavailable, domain.RanNo)
		if took := time.Since(begun); took != 777*time.Millisecond {
			s.t.Errorf("it took %v", took)
		}
		s.wantStory("local/a", "call.received", "call.held", "wait.passed", "call.refused")
		s.wantOutcome("local", reply)
	})
}

func TestAHeldCallCanBeCancelledAndItsWaitIsOver(t *testing.T) {
	inSim(t, nil, func(s *sim) {
		s.set(s.peers.broken, "notes", true)
		s.exit("notes")
		got := s.submit("local", `{"tool":"notes","call_id":"a","wait_ms":60000}`)
		if found, err := s.loop.Cancel(s.t.Context(), domain.CallID{Host: "local", ID: "a"}); err != nil || !found {
			s.t.Errorf("Cancel: %v, %v", found, err)
		}
		s.wantReply(got, domain.StatusCancelled, domain.CodeCancelled, domain.RanNo)
		s.pass(time.Hour)
		s.wantStory("local/a", "call.received", "call.held", "call.cancelled", "call.settled")
	})
}

func TestAPeerIsStartedAgainLaterEachTimeThenQuarantinedAndRevived(t *testing.T) {
	inSim(t, func(p *domain.PeerConfig) { p.Attempts, p.Quarantine, p.HealthEvery = 4, 3_600_000, 1000 }, func(s *sim) {
		s.set(s.peers.broken, "notes", true)
		s.exit("notes")
		s.pass(10 * time.Minute)
		var at []domain.Event
		for _, e := range s.events() {
			if _, ok := e.Data.(domain.PeerRestarted); ok {
				at = append(at, e)
			}
		}
		if len(at) != 5 {
			s.t.Fatalf("%d restarts, want 5: %v", len(at), kinds(s.events()))
		}
		for i, e := range at {
			d, base := e.Data.(domain.PeerRestarted), int64(100)<<i
			if i < 4 && (d.Attempt != i+1 || d.Delay < base || d.Delay > base*3/2) {
				s.t.Errorf("restart %d: %+v", i, d)
			}
			if i > 0 && since(e, at[i-1]) != time.Duration(at[i-1].Data.(domain.PeerRestarted).Delay)*time.Millisecond {
				s.t.Errorf("restart %d came %v after the one before", i, since(e, at[i-1]))
			}
		}
		if n := len(find[domain.HealthDue](s.events())); n != 0 {
			s.t.Errorf("%d signs of life of a peer that is gone were due", n)
		}
		if _, q := only[domain.PeerQuarantined](s); q.Attempts != 4 || at[4].Data.(domain.PeerRestarted).Delay != 3_600_000 {
			s.t.Errorf("quarantined: %+v, then %+v", q, at[4].Data)
		}
		s.set(s.peers.broken, "notes", false)
		s.revive()
	})
}

// revive has an operator start the peer again that is in quarantine.
func (s *sim) revive() {
	s.t.Helper()
	reply, err := s.loop.Command(s.t.Context(), domain.OperatorCommanded{By: "ann", Verb: domain.VerbRevive, Peer: "notes"}, nil)
	if err != nil || !reply.Done || len(reply.Seqs) != 2 {
		s.t.Fatalf("revive: %s, %v", reply.Encode(), err)
	}
	s.pass(time.Second)
	s.finishNext(s.submit("local", `{"tool":"notes"}`), 0)
	reply, err = s.loop.Command(s.t.Context(), domain.OperatorCommanded{By: "ann", Verb: domain.VerbRevive, Peer: "notes"}, nil)
	if err != nil || reply.Done || reply.Code != domain.CodeNotDown || reply.Reason == "" || len(reply.Seqs) != 2 {
		s.t.Errorf("revive of a peer that is up: %s, %v", reply.Encode(), err)
	}
}

// finishNext answers the n-th call, which is to be complete.
func (s *sim) finishNext(got <-chan Reply, n int) Reply {
	s.t.Helper()
	s.finish(s.sent(n), `{"n":1}`)
	return s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
}

func TestAPeerIsAskedForSignsOfLifeAndKilledWhenThereIsNone(t *testing.T) {
	inSim(t, func(p *domain.PeerConfig) { p.HealthEvery, p.HealthWithin = 60_000, 5_000 }, func(s *sim) {
		s.pass(150 * time.Second)
		if asked, answered := find[domain.HealthRequested](s.events()), find[domain.HealthAnswered](s.events()); len(asked) != 2 || len(answered) != 2 {
			s.t.Fatalf("%d signs of life were asked for, %d came", len(asked), len(answered))
		}
		under := s.submit("local", `{"tool":"notes","call_id":"a"}`)
		s.sent(0)
		s.set(s.peers.mute, "notes", true)
		s.pass(35 * time.Second) // the third at 180 s, its end at 185 s
		gone, d := only[domain.PeerAbandoned](s)
		if d.Code != domain.CodePeerHung || !slices.Contains(s.peers.stops, domain.Stop{At: d.At, Kill: true}) {
			s.t.Errorf("%+v; stops %+v", d, s.peers.stops)
		}
		if after := time.Duration(gone.Mono - s.events()[0].Mono); after != 185*time.Second {
			s.t.Errorf("it was given up after %v", after)
		}
		s.wantReply(under, domain.StatusLost, domain.CodeTransportLost, domain.RanMaybe)
		s.set(s.peers.mute, "notes", false)
		s.pass(time.Second)
		s.finishNext(s.submit("local", `{"tool":"notes"}`), 1)
		s.pass(61 * time.Second)
		asked := find[domain.HealthRequested](s.events())
		if last := asked[len(asked)-1]; len(asked) != 4 || last.Incarnation != 2 {
			s.t.Errorf("after the restart: %+v", asked)
		}
	})
}

func TestAPeerThatLetsCallsPassInSilenceIsKilledAndStartedAgain(t *testing.T) {
	inSim(t, func(p *domain.PeerConfig) { p.CallTimeout, p.HungAfter = 2_000, 2 }, func(s *sim) {
		s.set(s.peers.mute, "notes", true)
		for range 2 {
			s.wantReply(s.submit("local", `{"tool":"notes"}`), domain.StatusTimedOut, domain.CodeTimedOut, domain.RanMaybe)
		}
		s.set(s.peers.mute, "notes", false)
		_, d := only[domain.PeerAbandoned](s)
		if len(s.peers.stops) != 1 || !s.peers.stops[0].Kill || d.Incarnation != 1 {
			s.t.Errorf("%+v; stops %+v", d, s.peers.stops)
		}
		s.pass(time.Second)
		s.finishNext(s.submit("local", `{"tool":"notes"}`), 2)
	})
}

func TestACallThatWasNeverWrittenIsSentAgainWhenThePeerIsBack(t *testing.T) {
	inSim(t, func(p *domain.PeerConfig) { p.Resends = 1 }, func(s *sim) {
		at := s.peers.up["notes"]
		delete(s.peers.up, "notes") // its pipe is closed, and nobody has noticed
		got := s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n":1}}`)
		s.sent(0)
		s.tell(domain.PeerExited{At: at, Status: -1, Signal: "killed", Cause: "exited"}, nil, nil)
		s.pass(time.Second)
		again := s.sent(1)
		if again.Incarnation != 2 || string(again.body.Arguments) != `{"n":1}` {
			s.t.Errorf("sent again: %+v", again)
		}
		s.finish(again, `{"ok":true}`)
		reply := s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
		if reply.Attempts != 2 || reply.Route.Incarnation != 2 || reply.Route.Generation != 1 {
			s.t.Errorf("reply: %s", reply.Encode())
		}
		s.wantStory("local/a", "call.received", "call.routed", "exchange.failed", "call.held", "call.resent", "call.answered", "call.settled")
		s.wantOutcome("local", reply)
		if _, d := only[domain.CallResent](s); d.Rule != domain.RuleNeverWritten || d.By != "" {
			s.t.Errorf("%+v", d)
		}
	})
}

func TestTheAnswerAndTheCancellationOfACallSettleItOnceInEitherOrder(t *testing.T) {
	for _, cancelFirst := range []bool{true, false} {
		inSim(t, nil, func(s *sim) {
			got := s.submit("local", `{"tool":"notes","call_id":"a"}`)
			x := s.sent(0)
			cancel := domain.CallCancelled{CallID: domain.CallID{Host: "local", ID: "a"}, By: "host"}
			if cancelFirst {
				s.tell(cancel, nil, nil)
			}
			s.finish(x, `{"ok":true}`)
			if cancelFirst {
				reply := s.wantReply(got, domain.StatusCancelled, domain.CodeCancelled, domain.RanMaybe)
				if reply.Result != nil {
					s.t.Errorf("reply: %s", reply.Encode())
				}
				only[domain.AnswerDropped](s)
			} else {
				s.tell(cancel, nil, nil)
				s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
			}
			only[domain.CallSettled](s)
		})
	}
}

func TestAStopEndsWhatRunsAndWhatIsHeld(t *testing.T) {
	inSim(t, nil, func(s *sim) {
		running := s.submit("local", `{"tool":"notes","call_id":"running"}`)
		lost := s.sent(0)
		s.set(s.peers.broken, "notes", true)
		s.exit("notes")
		s.wantReply(running, domain.StatusLost, domain.CodeTransportLost, domain.RanMaybe)
		s.loop.alarms.start(peerAlarm("notes"), domain.At{}, 3_600_000, domain.HealthDue{})
		held := s.submit("local", `{"tool":"notes","call_id":"held","wait_ms":3600000}`)
		s.set(s.peers.broken, "notes", false)
		other := s.submit("local", `{"tool":"none"}`)
		s.wantReply(other, domain.StatusRefused, domain.CodeUnknownTool, domain.RanNo)
		s.quit()
		s.wantReply(held, domain.StatusCancelled, domain.CodeShuttingDown, domain.RanNo)
		s.wantStory("local/held", "call.received", "call.held", "call.settled")
		if n := len(s.loop.alarms.set); n != 0 {
			s.t.Errorf("%d alarms are left", n)
		}
		s.pass(2 * time.Hour)
		if last := s.events()[len(s.events())-1].Data.Kind(); last != "call.settled" || lost == nil {
			s.t.Errorf("the last event is %s", last)
		}
	})
	inSim(t, nil, func(s *sim) {
		running := s.submit("local", `{"tool":"notes","call_id":"running"}`)
		s.sent(0)
		s.quit()
		s.wantReply(running, domain.StatusCancelled, domain.CodeShuttingDown, domain.RanMaybe)
	})
}
