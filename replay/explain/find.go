package explain

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"waybill/domain"
	"waybill/events"
	"waybill/replay"
)

// found is a call, and the story of it that is to be told.
type found struct {
	key   string
	story *saga
	other []*saga // under the same key
}

// saga is one call under a key: a host may use an id again after a day.
type saga struct {
	first, last int64 // seqs
	has         map[int64]bool
	received    domain.CallReceived
	routed      *domain.CallRouted
	requests    map[int64]bool
	begun       bool // routed or held
	paused      bool // it was settled as input_required
	duplicate   bool // turned away: the id was taken
}

// opened reads the envelope of a record.
func opened(r replay.Record) (domain.Event, error) {
	_, e, err := events.Open(r.Bytes)
	switch {
	case errors.Is(err, events.ErrUnknown):
		return e, &replay.UndecidableError{Seq: r.Seq, What: err.Error()}
	case err != nil:
		return e, &replay.AlteredError{Seq: r.Seq, What: err.Error()}
	}
	return e, nil
}

// find looks up the call that a name means.
func find(ctx context.Context, src replay.Source, name string) (found, error) {
	if strings.Contains(name, "/") {
		return byKey(ctx, src, name, 0)
	}
	if seq, err := strconv.ParseInt(name, 10, 64); err == nil {
		return bySeq(ctx, src, seq)
	}
	keys, err := keysOf(ctx, src, name)
	switch {
	case err != nil:
		return found{}, err
	case len(keys) == 0:
		return found{}, fmt.Errorf("%w: no host has a call with the id %.80q in this log", ErrNoCall, name)
	case len(keys) > 1:
		return found{}, fmt.Errorf("%w alone: %d hosts have one with the id %.80q; name one of %s", ErrNoCall, len(keys), name, some(keys, 5))
	}
	return byKey(ctx, src, keys[0], 0)
}

func bySeq(ctx context.Context, src replay.Source, seq int64) (found, error) {
	list, err := src.Records(ctx, seq-1, 1)
	switch {
	case err != nil:
		return found{}, fmt.Errorf("read event %d: %w", seq, err)
	case len(list) == 0 || list[0].Seq != seq:
		return found{}, fmt.Errorf("%w: the log has no event %d", ErrNoCall, seq)
	case list[0].Call == "":
		return found{}, fmt.Errorf("%w: event %d (%.80q) belongs to none; a call whose id is a number is named with its host, HOST/%d", ErrNoCall, seq, list[0].Type, seq)
	}
	return byKey(ctx, src, list[0].Call, seq)
}

// keysOf lists the keys of calls with an id, each once.
func keysOf(ctx context.Context, src replay.Source, id string) (out []string, err error) {
	seen := map[string]bool{}
	err = columns(ctx, src, 0, func(r replay.Record) error {
		if strings.HasSuffix(r.Call, "/"+id) && strings.Count(r.Call, "/") == 1 && !seen[r.Call] {
			seen[r.Call] = true
			out = append(out, r.Call)
		}
		return nil
	})
	return out, err
}

// columns calls f with every record after a seq.
func columns(ctx context.Context, src replay.Source, after int64, f func(replay.Record) error) error {
	for {
		list, err := src.Records(ctx, after, 1024)
		if err != nil {
			return fmt.Errorf("read events after %d: %w", after, err)
		}
		if len(list) == 0 {
			return nil
		}
		for _, r := range list {
			if err := f(r); err != nil {
				return err
			}
			after = r.Seq
		}
	}
}

// ofCall returns the events of a call, without their evidence.
func ofCall(ctx context.Context, src replay.Source, key string) (out []domain.Event, err error) {
	take := func(r replay.Record) error {
		if r.Call != key {
			return nil
		}
		e, err := opened(r)
		out = append(out, e)
		return err
	}
	x, ok := src.(Indexed)
	if !ok {
		return out, columns(ctx, src, 0, take)
	}
	list, err := x.OfCall(ctx, key)
	for _, r := range list {
		if err == nil {
			err = take(r)
		}
	}
	return out, err
}

// byKey finds the story of a key that an event belongs to, or the one that the key
// means by itself.
func byKey(ctx context.Context, src replay.Source, key string, seq int64) (found, error) {
	list, err := ofCall(ctx, src, key)
	if err != nil {
		return found{}, err
	}
	all := sagas(list)
	if len(all) == 0 {
		return found{}, fmt.Errorf("%w: no call %.200q was received in this log", ErrNoCall, key)
	}
	f := found{key: key, story: choose(all, seq)}
	for _, s := range all {
		if s != f.story {
			f.other = append(f.other, s)
		}
	}
	return f, nil
}

func choose(all []*saga, seq int64) *saga {
	best := all[len(all)-1]
	for _, s := range all {
		if s.has[seq] {
			return s
		}
		if !s.duplicate {
			best = s
		}
	}
	return best
}

// sagas takes the events of a key apart.
func sagas(list []domain.Event) (out []*saga) {
	for _, e := range list {
		d, ok := e.Data.(domain.CallReceived)
		s := sagaOf(out, e)
		if ok && (s == nil || !s.paused || !goesOn(d)) {
			s = &saga{first: e.Seq, has: map[int64]bool{}, received: d, requests: map[int64]bool{}}
			out = append(out, s)
		}
		if s != nil {
			s.add(e)
		}
	}
	return out
}

func goesOn(d domain.CallReceived) bool { return d.Input != nil || d.RequestState != nil }

// sagaOf finds the story that an event belongs to: by the observation it follows
// from, by its request, or because that story is under way.
func sagaOf(all []*saga, e domain.Event) (best *saga) {
	for _, s := range all {
		if s.has[e.Cause] || s.requests[requestOf(e.Data)] {
			return s
		}
		if best == nil || s.begun || !best.begun {
			best = s
		}
	}
	return best
}

// requestOf is the request that an event of a call speaks of; 0 for none.
func requestOf(d domain.Data) int64 {
	switch d := d.(type) {
	case domain.CallAnswered:
		return d.RequestID
	case domain.CallAbandoned:
		return d.RequestID
	case domain.ExchangeFailed:
		return d.RequestID
	case domain.DeadlinePassed:
		return d.RequestID
	case domain.CallResent:
		return d.After
	}
	return 0
}

func (s *saga) add(e domain.Event) {
	s.has[e.Seq], s.last = true, e.Seq
	switch d := e.Data.(type) {
	case domain.CallRouted:
		s.begun, s.requests[d.RequestID], s.routed = true, true, &d
	case domain.CallResent:
		s.requests[d.RequestID], s.paused = true, false
	case domain.CallHeld:
		s.begun = true
	case domain.CallSettled:
		s.paused = d.Status == domain.StatusInputRequired
	case domain.CallRefused:
		s.duplicate = d.Code == domain.CodeDuplicateCall
	}
}
