package domain

import (
	"slices"
	"testing"
)

// listeners looks at every subscription of a run, apart from the state: at most one
// is open for a list, no id is used twice, and what was closed is never acted on.
type listeners struct {
	s        *sim
	open     map[string]int64 // by peer and context
	closed   map[int64]bool
	reopened int
	seen     map[string]int
}

func watchListeners(s *sim) *listeners {
	l := &listeners{s: s, open: map[string]int64{}, closed: map[int64]bool{}, seen: map[string]int{}}
	s.watch = l.step
	return l
}

func (l *listeners) step(events []Event) {
	for i, e := range events {
		l.seen[e.Data.Kind()]++
		switch d := e.Data.(type) {
		case ServiceStarted:
			l.end("")
		case PeerExited:
			l.end(d.Peer)
		case SubscriptionRequested:
			l.requested(e, d, events[i:])
		case SubscriptionOpened:
			l.live(e, d.At, d.Context, d.RequestID)
		case SubscriptionClosed:
			l.live(e, d.At, d.Context, d.RequestID)
			l.closed[d.RequestID] = true
			delete(l.open, d.Peer+" "+contextKey(d.Context))
		case ListChanged:
			if follows := events[i+1:]; l.closed[d.Subscription] && len(follows) > 0 {
				l.s.t.Fatalf("event %d: a notice on subscription %d, which is closed, leads to %v", e.Seq, d.Subscription, kinds(follows))
			}
		}
	}
}

// end forgets the subscriptions of a peer, or of all.
func (l *listeners) end(peer string) {
	for key, id := range l.open { // order-free: each alone
		if peer == "" || key[:len(peer)+1] == peer+" " {
			delete(l.open, key)
			l.closed[id] = true
		}
	}
}

func (l *listeners) requested(e Event, d SubscriptionRequested, rest []Event) {
	key := d.Peer + " " + contextKey(d.Context)
	if id, twice := l.open[key]; twice || l.closed[d.RequestID] || d.RequestID == 0 {
		l.s.t.Fatalf("event %d: a subscription of %s under %d beside or after %d", e.Seq, key, d.RequestID, id)
	}
	l.open[key] = d.RequestID
	if d.Attempt > 1 {
		l.reopened++
	}
	first := len(all[ListRequested](l.s.log)) == 0
	read := len(all[ListRequested](rest)) > 0 || len(all[ListDeferred](rest)) > 0
	if line := l.s.s.Peer(d.Peer).line(d.Context); !read && !first && line.fetch == nil && line.dueAt == 0 {
		l.s.t.Fatalf("event %d: %s is subscribed to, and its list is not read: %v", e.Seq, key, kinds(rest))
	}
}

// live holds for what is said of a subscription: it is the one that is open.
func (l *listeners) live(e Event, at At, context string, id int64) {
	if open := l.open[at.Peer+" "+contextKey(context)]; open != id {
		l.s.t.Fatalf("event %d: %s of %d, while %d is open", e.Seq, facts(l.s.t, e.Data), id, open)
	}
}

// TestSubscriptionsKeepToTheirRules (basic/patterns/subscriptions; design,
// "Subscriptions"), under random ends, losses, silences and restarts.
func TestSubscriptionsKeepToTheirRules(t *testing.T) {
	seen, reopened := map[string]int{}, 0
	for seed := range walks(uint64(60)) {
		s, c := flightSim(t, 1_000+seed)
		l := watchListeners(s)
		s.begin(c)
		for range 150 {
			s.run(s.r.Int64N([]int64{20, 2_000, 70_000}[s.r.IntN(3)]))
			x := s.servers[[]string{"p", "p", "r"}[s.r.IntN(3)]]
			context := x.contexts()[s.r.IntN(len(x.lists))]
			switch s.r.IntN(8) {
			case 0, 1, 2:
				x.ends(context, []string{EndedAnswered, EndedError, EndedCancelled, EndedBroken}[s.r.IntN(4)])
			case 3:
				x.deaf++
			case 4:
				s.crash(x.up)
			case 5:
				s.replays()
			default:
				s.bother(c)
			}
		}
		s.onceEach()
		for kind, n := range l.seen { // order-free: sums
			seen[kind] += n
		}
		reopened += l.reopened
		if seed%20 == 0 {
			s.refolds()
		}
	}
	t.Logf("%d subscriptions, %d opened again, %d closed, %d acknowledged", seen["subscription.requested"], reopened, seen["subscription.closed"], seen["subscription.opened"])
	if reopened < walks(500) || seen["subscription.closed"] < walks(500) || seen["answer.dropped"] < walks(50) {
		t.Error("the walks do not go where they should")
	}
}

