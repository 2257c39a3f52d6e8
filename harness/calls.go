package harness

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nuid"

	"waybill/domain"
)

// Reply is what a host gets for a call. Its JSON form, made by Encode, is a
// contract.
type Reply struct {
	CallID string        `json:"-"` // as the host chose it, or as it was made; "" for none
	Status domain.Status `json:"status"`
	Ran    domain.Ran    `json:"ran"`
	Route  *Route        `json:"route"`
	Seqs   []int64       `json:"seqs"` // of the call's events
	Log    string        `json:"log"`
	Reason string        `json:"reason,omitempty"`
	Size   int64         `json:"size,omitzero"` // of a result that does not fit, in bytes
	Code   domain.Code   `json:"-"`
	Result []byte        `json:"-"` // as the peer wrote it; nil for none
	Error  []byte        `json:"-"` // the peer's error object, as it wrote it; nil for none
}

// Route says where a call went.
type Route struct {
	Peer        string     `json:"peer"`
	Local       string     `json:"local"`
	Era         domain.Era `json:"era"`
	Version     string     `json:"version"`
	Incarnation int64      `json:"incarnation"`
	Generation  int64      `json:"generation"`
}

// Encode returns the JSON form: every key is there, null where the value is not
// known, but for reason, size and error, which stand only where there is one.
// The peer's bytes stand in it untouched.
func (r Reply) Encode() []byte {
	head, err := json.Marshal(r, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("a reply cannot be encoded: " + err.Error()) // its fields are strings and numbers
	}
	out := append(make([]byte, 0, len(head)+len(r.Result)+len(r.Error)+128), `{"call_id":`...)
	out = append(appendWord(out, r.CallID), ',')
	out = append(out, head[1:len(head)-1]...)
	out = appendWord(append(out, `,"code":`...), string(r.Code))
	if r.Error != nil {
		out = append(append(out, `,"error":`...), r.Error...)
	}
	out = append(out, `,"result":`...)
	if r.Result == nil {
		return append(out, "null}"...)
	}
	return append(append(out, r.Result...), '}')
}

// appendWord appends an id or a code, which need no escaping, or null for none.
func appendWord(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return append(append(append(b, '"'), s...), '"')
}

// TooLarge returns the reply to send where this one does not fit a message: it
// says so, with the size of what was left out. The call has ended as it did.
func (r Reply) TooLarge() Reply {
	r.Size = int64(len(r.Result) + len(r.Error))
	r.Result, r.Error, r.Code = nil, nil, domain.CodeResultTooLarge
	return r
}

// shedReply is the reply to a call that is turned away before anything is
// recorded. An id that the host did not choose is nowhere, so none is named.
func (l *Loop) shedReply(in input, code domain.Code) Reply {
	r := Reply{Status: domain.StatusRefused, Code: code, Ran: domain.RanNo, Reason: shedReason(code), Seqs: []int64{}, Log: l.cfg.Log.ID()}
	if d, ok := in.data.(domain.CallReceived); ok && !strings.HasPrefix(d.ID, domain.GeneratedPrefix) {
		r.CallID = d.ID
	}
	return r
}

// underway is what the harness holds of a call until it has ended: the bytes
// that the state must not hold, and the reply as it grows.
type underway struct {
	arguments []byte
	result    []byte
	reply     func(Reply)
	doc       Reply
}

// Submit hands over a call of a host. It never blocks. reply, which may not be
// nil, is called exactly once: from the goroutine that makes replies, or from
// this one if the call is turned away. The bytes of request are kept until then
// and must not be changed. Safe for concurrent use.
func (l *Loop) Submit(host string, request []byte, reply func(Reply)) {
	r, problem := domain.ParseCall(request)
	if string(l.cfg.Redact([]byte(r.CallID))) != r.CallID {
		r.CallID, problem = "", "call_id holds a secret of the configuration"
	}
	id := r.CallID
	if id == "" {
		id = domain.GeneratedPrefix + nuid.Next()
	}
	r.Tool, problem = string(l.cfg.Redact([]byte(r.Tool))), string(l.cfg.Redact([]byte(problem)))
	in := input{arguments: r.Arguments, reply: reply, data: domain.CallReceived{
		CallID: domain.CallID{Host: host, ID: id}, Tool: r.Tool, Generation: r.Generation, Timeout: r.Timeout,
		Arguments: l.cfg.Digest(r.Arguments), Problem: problem}}
	if code := l.inbox.offer(in); code != "" {
		l.countShed(code)
		reply(l.shedReply(in, code))
	}
}

