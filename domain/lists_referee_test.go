package domain

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// A listReferee looks at every event of a run that concerns lists, and keeps a
// count of its own: which are read, which are listened for.
type listReferee struct {
	t       testing.TB
	reading map[string]int64 // incarnation, by peer and context
	open    map[string]int64 // subscriptions, by peer and context
	ids     map[int64]bool   // of every request
}

func newListReferee(t testing.TB) *listReferee {
	return &listReferee{t: t, reading: map[string]int64{}, open: map[string]int64{}, ids: map[int64]bool{}}
}

func (r *listReferee) watch(s *State, mono int64, events []Event) {
	r.t.Helper()
	for _, e := range events {
		if !e.IsDecision() && len(Effects(e)) > 0 {
			r.t.Fatalf("event %d: an observation releases %v", e.Seq, Effects(e))
		}
		r.forget(e)
		r.event(e)
		r.effects(e)
	}
	for _, c := range driveContexts {
		list := s.Tools(c, "", 0, mono)
		for _, t := range list.Tools {
			if t.Held != nil && t.Definition != nil {
				r.t.Fatalf("%s is held and shown", t.Canonical)
			}
		}
		_ = s.Reading(c)
	}
	_ = s.Report("log")
	r.state(s)
}

// forget drops what belongs to an incarnation that is gone, or to a context.
func (r *listReferee) forget(e Event) {
	drop := func(peer string) {
		for _, m := range []map[string]int64{r.reading, r.open} {
			for key := range m { // order-free: each alone
				if peer == "" || strings.HasPrefix(key, peer+" ") {
					delete(m, key)
				}
			}
		}
	}
	switch d := e.Data.(type) {
	case ServiceStarted, ConfigLoaded: // what goes on under another configuration is not looked at
		drop("")
	case PeerExited:
		drop(d.Peer)
	case PeerLaunched:
		drop(d.Peer)
	case PeerRestarted:
		drop(d.Peer)
	}
}

func (r *listReferee) event(e Event) {
	key := func(at At, context string) string { return at.Peer + " " + contextKey(context) }
	switch d := e.Data.(type) {
	case ListRequested:
		k := key(d.At, d.Context)
		if is, reads := r.reading[k]; d.Page == 1 && reads && is == d.Incarnation {
			r.t.Fatalf("event %d: the list of %s is read twice at once", e.Seq, k)
		}
		r.reading[k] = d.Incarnation
	case CatalogAccepted:
		delete(r.reading, key(d.At, d.Context))
	case CatalogRefused:
		delete(r.reading, key(d.At, d.Context))
	case SubscriptionRequested:
		k := key(d.At, d.Context)
		if r.open[k] != 0 {
			r.t.Fatalf("event %d: %s is subscribed to twice", e.Seq, k)
		}
		r.open[k] = d.RequestID
	case SubscriptionClosed:
		k := key(d.At, d.Context)
		if id, open := r.open[k]; open && id != d.RequestID {
			r.t.Fatalf("event %d: subscription %d of %s is closed, %d is open", e.Seq, d.RequestID, k, id)
		}
		delete(r.open, k)
	case CacheDecided:
		for i, u := range d.Uses {
			if i > 0 && d.Uses[i-1].Peer >= u.Peer || u.Age < 0 || (u.List == 0) && u.Verdict != CacheNone || u.Owner == d.Context {
				r.t.Fatalf("event %d: %+v", e.Seq, d)
			}
		}
	case ListDeferred:
		if d.Delay <= 0 {
			r.t.Fatalf("event %d: %+v", e.Seq, d)
		}
	}
}

// effects: every act follows from a decision that says it, and every decision that
// orders one does.
func (r *listReferee) effects(e Event) {
	var sends, dues, withdraws int
	for _, effect := range Effects(e) {
		switch x := effect.(type) {
		case Send:
			sends++
			if r.ids[x.RequestID] {
				r.t.Fatalf("event %d: request id %d is used twice", e.Seq, x.RequestID)
			}
			r.ids[x.RequestID] = true
		case Due:
			dues++
		case Withdraw:
			withdraws++
		}
	}
	want := [3]int{}
	switch d := e.Data.(type) {
	case ListRequested, SubscriptionRequested, ProbeIssued, HealthRequested, CallRouted, CallResent:
		want[0] = 1
	case ListDeferred:
		want[1] = 1
	case SubscriptionClosed:
		if d.Reopen > 0 {
			want[1] = 1
		}
		if d.Withdrawn {
			want[2] = 1
		}
	case CallAbandoned:
		want[2] = 1
	}
	if want != [3]int{sends, dues, withdraws} {
		r.t.Fatalf("event %d, %s: %d requests, %d reminders, %d withdrawals", e.Seq, facts(r.t, e.Data), sends, dues, withdraws)
	}
}

// state: what the state takes for under way is.
func (r *listReferee) state(s *State) {
	for _, name := range s.names {
		p := s.peers[name]
		p.each(func(l *line) {
			key := name + " " + l.context
			if is, ok := r.reading[key]; ok && p.live && (l.fetch == nil && is == p.Incarnation) {
				r.t.Fatalf("event %d: %s is being read, and the state knows nothing of it", s.Head, key)
			}
			if id := r.open[key]; id != 0 && p.live && l.sub.id != id {
				r.t.Fatalf("event %d: subscription %d of %s is open, the state has %d", s.Head, id, key, l.sub.id)
			}
		})
	}
}

// TestRandomWalksOverLists drives the world of FuzzLists by long runs, drawn so
// that most of what happens gets somewhere.
func TestRandomWalksOverLists(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(60) {
		run := listWalk(rand.New(rand.NewPCG(seed, 1)), 80)
		d := driveLists(t, run)
		for _, k := range kinds(d.w.log) {
			seen[k]++
		}
		if seed%20 == 0 {
			listsTwice(t, run)
		}
	}
	for _, k := range []string{"list.changed", "list.requested", "list.deferred", "cache.decided", "subscription.requested", "subscription.opened",
		"subscription.closed", "tool.changed", "tool.flagged", "name.flagged", "tool.approved", "command.refused", "catalog.refused", "call.routed",
		"call.held", "collision.decided", "name.moved", "answer.dropped"} {
		if seen[k] < 20 {
			t.Errorf("%s came %d times: the walks do not go where they should", k, seen[k])
		}
	}
	t.Logf("%v", seen)
}
