package replay

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"waybill/domain"
	"waybill/events"
)

// ReplayAll is Replay that goes on after a divergence, and calls found with each one,
// in order. What follows is decided from what the log says, right or wrong, so that one
// forged decision is one divergence, and its true consequences are none. An error of
// found ends it and is returned. Other errors are as Replay's.
//
// A decision that stands in the place of another of the same peer and call is Different;
// one that is due and stands nowhere is Missing, one that nothing leads to Extra.
func ReplayAll(ctx context.Context, src Source, found func(*DivergedError) error) (Replayed, error) {
	src = readAhead(src)
	r := &allReplayer{ctx: ctx, src: src, found: found, state: domain.NewState()}
	err := each(ctx, src, r.event)
	if err == nil {
		err = r.finish(r.tree.size + 1)
	}
	r.out.Log, r.out.Size, r.out.Root = src.ID(), r.tree.size, r.tree.root()
	if err == nil {
		r.out.State = r.state
	}
	return r.out, err
}

type allReplayer struct {
	ctx    context.Context
	src    Source
	found  func(*DivergedError) error
	state  *domain.State
	steps  *domain.Steps // nil before the first observation
	tree   tree
	pages  domain.Pages
	origin jsontext.Value
	out    Replayed
}

func (r *allReplayer) event(rec Record) error {
	e, err := open(r.src, rec)
	if err != nil {
		return err
	}
	if e.IsDecision() {
		err = r.decision(e, rec)
	} else {
		err = r.observation(e, rec)
	}
	if err == nil {
		r.tree.add(tlog.RecordHash(rec.Bytes))
	}
	return err
}

func (r *allReplayer) observation(e domain.Event, rec Record) error {
	if err := r.finish(rec.Seq); err != nil {
		return err
	}
	if _, _, err := join(r.ctx, r.src, &e); err != nil {
		return err
	}
	r.pages.Judge(r.state, &e)
	r.origin, r.steps = rec.Bytes, r.state.Begin(e)
	return nil
}

// finish reports what is due and was not recorded.
func (r *allReplayer) finish(seq int64) error {
	for r.steps != nil {
		e, ok := r.steps.Due(0)
		if !ok {
			return nil
		}
		if err := r.diverged(Missing, seq, nil, &e); err != nil {
			return err
		}
		r.steps.Drop(1)
	}
	return nil
}

func (r *allReplayer) diverged(code string, seq int64, recorded []byte, due *domain.Event) error {
	d := &DivergedError{Code: code, Seq: seq, Recorded: recorded, Observation: r.origin}
	if due != nil {
		again, err := events.Seal(r.src.ID(), *due)
		if err != nil {
			return &UndecidableError{Seq: seq, What: err.Error()}
		}
		d.Redecided = again
	}
	return r.found(d)
}

func (r *allReplayer) decision(e domain.Event, rec Record) error {
	r.out.Decisions++
	if r.steps == nil {
		r.state.Apply(e)
		return r.diverged(Extra, rec.Seq, rec.Bytes, nil)
	}
	i := r.find(rec)
	if i < 0 {
		return r.differs(e, rec)
	}
	for range i {
		due, _ := r.steps.Due(0)
		if err := r.diverged(Missing, rec.Seq, nil, &due); err != nil {
			return err
		}
		r.steps.Drop(1)
	}
	r.steps.Drop(1)
	r.steps.Take(e)
	r.out.Agreed++
	return nil
}

// find returns which of the decisions that are due a record is; -1 for none.
func (r *allReplayer) find(rec Record) int {
	for i := 0; ; i++ {
		due, ok := r.steps.Due(i)
		if !ok {
			return -1
		}
		if rec.Type == due.Data.Kind() && events.Is(rec.Bytes, r.src.ID(), due) {
			return i
		}
	}
}

// differs takes a decision that is none of those due.
func (r *allReplayer) differs(e domain.Event, rec Record) error {
	due, ok := r.steps.Due(0)
	var err error
	if ok && due.Peer() == e.Peer() && due.Call() == e.Call() {
		err = r.diverged(Different, rec.Seq, rec.Bytes, &due)
		r.steps.Drop(1)
	} else {
		err = r.diverged(Extra, rec.Seq, rec.Bytes, nil)
	}
	r.steps.Take(e)
	return err
}
