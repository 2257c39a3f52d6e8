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
	m := Moment{State: domain.NewState(), Log: src.ID()}
	var pages domain.Pages
	err := replay.Scan(ctx, src, func(e domain.Event, _ replay.Record) error {
		if !p.includes(e) {
			return errPassed
		}
		pages.Judge(m.State, &e)
		m.State.Apply(e)
		m.Seq, m.Time, m.Mono = e.Seq, e.Time, e.Mono
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errPassed):
		return m, err
	case p.Seq > m.Seq:
		return m, fmt.Errorf("%w: it has %d events, and %d was asked for", ErrBeyond, m.Seq, p.Seq)
	}
	return m, nil
}

// Two folds a log once, for two points of it in their order.
func Two(ctx context.Context, src replay.Source, from, to Point) (Sight, Sight, error) {
	a, err := At(ctx, src, from)
	if err != nil {
		return Sight{}, Sight{}, err
	}
	before := a.Sight()
	b, err := At(ctx, src, to)
	if err != nil {
		return before, Sight{}, err
	}
	if b.Seq < a.Seq {
		return before, b.Sight(), fmt.Errorf("%w: event %d comes before event %d", ErrOrder, b.Seq, a.Seq)
	}
	return before, b.Sight(), nil
}
