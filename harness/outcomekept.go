package harness

import (
	"context"
	"fmt"
	"time"

	"waybill/domain"
	"waybill/store"
	"waybill/store/payloads"
)

// Erasure says by what the payloads of a call were erased.
type Erasure struct {
	Seq int64  `json:"seq"` // of payloads.erased
	At  string `json:"at"`  // RFC 3339
	By  string `json:"by"`  // the operator; "" for payload_retention or idempotency_window
}

// keptEvents are the events of a call whose payloads may be kept.
type keptEvents struct {
	story  int64 // the call.received from which on they are; 0 where they are not
	answer int64 // what ended the call, a call.answered where it was answered; 0 while there is none
	size   int64 // of what the peer answered with; 0 for nothing

	seen, sized int64 // the last call.answered, and its size
}

// story notes where the payloads of the call are to be found.
func (r *Reply) story(e domain.Event) {
	switch d := e.Data.(type) {
	case domain.CallReceived:
		r.trace = d.Trace
		if r.kept.answer = 0; !continues(d) {
			r.began, r.kept.story = e.Seq, 0
			if d.Kept {
				r.kept.story = e.Seq
			}
		}
	case domain.CallAnswered:
		r.kept.seen, r.kept.sized = e.Seq, d.Result.Size
	case domain.CallResent:
		r.kept.answer, r.kept.size = 0, 0
	case domain.CallSettled:
		if r.kept.answer, r.kept.size = e.Cause, 0; e.Cause == r.kept.seen {
			r.kept.size = r.kept.sized
		}
	case domain.CallJoined:
		r.first, r.Joined = &d, e.Seq
	}
}

// bring puts what the peer answered where it belongs.
func (r *Reply) bring(result []byte) {
	switch r.Code {
	case domain.CodePeerError:
		r.Error, r.Result = result, nil
	case domain.CodeOutputInvalid:
		r.Result = nil // the configuration refuses it
	default:
		r.Result = result
	}
}

// PayloadReader reads what is kept of calls: *payloads.DB does.
type PayloadReader interface {
	// Read returns what an event cites in one role.
	Read(ctx context.Context, seq int64, role string) (x payloads.Payload, ok bool, err error)
	// ErasedBy returns the seq of the event that erased what was kept of a call.
	ErasedBy(ctx context.Context, story int64) (int64, error)
}

// OutcomeKept is Outcome with the result, where it is kept, and where it was
// erased with when and by whom. A result that a secret was taken out of so that
// it is no JSON any more is left out.
func OutcomeKept(ctx context.Context, r *store.Reader, p PayloadReader, id domain.CallID) (reply Reply, ok bool, err error) {
	if reply, ok, err = Outcome(ctx, r, id); err != nil || reply.kept.story == 0 {
		return reply, ok, err
	}
	by, err := p.ErasedBy(ctx, reply.kept.story)
	switch {
	case err != nil:
	case by != 0:
		reply.Erased, err = erasureAt(ctx, r, by)
	case reply.kept.answer != 0:
		_, err = reply.fetch(ctx, p)
	}
	return reply, ok, err
}

// recordReader reads events by their seq.
type recordReader interface {
	Read(ctx context.Context, after int64, max int) ([]store.Record, error)
	ID() string
}

func erasureAt(ctx context.Context, r recordReader, seq int64) (*Erasure, error) {
	records, err := r.Read(ctx, seq-1, 1)
	if err != nil {
		return nil, fmt.Errorf("read event %d: %w", seq, err)
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("the log has no event %d, by which payloads were erased: run waybill-audit verify", seq)
	}
	e, err := open(r.ID(), records[0])
	if err != nil {
		return nil, err
	}
	d, _ := e.Data.(domain.PayloadsErased)
	return &Erasure{Seq: e.Seq, At: time.Unix(0, e.Time).UTC().Format(time.RFC3339Nano), By: d.By}, nil
}
