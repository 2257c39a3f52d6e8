package peer

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"waybill/domain"
	rules "waybill/domain/web"
	"waybill/harness/peer/message"
	"waybill/harness/peer/web"
)

// exchange carries one request to its outcome, unless it has one by then: a deadline, or a withdrawal. Closing the stream is what
// tells the peer (specification 2026-07-28, basic/transports/streamable-http, "Cancellation").
func (c *endpoint) exchange(r *request) {
	frame, body, ok := c.compose(r)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	if !c.table.bind(r, cancel) {
		return
	}
	header, code, reason := c.headers(r.send, body)
	if code != "" {
		c.faulted(r, fault{code: code, reason: reason, written: writtenNo}, nil)
		return
	}
	credential, err := c.credentials(ctx, r.send.Context)
	if err != nil {
		c.uncredited(r, err)
		return
	}
	a, err := c.client.Do(ctx, web.Request{Method: "POST", Header: append(header, credential...), Body: frame, To: c.whereTo(r.send),
		Follow: probes(r.send), Stays: r.send.Method == domain.MethodListen, Began: func() { c.began(r, cancel) }})
	if err != nil {
		c.passed(r, err)
		c.lost(r, err)
		return
	}
	defer a.Finish(finishWithin)
	if probes(r.send) {
		c.found(a)
	}
	c.table.heard.Add(1)
	c.noteCredential(r.send.Context, credential, a.Status)
	c.answered(ctx, r, a)
}

// whereTo is where a request goes. The probe alone follows redirects, and finds the way for all others: whoever redirects a call has had
// it, and may have run it.
func (c *endpoint) whereTo(s domain.Send) *url.URL {
	c.mu.Lock()
	defer c.mu.Unlock()
	if probes(s) {
		return nil
	}
	return c.target
}

// found notes where a probe was answered. What was in the bodies of the redirects on its way may be evidence.
func (c *endpoint) found(a *web.Answer) {
	c.mu.Lock()
	c.target = a.URL
	c.mu.Unlock()
	if len(a.Passed) > 0 {
		c.suggestive(a.Passed)
	}
}

// passed looks for evidence in the bodies of redirects that a probe met before it failed.
func (c *endpoint) passed(r *request, err error) {
	var f *web.Failure
	if probes(r.send) && errors.As(err, &f) && len(f.Passed) > 0 {
		c.suggestive(f.Passed)
	}
}

// began notes that the request is about to be written; nobody may wait for it any more.
func (c *endpoint) began(r *request, cancel context.CancelFunc) {
	if !c.table.begin(r) {
		cancel()
		return
	}
	c.lane.m.mark("wrote", r.send.Method)
}

// headers are those of a request beside its credential (specification 2026-07-28, basic/transports/streamable-http, "Request
// Metadata"; 2025-11-25, basic/transports, "Protocol Version Header" and "Session Management").
func (c *endpoint) headers(s domain.Send, body *domain.Body) ([]web.Header, domain.Code, string) {
	h := bodyHeader()
	if s.Era == domain.EraLegacy || s.Method == domain.MethodInitialize {
		if s.Method != domain.MethodInitialize {
			h = append(h, c.sessionHeader()...)
		}
		return h, "", ""
	}
	h = append(h, web.Header{Name: rules.VersionField, Value: s.Version}, web.Header{Name: rules.MethodField, Value: s.Method})
	if s.Method != domain.MethodCall {
		return h, "", ""
	}
	h = append(h, web.Header{Name: rules.NameField, Value: rules.Encode(s.Tool)})
	if body == nil || body.InputSchema == nil {
		return h, "", ""
	}
	params, reason := rules.Params(body.InputSchema)
	if reason != "" {
		return nil, domain.CodeToolHeader, reason
	}
	mirrored, reason := rules.ParamHeaders(params, body.Arguments)
	if reason != "" {
		return nil, domain.CodeHeaderUnfit, reason
	}
	for _, m := range mirrored {
		h = append(h, web.Header{Name: m.Name, Value: m.Value})
	}
	return h, "", ""
}

// bodyHeader is that of everything that is posted.
func bodyHeader() []web.Header {
	return []web.Header{{Name: "Accept", Value: "application/json, text/event-stream"}, {Name: "Content-Type", Value: "application/json"}}
}

// sessionHeader names the session and, from the revision on that knows it, the version.
func (c *endpoint) sessionHeader() []web.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	var h []web.Header
	if c.session != "" {
		h = append(h, web.Header{Name: rules.SessionField, Value: c.session})
	}
	if c.version >= "2025-06-18" { // revisions are dates
		h = append(h, web.Header{Name: rules.VersionField, Value: c.version})
	}
	return h
}

