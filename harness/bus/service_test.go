package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"waybill/events"
)

func serviceConfig() ServiceConfig {
	return ServiceConfig{Prefix: DefaultPrefix, LogID: testLog, Logger: quiet}
}

// echo answers every request with what it was.
func echo() Handlers {
	answer := func(r *Request) {
		_ = r.Respond([]byte(strings.Join([]string{r.Verb, r.Host, r.Traceparent + r.Tracestate, string(r.Data)}, "|")), "", 0)
	}
	return Handlers{
		Call: answer,
		Read: map[string]func(context.Context, *Request){
			"tools": func(_ context.Context, r *Request) { answer(r) },
		},
	}
}

func must2(t testing.TB) func(data []byte, code string, err error) (string, string) {
	return func(data []byte, code string, err error) (string, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return string(data), code
	}
}

// stage is a server with a service and the credentials of two hosts.
type stage struct {
	*Service
	c       Credentials
	server  *Server
	replier *nats.Conn
}

func startStage(t testing.TB, cfg ServiceConfig, h Handlers) stage {
	t.Helper()
	_, c := writeCredentials(t, LocalHost, "other")
	s := startServer(t, c)
	replier := connect(t, c.Replier(), Target{Server: s})
	service := must[*Service](t)(StartService(replier, cfg, h))
	t.Cleanup(service.Stop)
	return stage{service, c, s, replier}
}

func TestARequestReachesItsHandlerAndIsAnswered(t *testing.T) {
	st := startStage(t, serviceConfig(), echo())
	trace := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, host := range []string{LocalHost, "other"} {
		client := dial(t, st.c, st.server, host)
		got, code := must2(t)(client.RequestTraced(testContext(t), CallVerb, []byte("body"), trace))
		if want := "call|" + host + "|" + trace + "|body"; got != want || code != "" {
			t.Errorf("reply %q, code %q, want %q", got, code, want)
		}
		got, code = must2(t)(client.Request(testContext(t), "tools", nil))
		if want := "tools|" + host + "||"; got != want || code != "" {
			t.Errorf("reply %q, code %q, want %q", got, code, want)
		}
	}
}

func TestAHostOnASocketIsAnsweredToo(t *testing.T) {
	dir, c := writeCredentials(t, LocalHost)
	s := startServer(t, c)
	service := must[*Service](t)(StartService(connect(t, c.Replier(), Target{Server: s}), serviceConfig(), echo()))
	t.Cleanup(service.Stop)
	client := must[*Client](t)(Dial(testContext(t), s.ClientURL(), dir, LocalHost, DefaultPrefix))
	defer client.Close()
	if got, _ := must2(t)(client.Request(testContext(t), CallVerb, []byte("x"))); got != "call|local||x" {
		t.Errorf("reply %q", got)
	}
}

func TestAnOverlongTraceparentIsNotPassedOn(t *testing.T) {
	st := startStage(t, serviceConfig(), echo())
	client := dial(t, st.c, st.server, LocalHost)
	got, _ := must2(t)(client.RequestTraced(testContext(t), CallVerb, nil, strings.Repeat("0", maxTraceparent+1)))
	if got != "call|local||" {
		t.Errorf("reply %q", got)
	}
}

func TestACodeTravelsInTheHeadersAndTheBodyIsStillData(t *testing.T) {
	st := startStage(t, serviceConfig(), Handlers{Call: func(r *Request) {
		_ = r.Respond([]byte(`{"why":"x"}`), "tool_unknown", 404)
	}})
	local := must[Identity](t)(st.c.Host(LocalHost))
	nc := connect(t, local, Target{Server: st.server})
	msg := must[*nats.Msg](t)(nc.RequestWithContext(testContext(t), RequestSubject(DefaultPrefix, CallVerb, LocalHost), nil))
	if msg.Header.Get("Nats-Service-Error") != "tool_unknown" || msg.Header.Get("Nats-Service-Error-Code") != "404" {
		t.Errorf("headers %v", msg.Header)
	}
	if string(msg.Data) != `{"why":"x"}` {
		t.Errorf("body %q", msg.Data)
	}
	if got := st.Counts(); got != (Counts{Failed: 1}) {
		t.Errorf("counts %+v", got)
	}
}