// replays says something again that was said on a subscription before, whatever has
// become of it.
func (s *sim) replays() {
	var said []Event
	for _, e := range s.log {
		switch e.Data.(type) {
		case ListChanged, SubscriptionAcknowledged, SubscriptionEnded, SubscriptionDue:
			said = append(said, e)
		}
	}
	if len(said) == 0 {
		return
	}
	e := said[s.r.IntN(len(said))]
	if a, ok := e.Data.(SubscriptionAcknowledged); ok && s.servers[a.Peer].subs[a.RequestID] != "" {
		return // it may be the first
	}
	if d, ok := e.Data.(SubscriptionEnded); ok {
		s.settles(d.RequestID)
	}
	s.feed(e.Data, string(e.Evidence))
}

// TestAStreamThatIsLostIsListenedToAnew is exercise 5 of the seed lesson
// (basic/patterns/subscriptions, "Graceful Closure"): a bounded simulator of
// subscriptions. When the stream is lost there is another under a new id, and the
// tools are read again: what changed while nobody listened is seen.
func TestAStreamThatIsLostIsListenedToAnew(t *testing.T) {
	for name, lose := range map[string]func(*sim, *server){
		"with its transport":     func(s *sim, x *server) { s.crash(x.up) },
		"ended in good order":    func(_ *sim, x *server) { x.ends(DefaultContext, EndedAnswered) },
		"ended by an error":      func(_ *sim, x *server) { x.ends(DefaultContext, EndedError) },
		"cancelled by the peer":  func(_ *sim, x *server) { x.ends(DefaultContext, EndedCancelled) },
		"answered with anything": func(_ *sim, x *server) { x.ends(DefaultContext, EndedBroken) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(t, 5)
			x := s.server("p", DefaultContext)
			s.begin(ruled(testConfig(PrefixOnCollision, "p")))
			s.run(5_000)
			first, reads := s.last("p", "", MethodListen), s.count(MethodList)
			if s.subscription("p", "") != "active" || s.version("p", "") != 1 || len(x.subs) != 1 {
				t.Fatalf("%s, version %d", s.subscription("p", ""), s.version("p", ""))
			}
			lose(s, x)
			s.run(100)
			x.changes(DefaultContext) // nobody listens
			if got := s.version("p", ""); got != 1 || slices.Contains(x.listeners(DefaultContext), first.RequestID) {
				t.Fatalf("version %d is known", got)
			}
			s.run(5_000)
			again := s.last("p", "", MethodListen)
			if again.RequestID <= first.RequestID || s.subscription("p", "") != "active" || s.count(MethodList) <= reads {
				t.Errorf("%+v after %+v, %s, %d readings", again, first, s.subscription("p", ""), s.count(MethodList)-reads)
			}
			if got := s.version("p", ""); got != 2 || s.verdict("p", "") != CacheFresh {
				t.Errorf("version %d is known, %s", got, s.verdict("p", ""))
			}
			x.changes(DefaultContext)
			s.run(5_000)
			if got := s.version("p", ""); got != 3 {
				t.Errorf("after a change on the new stream version %d is known", got)
			}
			s.onceEach()
			s.refolds()
		})
	}
}
