package harness

import (
	"bytes"
	"cmp"
	"fmt"
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
	CallID   string        `json:"-"` // as the host chose it, or as it was made; "" for none
	Status   domain.Status `json:"status"`
	Ran      domain.Ran    `json:"ran"`
	Route    *Route        `json:"route"`
	Seqs     []int64       `json:"seqs"` // of the call's events
	Log      string        `json:"log"`
	Reason   string        `json:"reason,omitempty"`
	Size     int64         `json:"size,omitzero"`     // of a result that does not fit, in bytes
	Attempts int           `json:"attempts,omitzero"` // how often it was sent, where that was more than once
	Erased   *Erasure      `json:"erased,omitzero"`   // by which what was kept of it was erased
	Joined   int64         `json:"joined,omitzero"`   // seq of the call.joined by which a submission got this outcome of another call
	Code     domain.Code   `json:"-"`
	Result   []byte        `json:"-"` // as the peer wrote it; nil for none
	Error    []byte        `json:"-"` // the peer's error object, as it wrote it; nil for none

	kept  keptEvents
	trace domain.Trace       // of the last submission
	began int64              // seq of the call.received that is no part of an earlier story
	first *domain.CallJoined // of a submission that is no call of its own
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

// lenient writes U+FFFD for what is no UTF-8: a reply is better than none.
var lenient = jsontext.AllowInvalidUTF8(true)

// Encode returns the JSON form: every key is there, null where the value is not
// known, but for reason, size, attempts, erased, joined and error, which stand only where
// there is one.
// The peer's bytes stand in it untouched.
func (r Reply) Encode() []byte {
	head, err := json.Marshal(r, lenient)
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

// appendWord appends an id or a code, or null for none. What is asked after may be
// any text.
func appendWord(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	b, _ = jsontext.AppendQuote(b, s) // what is no UTF-8 is replaced
	return b
}

// TooLarge returns the reply to send where this one does not fit a message: it
// says so, with the size of what was left out. The call has ended as it did.
func (r Reply) TooLarge() Reply {
	r.Size = int64(len(r.Result) + len(r.Error))
	r.Result, r.Error, r.Code = nil, nil, domain.CodeResultTooLarge
	return r
}

// shedReply is the reply to a call that is turned away before anything is
// recorded. An id that the host did not choose is nowhere, so none is named. A
// reason of "" stands for that of the code.
func (l *Loop) shedReply(in input, code domain.Code, reason string) Reply {
	r := Refused(code, cmp.Or(reason, shedReason(code)), l.cfg.Log.ID())
	if d, ok := in.data.(domain.CallReceived); ok && !strings.HasPrefix(d.ID, domain.GeneratedPrefix) {
		r.CallID = d.ID
	}
	return r
}

// underway is what the harness holds of a call until it has ended: the bytes
// that the state must not hold, which are needed again when the call is sent
// again, and the reply as it grows.
type underway struct {
	arguments []byte
	responses []byte // inputResponses; nil for none
	state     []byte // requestState, quoted; nil for none
	result    []byte
	excerpt   []byte // of what came in place of an answer over HTTP; for the host alone
	reply     func(Reply)
	doc       Reply
	trace     domain.Trace // of the submission that is under way
	progress  bool         // its host listens
	joined    []waiter     // submissions that get the same outcome
}

// Submit hands over a call of a host. It never blocks. reply, which may not be
// nil, is called exactly once: from the goroutine that makes replies, or from
// this one if the call is turned away, as it is beyond the limits of the host and
// of the intake. The bytes of request are kept until then and must not be changed.
// Safe for concurrent use.
//
// A request with inputResponses or requestState goes on with the call it names,
// if it matches; it has a reply of its own, which names every event of the call.
func (l *Loop) Submit(host string, request []byte, reply func(Reply)) {
	l.SubmitTraced(host, request, domain.Trace{}, reply)
}

// SubmitTraced is Submit with where the call belongs in what its host is doing, which
// is recorded and goes on to the peer. What domain.ParseTrace would drop, or holds a
// secret of the configuration, does not.
func (l *Loop) SubmitTraced(host string, request []byte, trace domain.Trace, reply func(Reply)) {
	in := input{host: host}
	r, problem := domain.ParseCall(request)
	if problem != "" {
		// It quotes the beginning of what is wrong: by then it is too late to look for secrets.
		_, problem = domain.ParseCall(l.cfg.Redact(request))
		problem = cmp.Or(problem, "the request holds a secret of the configuration")
	}
	if string(l.cfg.Redact([]byte(r.CallID))) != r.CallID {
		r.CallID, problem = "", "call_id holds a secret of the configuration"
	}
	in.data = domain.CallReceived{CallID: domain.CallID{Host: host, ID: cmp.Or(r.CallID, domain.GeneratedPrefix)}}
	if code, reason := l.enter(host); code != "" {
		l.countShed(code)
		reply(l.shedReply(in, code, reason))
		return
	}
	in.arguments, in.responses, in.state = r.Arguments, r.InputResponses, r.RequestState
	d := l.received(host, r, problem)
	d.Trace = l.traced(trace)
	l.nameKey(&d, r)
	in.data = d
	l.readyToKeep(&in)
	in.reply = func(x Reply) {
		l.pressure.leave(host) // first: a host may send its next call as soon as it knows
		reply(x)
	}
	if code := l.inbox.offer(in); code != "" {
		l.countShed(code)
		in.reply(l.shedReply(in, code, ""))
	}
}

// received says what a host has submitted, without the bytes that never enter an
// event.
func (l *Loop) received(host string, r domain.CallRequest, problem string) domain.CallReceived {
	capabilities := r.Capabilities.Clone()
	if capabilities != nil && (capabilities.Compact() != nil || string(l.cfg.Redact(capabilities)) != string(capabilities)) {
		capabilities, problem = nil, "capabilities hold a secret of the configuration"
	}
	d := domain.CallReceived{CallID: domain.CallID{Host: host, ID: r.CallID}, Generation: r.Generation,
		Timeout: r.Timeout, Limit: r.Limit, Wait: r.Wait, Progress: r.Progress, Capabilities: capabilities,
		Context: l.context(host), Tool: string(l.cfg.Redact([]byte(r.Tool))), Form: r.Form, Problem: string(l.cfg.Redact([]byte(problem))),
		Arguments: l.cfg.Digest(r.Arguments)}
	if d.ID == "" {
		d.ID = domain.GeneratedPrefix + nuid.Next()
	}
	if r.InputResponses != nil {
		p := l.cfg.Digest(r.InputResponses)
		d.Input = &p
	}
	if r.RequestState != nil {
		p := l.cfg.Digest(domain.StateText(r.RequestState))
		d.RequestState = &p
	}
	return d
}

// context is the authorization context of a host, as events carry it.
func (l *Loop) context(host string) string {
	if l.cfg.ContextOf == nil {
		return ""
	}
	return l.cfg.ContextOf(host)
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
// it collides with stays one story; so does input for a call that does not match
// it. now is the time of the event: whether input matches is decided by it again.
func (l *Loop) admit(in *input, now int64) {
	switch d := in.data.(type) {
	case domain.CallReceived:
		l.admitCall(in, d, now)
	case domain.CallAnswered:
		l.admitAnswer(in, d)
	case domain.OperatorCommanded:
		l.admitCommand(in, d)
	}
}

func (l *Loop) admitCall(in *input, d domain.CallReceived, now int64) {
	d.CarriesKey = l.state.CarriesKey(d, in.arguments)
	goesOn := continues(d)
	first, keyed := l.state.KeyTaken(now, d)
	if !keyed {
		l.nameSubmission(in, &d)
	}
	taken := l.calls[d.CallKey()] != nil || keyed && first == d.CallID || !goesOn && l.state.CallTaken(d.CallKey()) ||
		goesOn && (d.Problem != "" || !l.state.Continues(now, l.cfg.Clock.Mono(), d))
	u := &underway{arguments: in.arguments, responses: in.responses, state: in.state, reply: in.reply, trace: d.Trace, progress: d.Progress,
		doc: Reply{CallID: d.ID, Seqs: []int64{}}}
	switch {
	case strings.HasPrefix(d.ID, domain.GeneratedPrefix): // is nobody else's
	case taken:
		d.DuplicateOf, d.ID = d.ID, domain.GeneratedPrefix+nuid.Next()
	case goesOn:
		u.doc = l.recall(d.CallID)
		d.Kept = in.keeping != nil && in.keeping.known
		d.OutcomeOnly = d.Kept && l.state.OutcomeOnly(d.CallKey())
	}
	if d.Kept {
		l.keepSubmission(in, d, now)
	}
	in.data, l.calls[d.CallKey()] = d, u
	if d.Progress {
		l.listening.add(d.CallID)
	}
}

// continues reports whether a submission goes on with a call that asked for input.
func continues(d domain.CallReceived) bool { return d.Input != nil || d.RequestState != nil }

// endsFirst reports whether an input is about a call that has ended in the batch
// that is being decided, and has not been answered: the end comes first.
func (l *Loop) endsFirst(in input) bool {
	key := ""
	switch d := in.data.(type) {
	case domain.CallReceived:
		if continues(d) {
			key = d.CallKey()
		}
	case domain.OperatorCommanded:
		key = d.Call
	}
	return key != "" && l.calls[key] != nil && !l.state.UnderWay(key)
}

// keepAnswer keeps what is needed of the bytes of an answer: those of the one that
// ended a call, or the requestState with which the call is sent again. One that
// changed nothing, because it came late or twice, leaves no bytes in the reply.
func (l *Loop) keepAnswer(in input, steps []domain.Event) {
	if failed, ok := in.data.(domain.ExchangeFailed); ok && l.calls[failed.Call] != nil {
		l.calls[failed.Call].excerpt = in.payload
	}
	answered, ok := in.data.(domain.CallAnswered)
	u := l.calls[answered.CallKey()]
	if !ok || u == nil || in.payload == nil {
		return
	}
	for _, e := range steps {
		if e.Call() != answered.CallKey() {
			continue
		}
		switch d := e.Data.(type) {
		case domain.CallSettled:
			u.result = in.payload
			l.keepResult(in, steps[0])
		case domain.CallResent:
			l.keepResult(in, steps[0])
			if d.Rule == domain.RuleContinue {
				u.responses, u.state = nil, requestState(in.payload)
			}
		}
	}
}

// requestState finds the requestState in a result, quoted as the peer wrote it;
// nil for none.
func requestState(result []byte) []byte {
	dec := jsontext.NewDecoder(bytes.NewReader(result), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		found := name.String() == "requestState"
		value, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		if found {
			return value.Clone()
		}
	}
	return nil
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
	l.keeper.forget(key)
	l.alarms.stop(key)
	l.listening.remove(key)
	u.doc.Log = l.cfg.Log.ID()
	u.doc.bring(u.result)
	if u.excerpt != nil && u.doc.Reason != "" && u.result == nil {
		u.doc.Reason += fmt.Sprintf(" beginning with %q", u.excerpt)
	}
	l.tell(u)
}

// tell makes the replies of a call that has ended: that of its submission, and those
// of the ones that joined it.
func (l *Loop) tell(u *underway) {
	if u.reply != nil {
		l.replies.put(func() {
			u.reply(u.doc)
			if l.cfg.Mark != nil {
				l.cfg.Mark("replied")
			}
		})
	}
	for _, w := range u.joined {
		doc := u.doc
		doc.Joined = w.seq
		l.replies.put(func() { w.reply(doc) })
	}
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
