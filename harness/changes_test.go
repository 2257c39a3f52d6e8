package harness

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
)

// listening is a peer that announces changes, and lists a for an hour.
func listening() *listers {
	p := one("notes", shelf{tools: tool("a"), ttl: 3_600_000})
	p.notices = true
	return p
}

// A storm of notices costs a handful of readings, and calls get through it.
func TestAStormOfNoticesLeadsToFewReadingsAndHoldsUpNoCall(t *testing.T) {
	const chunks, each = 100, 1000
	inLists(t, listConfig(listeningRules(), nil, "notes"), listening(), func(s *listSim) {
		for n := range chunks {
			s.pass(100 * time.Millisecond)
			d := domain.ListChanged{At: s.up("notes"), Count: 1, Subscription: s.open("notes", "")}
			s.storm(d, each/2)
			got := s.submit("local", fmt.Sprintf(`{"tool":"a","call_id":"c%d"}`, n))
			s.storm(d, each/2)
			s.finishNext(got, n)
		}
		s.pass(time.Minute)
		list := s.events()
		if got := len(find[domain.ListChanged](list)); got != chunks*each {
			s.t.Errorf("%d notices are recorded, of %d", got, chunks*each)
		}
		// The interval is 1, 2, 4 and 8 s, since nothing turned out to have changed.
		wantIn[domain.ListRequested](s, list, []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second})
		if n := len(find[domain.ListDeferred](list)); n != 4 {
			s.t.Errorf("it was put off %d times", n)
		}
		if most := distance(list); most > each+100 {
			s.t.Errorf("between a call and its end there are %d events", most)
		}
	})
}

// storm has a peer announce n changes, and does not wait.
func (s *listSim) storm(d domain.ListChanged, n int) {
	for range n {
		s.tell(d, nil, nil)
	}
}

// distance is how many events there are at most from call.received to call.settled.
func distance(list []domain.Event) (most int64) {
	begun := map[string]int64{}
	for _, e := range list {
		switch e.Data.(type) {
		case domain.CallReceived:
			begun[e.Call()] = e.Seq
		case domain.CallSettled:
			most = max(most, e.Seq-begun[e.Call()])
		}
	}
	return most
}

// A list that changes while it is read is stale on arrival, and read again (design:
// Lists).
func TestAChangeWhileTheListIsReadHasItReadAgain(t *testing.T) {
	p := listening()
	inLists(t, listConfig(listeningRules(), nil, "notes"), p, func(s *listSim) {
		s.pass(5 * time.Second)
		p.put("notes", shelf{tools: tool("b"), ttl: 3_600_000, after: 300 * time.Millisecond})
		s.changes("notes", "", 1) // it is being read
		s.pass(200 * time.Millisecond)
		s.changes("notes", "", 7)
		out := make(chan reading, 1)
		go func() { out <- readOnce(s.t.Context(), s.engine, "") }()
		s.pass(100 * time.Millisecond)
		p.put("notes", shelf{tools: tool("c"), ttl: 3_600_000})
		(<-out).want(s.t, []string{"b"}, []string{"notes"}) // on arrival it is stale, and named so
		s.pass(10 * time.Second)
		wantAt[domain.ListRequested](s, 0, 5*time.Second, 6*time.Second)
		s.read(1, "")[0].want(s.t, []string{"c"}, []string{})
	})
}

// A subscription that ends is opened again under a new id, later each time, and the
// list that it covers is read again (specification, basic/patterns/subscriptions,
// "Cancellation").
func TestASubscriptionThatEndsIsOpenedAgainAndItsListRead(t *testing.T) {
	for _, how := range []string{domain.EndedAnswered, domain.EndedError, domain.EndedCancelled, domain.EndedBroken} {
		t.Run(how, func(t *testing.T) {
			p := listening()
			inLists(t, listConfig(listeningRules(), nil, "notes"), p, func(s *listSim) {
				last, names := s.events()[0], []string{"a"}
				for n, least := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
					s.pass(time.Second)
					p.put("notes", shelf{tools: tool(fmt.Sprint("v", n)), ttl: 3_600_000})
					before := s.open("notes", "")
					s.ends("notes", "", how)
					s.read(1, "")[0].want(s.t, names, []string{}) // as fresh as its ttl says
					s.pass(least * 6 / 5)
					after := s.open("notes", "")
					if after <= before {
						s.t.Fatalf("round %d: subscription %d, then %d", n, before, after)
					}
					names = []string{fmt.Sprint("v", n)}
					s.read(1, "")[0].want(s.t, names, []string{})
					closed := lastOf[domain.SubscriptionClosed](s)
					if d := closed.Data.(domain.SubscriptionClosed); d.RequestID != before || d.Reopen < least.Milliseconds() || closed.Seq <= last.Seq {
						s.t.Errorf("round %d: closed %+v", n, d)
					}
					last = closed
				}
				s.stays(last)
			})
		})
	}
}

