package harness

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
)

// at is when events of a type were recorded, since the service was started.
func at[T domain.Data](list []domain.Event) (out []time.Duration) {
	for _, e := range list {
		if _, ok := e.Data.(T); ok {
			out = append(out, time.Duration(e.Mono-origin))
		}
	}
	return out
}

// wantAt checks when they were.
func wantAt[T domain.Data](s *listSim, want ...time.Duration) {
	s.t.Helper()
	wantIn[T](s, s.events(), want)
}

func wantIn[T domain.Data](s *listSim, list []domain.Event, want []time.Duration) {
	s.t.Helper()
	got := at[T](list)
	if !slices.Equal(got, want) {
		var kind T
		s.t.Errorf("%s at %v, want %v", kind.Kind(), got, want)
	}
}

// changes has a peer announce a change on its open subscription for a context, n
// times.
func (s *listSim) changes(peer, context string, n int) {
	s.t.Helper()
	d := domain.ListChanged{At: s.up(peer), Context: context, Count: 1, Subscription: s.open(peer, context)}
	for range n {
		s.tell(d, nil, nil)
	}
	synctest.Wait()
}

// open is the id of the subscription that a peer has open for a context; 0 for none.
func (s *listSim) open(peer, context string) int64 {
	s.peers.mu.Lock()
	defer s.peers.mu.Unlock()
	for _, x := range slices.Backward(s.listers.opened) {
		if x.Peer == peer && x.Context == context && s.peers.waiting[x.RequestID] != nil {
			return x.RequestID
		}
	}
	return 0
}

