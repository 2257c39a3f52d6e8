package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"waybill/cmd/waybill/config"
	"waybill/cmd/waybill/text"
	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
	"waybill/harness/bus/secure"
	"waybill/harness/bus/stream"
)

const (
	viewPatience  = 10 * time.Second // for the views to catch up
	busPatience   = 10 * time.Second // for the stream to catch up
	publishLinger = 10 * time.Millisecond
)

type serveCmd struct{ common }

// Help is shown under the usage.
func (serveCmd) Help() string {
	return "Example:\n  waybill serve -c waybill.yaml\n\n" +
		"Prints the start-up report and serves calls on NATS until SIGINT or SIGTERM; then calls under way finish, up to limits.drain. " +
		"With --json the report is one line of JSON."
}

// Run serves until a signal comes or the log cannot be written.
func (c serveCmd) Run(a *app) error {
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	n, err := a.openNode(f)
	if err != nil && a.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // a signal during the start is a stop like any other
	}
	if err != nil {
		return err
	}
	s := newServer(n)
	err = s.start()
	if err == nil {
		a.progress("waybill: pid %d, log %s, NATS at %s; probing %s", os.Getpid(), n.log.ID(), s.url(), count(len(f.Peers), "peer"))
		err = s.serve(c.wantJSON())
	}
	return errors.Join(err, s.stop())
}

// server is a node on NATS.
type server struct {
	*node
	nats      *bus.Server // nil with an outside server
	users     bus.Users
	service   *bus.Service
	listeners *bus.Listeners
	parts     *parts
	explains  chan struct{} // a place for each explanation that is being made
	streams
}

func newServer(n *node) *server {
	return &server{node: n, parts: newParts(), explains: make(chan struct{}, explaining)}
}

// credentialsDir is where the keys of the NATS users are.
func credentialsDir(f *config.File) string {
	if f.NATS.Credentials != "" {
		return f.NATS.Credentials
	}
	return dataDir(f).NATSDir()
}

func (s *server) url() string {
	if s.nats != nil {
		return s.nats.ClientURL()
	}
	return s.file.NATS.URL
}

// way says how the commands on this machine encrypt what they say to us. The
// embedded server they know by its certificate, whatever name that is made out to.
func (s *server) way() (harness.RunTLS, error) {
	t := s.file.NATS.TLS
	if s.nats == nil || t.Cert == "" {
		return harness.RunTLS(t), nil
	}
	pin, err := secure.Digest(t.Cert)
	return harness.RunTLS{Pin: pin}, err
}

// start brings up NATS, the service and the publisher, and says where we are.
func (s *server) start() error {
	creds, err := bus.LoadCredentials(credentialsDir(s.file))
	if err != nil {
		return err
	}
	if s.file.NATS.URL == "" {
		s.nats, err = bus.StartServer(bus.ServerConfig{Listen: s.file.NATS.Listen, StoreDir: string(s.dir), // it makes jetstream/ there

			TLSCert: s.file.NATS.TLS.Cert, TLSKey: s.file.NATS.TLS.Key,
			Credentials: creds, Prefix: prefix, LogID: s.log.ID(), Logger: s.app.logger})
		if err != nil {
			return fmt.Errorf("%w; nats.listen says where (port 0: any free one), and its files are in %s", err, filepath.Join(string(s.dir), "jetstream"))
		}
	}
	target := bus.Target{Server: s.nats, URL: s.file.NATS.URL, TLS: s.file.NATS.TLS, KeepTrying: s.nats == nil, Logger: s.app.logger}
	if s.users, err = bus.ConnectUsers(creds, target); err != nil {
		return err
	}
	if !s.users.Connected() {
		s.app.progress("waybill: warning: nats.url %s cannot be reached; it is tried again and again, and until then no host can call", s.file.NATS.URL)
	}
	if err := s.startStreams(); err != nil {
		return err
	}
	s.listeners = bus.StartListeners(s.users.Replies, prefix)
	s.onProgress = func(id domain.CallID, progress []byte) { s.listeners.Publish(id.Host, id.ID, progress) }
	s.service, err = bus.StartService(s.users.Replies, bus.ServiceConfig{Prefix: prefix, LogID: s.log.ID(), Logger: s.app.logger,
		Refusal: func(code, message string) []byte {
			return harness.Refused(domain.Code(code), message, s.log.ID()).Encode()
		}}, s.handlers())
	if err != nil {
		return err
	}
	way, err := s.way()
	if err != nil {
		return err
	}
	return s.dir.WriteRun(harness.Run{PID: os.Getpid(), URL: s.url(), TLS: way, Credentials: credentialsDir(s.file), Log: s.log.ID(), Prefix: prefix})
}

// serve prints the report when the peers have settled, and waits for the end.
func (s *server) serve(asJSON bool) error {
	err := s.engine.WaitSettled(s.app.ctx)
	if s.app.ctx.Err() != nil {
		return nil //nolint:nilerr // a signal during the start is a stop like any other
	}
	if err != nil {
		return err
	}
	r, err := s.engine.Report(s.app.ctx)
	if err != nil {
		return err
	}
	s.showStderr(r)
	if asJSON {
		err = s.app.printJSON(r)
	} else {
		text.Report(s.app.out, r)
	}
	if err != nil {
		return err
	}
	select {
	case <-s.app.ctx.Done():
		s.app.progress("waybill: stopping; calls under way have %s", s.file.Limits.Drain)
		return nil
	case <-s.engine.Done():
		return s.engine.Err()
	}
}

