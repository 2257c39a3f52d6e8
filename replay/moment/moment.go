package moment

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"waybill/domain"
	"waybill/replay"
)

// A Point is a place in a log: the last event up to a seq, or up to a time of the wall
// clock. The zero Point is the end.
type Point struct {
	Seq  int64
	Time time.Time
}

// ParsePoint reads a seq, or a time in RFC 3339.
func ParsePoint(s string) (Point, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if n < 1 {
			return Point{}, fmt.Errorf("%q is no seq: the first event is 1", s)
		}
		return Point{Seq: n}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return Point{}, fmt.Errorf("%q is neither a seq nor a time such as 2026-11-30T12:00:00Z", s)
	}
	return Point{Time: t}, nil
}

func (p Point) includes(e domain.Event) bool {
	switch {
	case p.Seq != 0:
		return e.Seq <= p.Seq
	case !p.Time.IsZero():
		return e.Time <= p.Time.UnixNano()
	}
	return true
}

// Moment is how things stood after one event.
type Moment struct {
	State *domain.State
	Log   string
	Seq   int64 // of that event; 0 before the first
	Time  int64 // of it: wall clock, nanoseconds since 1970
	Mono  int64 // of it: monotonic clock
}

// ErrBeyond says that a log ends before the seq that was asked for.
var ErrBeyond = errors.New("the log ends before this event")

// ErrOrder says that the later of two moments is the earlier one.
var ErrOrder = errors.New("exchange --from and --to")

var errPassed = errors.New("passed")

// At folds a log up to a point. Of two events that a clock set back put out of order,
// the first beyond the point ends it: the log is the order of things.
func At(ctx context.Context, src replay.Source, p Point) (Moment, error) {
	f := newFold(src, p)
	err := foldAll(ctx, src, f)
	return f.m, err
}

// Two reads a log once, for two points of it in their order.
func Two(ctx context.Context, src replay.Source, from, to Point) (Sight, Sight, error) {
	a, b := newFold(src, from), newFold(src, to)
	if err := foldAll(ctx, src, a, b); err != nil {
		return Sight{}, Sight{}, err
	}
	if b.m.Seq < a.m.Seq {
		return Sight{}, Sight{}, fmt.Errorf("%w: event %d comes before event %d", ErrOrder, b.m.Seq, a.m.Seq)
	}
	return a.m.Sight(), b.m.Sight(), nil
}

// fold is a moment on its way to a point.
type fold struct {
	to     Point
	m      Moment
	pages  domain.Pages
	passed bool
}

func newFold(src replay.Source, to Point) *fold {
	return &fold{to: to, m: Moment{State: domain.NewState(), Log: src.ID()}}
}

// foldAll ends where all have passed their points, and says which did not come to its own.
func foldAll(ctx context.Context, src replay.Source, folds ...*fold) error {
	err := replay.Scan(ctx, src, func(e domain.Event, _ replay.Record) error {
		under := false
		for _, f := range folds {
			f.take(e)
			under = under || !f.passed
		}
		if !under {
			return errPassed
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPassed) {
		return err
	}
	for _, f := range folds {
		if f.to.Seq > f.m.Seq {
			return fmt.Errorf("%w: it has %d events, and %d was asked for", ErrBeyond, f.m.Seq, f.to.Seq)
		}
	}
	return nil
}

func (f *fold) take(e domain.Event) {
	if f.passed = f.passed || !f.to.includes(e); f.passed {
		return
	}
	f.pages.Judge(f.m.State, &e)
	f.m.State.Apply(e)
	f.m.Seq, f.m.Time, f.m.Mono = e.Seq, e.Time, e.Mono
}
