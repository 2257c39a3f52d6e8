package peer

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
	"waybill/harness/peer/decimal"
	"waybill/harness/peer/message"
)

const (
	progressEvery = 100 * time.Millisecond // between two that are passed on for one call
	maxProgress   = 64 << 10               // bytes of one that is passed on with its message
)

// progress is what is known of how far a call has come, and what of it is passed on. The table's lock guards it.
type progress struct {
	last  *decimal.Number
	next  time.Time      // nothing is passed on before
	late  jsontext.Value // what came too early, to be passed on then; a newer one takes its place
	timer *time.Timer    // set while there is a late one
}

// stop has nothing more passed on.
func (p *progress) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.late, p.timer = nil, nil
}

// progressed takes a notification of progress. It is noise unless a call waits that asked for it, and it has come further.
func (c *link) progressed(m domain.Message, size int) {
	note := message.Members(m.Params)
	id, known := progressID(note["progressToken"])
	now, ok := decimal.Read(note["progress"])
	if !known || !ok || !c.table.progressed(id, now, note) {
		c.noise.count(noiseProgress, size)
	}
}

// progressID reads a token of ours. A peer that knows only strings may give it back as one.
func progressID(token jsontext.Value) (int64, bool) {
	if token.Kind() == '"' {
		unquoted, err := jsontext.AppendUnquote(nil, token)
		if err != nil {
			return 0, false
		}
		token = unquoted
	}
	return domain.Message{ID: token}.RequestID()
}

// progressed puts off the end of the wait for a call that has come as far as now, and passes the note on; false if
// nobody asked for it, or the call had come so far before.
func (t *table) progressed(id int64, now decimal.Number, note map[string]jsontext.Value) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.waiting[id]
	if r == nil || !r.began || !message.Tracked(r.send) || r.progress.last != nil && !r.progress.last.Less(now) {
		return false
	}
	r.progress.last = &now
	t.extend(r)
	if t.tell != nil {
		t.pass(r, progressValue(note))
	}
	return true
}

// extend moves the end of the wait to the idle time from now, but not beyond the limit, and never brings it nearer: a
// peer that says how far it is gets no less time than one that says nothing. The lock is held.
func (t *table) extend(r *request) {
	if r.send.Idle <= 0 || r.send.Limit <= 0 {
		return
	}
	now := time.Now()
	until := now.Add(milliseconds(r.send.Idle))
	if limit := r.released.Add(milliseconds(r.send.Limit)); until.After(limit) {
		until = limit
	}
	if until.After(r.until) {
		r.until = until
		r.timer.Reset(until.Sub(now))
	}
}

// pass hands a note on, now or when it may be. The lock is held.
func (t *table) pass(r *request, value jsontext.Value) {
	p := &r.progress
	now := time.Now()
	switch {
	case p.timer != nil:
		p.late = value
	case now.Before(p.next):
		p.late = value
		p.timer = time.AfterFunc(p.next.Sub(now), func() { t.passLate(r) })
	default:
		p.next = now.Add(progressEvery)
		t.tell(r.send.Call, value)
	}
}

func (t *table) passLate(r *request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &r.progress
	if p.timer == nil {
		return // settled meanwhile
	}
	value := p.late
	p.late, p.timer = nil, nil
	p.next = time.Now().Add(progressEvery)
	t.tell(r.send.Call, value)
}

// progressValue is what is passed on of a note: a value of its own, without the token.
func progressValue(note map[string]jsontext.Value) jsontext.Value {
	b := message.AppendMember([]byte("{"), "progress", note["progress"])
	if total := note["total"]; total.Kind() == '0' {
		b = message.AppendMember(b, "total", total)
	}
	if words := note["message"]; words.Kind() == '"' && len(b)+len(words) < maxProgress {
		b = message.AppendMember(b, "message", words)
	}
	return append(b, '}')
}
