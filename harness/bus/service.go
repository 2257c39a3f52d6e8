package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"waybill/harness/bus/access"
	"waybill/harness/bus/contract"
)

const (
	serviceName    = "waybill"
	serviceVersion = "0.1.0"

	// What one subscription holds before the client library drops requests.
	// Handlers only hand over, so this is a burst and not a queue.
	pendingMessages = 1 << 16
	pendingBytes    = 256 << 20

	stopPatience = 5 * time.Second

	quickWorkers = 2
)

// ServiceConfig describes the service that hosts talk to.
type ServiceConfig struct {
	Prefix string
	LogID  string

	Readers     int           // reads that run at once, 4 if 0
	ReadQueue   int           // reads that wait, 64 if 0
	ReadTimeout time.Duration // deadline of one read, 10 s if 0
	Orders      int           // orders of operators that run at once, 64 if 0
	OrderWait   time.Duration // deadline of one order, 1 h if 0

	// Refusal makes the body of a reply that the service gives on its own:
	// "overloaded" and "shutting_down". If nil it is a JSON object with code and
	// message.
	Refusal func(code, message string) []byte

	Logger *slog.Logger // slog.Default if nil
}

// Handlers are where requests go.
type Handlers struct {
	// Call takes each submitted call. It must not block: NATS delivers the
	// calls of all hosts one after the other, so it hands over and returns.
	Call func(*Request)

	// Read answers the read-only verbs, by verb. A read runs on a pool of the
	// service, with a deadline, which it must keep; if every place in the pool
	// is taken the service replies "overloaded" (503).
	Read map[string]func(context.Context, *Request)

	// Quick answers the verbs that must not wait behind reads, such as giving up a
	// call: as Read, on places of their own.
	Quick map[string]func(context.Context, *Request)

	// Order carries out what an operator orders, by verb. An order runs on a
	// goroutine of its own, with a deadline, which it must keep, and may wait
	// for what it leads to; beyond ServiceConfig.Orders the service replies
	// "overloaded" (503).
	Order map[string]func(context.Context, *Request)
}

// Service is a running NATS micro service with one endpoint for each verb.
type Service struct {
	nc    *nats.Conn
	cfg   ServiceConfig
	h     Handlers
	micro micro.Service
	reads *pool
	quick *pool
	order *orders

	mu      sync.RWMutex // held for reading while a request is handed over
	stopped bool
	once    sync.Once

	dropped atomic.Int64
	refused atomic.Int64
	failed  atomic.Int64
}

// StartService begins to receive requests on nc, the connection of the
// replier. The connection stays the caller's and must outlive the service and
// every request that is still to be answered. It is for one service only: if
// one is stopped while disconnected, the server never learns of it, and would
// send it part of what another on the same connection should get.
func StartService(nc *nats.Conn, cfg ServiceConfig, h Handlers) (*Service, error) {
	if err := checkService(cfg, h); err != nil {
		return nil, fmt.Errorf("nats service: %w", err)
	}
	cfg = withServiceDefaults(cfg)
	s := &Service{nc: nc, cfg: cfg, h: h}
	m, err := micro.AddService(nc, s.describe())
	if err != nil {
		return nil, fmt.Errorf("nats service: %w", err)
	}
	s.micro = m
	s.reads = newPool(cfg.Readers, cfg.ReadQueue, cfg.ReadTimeout)
	s.quick = newPool(quickWorkers, cfg.ReadQueue, cfg.ReadTimeout)
	s.order = &orders{slots: make(chan struct{}, cfg.Orders), wait: cfg.OrderWait}
	if err := s.listenAll(); err != nil {
		s.Stop()
		return nil, fmt.Errorf("nats service: %w", err)
	}
	// Without this a host could ask before the server knows the endpoints. A
	// connection that is still trying to reach its server subscribes later.
	if nc.IsConnected() {
		if err := nc.FlushTimeout(stopPatience); err != nil {
			s.Stop()
			return nil, fmt.Errorf("nats service: %w", err)
		}
	}
	return s, nil
}

func checkService(cfg ServiceConfig, h Handlers) error {
	if err := CheckSpace(cfg.Prefix, cfg.LogID); err != nil {
		return err
	}
	if h.Call == nil {
		return fmt.Errorf("no handler for %q", CallVerb)
	}
	for verb, handler := range h.reads() {
		if handler == nil || !verbPattern.MatchString(verb) || slices.Contains(reservedVerbs, verb) {
			return fmt.Errorf("verb %q cannot be read", verb)
		}
	}
	for verb, handler := range h.Order {
		if handler == nil || !verbPattern.MatchString(verb) {
			return fmt.Errorf("verb %q cannot be ordered", verb)
		}
	}
	return nil
}