// stop takes no more calls, lets those under way finish, records the stop and
// lets the followers catch up. Whatever is skipped because of an error, the next
// start makes up for.
func (s *server) stop() error {
	if s.service != nil {
		s.engine.Loop.StopIntake()
		s.drain() // calls under way can be cancelled and asked after meanwhile
		s.service.Stop()
	}
	err := s.engine.Stop("signal")
	var halt *harness.HaltError
	if errors.As(err, &halt) {
		err = nil // serve has returned it
	}
	head := s.engine.Feed.Head()
	err = errors.Join(err, harness.CatchUpWithin(viewPatience, s.views, head))
	if s.publisher != nil && s.nats != nil {
		err = errors.Join(err, s.caughtUp(head))
	}
	err = errors.Join(err, s.engine.Close())
	if s.service != nil {
		s.service.Wait() // orders end with the calls they wait for
		err = errors.Join(err, s.dir.RemoveRun())
	}
	if s.listeners != nil {
		s.listeners.Stop()
	}
	s.users.Close()
	if s.nats != nil {
		s.nats.Close()
	}
	return errors.Join(err, s.release())
}

// drain waits for the calls under way as long as limits.drain says, and tells how
// many are left, at most once a second. What is left then is settled by the stop.
func (s *server) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), s.file.Limits.Drain)
	defer cancel()
	for {
		n := 0
		if s.engine.Loop.Ask(ctx, func(st *domain.State) { n = st.InFlight() }) != nil || n == 0 {
			return
		}
		s.app.progress("waybill: %s under way", count(n, "call"))
		second, stop := context.WithTimeout(ctx, time.Second)
		err := s.engine.Drain(second)
		stop()
		if err == nil || ctx.Err() != nil {
			return
		}
	}
}

func (s *server) caughtUp(head int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), busPatience)
	defer cancel()
	err := s.publisher.CaughtUp(ctx, head)
	if errors.Is(err, stream.ErrForked) {
		return fmt.Errorf("%w; if log.db was put back from a backup, move jetstream aside: it is made again from the log", err)
	}
	if err != nil {
		return fmt.Errorf("the stream is behind the log, the next start goes on: %w", err)
	}
	return nil
}

// handlers answer what hosts ask.
func (s *server) handlers() bus.Handlers {
	return bus.Handlers{
		Call: func(r *bus.Request) {
			s.engine.Loop.SubmitTraced(r.Host, r.Data, domain.Trace{Parent: r.Traceparent, State: r.Tracestate}, func(reply harness.Reply) { s.respond(r, reply) })
		},
		Read: map[string]func(context.Context, *bus.Request){
			"check":   func(ctx context.Context, r *bus.Request) { s.answer(ctx, r, s.settledReport) },
			"peers":   func(ctx context.Context, r *bus.Request) { s.answer(ctx, r, s.report) },
			"tools":   func(ctx context.Context, r *bus.Request) { s.answer(ctx, r, s.tools) },
			"outcome": s.outcome,
			"part":    s.part,
			"explain": s.explain,
			"status":  func(ctx context.Context, r *bus.Request) { s.answer(ctx, r, s.status) },
		},
		Quick: map[string]func(context.Context, *bus.Request){"cancel": func(ctx context.Context, r *bus.Request) { s.answer(ctx, r, s.cancel) }},
		Order: map[string]func(context.Context, *bus.Request){domain.VerbRevive: s.revive, domain.VerbResend: s.resend, domain.VerbErase: s.erase,
			domain.VerbApprove: s.approve},
	}
}

// respond sends the reply of a call, after the progress that came before it. What
// cannot fit is not even encoded; its size is said instead.
func (s *server) respond(r *bus.Request, reply harness.Reply) {
	s.listeners.Settle(r.Host, reply.CallID)
	id := domain.CallID{Host: r.Host, ID: reply.CallID}
	if s.tooLarge(reply) {
		s.parts.put(id, reply)
		reply = reply.TooLarge()
	}
	err := r.Respond(reply.Encode(), string(reply.Code), httpLike(reply))
	if errors.Is(err, bus.ErrTooLarge) {
		s.parts.put(id, reply)
		reply = reply.TooLarge()
		err = r.Respond(reply.Encode(), string(reply.Code), httpLike(reply))
	}
	if err != nil {
		s.app.logger.Warn("a reply could not be sent; the outcome is in the log", "host", r.Host, "call", reply.CallID, "err", err)
	}
}

// tooLarge reports whether the peer's bytes alone are more than a message holds.
func (s *server) tooLarge(reply harness.Reply) bool {
	return len(reply.Result)+len(reply.Error) > s.service.MaxReply()
}

// httpLike is the number that NATS wants beside an error code.
func httpLike(r harness.Reply) int {
	switch r.Code {
	case domain.CodeResultTooLarge:
		return 413
	case domain.CodeOutcomeLost, domain.CodeOutcomeExpired:
		return 410
	}
	switch r.Status {
	case domain.StatusRefused:
		return 409
	case domain.StatusTimedOut:
		return 504
	case domain.StatusInputRequired:
		return 428
	case domain.StatusToolError:
		return 422
	}
	return 502
}
