package peer

import (
	"maps"
	"slices"
	"time"

	"waybill/domain"
	"waybill/harness/peer/message"
)

// changedEvery is the least time between two reports of what one subscription brought, where nothing has to come after them.
const changedEvery = time.Second

// changes folds the notices of one subscription that the tools have changed. The table's lock guards it.
type changes struct {
	context      string
	subscription int64 // 0 in the legacy era, where nobody asks for them
	count        int64 // not yet reported
	next         time.Time
	timer        *time.Timer // set while there is something to report
}

// listening finds the subscription under id that waits, if the peer can have heard of it. The lock is held.
func (t *table) listening(id int64) *request {
	r := t.waiting[id]
	if r == nil || r.send.Method != domain.MethodListen || !r.began {
		return nil
	}
	return r
}

// acknowledge ends the wait for the acknowledgement of the subscription under id, which then has no deadline any more; false if
// nobody waits for one. What it brought before is reported first. What it brings later is not, because the reader alone calls
// this, and reads on when it has reported the acknowledgement.
func (t *table) acknowledge(id int64) (context string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.listening(id)
	if r == nil || r.acknowledged {
		return "", false
	}
	r.acknowledged = true
	r.timer.Stop()
	t.tellChanges(t.changes[id])
	return r.send.Context, true
}

// cancelled settles the subscription under id, because the peer says that it has ended it; false if there is none.
func (t *table) cancelled(id int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.listening(id)
	if r == nil {
		return false
	}
	t.settle(r)
	r.answered = true
	t.report(ended(r.send, domain.EndedCancelled, 0))
	return true
}

// ended is the outcome of a subscription that the peer has ended.
func ended(s domain.Send, how string, code int64) domain.SubscriptionEnded {
	return domain.SubscriptionEnded{At: s.At, Context: s.Context, RequestID: s.RequestID, How: how, ErrorCode: code}
}

// changed takes a notice that the tools have changed; false if it is for nobody. A legacy peer gives notice without being asked, any
// other on a subscription. The first is reported at once. What follows is counted, and reported when its time has come or
// something is reported that was written after it.
func (t *table) changed(subscription int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	context := ""
	switch r := t.listening(subscription); {
	case t.era == domain.EraLegacy:
		subscription = 0
	case t.era == domain.EraModern && r != nil:
		context = r.send.Context
	default:
		return false
	}
	f := t.changes[subscription]
	if f == nil {
		f = &changes{context: context, subscription: subscription}
		t.changes[subscription] = f
	}
	t.fold(f)
	return true
}

// fold counts a notice, and sees to it that it is reported. The lock is held.
func (t *table) fold(f *changes) {
	f.count++
	if f.timer != nil {
		return
	}
	if wait := time.Until(f.next); wait > 0 {
		f.timer = time.AfterFunc(wait, func() { t.passChanges(f) })
		return
	}
	t.tellChanges(f)
}

func (t *table) passChanges(f *changes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tellChanges(f)
}

// tellChanges reports what has been counted, if anything has. The lock is held.
func (t *table) tellChanges(f *changes) {
	if f == nil || f.count == 0 {
		return
	}
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
	t.report(domain.ListChanged{At: t.at, Context: f.context, Subscription: f.subscription, Count: f.count})
	f.count, f.next = 0, time.Now().Add(changedEvery)
}

// flush reports all changes that have been counted and not yet reported.
func (t *table) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tellAllChanges()
}

// tellAllChanges is flush where the lock is held.
func (t *table) tellAllChanges() {
	for _, id := range slices.Sorted(maps.Keys(t.changes)) {
		t.tellChanges(t.changes[id])
	}
}

// tellBefore reports the changes that were announced before r was settled, and that whoever hears of its outcome must know of: the list it
// brings may be older than they are, or the subscription is over that they came on. The lock is held.
func (t *table) tellBefore(r *request) {
	switch r.send.Method {
	case domain.MethodList:
		t.tellAllChanges()
	case domain.MethodListen:
		t.tellChanges(t.changes[r.send.RequestID])
		delete(t.changes, r.send.RequestID)
	}
}

// notified takes a notification. It is noise unless somebody waits for what it says.
func (c *link) notified(m domain.Message, line []byte) {
	taken := false
	switch notice, id := message.ReadNotice(m); notice {
	case message.Acknowledged:
		taken = c.acknowledged(id, line)
	case message.ToolsChanged:
		taken = c.table.changed(id)
	case message.Cancelled:
		taken = c.table.cancelled(id)
	}
	if !taken {
		c.noise.count(notificationKind(m.MethodName()), len(line))
	}
}

// acknowledged reports the first acknowledgement of a subscription; false if it is another, or for nobody.
func (c *link) acknowledged(id int64, line []byte) bool {
	context, ok := c.table.acknowledge(id)
	if ok {
		evidence := c.evidence(line)
		c.lane.m.cfg.Report(domain.SubscriptionAcknowledged{At: c.at, Context: context, RequestID: id, Frame: domain.RefTo(evidence)}, evidence, nil)
	}
	return ok
}