// reservedVerbs are second tokens with a meaning of their own.
var verbPattern = regexp.MustCompile(`^[a-z]+$`)

var reservedVerbs = []string{CallVerb, "events", "checkpoint", progressToken, opToken}

func withServiceDefaults(cfg ServiceConfig) ServiceConfig {
	cfg.Readers = cmp.Or(cfg.Readers, 4)
	cfg.ReadQueue = cmp.Or(cfg.ReadQueue, 64)
	cfg.ReadTimeout = cmp.Or(cfg.ReadTimeout, 10*time.Second)
	cfg.Orders = cmp.Or(cfg.Orders, 64)
	cfg.OrderWait = cmp.Or(cfg.OrderWait, time.Hour)
	cfg.Logger = logger(cfg.Logger)
	if cfg.Refusal == nil {
		cfg.Refusal = plainRefusal
	}
	return cfg
}

func plainRefusal(code, message string) []byte {
	body, _ := json.Marshal(struct { // two strings always marshal
		Code    string `json:"code"`
		Message string `json:"message"`
	}{code, message})
	return body
}

func (s *Service) describe() micro.Config {
	return micro.Config{
		Name:         serviceName,
		Version:      serviceVersion,
		Description:  "Holds MCP servers and routes tool calls to them, on the record",
		Metadata:     map[string]string{"log": s.cfg.LogID, "prefix": s.cfg.Prefix},
		StatsHandler: func(*micro.Endpoint) any { return s.Counts() },
		ErrorHandler: func(_ micro.Service, err *micro.NATSError) {
			s.cfg.Logger.Error("nats service", "subject", err.Subject, "error", err.Description)
		},
	}
}

func (s *Service) listenAll() error {
	for _, verb := range append([]string{CallVerb}, slices.Sorted(maps.Keys(s.h.reads()))...) {
		if err := s.listen(verb, RequestSubject(s.cfg.Prefix, verb, "*"), s.receive); err != nil {
			return fmt.Errorf("endpoint %s: %w", verb, err)
		}
	}
	for _, verb := range slices.Sorted(maps.Keys(s.h.Order)) {
		if err := s.listen(verb, CommandSubject(s.cfg.Prefix, verb, "*"), s.ordered); err != nil {
			return fmt.Errorf("endpoint %s.%s: %w", opToken, verb, err)
		}
	}
	return nil
}

// listen adds the endpoint of one verb, in the queue group that is micro's
// default, so that several nodes share the calls out.
func (s *Service) listen(verb, subject string, take func(string, micro.Request)) error {
	name := strings.TrimPrefix(strings.TrimSuffix(subject, ".*"), s.cfg.Prefix+"."+protocol+".")
	return s.micro.AddEndpoint(strings.ReplaceAll(name, ".", "-"),
		micro.HandlerFunc(func(m micro.Request) { take(verb, m) }),
		micro.WithEndpointSubject(subject),
		micro.WithEndpointMetadata(endpointMetadata(verb, subject)),
		micro.WithEndpointPendingLimits(pendingMessages, pendingBytes))
}

// endpointMetadata is what "nats micro info" tells of an endpoint: who may ask, what
// for, and the JSON Schemas of request and reply, without what in them is for people.
// All endpoints together stay far below what one message holds.
func endpointMetadata(verb, subject string) map[string]string {
	role := "host"
	if strings.Contains(subject, "."+protocol+"."+opToken+".") {
		role = access.OperatorUser
	}
	m := map[string]string{"role": role}
	if contract.Request(verb) != nil {
		m["description"] = contract.Description(verb)
		m["schema.request"] = string(contract.Terse(contract.Request(verb)))
		m["schema.response"] = string(contract.Terse(contract.Reply(verb)))
	}
	return m
}

// receive hands one request of a host over. The lock lets Stop wait for
// hand-overs that are under way; nothing in here waits for anything else.
func (s *Service) receive(verb string, m micro.Request) {
	r, ok := s.request(verb, m)
	if !ok {
		s.dropped.Add(1)
		return
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case s.stopped:
		s.refuse(r, "shutting_down", "Waybill is stopping")
	case verb == CallVerb:
		s.h.Call(r)
	case !s.offer(r):
		s.refuse(r, "overloaded", "too many reads are waiting, of all hosts or of this one: ask again")
	}
}

func (s *Service) offer(r *Request) bool {
	if quick := s.h.Quick[r.Verb]; quick != nil {
		return s.quick.offer(r, quick)
	}
	return s.reads.offer(r, s.h.Read[r.Verb])
}

