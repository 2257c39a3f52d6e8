package peer

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/domain"
)

// A deadline ends a request wherever it is, and the peer sees that nobody reads any more.
func TestADeadlineOverHTTPClosesTheStream(t *testing.T) {
	for name, c := range map[string]struct {
		way    http.HandlerFunc
		silent bool
	}{
		"before the header":      {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, true},
		"in the stream":          {streams(event(`{"jsonrpc":"2.0","method":"notifications/message"}`), "wait"), false},
		"in a stream of nothing": {streams("wait"), false},
		"in a body":              {streamsAs(200, "application/json", `{"jsonrpc":`, "wait"), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			b := webStarted(t, s, nil)
			b.modern()
			s.on(domain.MethodCall, c.way)
			id := b.call("c", domain.EraModern, "{}", func(s *domain.Send, _ *domain.Body) { s.Deadline = 100 })
			if d := b.outcome(id); d != domain.Data(domain.DeadlinePassed{At: at1, RequestID: id, Call: "local/c", Silent: c.silent}) {
				t.Errorf("%+v", d)
			}
			poll(t, "the peer to see it", func() bool { return s.deserted(domain.MethodCall) == 1 })
			b.Do(domain.Withdraw{At: at1, RequestID: id}, nil)
			b.health()
			await[domain.HealthAnswered](t, b.ledger, 1)
			if n := len(s.seen("notifications/cancelled")); n > 0 {
				t.Errorf("%d cancellations were posted to a modern peer", n)
			}
		})
	}
}

func TestAWithdrawnRequestOverHTTPIsClosedAndHasNoOutcome(t *testing.T) {
	s := newSite(t)
	b := webStarted(t, s, nil)
	b.modern()
	for _, method := range []string{domain.MethodCall, domain.MethodList, domain.MethodListen} {
		s.on(method, streams("wait"))
	}
	ids := []int64{b.simple(), b.list(), b.subscribe()}
	s.sees(t, domain.MethodListen, 1)
	s.sees(t, domain.MethodList, 1)
	s.sees(t, domain.MethodCall, 1)
	for _, id := range ids {
		b.withdraw(id)
	}
	poll(t, "the peer to see it", func() bool {
		return s.deserted(domain.MethodCall) == 1 && s.deserted(domain.MethodList) == 1 && s.deserted(domain.MethodListen) == 1
	})
	if len(s.seen("notifications/cancelled")) > 0 {
		t.Error("a cancellation was posted to a modern peer")
	}
}

// What waits for a connection was not written, and what is withdrawn there never is.
func TestARequestThatWaitsForAConnectionIsNotWritten(t *testing.T) {
	s := newSite(t)
	b := webStarted(t, s, func(w *Web) { w.Options.Connections = 2 })
	b.modern()
	s.on(domain.MethodCall, streams("wait"))
	s.on(domain.MethodList, jsonAnswer(webOneTool))
	busy := []int64{b.simple(), b.simple()}
	s.sees(t, domain.MethodCall, 2)
	late := b.call("c", domain.EraModern, "{}", func(s *domain.Send, _ *domain.Body) { s.Deadline = 50 })
	gone := b.simple()
	if d := b.outcome(late); d != domain.Data(domain.DeadlinePassed{At: at1, RequestID: late, Call: "local/c", Written: writtenNo}) {
		t.Errorf("%+v", d)
	}
	b.withdraw(gone)
	list := b.list()
	b.withdraw(busy[0])
	if _, ok := b.outcome(list).(domain.CatalogListed); !ok {
		t.Errorf("%+v", b.outcome(list))
	}
	b.withdraw(busy[1])
	if n := len(s.seen(domain.MethodCall)); n != 2 {
		t.Errorf("%d calls arrived", n)
	}
}

// Subscriptions take no connection of calls.
func TestASubscriptionStaysOpenBesideTheCalls(t *testing.T) {
	s := newSite(t)
	b := webStarted(t, s, func(w *Web) { w.Options.Connections = 1 })
	b.modern()
	s.on(domain.MethodListen, streams(": keep\n\n", event(acknowledgement("$ID")), ": keep\n\n", event(changeNotice("$ID")), "wait"))
	s.on(domain.MethodCall, jsonAnswer(webComplete))
	id := b.subscribe()
	await[domain.SubscriptionAcknowledged](t, b.ledger, 1)
	for i := range 5 {
		b.simple()
		b.answered(i + 1)
	}
	changed, _ := await[domain.ListChanged](t, b.ledger, 1)
	if changed[0] != (domain.ListChanged{At: at1, Subscription: id, Count: 1}) || len(b.outcomes(id)) > 0 {
		t.Errorf("%+v, %+v", changed[0], b.outcomes(id))
	}
}