func TestARequestHasOneReply(t *testing.T) {
	second := make(chan error, 1)
	st := startStage(t, serviceConfig(), Handlers{Call: func(r *Request) {
		_ = r.Respond([]byte("first"), "", 0)
		second <- r.Respond([]byte("second"), "", 0)
	}})
	got, _ := must2(t)(dial(t, st.c, st.server, LocalHost).Request(testContext(t), CallVerb, nil))
	if err := receive(t, second); got != "first" || !errors.Is(err, ErrAnswered) {
		t.Errorf("reply %q, second error %v", got, err)
	}
}

func TestATooLargeReplyIsNotSentAndCanBeReplaced(t *testing.T) {
	large := make(chan error, 2)
	st := startStage(t, serviceConfig(), Handlers{Call: func(r *Request) {
		large <- r.Respond(make([]byte, MaxMessage+1), "", 0)
		// The headers of a code count too.
		large <- r.Respond(make([]byte, MaxMessage), "x", 500)
		_ = r.Respond(bytes.Repeat([]byte("y"), MaxMessage), "", 0)
	}})
	got, code := must2(t)(dial(t, st.c, st.server, LocalHost).Request(testContext(t), CallVerb, nil))
	for range 2 {
		if err := receive(t, large); !errors.Is(err, ErrTooLarge) {
			t.Errorf("error %v, want ErrTooLarge", err)
		}
	}
	if len(got) != MaxMessage || code != "" {
		t.Errorf("reply of %d bytes, code %q", len(got), code)
	}
}

func TestTheServersOwnLimitBoundsAReply(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	cfg := serverConfig(c, t.TempDir())
	cfg.MaxPayload = 4096
	s := must[*Server](t)(StartServer(cfg))
	t.Cleanup(s.Close)
	result := make(chan error, 1)
	service := must[*Service](t)(StartService(connect(t, c.Replier(), Target{Server: s}), serviceConfig(), Handlers{
		Call: func(r *Request) {
			result <- r.Respond(make([]byte, 4097), "", 0)
			_ = r.Respond(nil, "result_too_large", 413)
		}}))
	t.Cleanup(service.Stop)
	client := dial(t, c, s, LocalHost)
	if _, code := must2(t)(client.Request(testContext(t), CallVerb, nil)); code != "result_too_large" {
		t.Errorf("code %q", code)
	}
	if err := receive(t, result); !errors.Is(err, ErrTooLarge) || service.MaxReply() != 4096 {
		t.Errorf("error %v, limit %d", err, service.MaxReply())
	}
	if _, _, err := client.Request(testContext(t), CallVerb, make([]byte, 4097)); err == nil || !strings.Contains(err.Error(), "4097") {
		t.Errorf("a request over the limit: %v", err)
	}
}

func TestAReplySubjectOutsideTheHostsInboxIsDroppedAndCounted(t *testing.T) {
	st := startStage(t, serviceConfig(), echo())
	replies := []string{
		events.Subject(DefaultPrefix, testLog, "call.routed", ""),
		CheckpointSubject(DefaultPrefix, testLog),
		"_INBOX.other.x", "_INBOX.service.x", "_INBOX.local", "_INBOX.localx.y", "_INBOX.x", "",
	}
	seen := spy(t, st)
	nc := connect(t, must[Identity](t)(st.c.Host(LocalHost)), Target{Server: st.server})
	for _, reply := range replies {
		msg := &nats.Msg{Subject: RequestSubject(DefaultPrefix, CallVerb, LocalHost), Reply: reply, Data: []byte("forged")}
		if err := nc.PublishMsg(msg); err != nil {
			t.Fatal(err)
		}
	}
	// The calls of a host are handled in order: once this one is answered, so
	// would the others have been.
	must2(t)(dial(t, st.c, st.server, "other").Request(testContext(t), CallVerb, nil))
	eventually(t, "all counted", func() bool { return st.Dropped() == int64(len(replies)) })
	if got := seen(); len(got) != 0 {
		t.Errorf("published %v", got)
	}
}

