package peer

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"waybill/domain"
	rules "waybill/domain/web"
	"waybill/harness/peer/web"
)

// exchange carries one request to its outcome, unless it has one by then: a deadline, or a withdrawal. Closing the stream is what
// tells the peer (specification 2026-07-28, basic/transports/streamable-http, "Cancellation").
func (c *endpoint) exchange(r *request, frame []byte, body *domain.Body) {
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
	a, err := c.client.Do(ctx, web.Request{Method: "POST", Header: append(header, credential...), Body: frame,
		Stays: r.send.Method == domain.MethodListen, Began: func() { c.began(r, cancel) }})
	if err != nil {
		c.lost(r, err)
		return
	}
	defer a.Close()
	c.table.heard.Add(1)
	if a.Status == http.StatusUnauthorized {
		c.lane.refusedCredential(r.send.Context, credential)
	}
	c.answered(ctx, r, a)
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
	h := []web.Header{{Name: "Accept", Value: "application/json, text/event-stream"}, {Name: "Content-Type", Value: "application/json"}}
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

// legacyHeader is that of everything of the legacy era that is no request.
func (c *endpoint) legacyHeader() []web.Header {
	return append([]web.Header{{Name: "Accept", Value: "application/json, text/event-stream"}, {Name: "Content-Type", Value: "application/json"}},
		c.sessionHeader()...)
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
	if r.send.Method == domain.MethodInitialize && a.Status == http.StatusOK {
		c.openSession(a.Header.Get(rules.SessionField), r.send.Context)
	}
	switch rules.Judge(a.Status, a.Type()) {
	case rules.Stream:
		c.stream(ctx, r, a)
	case rules.Message:
		c.single(r, a)
	default:
		c.foreign(r, a)
	}
}

// foreign takes an answer that is said to be no message. What shows modern behaviour rules legacy out, whatever it is said to be.
func (c *endpoint) foreign(r *request, a *web.Answer) {
	excerpt := a.Excerpt()
	if probes(r.send) {
		if body, err := a.Body(); err == nil {
			c.suggestive(body)
		}
	}
	c.wordless(r, a.Status, "no message in it", excerpt)
}

// openSession takes the id that a legacy peer gave its session, if it is one (visible ASCII).
func (c *endpoint) openSession(id, authorization string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.context = authorization
	if id == "" || len(id) > maxReplyID || strings.ContainsFunc(id, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return
	}
	c.session = id
}

// single reads a body that is one message.
func (c *endpoint) single(r *request, a *web.Answer) {
	body, err := a.Body()
	switch {
	case errors.Is(err, web.ErrTooLarge):
		c.oversized(r)
	case err != nil:
		c.lost(r, err)
	default:
		c.table.heard.Add(int64(len(body)))
		if !c.message(r, body, a.Status) {
			c.wordless(r, a.Status, describe(body), body[:min(len(body), maxExcerpt)])
		}
	}
}

const maxExcerpt = 512 // bytes of a body that are kept where it is no message

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
	case !m.HasID():
		return "an error under no id"
	}
	return "an answer under another id"
}

// message takes one message of an answer; true if it is the answer itself. Only what comes on a request's own stream can answer it.
func (c *endpoint) message(r *request, line []byte, status int) bool {
	m, err := domain.ParseMessage(line)
	if err != nil {
		c.receive(line)
		return false
	}
	if id, ok := m.RequestID(); m.Method != nil || !ok || id != r.send.RequestID {
		if m.Method != nil || !c.suggestive(line) {
			c.aside(m, line)
		}
		return false
	}
	switch {
	case c.turnedAway(r, status, line):
		return false
	case c.staleSession(r, status, m):
		return false
	}
	c.answer(m, line)
	return true
}

// aside takes a message that answers nobody here.
func (c *endpoint) aside(m domain.Message, line []byte) {
	if m.Method != nil {
		c.receive(line)
		return
	}
	id, _ := m.RequestID()
	c.noise.count(c.stray(m, id), len(line))
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
	done, err := c.play(r, a, &t)
	for !done && err == nil || !done && t.resumable(c, r, err) {
		var next *web.Answer
		if next, err = c.resume(ctx, r, &t); err != nil {
			break
		}
		done, err = c.play(r, next, &t)
		next.Close()
	}
	switch {
	case done:
	case errors.Is(err, web.ErrTooLarge):
		c.oversized(r)
	case err == nil:
		c.lost(r, errEnded)
	default:
		c.lost(r, err)
	}
}

var errEnded = errors.New("the stream ended without the answer")

// play reads the events of one answer; true if the answer itself was among them.
func (c *endpoint) play(r *request, a *web.Answer, t *tape) (bool, error) {
	for e, err := range a.Events() {
		if err != nil {
			return false, err
		}
		t.note(e)
		c.table.heard.Add(int64(len(e.Data)) + 1)
		if len(e.Data) > 0 && c.message(r, e.Data, a.Status) {
			return true, nil
		}
	}
	return false, nil
}