// answered reads an answer: the message in it, whatever the status, and the status where there is none.
func (c *endpoint) answered(ctx context.Context, r *request, a *web.Answer) {
	if r.send.Method == domain.MethodInitialize && a.Status/100 == 2 {
		c.openSession(a.Header.Get(rules.SessionField), r.send.Context)
	}
	switch rules.Judge(a.Status, a.Type()) {
	case rules.Stream:
		if probes(r.send) && rules.Fallback(a.Status) == rules.Ambiguous {
			c.refusedStream(r, a)
			return
		}
		c.stream(ctx, r, a)
	case rules.Message:
		c.single(r, a)
	default:
		c.foreign(r, a)
	}
}

const maxSession = 8 << 10 // bytes of a session's id

// openSession takes the id that a legacy peer gave its session, if it is one (visible ASCII).
func (c *endpoint) openSession(id, authorization string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.context = authorization
	if id == "" {
		return
	}
	if len(id) > maxSession || strings.ContainsFunc(id, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		c.lane.m.cfg.Logger.Warn("the id of a session is not used: it is no visible ASCII, or too long", "peer", c.at.Peer, "bytes", len(id))
		return
	}
	c.session = id
}

// single reads a body that is one message.
func (c *endpoint) single(r *request, a *web.Answer) {
	body, err := a.Body()
	if err != nil {
		c.unread(r, a.Status, err)
		return
	}
	c.table.heard.Add(int64(len(body)))
	switch c.message(r, body, a.Status) {
	case refusal:
		c.wordless(r, a.Status, "an error that says no more", body)
	case elsewhere:
		c.wordless(r, a.Status, describe(body), body)
	}
}

// describe says what a body is that is no answer, in words of ours.
func describe(body []byte) string {
	m, err := domain.ParseMessage(body)
	switch {
	case len(body) == 0:
		return "an empty body"
	case err != nil:
		return "a body that is no JSON-RPC message"
	case m.Method != nil:
		return "a message with a method"
	case !m.Is2():
		return "a body that is no JSON-RPC message"
	case !m.HasID():
		return "an error under no id"
	}
	return "an answer under another id"
}

// verdict is what a message of an answer is to its request.
type verdict int

const (
	elsewhere verdict = iota // not for it
	settled                  // the answer, which has been reported
	refusal                  // an answer that says less than its status
)

// message takes one message of an answer. Only what comes on a request's own stream can answer it.
func (c *endpoint) message(r *request, line []byte, status int) verdict {
	m, err := domain.ParseMessage(line)
	if err != nil {
		return c.unreadable(r, line)
	}
	if id, ok := m.RequestID(); m.Method != nil || !ok || id != r.send.RequestID {
		if c.foreignTo(r, m) {
			c.noise.count(notificationKind(m.MethodName()), len(line))
		} else {
			c.beside(m, line)
		}
		return elsewhere
	}
	if c.turnedAway(r, status, line) || c.staleSession(r, status, m) {
		return refusal
	}
	c.table.bind(r, nil) // the answer may come to its end
	c.answer(m, line)
	return settled
}

// unreadable takes what is no message. One that seems to answer somebody else does not.
func (c *endpoint) unreadable(r *request, line []byte) verdict {
	id, ok := domain.DoubtfulID(line)
	switch {
	case ok && id != r.send.RequestID:
		c.stranger(line)
	case ok && c.table.selected() != domain.EraUnknown:
		c.table.bind(r, nil)
		c.receive(line)
		return settled
	default:
		c.receive(line)
	}
	return elsewhere
}

// foreignTo reports whether a notification on the stream of one request is about another: modern streams are scoped, and one caller's must not
// speak for another's (specification 2026-07-28, basic/transports/streamable-http, "Receiving Messages").
func (c *endpoint) foreignTo(r *request, m domain.Message) bool {
	if m.Method == nil || m.HasID() || r.send.Era != domain.EraModern {
		return false
	}
	if m.MethodName() == "notifications/progress" {
		id, known := progressID(message.Members(m.Params)["progressToken"])
		return known && id != r.send.RequestID
	}
	notice, id := message.ReadNotice(m)
	return notice != message.Unrelated && id != r.send.RequestID
}

