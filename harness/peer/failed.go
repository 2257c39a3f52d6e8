package peer

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"waybill/domain"
	rules "waybill/domain/web"
	"waybill/harness/peer/web"
)

// fault is how a request failed over HTTP.
type fault struct {
	code    domain.Code
	status  int    // of HTTP; 0 for no answer
	reason  string // in words of ours
	written string // "" for what the table knows
}

// faulted reports that a request has no answer, unless it has an outcome by then. The excerpt is what there was in its place, for
// whoever waits.
func (c *endpoint) faulted(r *request, f fault, excerpt []byte) {
	began, ok := c.table.claim(r)
	if !ok {
		return
	}
	if f.written == "" {
		f.written = map[bool]string{false: writtenNo, true: writtenMaybe}[began]
	}
	c.lane.m.cfg.Report(domain.ExchangeFailed{At: c.at, RequestID: r.send.RequestID, Call: r.send.Call, Written: f.written, Code: f.code,
		Status: f.status, Reason: clipped(f.reason)}, nil, excerpt)
}

// clipped keeps the beginning of a reason: it has to fit an event.
func clipped(reason string) string {
	const most = 1024 // bytes
	if len(reason) <= most {
		return reason
	}
	return strings.ToValidUTF8(reason[:most], "") + "..."
}

// probeFailed reports a probe that has no answer. What there was in its place is evidence.
func (c *endpoint) probeFailed(r *request, class string, status int, reason string, body []byte) {
	if _, ok := c.table.claim(r); !ok {
		return
	}
	d := domain.ProbeFailed{At: c.at, RequestID: r.send.RequestID, Class: class, Status: status, Reason: clipped(reason)}
	evidence := c.excerpt(body)
	if evidence != nil {
		d.Frame = domain.RefTo(evidence)
		d.Reason += "; it begins with " + strconv.QuoteToASCII(string(evidence[:min(len(evidence), shown)]))
	}
	c.lane.m.cfg.Report(d, evidence, nil)
}

const shown = 100 // bytes of it that the reason shows

const maxExcerpt = 512 // bytes of a body that are kept where it is no message

// excerpt is the beginning of a body that is there as a whole; nil for none. It is cut when it has been redacted: half a secret is none that
// could be found.
func (c *endpoint) excerpt(body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	whole := c.lane.redact(body)
	return slices.Clone(whole[:min(len(whole), maxExcerpt)])
}

// lost takes the loss of a request: no connection, or one that ended before the answer.
func (c *endpoint) lost(r *request, err error) {
	reason := string(c.lane.redact([]byte(err.Error())))
	kind := kindOf(err)
	switch {
	case probes(r.send):
		class := domain.ClassUnavailable
		if kind == web.KindRedirect {
			class = domain.ClassRedirect
		}
		c.probeFailed(r, class, 0, reason, nil)
		return
	case kind == web.KindRedirect:
		c.faulted(r, fault{code: domain.CodeRedirect, reason: reason}, nil)
		return
	case kind == web.KindRequest:
		c.faulted(r, fault{code: domain.CodeBadRequest, reason: reason}, nil)
		return
	}
	if !c.table.reached(r) && c.ctx.Err() == nil && !r.settled.Load() {
		c.retire(causeUnreachable) // before the request fails, so that it is sent to nobody until somebody is there
	}
	c.faulted(r, fault{code: domain.CodeTransportLost, reason: reason}, nil)
}

func kindOf(err error) string {
	var f *web.Failure
	if errors.As(err, &f) {
		return f.Kind
	}
	return ""
}

// uncredited takes a request for which no credential could be had. It was not sent.
func (c *endpoint) uncredited(r *request, err error) {
	reason := string(c.lane.redact([]byte(err.Error())))
	if probes(r.send) {
		c.probeFailed(r, domain.ClassUnauthorized, 0, reason, nil)
		return
	}
	c.faulted(r, fault{code: domain.CodeUnauthorized, reason: reason, written: writtenNo}, nil)
}

// oversized takes an answer that is longer than limits.frame.
func (c *endpoint) oversized(r *request) {
	c.noise.count(noiseTooLong, c.lane.m.cfg.FrameLimit)
	c.table.oversized(r.send.RequestID)
}