// alarms are the keys of those that are set, sorted.
func (s *listSim) alarms() string {
	synctest.Wait()
	a := &s.loop.alarms
	a.mu.Lock()
	defer a.mu.Unlock()
	var keys []string
	for key := range a.set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

// listening are rules with subscriptions.
func listeningRules() *domain.ListRules {
	r := rules()
	r.Listen = 5000
	return r
}

// A reading that was put off happens when the interval has passed, not before, and
// once.
func TestAListThatWasPutOffIsReadWhenItsTimeHasCome(t *testing.T) {
	inLists(t, listConfig(rules(), nil, "notes"), one("notes", shelf{tools: tool("a")}), func(s *listSim) {
		s.pass(300 * time.Millisecond)
		s.read(3, "") // stale, and read a moment ago
		if got := s.alarms(); got != "/notes/list/" {
			s.t.Errorf("alarms: %s", got)
		}
		s.pass(time.Minute)
		wantAt[domain.ListDeferred](s, 300*time.Millisecond)
		wantAt[domain.ListDue](s, time.Second)
		wantAt[domain.ListRequested](s, 0, time.Second)
		if got := s.alarms(); got != "" {
			s.t.Errorf("alarms: %s", got)
		}
	})
}

// One list has one alarm: a sooner time takes the place of a later one, and
// reading the list drops it.
func TestTheAlarmOfAListIsReplacedByASoonerOneAndDroppedByAReading(t *testing.T) {
	r := listeningRules()
	r.Refresh = 60_000
	p := one("notes", shelf{tools: tool("a"), ttl: 3_600_000})
	p.notices = true
	inLists(t, listConfig(r, nil, "notes"), p, func(s *listSim) {
		jitter := time.Duration(find[domain.ListDeferred](s.events())[0].Delay)*time.Millisecond - time.Minute
		s.pass(300 * time.Millisecond)
		s.changes("notes", "", 1) // sooner than the refresh
		s.pass(29700 * time.Millisecond)
		wantAt[domain.ListDue](s, time.Second)
		s.changes("notes", "", 1) // read at once: the refresh of the reading before it is none any more
		wantAt[domain.ListRequested](s, 0, time.Second, 30*time.Second)
		s.pass(59 * time.Second)
		wantAt[domain.ListDue](s, time.Second)
		s.pass(8 * time.Second)
		wantAt[domain.ListDue](s, time.Second, 90*time.Second+jitter)
		wantAt[domain.ListRequested](s, 0, time.Second, 30*time.Second, 90*time.Second+jitter)
	})
}

// What is read sooner than it was due, because a host needs it, is not due any more.
func TestAListThatIsReadBeforeItsTimeIsNotDueAnyMore(t *testing.T) {
	p := one("notes", shelf{tools: tool("a"), ttl: 3_600_000})
	p.notices = true
	inLists(t, listConfig(listeningRules(), nil, "notes"), p, func(s *listSim) {
		s.pass(time.Second)
		s.changes("notes", "", 1) // it turns out that nothing has changed: the next notice waits for 2 s
		s.pass(500 * time.Millisecond)
		s.changes("notes", "", 1)
		if got := s.alarms(); got != "/notes/list/" {
			s.t.Errorf("alarms: %s", got)
		}
		s.pass(700 * time.Millisecond)
		s.read(1, "") // a host waits for one
		if got := s.alarms(); got != "" {
			s.t.Errorf("alarms: %s", got)
		}
		s.pass(time.Minute)
		wantAt[domain.ListRequested](s, 0, time.Second, 2200*time.Millisecond)
		wantAt[domain.ListDue](s)
	})
}

// At the very moment at which a list is due a host reads it, too: it is read once.
func TestAListThatIsDueAndNeededAtTheSameMomentIsReadOnce(t *testing.T) {
	r := rules()
	r.Refresh = 1000
	inLists(t, listConfig(r, nil, "notes"), one("notes", shelf{tools: tool("a")}), func(s *listSim) {
		for n := 1; n <= 20; n++ {
			before := len(s.asks())
			due := find[domain.ListDeferred](s.events())
			<-time.After(time.Duration(due[len(due)-1].Delay) * time.Millisecond)
			s.read(1, "")
			if got := len(s.asks()) - before; got != 1 {
				s.t.Fatalf("round %d: it was read %d times", n, got)
			}
		}
	})
}

// Nothing is due any more of an incarnation that is gone, and nothing of a service
// that has ended.
func TestWhatIsDueEndsWithTheIncarnationAndWithTheLoop(t *testing.T) {
	r := listeningRules()
	r.Refresh = 10_000
	p := one("notes", shelf{tools: tool("a"), ttl: 3_600_000})
	p.notices = true
	c := listConfig(r, nil, "notes")
	c.Peers[0].HealthEvery, c.Peers[0].HealthWithin = 4000, 1000
	inLists(t, c, p, func(s *listSim) {
		s.ends("notes", "", domain.EndedCancelled)
		if got := s.alarms(); got != "/notes /notes/list/ /notes/subscription/" {
			s.t.Errorf("alarms: %s", got)
		}
		s.set(s.peers.broken, "notes", true)
		s.exit("notes")
		if got := s.alarms(); got != "" {
			s.t.Errorf("alarms of an incarnation that is gone: %s", got)
		}
		s.pass(30 * time.Second)
		wantAt[domain.ListDue](s)
		wantAt[domain.SubscriptionDue](s)
		s.set(s.peers.broken, "notes", false)
		s.pass(40 * time.Second)
		if at := s.up("notes"); at.Incarnation < 2 || len(find[domain.ListDue](s.events())) == 0 {
			s.t.Errorf("it is back as %+v, and its list is never due", at)
		}
		for _, d := range find[domain.ListDue](s.events()) {
			if d.At != s.up("notes") {
				s.t.Errorf("due: %+v", d)
			}
		}
		s.end()
		size := s.disk.Log.Head().Size
		s.pass(time.Hour)
		if s.disk.Log.Head().Size != size {
			s.t.Error("something was recorded after the end")
		}
	})
}

// Signs of life are asked for at their own times, whatever becomes of the lists;
// the end of a subscription is no business of the list's alarm, nor the other way
// round; and each context has its own.
func TestAlarmsOfListsSubscriptionsContextsAndHealthAreApart(t *testing.T) {
	r := listeningRules()
	p := &listers{notices: true, shelves: map[string]shelf{"notes/alice": {tools: tool("a")}, "notes/bob": {tools: tool("b")}}}
	c := listConfig(r, []string{"alice", "bob"}, "notes")
	c.Peers[0].HealthEvery, c.Peers[0].HealthWithin = 10_000, 1000
	inLists(t, c, p, func(s *listSim) {
		s.pass(400 * time.Millisecond)
		s.changes("notes", "alice", 1)
		s.pass(200 * time.Millisecond)
		s.ends("notes", "bob", domain.EndedCancelled)
		s.changes("notes", "alice", 1)
		if got := s.alarms(); got != "/notes /notes/list/alice /notes/subscription/bob" {
			s.t.Errorf("alarms: %s", got)
		}
		s.pass(400 * time.Millisecond)
		if got := s.alarms(); got != "/notes /notes/subscription/bob" {
			s.t.Errorf("alarms: %s", got)
		}
		s.pass(28 * time.Second)
		for _, d := range find[domain.ListDue](s.events()) {
			if d.Context != "alice" {
				s.t.Errorf("due: %+v", d)
			}
		}
		wantAt[domain.ListDue](s, time.Second)
		wantAt[domain.HealthDue](s, 10*time.Second, 20*time.Second)
		if due := find[domain.SubscriptionDue](s.events()); len(due) != 1 || due[0].Context != "bob" {
			s.t.Errorf("due: %+v", due)
		}
	})
}

// ends has a peer end its open subscription for a context.
func (s *listSim) ends(peer, context, how string) {
	s.t.Helper()
	id := s.open(peer, context)
	s.peers.mu.Lock()
	x, ok := s.peers.end(id)
	s.peers.mu.Unlock()
	if !ok {
		s.t.Fatalf("peer %s has no subscription open for %q", peer, context)
	}
	s.tell(domain.SubscriptionEnded{At: x.At, Context: context, RequestID: id, How: how}, nil, nil)
	synctest.Wait()
}