// refusedStream takes the stream of an answer to a probe whose status is ambiguous: all of it is there before anything follows from it, so
// that nothing in it that shows modern behaviour is missed, whole event or not.
func (c *endpoint) refusedStream(r *request, a *web.Answer) {
	body, err := a.Body()
	if err != nil {
		c.unread(r, a.Status, err)
		return
	}
	c.table.heard.Add(int64(len(body)))
	c.suggestive(body)
	for e := range web.ParseEvents(body) {
		if len(e.Data) > 0 && c.message(r, e.Data, a.Status) == settled {
			return
		}
	}
	c.wordless(r, a.Status, "a stream without the answer", body)
}

// beside takes a message that answers nobody here.
func (c *endpoint) beside(m domain.Message, line []byte) {
	if m.Method != nil {
		c.receive(line)
		return
	}
	if !c.suggestive(line) {
		id, _ := m.RequestID()
		c.noise.count(c.stray(m, id), len(line))
	}
}

// stranger takes what cannot be read, and is no answer on the stream that it came on.
func (c *endpoint) stranger(line []byte) {
	if !c.suggestive(line) {
		c.noise.count(unparsed(line), len(line))
	}
}

// turnedAway reports whether the status of an answer to a probe says more than its body: who is refused, or finds nobody, learns
// nothing of the era but by modern evidence (design, Streamable HTTP).
func (c *endpoint) turnedAway(r *request, status int, line []byte) bool {
	if !probes(r.send) || domain.ModernEvidence(line) {
		return false
	}
	class := rules.Fallback(status)
	return class == rules.Unauthorized || class == rules.Unavailable
}

// staleSession reports whether an answer says that the session is gone, whatever error it carries: 404 means that, but for an unknown
// method.
func (c *endpoint) staleSession(r *request, status int, m domain.Message) bool {
	if status != http.StatusNotFound || !c.inSession(r.send) {
		return false
	}
	f := domain.ReadAnswer(m).Facts
	return f.Kind == domain.FactError && f.ErrorCode != -32601
}

func (c *endpoint) inSession(s domain.Send) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.Era == domain.EraLegacy && c.session != ""
}

// probes reports whether s is a probe.
func probes(s domain.Send) bool {
	return s.Era == domain.EraUnknown && (s.Method == domain.MethodDiscover || s.Method == domain.MethodInitialize)
}

// stream reads a stream of events until the answer has come.
func (c *endpoint) stream(ctx context.Context, r *request, a *web.Answer) {
	t := tape{}
	v, err := c.play(r, a, &t)
	for v == elsewhere && t.resumable(c, r, err) {
		a.Finish(0) // what goes on with it needs its place
		var next *web.Answer
		if next, err = c.resume(ctx, r, &t); err == nil {
			v, err = c.play(r, next, &t)
			next.Finish(finishWithin)
		}
	}
	switch {
	case v == settled:
	case v == refusal:
		c.wordless(r, a.Status, "an error that says no more", nil)
	case err == nil && a.Status >= http.StatusBadRequest:
		c.wordless(r, a.Status, "a stream without the answer", nil)
	case err == nil:
		c.lost(r, errEnded)
	default:
		c.unread(r, a.Status, err)
	}
}

var errEnded = errors.New("the stream ended without the answer")

// play reads the events of one answer, until one of them decides.
func (c *endpoint) play(r *request, a *web.Answer, t *tape) (verdict, error) {
	for e, err := range a.Events() {
		if err != nil {
			return elsewhere, err
		}
		t.note(e)
		c.table.heard.Add(int64(len(e.Data)) + 1)
		if len(e.Data) == 0 {
			continue
		}
		if probes(r.send) && !domain.ModernEvidence(e.Data) && answers(e.Data, r.send.RequestID) {
			c.overhear(a)
		}
		if v := c.message(r, e.Data, a.Status); v != elsewhere {
			return v, nil
		}
	}
	return elsewhere, nil
}

// answers reports whether a line is a message that answers a request.
func answers(line []byte, request int64) bool {
	m, err := domain.ParseMessage(line)
	id, ok := m.RequestID()
	return err == nil && m.Method == nil && ok && id == request
}

// overhear reads on, for a moment, behind an answer to a probe that may lead to initialize: what shows modern behaviour there rules that
// out, and must be told first.
func (c *endpoint) overhear(a *web.Answer) {
	timer := time.AfterFunc(overhearWithin, a.Close)
	defer timer.Stop()
	for e, err := range a.Events() {
		if err != nil {
			return
		}
		if len(e.Data) > 0 {
			c.suggestive(e.Data)
		}
	}
}

// overhearWithin bounds that. A stream ends with its answer, as a rule.
const overhearWithin = 250 * time.Millisecond