// unread takes a body that did not come to its end. A refusal is one without it. The answer to a probe is not, where the rest of it
// might have ruled legacy out.
func (c *endpoint) unread(r *request, status int, err error) {
	switch {
	case refused(status) && (!probes(r.send) || rules.Fallback(status) != rules.Ambiguous):
		c.wordless(r, status, "a body that could not be read", nil)
	case errors.Is(err, web.ErrTooLarge):
		c.oversized(r)
	default:
		c.lost(r, err)
	}
}

func refused(status int) bool { return status >= http.StatusBadRequest }

// glanceWithin is what the body of an answer gets that is said to be no message: it is for people.
const mostGlance = 64 << 10 // bytes of it

const glanceWithin = 500 * time.Millisecond

// foreign takes an answer that is said to be no message. What shows modern behaviour rules legacy out, whatever it is said to be.
func (c *endpoint) foreign(r *request, a *web.Answer) {
	var body []byte
	var err error
	if probes(r.send) && rules.Fallback(a.Status) == rules.Ambiguous {
		body, err = a.Body()
	} else {
		body = glance(a)
	}
	if err != nil {
		c.unread(r, a.Status, err)
		return
	}
	if probes(r.send) {
		c.suggestive(body)
	}
	c.wordless(r, a.Status, "no message in it", body)
}

// glance reads a body that is there soon, as a whole.
func glance(a *web.Answer) []byte {
	closed := make(chan struct{})
	timer := time.AfterFunc(glanceWithin, func() {
		a.Close()
		close(closed)
	})
	body, err := a.BodyUpTo(mostGlance)
	if !timer.Stop() {
		<-closed
	}
	if err != nil {
		return nil
	}
	return body
}

// wordless takes an answer that has no message for the request in it: its status is all it says.
func (c *endpoint) wordless(r *request, status int, what string, body []byte) {
	class := rules.Fallback(status)
	switch {
	case probes(r.send):
		c.probeFailed(r, classOf(class), status, what, body)
	case signOfLife(r.send) && !c.lifeless(r.send, status):
		if _, ok := c.table.claim(r); ok {
			c.lane.m.report(domain.HealthAnswered{At: c.at, RequestID: r.send.RequestID})
		}
	default:
		c.unanswered(r, status, class, what, body)
	}
}

// lifeless reports whether a status says that whoever gave it did so in the place of the peer, or that the session is over: a sign of life
// is none then.
func (c *endpoint) lifeless(s domain.Send, status int) bool {
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusNotFound, http.StatusBadRequest:
		return c.inSession(s)
	}
	return false
}

func classOf(c rules.Class) string {
	switch c {
	case rules.Unauthorized:
		return domain.ClassUnauthorized
	case rules.Unavailable:
		return domain.ClassUnavailable
	case rules.Ambiguous:
		return domain.ClassAmbiguous
	case rules.Redirect:
		return domain.ClassRedirect
	}
	return domain.ClassForeign
}

// unanswered takes such an answer to a call, a list or a subscription. A legacy session that is gone, or refused, ends the incarnation.
func (c *endpoint) unanswered(r *request, status int, class rules.Class, what string, body []byte) {
	f := fault{code: domain.CodeHTTPStatus, status: status, reason: what}
	switch {
	case status == http.StatusUnauthorized:
		f.code = domain.CodeUnauthorized
	case status == http.StatusForbidden:
		f.code = domain.CodeForbidden
	case c.inSession(r.send) && status == http.StatusNotFound:
		f.code = domain.CodeSessionGone
		c.retire(causeSessionGone)
	case c.inSession(r.send) && status == http.StatusBadRequest:
		c.retire(causeSessionRefused)
	case class == rules.Redirect:
		f.code = domain.CodeRedirect
	case class == rules.Foreign:
		f.code = domain.CodeBadResult
	}
	c.faulted(r, f, c.excerpt(body))
}

// checkSession takes the status of an answer to what is no request.
func (c *endpoint) checkSession(status int) {
	if status == http.StatusNotFound && c.inSession(domain.Send{Era: domain.EraLegacy}) {
		c.retire(causeSessionGone)
	}
}