func TestHowASubscriptionOverHTTPEnds(t *testing.T) {
	for name, c := range map[string]struct {
		last string
		want func(domain.Data) bool
	}{
		"an answer":      {event(gracefulEnd("$ID")), endsAs(domain.EndedAnswered)},
		"an error":       {event(rpc(errorAnswer(-32603))), endsAs(domain.EndedError)},
		"a cancellation": {event(cancelNotice("$ID")), endsAs(domain.EndedCancelled)},
		"the stream's end": {"", func(d domain.Data) bool {
			f, ok := d.(domain.ExchangeFailed)
			return ok && f.Code == domain.CodeTransportLost && f.Written == writtenMaybe
		}},
	} {
		s := newSite(t)
		b := webStarted(t, s, nil)
		b.modern()
		s.on(domain.MethodListen, streams(event(acknowledgement("$ID")), c.last))
		if d := b.outcome(b.subscribe()); !c.want(d) {
			t.Errorf("%s: %+v", name, d)
		}
		if !strings.Contains(b.story(), "subscription.acknowledged") || len(s.seen("GET")) > 0 {
			t.Errorf("%s: %s, and %d GETs", name, b.story(), len(s.seen("GET")))
		}
	}
}

func endsAs(how string) func(domain.Data) bool {
	return func(d domain.Data) bool {
		e, ok := d.(domain.SubscriptionEnded)
		return ok && e.How == how
	}
}

// Who cannot be reached is reported as gone, before the request that found it out and once; what is under way goes on beside the
// next incarnation.
func TestAnUnreachableEndpointIsReplacedWhileCallsGoOn(t *testing.T) {
	s := newFleetingSite(t)
	b := webStarted(t, s, nil)
	b.modern()
	finish := make(chan struct{})
	s.on(domain.MethodCall, func(w http.ResponseWriter, r *http.Request) {
		streams(": begun\n\n")(w, r)
		until(r, finish)
		_, _ = io.WriteString(w, event(`{"jsonrpc":"2.0","id":2,`+webComplete+`}`)) // the client may have gone
	})
	s.on(domain.MethodListen, streams(event(acknowledgement("$ID")), "wait"))
	under := b.simple() // id 2
	s.sees(t, domain.MethodCall, 1)
	listen := b.subscribe()
	await[domain.SubscriptionAcknowledged](t, b.ledger, 1)
	s.unreachable()
	for range 3 {
		if f := b.failure(b.simple()); f.Written != writtenNo || f.Code != domain.CodeTransportLost {
			t.Errorf("%+v", f)
		}
	}
	if f := b.failure(listen); f.Written != writtenMaybe || f.Code != domain.CodeTransportLost {
		t.Errorf("the subscription: %+v", f)
	}
	exits := of[domain.PeerExited](b.ledger)
	if len(exits) != 1 || exits[0] != (domain.PeerExited{At: at1, Cause: causeUnreachable}) {
		t.Fatalf("%+v", exits)
	}
	if before, after, _ := strings.Cut(b.story(), "peer.exited"); strings.Contains(before, "exchange.failed") || !strings.Contains(after, "exchange.failed") {
		t.Error(b.story())
	}
	s.reachable()
	s.on(domain.MethodList, jsonAnswer(webOneTool))
	b.launch(2)
	next := b.ask(domain.Send{At: webAt(2), Method: domain.MethodDiscover, Era: domain.EraUnknown, Version: "2026-07-28"}, nil)
	b.Do(domain.SelectEra{At: webAt(2), Era: domain.EraModern, Version: "2026-07-28"}, nil)
	list := b.ask(domain.Send{At: webAt(2), Method: domain.MethodList, Era: domain.EraModern, Version: "2026-07-28"}, nil)
	if p, ok := b.outcome(next).(domain.ProbeAnswered); !ok || p.At != webAt(2) {
		t.Errorf("%+v", b.outcome(next))
	}
	if l, ok := b.outcome(list).(domain.CatalogListed); !ok || l.At != webAt(2) {
		t.Errorf("%+v", b.outcome(list))
	}
	if len(b.outcomes(under)) > 0 {
		t.Fatalf("%+v", b.outcomes(under))
	}
	close(finish)
	if a, ok := b.outcome(under).(domain.CallAnswered); !ok || a.At != at1 {
		t.Errorf("%+v", b.outcome(under))
	}
}

