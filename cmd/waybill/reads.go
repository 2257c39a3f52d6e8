package main

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
	"waybill/harness/bus/stream"
)

// smaller is an answer that can be made to fit a message; false if not.
type smaller interface{ shrink() bool }

// answer replies to a read. What does not fit one message is made smaller.
func (s *server) answer(ctx context.Context, r *bus.Request, read func(context.Context, *bus.Request) (any, error)) {
	v, err := read(ctx, r)
	for err == nil {
		var body []byte
		if body, err = json.Marshal(v, json.Deterministic(true)); err != nil {
			break
		}
		err = r.Respond(body, "", 0)
		if !errors.Is(err, bus.ErrTooLarge) {
			return
		}
		if x, ok := v.(smaller); !ok || !x.shrink() {
			s.refuseRead(r, harness.Reply{Code: domain.CodeResultTooLarge, Reason: "the answer does not fit one message", Size: int64(len(body))}, 413)
			return
		}
		err = nil
	}
	s.refuseRead(r, harness.Reply{Code: domain.CodeShuttingDown, Reason: "Waybill is stopping"}, 503)
}

// refuseRead answers a read that has no answer, in the form of every refusal.
func (s *server) refuseRead(r *bus.Request, why harness.Reply, number int) {
	reply := harness.Refused(why.Code, why.Reason, s.log.ID())
	reply.Size, reply.CallID = why.Size, why.CallID
	_ = r.Respond(reply.Encode(), string(reply.Code), number)
}

// reportReply is a report that gives up names of tools where it does not fit.
type reportReply struct {
	domain.Report
	most int
}

// shrink keeps fewer names of each peer's tools.
func (r *reportReply) shrink() bool {
	if r.most == 0 {
		return false
	}
	r.most /= 4
	for i, p := range r.Peers {
		if len(p.Tools) > r.most {
			r.Peers[i].Tools = p.Tools[:r.most]
			r.Peers[i].Warnings = append(p.Warnings, "only some of its tools are named here; see waybill tools")
		}
	}
	return true
}

// settledReport waits, inside the deadline of the read, for the peers.
func (s *server) settledReport(ctx context.Context, r *bus.Request) (any, error) {
	if err := s.engine.WaitSettled(ctx); err != nil && ctx.Err() == nil {
		return nil, err
	}
	return s.report(context.WithoutCancel(ctx), r)
}

func (s *server) report(ctx context.Context, req *bus.Request) (any, error) {
	r, err := s.engine.ReportFor(ctx, req.Host)
	return &reportReply{r, 4096}, err
}

// statusReply is the answer to the verb status.
type statusReply struct {
	Log         string        `json:"log"`
	Head        int64         `json:"head"`
	Viewed      int64         `json:"viewed"`
	Inflight    int           `json:"inflight"`
	Dropped     int64         `json:"dropped_requests"`   // reply subject outside the host's inbox
	Unheard     int64         `json:"dropped_progress"`   // no connection, or too much at once
	Refusing    domain.Code   `json:"refusing,omitempty"` // with which every call is refused
	Publisher   stream.Health `json:"publisher"`
	Checkpoints headHealth    `json:"checkpoints"`

	Public *stream.PublicHealth `json:"public,omitzero"` // what dashboards read
}

func (s *server) status(ctx context.Context, _ *bus.Request) (any, error) {
	r := statusReply{Log: s.log.ID(), Viewed: s.views.Position(), Dropped: s.service.Dropped(), Unheard: s.listeners.Dropped(),
		Checkpoints: s.headHealth(), Public: s.publicHealth()}
	r.Refusing, _ = s.refusal()
	err := s.engine.Loop.Ask(ctx, func(st *domain.State) { r.Head, r.Inflight = st.Head, st.InFlight() })
	r.Publisher = s.publisher.Health(r.Head)
	return r, err
}

// callOf reads which call a request is about: one of the host that asks.
func callOf(r *bus.Request) domain.CallID {
	var ask struct {
		CallID string `json:"call_id"`
	}
	_ = json.Unmarshal(r.Data, &ask) // what cannot be read names no call
	return domain.CallID{Host: r.Host, ID: ask.CallID}
}

// cancelReply is the answer to the verb cancel. The call itself is answered too.
type cancelReply struct {
	CallID   string `json:"call_id"`
	UnderWay bool   `json:"under_way"` // it was; false: it had ended, or never was
}

func (s *server) cancel(ctx context.Context, r *bus.Request) (any, error) {
	id := callOf(r)
	underWay, err := s.engine.Loop.Cancel(ctx, id)
	return cancelReply{id.ID, underWay}, err
}

// outcome answers with what became of a call of this host.
func (s *server) outcome(ctx context.Context, r *bus.Request) {
	reply, err := outcomeOf(ctx, s.log.Reader(), s.payloads, callOf(r))
	if err == nil && reply.Code == domain.CodeUnknownCall {
		s.refuseRead(r, reply, 404)
		return
	}
	if x, ok := s.parts.get(callOf(r)); ok && reply.Result == nil && reply.Error == nil {
		x.into(&reply) // which is then too large, as it was
	}
	if s.tooLarge(reply) {
		reply = reply.TooLarge()
	}
	s.answer(ctx, r, func(context.Context, *bus.Request) (any, error) { return jsontext.Value(reply.Encode()), err })
}
