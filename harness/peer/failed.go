package peer

import (
	"errors"
	"fmt"
	"net/http"

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
		Status: f.status, Reason: f.reason}, nil, excerpt)
}

// probeFailed reports a probe that has no answer. What there was in its place is evidence.
func (c *endpoint) probeFailed(r *request, class string, status int, reason string, excerpt []byte) {
	if _, ok := c.table.claim(r); !ok {
		return
	}
	d := domain.ProbeFailed{At: c.at, RequestID: r.send.RequestID, Class: class, Status: status, Reason: reason}
	var evidence []byte
	if len(excerpt) > 0 {
		evidence = c.lane.redact(excerpt)
		d.Frame = domain.RefTo(evidence)
	}
	c.lane.m.cfg.Report(d, evidence, nil)
}

// lost takes the loss of a request: no connection, or one that ended before the answer.
func (c *endpoint) lost(r *request, err error) {
	reason := string(c.lane.redact([]byte(err.Error())))
	if probes(r.send) {
		class := domain.ClassUnavailable
		if redirected(err) {
			class = domain.ClassRedirect
		}
		c.probeFailed(r, class, 0, reason, nil)
		return
	}
	if redirected(err) {
		c.faulted(r, fault{code: domain.CodeRedirect, reason: reason}, nil)
		return
	}
	if !c.table.reached(r) && c.ctx.Err() == nil && !r.settled.Load() {
		c.retire(causeUnreachable) // before the request fails, so that it is sent to nobody until somebody is there
	}
	c.faulted(r, fault{code: domain.CodeTransportLost, reason: reason}, nil)
}

func redirected(err error) bool {
	var f *web.Failure
	return errors.As(err, &f) && f.Kind == web.KindRedirect
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

// wordless takes an answer that has no message for the request in it: its status is all it says.
func (c *endpoint) wordless(r *request, status int, what string, excerpt []byte) {
	class := rules.Fallback(status)
	switch {
	case probes(r.send):
		c.probeFailed(r, classOf(class), status, what, excerpt)
	case signOfLife(r.send):
		if _, ok := c.table.claim(r); ok {
			c.lane.m.report(domain.HealthAnswered{At: c.at, RequestID: r.send.RequestID})
		}
	default:
		c.unanswered(r, status, class, what, excerpt)
	}
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
func (c *endpoint) unanswered(r *request, status int, class rules.Class, what string, excerpt []byte) {
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
	c.faulted(r, f, c.lane.redact(excerpt))
}

// checkSession takes the status of an answer to what is no request.
func (c *endpoint) checkSession(status int) {
	if status == http.StatusNotFound && c.inSession(domain.Send{Era: domain.EraLegacy}) {
		c.retire(causeSessionGone)
	}
}

// words is for messages.
func (f fault) String() string { return fmt.Sprintf("%s %d %s", f.code, f.status, f.reason) }