// A manager that is closed waits for the calls of no incarnation, the last or one before.
func TestCloseEndsWhatIsUnderWayAtARetiredIncarnation(t *testing.T) {
	s := newFleetingSite(t)
	before := runtime.NumGoroutine()
	b := webStarted(t, s, nil)
	b.modern()
	s.on(domain.MethodCall, streams("wait"))
	under := []int64{b.simple(), b.simple()}
	s.sees(t, domain.MethodCall, 2)
	s.unreachable()
	b.failure(b.simple())
	b.launch(2)
	began := time.Now()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	for _, id := range under {
		if f := b.failure(id); f.Code != domain.CodeTransportLost || f.Written != writtenMaybe || f.At != at1 {
			t.Errorf("%+v", f)
		}
	}
	exits := of[domain.PeerExited](b.ledger)
	if !slices.Equal(exits, []domain.PeerExited{{At: at1, Cause: causeUnreachable}, {At: webAt(2), Cause: causeStopped}}) {
		t.Errorf("%+v", exits)
	}
	s.CloseClientConnections()
	poll(t, "the end of every goroutine", func() bool { return runtime.NumGoroutine() <= before })
}

// What an incarnation has counted is reported when it ends, also where its calls outlast it: no timer is left.
func TestNothingIsReportedAfterCloseOfARetiredIncarnation(t *testing.T) {
	s := newFleetingSite(t)
	b := webStarted(t, s, nil)
	b.legacy("")
	finish := make(chan struct{})
	s.on(domain.MethodCall, func(w http.ResponseWriter, r *http.Request) {
		streams(event(changeNotice("0")))(w, r)
		until(r, finish)
		streams(event(changeNotice("0")), event(`{"jsonrpc":"2.0","id":2,`+webComplete+`}`))(w, r)
	})
	under := b.simpleLegacy() // id 2
	await[domain.ListChanged](t, b.ledger, 1)
	s.sees(t, "GET", 1)
	s.unreachable()
	for !strings.Contains(b.story(), "peer.exited") {
		b.outcome(b.simpleLegacy())
	}
	close(finish)
	b.outcome(under)
	poll(t, "the end of the incarnation", func() bool { return len(b.lane("p").incarnations()) == 0 })
	if got := of[domain.ListChanged](b.ledger); len(got) != 2 || got[1].Count != 1 {
		t.Errorf("%+v", got)
	}
}

// What is given to a lane while its endpoint is found to be gone fails at once, and is not left to its deadline.
func TestWhatIsSentToARetiredIncarnationFailsAtOnce(t *testing.T) {
	s := newFleetingSite(t)
	b := webStarted(t, s, nil)
	b.modern()
	s.on(domain.MethodCall, streams("wait"))
	b.simple()
	s.sees(t, domain.MethodCall, 1)
	s.unreachable()
	var ids []int64
	for range 200 {
		ids = append(ids, b.simple())
	}
	for _, id := range ids {
		if f := b.failure(id); f.Code != domain.CodeTransportLost || f.Written != writtenNo {
			t.Errorf("%+v", f)
		}
	}
	if n := len(of[domain.PeerExited](b.ledger)); n != 1 {
		t.Errorf("%d exits", n)
	}
}

