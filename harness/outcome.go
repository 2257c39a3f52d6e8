package harness

import (
	"context"
	"fmt"

	"waybill/domain"
	"waybill/store"
)

// grow adds what one event says of the call.
func (r *Reply) grow(e domain.Event) {
	r.Seqs = append(r.Seqs, e.Seq)
	switch d := e.Data.(type) {
	case domain.CallRouted:
		r.Route = &Route{Peer: d.Peer, Local: d.Local, Era: d.Era, Version: d.Version,
			Incarnation: d.Incarnation, Generation: d.Generation}
	case domain.CallRefused:
		r.Status, r.Code, r.Ran, r.Reason = domain.StatusRefused, d.Code, domain.RanNo, d.Reason
	case domain.CallSettled:
		r.Status, r.Code, r.Ran = d.Status, d.Code, d.Ran
	}
}

// StatusUnderWay is what Outcome says of a call that has not ended.
const StatusUnderWay domain.Status = "under_way"

// Outcome says what became of a call, from the log alone: the reply it had,
// without the result, which is not kept. ok is false where the log has no such
// call. It holds after a crash too: what a service left unsettled, the next one
// has settled.
func Outcome(ctx context.Context, r *store.Reader, id domain.CallID) (reply Reply, ok bool, err error) {
	records, err := r.ByCall(ctx, id.CallKey())
	if err != nil {
		return Reply{}, false, fmt.Errorf("read the events of call %s: %w", id.CallKey(), err)
	}
	reply = Reply{CallID: id.ID, Status: StatusUnderWay, Ran: domain.RanMaybe, Seqs: []int64{}, Log: r.ID()}
	for _, rec := range records {
		e, err := Decode(ctx, r, r.ID(), rec)
		if err != nil {
			return Reply{}, false, err
		}
		reply.grow(e)
	}
	return reply, len(records) > 0, nil
}

// Cancel gives up a call of a host; false where it is not under way. The call's
// own reply says how it ended: an answer that came first wins.
func (l *Loop) Cancel(ctx context.Context, id domain.CallID) (underWay bool, err error) {
	err = l.Ask(ctx, func(s *domain.State) { underWay = s.UnderWay(id.CallKey()) })
	if err == nil && underWay {
		l.Report(domain.CallCancelled{CallID: id, By: "host"}, nil, nil)
	}
	return underWay, err
}