// reads are the verbs of hosts that are no calls.
func (h Handlers) reads() map[string]func(context.Context, *Request) {
	all := maps.Clone(h.Read)
	if all == nil {
		all = map[string]func(context.Context, *Request){}
	}
	maps.Copy(all, h.Quick)
	return all
}

// ordered hands an order over, as receive does a request.
func (s *Service) ordered(verb string, m micro.Request) {
	by := strings.TrimPrefix(m.Subject(), CommandSubject(s.cfg.Prefix, verb, ""))
	if !ValidName(by) || !ownInbox(m.Reply(), access.OperatorUser) {
		s.dropped.Add(1)
		return
	}
	r := &Request{Verb: verb, Operator: by, Data: m.Data(), service: s, reply: m.Reply()}
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case s.stopped:
		s.refuse(r, "shutting_down", "Waybill is stopping")
	case !s.order.offer(r, s.h.Order[verb]):
		s.refuse(r, "overloaded", "too many orders are being carried out, ask again")
	}
}

// request reads who asks and where the reply goes. Only the inbox of the host
// itself is answered: a host chooses its reply subject freely, and the reply
// is published with the rights of the replier.
func (s *Service) request(verb string, m micro.Request) (*Request, bool) {
	host := strings.TrimPrefix(m.Subject(), RequestSubject(s.cfg.Prefix, verb, ""))
	if access.CheckUser(access.RoleHost, host) != nil || !ownInbox(m.Reply(), host) {
		return nil, false
	}
	trace, state := m.Headers().Get(traceHeader), m.Headers().Get(stateHeader)
	if len(trace) > maxTraceparent {
		trace = ""
	}
	if len(state) > maxTracestate {
		state = ""
	}
	return &Request{
		Verb:        verb,
		Host:        host,
		Data:        m.Data(),
		Traceparent: trace,
		Tracestate:  state,
		service:     s,
		reply:       m.Reply(),
	}, true
}

// ownInbox reports whether subject lies below the inbox prefix of host and can
// be published to.
func ownInbox(subject, host string) bool {
	rest, ok := strings.CutPrefix(subject, InboxPrefix(host)+".")
	if !ok || strings.ContainsAny(rest, "*> \t\r\n") {
		return false
	}
	for token := range strings.SplitSeq(rest, ".") {
		if token == "" {
			return false
		}
	}
	return true
}

func (s *Service) refuse(r *Request, code, message string) {
	s.refused.Add(1)
	if err := r.Respond(s.cfg.Refusal(code, message), code, 503); err != nil {
		s.cfg.Logger.Warn("nats service: refusal not sent", "host", r.Host, "operator", r.Operator, "error", err)
	}
}

// Counts are totals since the service started; they are also in the data of
// "nats micro stats".
type Counts struct {
	Dropped int64 `json:"dropped"` // no name of a host or operator, or a reply subject that is not its own
	Refused int64 `json:"refused"` // answered "overloaded" or "shutting_down"
	Failed  int64 `json:"failed"`  // answered with any code, the refused included
}

// Counts reports the totals so far.
func (s *Service) Counts() Counts {
	return Counts{Dropped: s.dropped.Load(), Refused: s.refused.Load(), Failed: s.failed.Load()}
}

// Dropped is how many requests were left unanswered because they named no host
// or a reply subject outside that host's inbox.
func (s *Service) Dropped() int64 { return s.dropped.Load() }

// MaxReply is the largest reply in bytes, headers included.
func (s *Service) MaxReply() int { return maxMessage(s.nc) }

// maxMessage is the server's limit or ours, whichever is smaller. A connection
// that has never reached its server knows no limit.
func maxMessage(nc *nats.Conn) int {
	if limit := nc.MaxPayload(); limit > 0 {
		return int(min(limit, MaxMessage))
	}
	return MaxMessage
}

// Stop ends the intake and returns when nothing is handed over any more and
// every read has returned. Requests that NATS had delivered before are still
// handed over or answered "shutting_down". Requests that were handed over can be
// answered afterwards: close the connection when they have been. Orders may go on
// too: see Wait.
func (s *Service) Stop() {
	s.once.Do(func() {
		if err := s.micro.Stop(); err != nil {
			s.cfg.Logger.Warn("nats service: stop", "error", err)
		}
		// The round trip shows that the server sends nothing more.
		if s.nc.IsConnected() {
			if err := s.nc.FlushTimeout(stopPatience); err != nil {
				s.cfg.Logger.Warn("nats service: stop", "error", err)
			}
		}
		s.mu.Lock()
		s.stopped = true
		s.mu.Unlock()
	})
	s.reads.stop()
	s.quick.stop()
}

// Wait returns when every order that was handed over has been carried out. Call it
// after Stop, when what orders wait for has come to an end.
func (s *Service) Wait() { s.order.running.Wait() }