// Nothing is written where no connection comes about.
func TestNoConnectionIsNeverWritten(t *testing.T) {
	s := newSite(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for name, endpoint := range map[string]string{"refused": "http://" + closed.Addr().String(), "no TLS": strings.Replace(s.URL, "http", "https", 1),
		"no name": "https://no.such.name.invalid/"} {
		b := webStarted(t, s, func(w *Web) {
			u, err := url.Parse(endpoint)
			if err != nil {
				t.Fatal(err)
			}
			w.Options.Endpoint = u
		})
		probe := b.probe()
		if f, ok := b.outcome(probe).(domain.ProbeFailed); !ok || f.Class != domain.ClassUnavailable || f.Status != 0 {
			t.Errorf("%s: %+v", name, b.outcome(probe))
		}
		b.Do(domain.SelectEra{At: at1, Era: domain.EraModern, Version: "2026-07-28"}, nil)
		if f := b.failure(b.simple()); f.Code != domain.CodeTransportLost || f.Written != writtenNo {
			t.Errorf("%s: %+v", name, f)
		}
		if exits := of[domain.PeerExited](b.ledger); len(exits) != 1 || exits[0].Cause != causeUnreachable {
			t.Errorf("%s: %+v", name, exits)
		}
	}
}

// An incarnation that is stopped ends what is under way at it.
func TestAStopOverHTTPEndsWhatIsUnderWay(t *testing.T) {
	s := newSite(t)
	b := webStarted(t, s, func(w *Web) { w.Options.Connections = 1 })
	b.modern()
	s.on(domain.MethodCall, streams("wait"))
	s.on(domain.MethodListen, streams(event(acknowledgement("$ID")), "wait"))
	listen, call := b.subscribe(), b.simple()
	s.sees(t, domain.MethodCall, 1)
	await[domain.SubscriptionAcknowledged](t, b.ledger, 1)
	waits := b.list()
	b.Do(domain.Stop{At: at1}, nil)
	exits, _ := await[domain.PeerExited](t, b.ledger, 1)
	if exits[0] != (domain.PeerExited{At: at1, Cause: causeStopped}) || !strings.HasSuffix(b.story(), "peer.exited") {
		t.Errorf("%+v; %s", exits[0], b.story())
	}
	for id, written := range map[int64]string{listen: writtenMaybe, call: writtenMaybe, waits: writtenNo} {
		if f := b.failure(id); f.Code != domain.CodeTransportLost || f.Written != written {
			t.Errorf("%+v", f)
		}
	}
	if f := b.failure(b.simple()); f.Code != domain.CodeTransportLost || f.Written != writtenNo {
		t.Errorf("after its end: %+v", f)
	}
	if n := len(s.seen("DELETE")); n > 0 {
		t.Errorf("%d DELETEs to a modern peer", n)
	}
}

// A peer that drips, never ends or says nothing of use holds up its own requests until their deadline, and nobody else's.
func TestAHostilePeerHoldsUpNobodyElse(t *testing.T) {
	s, good := newSite(t), newSite(t)
	good.on(domain.MethodCall, jsonAnswer(webComplete))
	b := webWith(t, s, func(c *Config, p *Spec) {
		p.Web.Options.MaxStream = 1 << 40
		c.Specs["good"] = Spec{Name: "good", Web: &Web{Options: webOptions(t, good)}}
	})
	b.modern()
	at := domain.At{Peer: "good", Incarnation: 1}
	b.Do(domain.Launch{At: at}, nil)
	const flood = "a flood of comments" // it comes to its limit, however long that takes here
	for name, way := range map[string]http.HandlerFunc{
		"a header":           drips("H", 5*time.Millisecond),
		"interim answers":    drips("HTTP/1.1 103 Early Hints\r\n\r\n", 5*time.Millisecond),
		"comments":           drips("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: nothing\n\n", 5*time.Millisecond),
		flood:                drips("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: nothing\n\n", 0),
		"a line of a stream": drips("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ", 5*time.Millisecond),
		"a body":             drips("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", 5*time.Millisecond),
	} {
		s.on(domain.MethodCall, way)
		var slow []int64
		deadline := int64(300)
		if name == flood {
			deadline = 60_000
		}
		for range 20 { // more than there are connections
			slow = append(slow, b.call("c", domain.EraModern, "{}", func(s *domain.Send, _ *domain.Body) { s.Deadline = deadline }))
		}
		for range 5 {
			id := b.call("g", domain.EraModern, "{}", func(s *domain.Send, _ *domain.Body) { s.At = at })
			if _, ok := b.outcome(id).(domain.CallAnswered); !ok {
				t.Errorf("%s: beside it %+v", name, b.outcome(id))
			}
		}
		for _, id := range slow {
			if name == flood {
				if f := b.failure(id); f.Code != domain.CodeFrameTooLarge || f.Written != writtenMaybe {
					t.Errorf("%s: %+v", name, f)
				}
			} else if _, ok := b.outcome(id).(domain.DeadlinePassed); !ok {
				t.Errorf("%s: %+v", name, b.outcome(id))
			}
		}
	}
}

// drips writes something, and then its last byte or, without a pause, its last line again and again, until the client goes.
func drips(text string, pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		again, every := text[len(text)-1:], pause
		switch {
		case pause == 0:
			again, every = strings.Repeat(": nothing\n\n", 1000), time.Microsecond
		case strings.Contains(text, " 103 "):
			again = text
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for _, err = io.WriteString(c, text); err == nil; _, err = io.WriteString(c, again) {
			<-tick.C
		}
	}
}
