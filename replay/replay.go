package replay

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"waybill/domain"
	"waybill/events"
)

// Replayed is what Replay found of a whole log.
type Replayed struct {
	Log       string
	Size      int64         // events that were replayed, all of the log where there is no error
	Root      [32]byte      // RFC 6962, over the exact bytes of those events
	Decisions int64         // recorded
	Agreed    int64         // decided again with the same bytes
	State     *domain.State // after the last event; nil where there is an error
}

// Divergence kinds.
const (
	Different = "different" // another decision than the one recorded
	Extra     = "extra"     // a decision was recorded where none follows
	Missing   = "missing"   // a decision follows that was not recorded
)

// DivergedError is the first divergence with its proof: both decisions, and the
// observation that both came from.
type DivergedError struct {
	Code        string
	Seq         int64          // where in the log
	Recorded    jsontext.Value // envelope, or null
	Redecided   jsontext.Value // envelope, or null
	Observation jsontext.Value // envelope, or null for a decision before any observation
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("diverged at event %d: %s: recorded %s, decided again %s, both from %s",
		e.Seq, e.Code, orNone(e.Recorded), orNone(e.Redecided), orNone(e.Observation))
}

func orNone(v jsontext.Value) string {
	if v == nil {
		return "nothing"
	}
	return string(v)
}

// Replay folds the log and decides again at every observation. It returns a
// *DivergedError at the first decision that does not follow, an *AlteredError
// where evidence is not what was cited, and an *UndecidableError for an event
// this program cannot read; what it had found until then comes with either. It
// does not compare events with stored hashes, roots and tiles: that is Verify's.
//
// Where a decision is taken out or added among others that follow from the same
// observation, the ones behind it are each other than the one due: the first
// such is Different. Missing and Extra are said where the count is wrong.
func Replay(ctx context.Context, src Source) (Replayed, error) {
	src = readAhead(src)
	r := &replayer{ctx: ctx, src: src, state: domain.NewState()}
	err := each(ctx, src, r.event)
	if err == nil {
		err = r.missing(r.tree.size + 1)
	}
	r.out.Log, r.out.Size, r.out.Root = src.ID(), r.tree.size, r.tree.root()
	if err == nil {
		r.out.State = r.state
	}
	return r.out, err
}

type replayer struct {
	ctx    context.Context
	src    Source
	state  *domain.State
	tree   tree
	pages  domain.Pages
	steps  *domain.Steps  // decided again, and not yet met in the log; nil before the first observation
	origin jsontext.Value // the observation they came from
	out    Replayed
}

func (r *replayer) event(rec Record) error {
	err := r.examine(rec)
	if err == nil {
		r.tree.add(tlog.RecordHash(rec.Bytes))
	}
	return err
}

func (r *replayer) examine(rec Record) error {
	if r.agrees(rec) {
		r.out.Decisions++
		r.out.Agreed++
		return nil
	}
	e, err := open(r.src, rec)
	if err != nil {
		return err
	}
	if e.IsDecision() {
		return r.decision(rec)
	}
	return r.observation(rec, e)
}

// agrees reports whether the record is exactly the decision that is due, and goes on
// to the next one. There is then no need to read its envelope back.
func (r *replayer) agrees(rec Record) bool {
	e, ok := r.due()
	if !ok || rec.Seq != e.Seq || rec.Type != e.Data.Kind() || rec.Peer != e.Peer() || rec.Call != e.Call() ||
		!events.Is(rec.Bytes, r.src.ID(), e) {
		return false
	}
	r.steps.Drop(1)
	r.steps.Take(e)
	return true
}

// due is the decision that must come next; false for none.
func (r *replayer) due() (domain.Event, bool) {
	if r.steps == nil {
		return domain.Event{}, false
	}
	return r.steps.Due(0)
}

func (r *replayer) observation(rec Record, e domain.Event) error {
	if err := r.missing(rec.Seq); err != nil {
		return err
	}
	if _, _, err := join(r.ctx, r.src, &e); err != nil {
		return err
	}
	r.pages.Judge(r.state, &e)
	r.origin = rec.Bytes
	r.steps = r.state.Begin(e)
	return nil
}

// decision says what is wrong with a decision that does not agree.
func (r *replayer) decision(rec Record) error {
	r.out.Decisions++
	due, ok := r.due()
	if !ok {
		return &DivergedError{Code: Extra, Seq: rec.Seq, Recorded: rec.Bytes, Observation: r.origin}
	}
	again, err := events.Seal(r.src.ID(), due)
	if err != nil {
		return &UndecidableError{Seq: rec.Seq, What: err.Error()}
	}
	return &DivergedError{Code: Different, Seq: rec.Seq, Recorded: rec.Bytes, Redecided: again, Observation: r.origin}
}

// missing reports decisions that follow from the last observation but are not
// in the log.
func (r *replayer) missing(seq int64) error {
	due, ok := r.due()
	if !ok {
		return nil
	}
	again, err := events.Seal(r.src.ID(), due)
	if err != nil {
		return &UndecidableError{Seq: seq, What: err.Error()}
	}
	return &DivergedError{Code: Missing, Seq: seq, Redecided: again, Observation: r.origin}
}