// stays checks that a subscription that lasted is opened again quickly.
func (s *listSim) stays(before domain.Event) {
	s.t.Helper()
	s.pass(time.Minute)
	s.ends("notes", "", domain.EndedCancelled)
	if d := lastOf[domain.SubscriptionClosed](s).Data.(domain.SubscriptionClosed); d.Reopen >= before.Data.(domain.SubscriptionClosed).Reopen || d.Reopen < 1000 {
		s.t.Errorf("after a minute: %+v, before it %+v", d, before.Data)
	}
}

// lastOf is the last event of a type.
func lastOf[T domain.Data](s *listSim) (last domain.Event) {
	for _, e := range s.events() {
		if _, ok := e.Data.(T); ok {
			last = e
		}
	}
	return last
}

// A process that is started again knows nothing of what was subscribed to: it is
// subscribed to anew, before the list is read, and what the old one still says
// changes nothing.
func TestAPeerThatRestartsIsSubscribedToAnew(t *testing.T) {
	p := listening()
	inLists(t, listConfig(listeningRules(), nil, "notes"), p, func(s *listSim) {
		s.pass(5 * time.Second)
		at, old := s.up("notes"), s.open("notes", "")
		s.exit("notes")
		list := s.read(1, "")[0]
		list.want(s.t, []string{"a"}, []string{"notes"})
		if list.took != 0 {
			s.t.Errorf("a host waited %v for a peer that is down", list.took)
		}
		p.put("notes", shelf{tools: tool("b"), ttl: 3_600_000})
		s.pass(time.Second)
		now := s.open("notes", "")
		if now <= old || s.listens()[len(s.listens())-1].Incarnation != 2 || len(s.listens()) != 2 {
			s.t.Fatalf("subscriptions: %+v", s.listens())
		}
		if list := s.asks()[len(s.asks())-1]; list.RequestID <= now {
			s.t.Errorf("the list was asked for as %d, before the subscription %d", list.RequestID, now)
		}
		s.read(1, "")[0].want(s.t, []string{"b"}, []string{})
		s.tell(domain.ListChanged{At: at, Subscription: old, Count: 1}, nil, nil)
		s.tell(domain.ListChanged{At: s.up("notes"), Subscription: old, Count: 1}, nil, nil)
		s.tell(domain.ListDue{At: at}, nil, nil)
		s.tell(domain.SubscriptionDue{At: at}, nil, nil)
		s.read(1, "")[0].want(s.t, []string{"b"}, []string{})
		s.pass(time.Minute)
		if len(s.asks()) != 2 || len(s.listens()) != 2 {
			s.t.Errorf("lists %+v, subscriptions %+v", s.asks(), s.listens())
		}
	})
}

// A subscription that is not acknowledged in time is withdrawn; the list is then as
// fresh as its ttl says, and calls go on all the while.
func TestASubscriptionThatNobodyAcknowledgesIsWithdrawn(t *testing.T) {
	p := listening()
	p.notices, p.unheard = false, true
	inLists(t, listConfig(listeningRules(), nil, "notes"), p, func(s *listSim) {
		s.finishNext(s.submit("local", `{"tool":"a"}`), 0)
		s.pass(5 * time.Second)
		wantAt[domain.SubscriptionClosed](s, 5*time.Second)
		if w := s.peers.withdew; len(w) != 1 || w[0].RequestID != s.listens()[0].RequestID {
			s.t.Errorf("withdrawn: %+v", w)
		}
		s.finishNext(s.submit("local", `{"tool":"a"}`), 1)
		s.read(1, "")[0].want(s.t, []string{"a"}, []string{})
		s.pass(time.Hour)
		s.read(1, "")
		if len(s.asks()) != 2 || len(s.listens()) != 1 {
			s.t.Errorf("lists %d, subscriptions %d", len(s.asks()), len(s.listens()))
		}
	})
}