func shedReason(code domain.Code) string {
	switch code {
	case domain.CodeLogUnavailable:
		return "the log cannot be written just now, and nothing is done that is not recorded first; try again"
	case domain.CodeOverloaded:
		return "more calls are waiting than are taken in; try again later"
	}
	return "the service is stopping"
}

// admit notes what an input brings for the harness before it is decided on. A
// call under an id that is taken gets one of ours, so that the story of the call
// it collides with stays one story.
func (l *Loop) admit(in *input) {
	d, ok := in.data.(domain.CallReceived)
	if !ok {
		return
	}
	u := &underway{arguments: in.arguments, reply: in.reply, doc: Reply{CallID: d.ID, Seqs: []int64{}}}
	if l.calls[d.CallKey()] != nil || l.state.CallTaken(d.CallKey()) {
		d.DuplicateOf, d.ID = d.ID, domain.GeneratedPrefix+nuid.Next()
		in.data = d
	}
	l.calls[d.CallKey()] = u
}

// keepResult keeps the bytes of the answer that ended a call. One that changed
// nothing, because it came late or twice, leaves no bytes in the reply.
func (l *Loop) keepResult(in input, steps []domain.Event) {
	if in.payload == nil {
		return
	}
	for _, e := range steps {
		if d, ok := e.Data.(domain.CallSettled); ok && l.calls[d.CallKey()] != nil {
			l.calls[d.CallKey()].result = in.payload
		}
	}
}

// follow grows the reply of a call by one of its events.
func (l *Loop) follow(e domain.Event) {
	u := l.calls[e.Call()]
	if u == nil || e.Call() == "" {
		return
	}
	u.doc.grow(e)
}

// answer replies to the host: the call's end is durable. A crash before the
// reply leaves and the host learns nothing, but the log knows.
func (l *Loop) answer(key string) {
	u := l.calls[key]
	if u == nil {
		return // a call of an earlier life: nobody waits here
	}
	delete(l.calls, key)
	if u.reply == nil {
		return
	}
	u.doc.Log, u.doc.Result = l.cfg.Log.ID(), u.result
	if u.doc.Code == domain.CodePeerError {
		u.doc.Error, u.doc.Result = u.result, nil
	}
	l.replies.put(func() { u.reply(u.doc) })
}

// shedder folds calls that were turned away into one observation a second.
type shedder struct {
	mu     sync.Mutex
	counts map[domain.Code]int64
	timer  *time.Timer
	closed bool
}

func (l *Loop) countShed(code domain.Code) {
	l.shed.mu.Lock()
	defer l.shed.mu.Unlock()
	if l.shed.closed {
		return
	}
	if l.shed.counts == nil {
		l.shed.counts = map[domain.Code]int64{}
	}
	l.shed.counts[code]++
	if l.shed.timer == nil {
		l.shed.timer = time.AfterFunc(time.Second, l.flushShed)
	}
}

func (l *Loop) flushShed() {
	for _, d := range l.shed.take() {
		l.Report(d, nil, nil)
	}
}

// take returns what was counted since the last time, a code each.
func (s *shedder) take() (out []domain.IntakeShed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	for _, code := range slices.Sorted(maps.Keys(s.counts)) {
		out = append(out, domain.IntakeShed{Count: s.counts[code], Code: code})
	}
	s.counts, s.timer = nil, nil
	return out
}

func (s *shedder) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
}