// spy lists what is published where no host may publish.
func spy(t *testing.T, st stage) func() []string {
	t.Helper()
	nc := connect(t, st.c.Operator(), Target{Server: st.server})
	var subs []*nats.Subscription
	for _, subject := range []string{"waybill.v1.events.>", "waybill.v1.checkpoint.>", "_INBOX.service.>"} {
		subs = append(subs, must[*nats.Subscription](t)(nc.SubscribeSync(subject)))
	}
	if err := nc.FlushWithContext(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return func() (seen []string) {
		if err := nc.FlushWithContext(testContext(t)); err != nil {
			t.Fatal(err)
		}
		for _, sub := range subs {
			for n, _, _ := sub.Pending(); n > 0; n-- {
				seen = append(seen, must[*nats.Msg](t)(sub.NextMsgWithContext(testContext(t))).Subject)
			}
		}
		return seen
	}
}

func TestReplySubjectsThatCannotBePublishedToAreNotInboxes(t *testing.T) {
	for subject, want := range map[string]bool{
		"_INBOX.local.a":      true,
		"_INBOX.local.a.b":    true,
		"_INBOX.local.":       false,
		"_INBOX.local.a..b":   false,
		"_INBOX.local.a.":     false,
		"_INBOX.local.*":      false,
		"_INBOX.local.>":      false,
		"_INBOX.local.a b":    false,
		"_INBOX.local.a\r\nX": false,
		"_INBOX.local":        false,
		"_INBOX.localb.a":     false,
		"":                    false,
	} {
		if got := ownInbox(subject, LocalHost); got != want {
			t.Errorf("ownInbox(%q) = %v", subject, got)
		}
	}
}

func TestAMalformedHostIsDroppedAndCounted(t *testing.T) {
	nc := startOpenServer(t)
	service := must[*Service](t)(StartService(nc, serviceConfig(), echo()))
	t.Cleanup(service.Stop)
	for _, host := range []string{"Upper", "-a", "a$b", "service", strings.Repeat("a", 64)} {
		subject := RequestSubject(DefaultPrefix, CallVerb, host)
		if err := nc.PublishRequest(subject, InboxPrefix(host)+".x", nil); err != nil {
			t.Fatal(err)
		}
	}
	must[*nats.Msg](t)(nc.RequestWithContext(testContext(t), RequestSubject(DefaultPrefix, CallVerb, LocalHost), nil))
	if got := service.Dropped(); got != 5 {
		t.Errorf("dropped %d of 5", got)
	}
}

func TestReadsAreBoundedAndTheRestIsRefused(t *testing.T) {
	started, release := make(chan struct{}, 8), make(chan struct{})
	cfg := serviceConfig()
	cfg.Readers, cfg.ReadQueue = 1, 7 // of which one host may have two
	h := echo()
	h.Read["tools"] = func(_ context.Context, r *Request) {
		started <- struct{}{}
		<-release
		_ = r.Respond([]byte("done"), "", 0)
	}
	st := startStage(t, cfg, h)
	client := dial(t, st.c, st.server, LocalHost)
	type reply struct{ body, code string }
	replies := make(chan reply, 8)
	ask := func() {
		body, code, err := client.Request(context.Background(), "tools", nil)
		if err != nil {
			code = err.Error()
		}
		replies <- reply{string(body), code}
	}
	go ask()
	receive(t, started) // one runs
	for range 3 {
		go ask() // one waits, two are too many
	}
	for range 2 {
		if got := receive(t, replies); got.code != "overloaded" || !strings.Contains(got.body, "overloaded") {
			t.Errorf("reply %+v, want overloaded", got)
		}
	}
	// Calls are not held up by reads.
	must2(t)(client.Request(testContext(t), CallVerb, nil))
	close(release)
	for range 2 {
		if got := receive(t, replies); got != (reply{"done", ""}) {
			t.Errorf("reply %+v, want done", got)
		}
	}
	if got := st.Counts(); got.Refused != 2 {
		t.Errorf("counts %+v", got)
	}
}

func TestAReadHasADeadline(t *testing.T) {
	cfg := serviceConfig()
	cfg.ReadTimeout = 1
	h := echo()
	h.Read["tools"] = func(ctx context.Context, r *Request) {
		<-ctx.Done()
		_ = r.Respond(nil, "late", 504)
	}
	st := startStage(t, cfg, h)
	if _, code := must2(t)(dial(t, st.c, st.server, LocalHost).Request(testContext(t), "tools", nil)); code != "late" {
		t.Errorf("code %q", code)
	}
}

func TestStopWaitsForReadsAndLetsCallsBeAnsweredLater(t *testing.T) {
	calls, reading, release := make(chan *Request, 1), make(chan struct{}), make(chan struct{})
	var first sync.Once
	h := Handlers{Call: func(r *Request) {
		kept := false
		first.Do(func() { calls <- r; kept = true })
		if !kept {
			_ = r.Respond(nil, "", 0)
		}
	}, Read: map[string]func(context.Context, *Request){
		"tools": func(_ context.Context, r *Request) {
			close(reading)
			<-release
			_ = r.Respond([]byte("read"), "", 0)
		},
	}}
	st := startStage(t, serviceConfig(), h)
	client := dial(t, st.c, st.server, LocalHost)
	replies := make(chan string, 2)
	for _, verb := range []string{CallVerb, "tools"} {
		go func() {
			body, _, err := client.Request(context.Background(), verb, nil)
			if err != nil {
				body = []byte(err.Error())
			}
			replies <- string(body)
		}()
	}
	call := receive(t, calls)
	receive(t, reading)
	stopped := make(chan struct{})
	go func() { st.Stop(); close(stopped) }()
	eventually(t, "intake ended", func() bool {
		_, _, err := client.Request(testContext(t), CallVerb, nil)
		return errors.Is(err, ErrNotServing)
	})
	select {
	case <-stopped:
		t.Fatal("stopped while a read was running")
	default:
	}
	close(release)
	receive(t, stopped)
	if err := call.Respond([]byte("called"), "", 0); err != nil {
		t.Fatal(err)
	}
	got := []string{receive(t, replies), receive(t, replies)}
	slices.Sort(got)
	if !slices.Equal(got, []string{"called", "read"}) {
		t.Errorf("replies %q", got)
	}
}

// late is a request that NATS delivered and that the client library hands over
// only after the service was stopped.
type late struct {
	micro.Request
	verb, inbox string
}

func (l late) Subject() string        { return RequestSubject(DefaultPrefix, l.verb, LocalHost) }
func (l late) Reply() string          { return l.inbox }
func (l late) Data() []byte           { return nil }
func (l late) Headers() micro.Headers { return nil }

func TestARequestThatComesAfterStopIsRefused(t *testing.T) {
	called := make(chan string, 2)
	st := startStage(t, serviceConfig(), Handlers{
		Call: func(*Request) { called <- CallVerb },
		Read: map[string]func(context.Context, *Request){"tools": func(context.Context, *Request) { called <- "tools" }},
	})
	nc := connect(t, must[Identity](t)(st.c.Host(LocalHost)), Target{Server: st.server})
	inbox := nc.NewInbox()
	replies := must[*nats.Subscription](t)(nc.SubscribeSync(inbox))
	if err := nc.FlushWithContext(testContext(t)); err != nil {
		t.Fatal(err)
	}
	st.Stop()
	for _, verb := range []string{CallVerb, "tools"} {
		st.receive(verb, late{verb: verb, inbox: inbox})
		msg := must[*nats.Msg](t)(replies.NextMsgWithContext(testContext(t)))
		if code := msg.Header.Get(micro.ErrorHeader); code != "shutting_down" {
			t.Errorf("%s: code %q", verb, code)
		}
	}
	if len(called) != 0 {
		t.Errorf("%s was handed over", <-called)
	}
}

func TestAServiceOutlivesItsServer(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	s := startServer(t, c)
	w := newWire(t, s.ClientURL())
	replier := connect(t, c.Replier(), Target{URL: w.URL()})
	service := must[*Service](t)(StartService(replier, serviceConfig(), echo()))
	t.Cleanup(service.Stop)
	s.Close()
	s = startServer(t, c)
	w.To(s.ClientURL())
	client := dial(t, c, s, LocalHost)
	eventually(t, "answered by the second server", func() bool {
		body, _, err := client.Request(testContext(t), CallVerb, nil)
		if err != nil && !errors.Is(err, ErrNotServing) {
			t.Fatal(err)
		}
		return string(body) == "call|local||"
	})
}

func TestAServiceCanStopWithoutHavingSeenItsServer(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	w := newWire(t, "127.0.0.1:1")
	replier := connect(t, c.Replier(), Target{URL: w.URL(), KeepTrying: true})
	service := must[*Service](t)(StartService(replier, serviceConfig(), echo()))
	stopped := make(chan struct{})
	go func() { service.Stop(); close(stopped) }()
	receive(t, stopped)
}

func TestAServiceMayBeginBeforeItsServer(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	w := newWire(t, "127.0.0.1:1")
	replier := connect(t, c.Replier(), Target{URL: w.URL(), KeepTrying: true})
	service := must[*Service](t)(StartService(replier, serviceConfig(), echo()))
	t.Cleanup(service.Stop)
	s := startServer(t, c)
	w.To(s.ClientURL())
	client := dial(t, c, s, LocalHost)
	eventually(t, "answered", func() bool {
		_, _, err := client.Request(testContext(t), CallVerb, nil)
		return err == nil
	})
}

func TestServiceDiscoveryAnswersAPermittedUser(t *testing.T) {
	st := startStage(t, serviceConfig(), echo())
	nc := connect(t, st.c.Operator(), Target{Server: st.server})
	must2(t)(dial(t, st.c, st.server, LocalHost).Request(testContext(t), CallVerb, nil))
	ask := func(subject string, into any) {
		t.Helper()
		msg := must[*nats.Msg](t)(nc.RequestWithContext(testContext(t), subject, nil))
		if err := json.Unmarshal(msg.Data, into); err != nil {
			t.Fatal(err)
		}
	}
	var ping micro.Ping
	ask("$SRV.PING", &ping)
	if ping.Name != "waybill" || ping.Version != "0.1.0" || ping.Metadata["log"] != testLog {
		t.Errorf("ping %+v", ping)
	}
	var info micro.Info
	ask("$SRV.INFO.waybill", &info)
	if len(info.Endpoints) != 2 || info.Endpoints[0].Subject != "waybill.v1.call.*" || info.Endpoints[0].QueueGroup != micro.DefaultQueueGroup {
		t.Errorf("info %+v", info)
	}
	var stats micro.Stats
	ask("$SRV.STATS.waybill."+ping.ID, &stats)
	if len(stats.Endpoints) != 2 || stats.Endpoints[0].NumRequests != 1 || !strings.Contains(string(stats.Endpoints[0].Data), `"dropped":0`) {
		t.Errorf("stats %+v", stats)
	}
}

func TestAServiceThatCannotBeIsRefused(t *testing.T) {
	nc := startOpenServer(t)
	read := func(context.Context, *Request) {}
	for name, h := range map[string]Handlers{
		"no call":       {},
		"reserved verb": {Call: func(*Request) {}, Read: map[string]func(context.Context, *Request){"events": read}},
		"bad verb":      {Call: func(*Request) {}, Read: map[string]func(context.Context, *Request){"a.b": read}},
		"no handler":    {Call: func(*Request) {}, Read: map[string]func(context.Context, *Request){"tools": nil}},
	} {
		if s, err := StartService(nc, serviceConfig(), h); err == nil {
			s.Stop()
			t.Errorf("%s: started", name)
		}
	}
}