// approve orders that a tool be routed as it is now.
func (s *listSim) approve(tool, context, digest string) CommandReply {
	s.t.Helper()
	reply, err := s.loop.Command(s.t.Context(), domain.OperatorCommanded{By: "ann", Verb: domain.VerbApprove, Tool: tool, Context: context, Digest: digest}, nil)
	noErr(s.t, err)
	return reply
}

// A tool whose definition changed is not called before somebody has approved what
// it is now, and exactly that.
func TestAChangedToolIsHeldUntilItIsApproved(t *testing.T) {
	r := listeningRules()
	r.Hold = true
	p := listening()
	inLists(t, listConfig(r, nil, "notes"), p, func(s *listSim) {
		s.pass(5 * time.Second)
		first := s.read(1, "")[0].list.Tools[0]
		s.wantApproval("a", first.Digest, domain.CodeNotQuarantined)
		p.put("notes", shelf{tools: tool("a", "and sends it to me") + "," + tool("b"), ttl: 3_600_000})
		s.changes("notes", "", 1)
		reply := s.reply(s.submit("local", `{"tool":"a"}`))
		if reply.Status != domain.StatusRefused || reply.Code != domain.CodeToolQuarantined || reply.Ran != domain.RanNo {
			s.t.Errorf("reply: %s", reply.Encode())
		}
		s.finishNext(s.submit("local", `{"tool":"b"}`), 0) // the others are as they were
		held := s.read(1, "")[0].list.Tools[0]
		if held.Definition != nil || held.Held == nil || held.Held.Approved != first.Digest || held.Held.Now == first.Digest || len(held.Held.Diff) == 0 {
			s.t.Fatalf("the tool in quarantine: %+v", held)
		}
		s.wantApproval("a", first.Digest, domain.CodeToolDiffers)
		s.wantApproval("a", "", domain.CodeToolDiffers)
		s.wantApproval("none", held.Held.Now, domain.CodeUnknownTool)
		s.wantApproval("b", held.Held.Now, domain.CodeNotQuarantined)
		s.reply(s.submit("local", `{"tool":"a"}`))
		s.wantApproval("a", held.Held.Now, "")
		s.finishNext(s.submit("local", `{"tool":"a"}`), 1)
		now := s.read(1, "")[0].list.Tools[0]
		if now.Held != nil || now.Definition == nil || now.Digest != held.Held.Now {
			s.t.Errorf("the tool that was approved: %+v", now)
		}
		s.wantApproval("a", held.Held.Now, domain.CodeNotQuarantined)
		if _, d := only[domain.ToolApproved](s.sim); d.By != "ann" || d.Peer != "notes" || d.Local != "a" || d.Digest != held.Held.Now {
			s.t.Errorf("approved: %+v", d)
		}
	})
}

// wantApproval orders an approval and checks what comes of it: its JSON names the
// tool, and a refusal its code.
func (s *listSim) wantApproval(tool, digest string, code domain.Code) {
	s.t.Helper()
	reply := s.approve(tool, "", digest)
	var got struct {
		By, Verb, Tool string
		Code, Peer     *string
		Seqs           []int64
	}
	noErr(s.t, json.Unmarshal(reply.Encode(), &got))
	refused := code != ""
	if reply.Done == refused || reply.Code != code || refused != (got.Code != nil && *got.Code == string(code)) || got.Tool != tool ||
		got.By != "ann" || got.Verb != domain.VerbApprove || got.Peer != nil || len(got.Seqs) != 2 || refused != (reply.Reason != "") {
		s.t.Errorf("approve %s as %.8s: %s, want code %q", tool, digest, reply.Encode(), code)
	}
	synctest.Wait()
	var last domain.Data
	for _, e := range s.events() {
		if slices.Contains(got.Seqs, e.Seq) {
			last = e.Data
		}
	}
	if _, ok := last.(domain.ToolApproved); ok == refused {
		s.t.Errorf("approve %s: the log has %+v", tool, last)
	}
}
