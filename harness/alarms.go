package harness

import (
	"strings"
	"sync"
	"time"

	"waybill/domain"
)

// alarms are the timers that decisions have set: one for each held call, one for
// each peer and two for each of its lists. Of an alarm that was stopped or replaced
// nothing is reported any more, also if its time came at the same moment.
type alarms struct {
	report func(domain.Data)

	mu     sync.Mutex
	set    map[string]*alarm
	closed bool
}

type alarm struct {
	timer *time.Timer
	at    domain.At // of a peer's, or a list's
}

// Calls, peers and lists have keys of their own: no host's name begins with a
// slash, and no peer's has one in it.
func peerAlarm(peer string) string { return "/" + peer }

func listAlarm(peer, what, context string) string { return "/" + peer + "/" + what + "/" + context }

// start sets the alarm of a key, in place of the one before.
func (a *alarms) start(key string, at domain.At, after int64, data domain.Data) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(key)
	if a.closed {
		return
	}
	if a.set == nil {
		a.set = map[string]*alarm{}
	}
	one := &alarm{at: at}
	a.set[key] = one
	one.timer = time.AfterFunc(time.Duration(after)*time.Millisecond, func() { a.ring(key, one, data) })
}

// ring reports under the lock, so that what is reported comes before whatever
// follows from the act that would have stopped it.
func (a *alarms) ring(key string, one *alarm, data domain.Data) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.set[key] == one {
		delete(a.set, key)
		a.report(data)
	}
}

func (a *alarms) drop(key string) {
	if one := a.set[key]; one != nil {
		one.timer.Stop()
		delete(a.set, key)
	}
}

// stop ends the alarm of a call, if it has one.
func (a *alarms) stop(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(key)
}

// stopPeer ends the alarms of an incarnation that is gone.
func (a *alarms) stopPeer(at domain.At) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, one := range a.set { // in no order: each is ended alone
		if one.at == at {
			a.drop(key)
		}
	}
}

// close ends all of them; nothing is reported when it has returned.
func (a *alarms) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for key := range a.set {
		a.drop(key)
	}
}

// wake sets the time for which a call is held.
func (l *Loop) wake(x domain.Wake) {
	host, id, _ := strings.Cut(x.Call, "/")
	l.alarms.start(x.Call, domain.At{}, x.After, domain.WaitPassed{CallID: domain.CallID{Host: host, ID: id}})
}

// remind sets the time of a peer's next sign of life.
func (l *Loop) remind(x domain.Remind) {
	l.alarms.start(peerAlarm(x.Peer), x.At, x.After, domain.HealthDue{At: x.At})
}

// due sets the time at which a list is read again, or its subscription opened.
func (l *Loop) due(x domain.Due) {
	var data domain.Data = domain.ListDue{At: x.At, Context: x.Context}
	if x.What == domain.DueSubscription {
		data = domain.SubscriptionDue{At: x.At, Context: x.Context}
	}
	l.alarms.start(listAlarm(x.Peer, x.What, x.Context), x.At, x.After, data)
}

// noteGone ends the alarms of an incarnation that has ended.
func (l *Loop) noteGone(e domain.Event) {
	switch d := e.Data.(type) {
	case domain.PeerExited:
		l.alarms.stopPeer(d.At)
	case domain.SpawnFailed:
		l.alarms.stopPeer(d.At)
	}
}
