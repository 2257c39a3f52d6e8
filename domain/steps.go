package domain

import "slices"

// Steps are the decisions that follow from one observation, one after the other, for
// who holds them against those that were recorded. Step takes each as it is due.
// Nothing else may change the state until they are through.
type Steps struct {
	s     *State
	o     Event
	queue []Data
}

// Begin applies an observation, as Step does, and returns what follows from it.
func (s *State) Begin(o Event) *Steps {
	o.Seq, o.Cause = s.Head+1, 0
	s.Apply(o)
	return &Steps{s: s, o: o, queue: s.Decide(o)}
}

// Observation is what the decisions follow from, numbered.
func (t *Steps) Observation() Event { return t.o }

// Due returns the i-th decision from here, counted from 0, as it would be made now:
// later ones may come out otherwise once those before them are applied. false where so
// many are not due. Of what follows from those, nothing is known yet.
func (t *Steps) Due(i int) (Event, bool) {
	for j := 0; j < len(t.queue); {
		switch {
		case j == 0 && t.s.moot(t.o.Seq, t.queue[0]):
			t.queue = t.queue[1:]
		case t.s.moot(t.o.Seq, t.queue[j]):
			t.queue = slices.Delete(slices.Clone(t.queue), j, j+1)
		case j == i:
			return t.event(t.s.numbered(t.queue[j])), true
		default:
			j++
		}
	}
	return Event{}, false
}

func (t *Steps) event(d Data) Event {
	return Event{Seq: t.s.Head + 1, Time: t.o.Time, Mono: t.o.Mono, Cause: t.o.Seq, Data: d}
}

// Drop takes away the first n decisions that are due.
func (t *Steps) Drop(n int) { t.queue = t.queue[min(n, len(t.queue)):] }

// Take applies a decision and appends what follows from it. It is the caller's who drops
// the one in whose place it stands.
func (t *Steps) Take(e Event) {
	t.s.Apply(e)
	t.queue = append(t.queue, t.s.Decide(e)...)
}
