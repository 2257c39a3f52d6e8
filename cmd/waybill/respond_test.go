package main

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
)

// natsOnly is a server with NATS and no engine, whose calls and resends a function
// answers, with the client of a host and that of the operator.
func natsOnly(t *testing.T, answer func(s *server, r *bus.Request)) (host, operator *bus.Client) {
	t.Helper()
	dir, log := t.TempDir(), "node-0a1b2c3d"
	if _, err := bus.WriteCredentials(dir, prefix, log, []string{localHost}); err != nil {
		t.Fatal(err)
	}
	creds, err := bus.LoadCredentials(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(&node{app: newApp(t.Context(), io.Discard, io.Discard, "")})
	s.nats, err = bus.StartServer(bus.ServerConfig{Listen: "127.0.0.1:0", StoreDir: t.TempDir(), Credentials: creds, Prefix: prefix, LogID: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.nats.Close)
	if s.users, err = bus.ConnectUsers(creds, bus.Target{Server: s.nats}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.users.Close)
	s.listeners = bus.StartListeners(s.users.Replies, prefix)
	t.Cleanup(s.listeners.Stop)
	ready := make(chan struct{})
	s.service, err = bus.StartService(s.users.Replies, bus.ServiceConfig{Prefix: prefix, LogID: log},
		bus.Handlers{Call: func(r *bus.Request) { <-ready; answer(s, r) },
			Order: map[string]func(context.Context, *bus.Request){"resend": func(_ context.Context, r *bus.Request) { <-ready; answer(s, r) }}})
	if err != nil {
		t.Fatal(err)
	}
	close(ready)
	t.Cleanup(s.service.Stop)
	if host, err = bus.Dial(t.Context(), s.nats.ClientURL(), dir, localHost, prefix); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(host.Close)
	if operator, err = bus.DialOperator(t.Context(), s.nats.ClientURL(), dir, prefix); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(operator.Close)
	return host, operator
}

// The outcome of a call that was sent again is told even where its result, with
// what stands around it, is a little too large for a message.
func TestAnOrderIsAnsweredWithoutAResultThatDoesNotFit(t *testing.T) {
	_, operator := natsOnly(t, func(s *server, r *bus.Request) {
		result := []byte(`"` + strings.Repeat("x", s.service.MaxReply()-10) + `"`)
		s.answerOrder(r, harness.CommandReply{By: r.Operator, Verb: r.Verb, Done: true, Seqs: []int64{1, 2},
			Reply: &harness.Reply{CallID: "x", Status: domain.StatusComplete, Ran: domain.RanYes, Seqs: []int64{2}, Result: result}})
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	b, code, err := operator.Order(ctx, "resend", "ann", nil)
	if err != nil {
		t.Fatal(err)
	}
	doc := decode[orderDoc](t, string(b))
	if code != "" || doc.By != "ann" || doc.Outcome == nil || *doc.Outcome.Code != "result_too_large" || doc.Outcome.Size != bus.MaxMessage-8 {
		t.Errorf("code %q, %+v, %+v", code, doc, doc.Outcome)
	}
}

// A result that cannot fit a message costs no copy of it.
func TestAReplyThatCannotFitIsNotEncoded(t *testing.T) {
	const size = 64 << 20
	result := make([]byte, size)
	used := make(chan uint64, 1)
	c, _ := natsOnly(t, func(s *server, r *bus.Request) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.respond(r, harness.Reply{CallID: "x", Status: domain.StatusComplete, Ran: domain.RanYes, Seqs: []int64{1}, Result: result})
		runtime.ReadMemStats(&after)
		used <- after.TotalAlloc - before.TotalAlloc
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	b, code, err := c.Request(ctx, bus.CallVerb, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := decode[reply](t, string(b))
	if code != string(domain.CodeResultTooLarge) || r.Size != size || r.Status != "complete" || string(r.Result) != "null" {
		t.Errorf("code %s, %+v", code, r)
	}
	if n := <-used; n > size/16 {
		t.Errorf("%d bytes were used for it", n)
	}
}
