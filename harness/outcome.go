package harness

import (
	"context"
	"fmt"
	"slices"

	"waybill/domain"
	"waybill/store"
)

// grow adds what one event says of the call.
func (r *Reply) grow(e domain.Event) {
	if _, ok := e.Data.(domain.CallReceived); ok && (r.Status == domain.StatusRefused && r.Route == nil || r.first != nil) {
		*r = Reply{CallID: r.CallID, Status: StatusUnderWay, Ran: domain.RanMaybe, Log: r.Log} // the id is used again
	}
	if _, ok := e.Data.(domain.CommandRefused); ok { // the order changed nothing: neither is of the call
		r.Seqs = slices.DeleteFunc(r.Seqs, func(seq int64) bool { return seq == e.Cause })
		return
	}
	r.Seqs = append(r.Seqs, e.Seq)
	r.story(e)
	switch d := e.Data.(type) {
	case domain.CallRouted:
		r.goesOn(domain.RanMaybe)
		r.Route = &Route{Peer: d.Peer, Local: d.Local, Era: d.Era, Version: d.Version,
			Incarnation: d.Incarnation, Generation: d.Generation}
	case domain.CallResent:
		r.goesOn(domain.RanMaybe)
		r.resent(d)
	case domain.CallHeld:
		r.goesOn(d.Ran)
	case domain.ExchangeFailed:
		r.Reason = httpReason(d)
	case domain.CallRefused:
		r.Status, r.Code, r.Ran, r.Reason = domain.StatusRefused, d.Code, d.Ran(), d.Reason
	case domain.CallSettled:
		r.Status, r.Code, r.Ran = d.Status, d.Code, d.Ran
	}
}

// httpReason says what came in place of an answer over HTTP; "" for a loss that its
// code says all of.
func httpReason(d domain.ExchangeFailed) string {
	switch {
	case d.Code == domain.CodeUnauthorized && d.Status != 0:
		return fmt.Sprintf("peer %s refused the credential of this call, or wants one (HTTP %d: %s); a renewed one is used for later calls", d.Peer, d.Status, d.Reason)
	case d.Code == domain.CodeForbidden:
		return fmt.Sprintf("peer %s does not let this credential do that (HTTP %d: %s)", d.Peer, d.Status, d.Reason)
	case d.Status != 0:
		return fmt.Sprintf("HTTP %d: %s", d.Status, d.Reason)
	}
	return d.Reason
}

// goesOn says that the call has not ended, whatever was said before.
func (r *Reply) goesOn(ran domain.Ran) {
	r.Status, r.Code, r.Ran, r.Reason = StatusUnderWay, "", ran, ""
}

// resent makes the route that of the last exchange. The generation is the one in
// which the call was routed: the name is not looked up again.
func (r *Reply) resent(d domain.CallResent) {
	r.Attempts = d.Attempt
	route := Route{Peer: d.Peer, Local: d.Local, Era: d.Era, Version: d.Version, Incarnation: d.Incarnation}
	if r.Route != nil {
		route.Generation = r.Route.Generation
	}
	r.Route = &route
}

// StatusUnderWay is what Outcome says of a call that has not ended.
const StatusUnderWay domain.Status = "under_way"

// Outcome says what became of a call, from the log alone: the reply it had,
// without the result. ok is false where the log has no such call. A submission that
// joined another call had the reply of that. It holds after a crash too: what a service left unsettled, the next one
// has settled.
func Outcome(ctx context.Context, r *store.Reader, id domain.CallID) (reply Reply, ok bool, err error) {
	reply, err = history(ctx, r, id, 0)
	if err == nil && reply.first != nil {
		joined := reply.Joined
		reply, err = history(ctx, r, callID(reply.first.First), reply.first.Received)
		reply.Joined = joined
	}
	return reply, len(reply.Seqs) > 0, err
}

// callReader reads the events of calls.
type callReader interface {
	ByCall(ctx context.Context, call string) ([]store.Record, error)
	ID() string
}

// history grows the reply of a call from the log: of the story that began with the event
// from, or of all that has its id where that is 0. No event of a call has evidence.
func history(ctx context.Context, r callReader, id domain.CallID, from int64) (Reply, error) {
	records, err := r.ByCall(ctx, id.CallKey())
	if err != nil {
		return Reply{}, fmt.Errorf("read the events of call %s: %w", id.CallKey(), err)
	}
	reply := Reply{CallID: id.ID, Status: StatusUnderWay, Ran: domain.RanMaybe, Seqs: []int64{}, Log: r.ID()}
	for _, rec := range records {
		if rec.Seq < from {
			continue
		}
		e, err := open(r.ID(), rec)
		if err != nil {
			return Reply{}, err
		}
		if d, ok := e.Data.(domain.CallReceived); ok && from != 0 && e.Seq > from && !continues(d) {
			break // the id is used again
		}
		reply.grow(e)
	}
	return reply, nil
}

// recall returns what the log has of a call that goes on: its reply is to say
// where it went before, and which events are its story. That the log cannot be
// read is no reason to hold the call up.
func (l *Loop) recall(id domain.CallID) Reply {
	r, err := history(context.Background(), l.cfg.Log, id, 0)
	if err != nil {
		l.cfg.Logger.Warn("a call goes on, and its reply will name only the events from here on", "call", id.CallKey(), "err", err)
		return Reply{CallID: id.ID, Seqs: []int64{}}
	}
	return r
}

// Cancel gives up a call of a host; false where it is not under way. It waits
// behind what the host submitted before, so that it finds the call. The call's own
// reply says how it ended: an answer that came first wins.
func (l *Loop) Cancel(ctx context.Context, id domain.CallID) (underWay bool, err error) {
	err = l.ask(ctx, id.Host, func(s *domain.State) { underWay = s.UnderWay(id.CallKey()) })
	if err == nil && underWay {
		l.Report(domain.CallCancelled{CallID: id, By: "host"}, nil, nil)
	}
	return underWay, err
}
