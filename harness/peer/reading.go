package peer

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
	"waybill/domain/catalog"
	"waybill/harness/peer/message"
)

const (
	maxReplies = 64      // answers to a legacy peer's requests that may wait to be written
	maxReplyID = 1 << 10 // bytes of an id that is sent back
)

// receive takes one line, which is good until it returns.
func (c *link) receive(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		c.noise.count(noiseBlank, len(line))
		return
	}
	m, err := domain.ParseMessage(line)
	switch {
	case err != nil:
		if !c.suggestive(line) && !c.doubtful(line) {
			c.noise.count(unparsed(line), len(line))
		}
	case m.Method != nil:
		if !c.suggestive(line) {
			c.unasked(m, line)
		}
	default:
		c.answer(m, line)
	}
}

// suggestive reports a line that waits for nobody but shows modern behaviour
// while the era is unknown; false if it is to be counted as noise. The line is
// judged as it came: redaction may take away what it showed.
func (c *link) suggestive(line []byte) bool {
	if c.table.selected() != domain.EraUnknown || !domain.SuggestsModern(line) || !c.table.admitEvidence() {
		return false
	}
	evidence := c.evidence(line)
	c.lane.m.cfg.Report(domain.ProbeAnswered{At: c.at, Modern: true, Frame: domain.RefTo(evidence)}, evidence, nil)
	return true
}

// doubtful takes a line that answers somebody and cannot be read as an answer; false if it is to be counted as noise. While
// the era is unknown it is for suggestive alone.
func (c *link) doubtful(line []byte) bool {
	id, ok := domain.DoubtfulID(line)
	if !ok || c.table.selected() == domain.EraUnknown {
		return false
	}
	r := c.table.take(id)
	if r != nil {
		c.deliver(*r, domain.Message{}, line)
	}
	return r != nil
}

// unparsed says why a line is no message.
func unparsed(line []byte) string {
	v := jsontext.Value(bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))))
	switch {
	case !v.IsValid():
		return noiseNotJSON
	case v.Kind() == '[':
		return noiseBatch
	}
	return noiseNotObject
}

// answer takes a message without a method: the answer of whoever waits under its id, evidence, or noise.
func (c *link) answer(m domain.Message, line []byte) {
	id, ok := m.RequestID()
	if ok {
		if s := c.table.take(id); s != nil {
			c.deliver(*s, m, line)
			return
		}
	}
	if c.suggestive(line) {
		return
	}
	c.noise.count(c.stray(m, id), len(line))
}

func (c *link) stray(m domain.Message, id int64) string {
	if known := c.table.stranger(id); known != "" {
		return known
	}
	switch {
	case !m.Is2():
		return noiseWrongJSONRPC
	case !m.HasID():
		return noiseNullID
	}
	return noiseUnknownID
}

// deliver reports the answer to s. What kind of answer it is, is not looked at: the id is right.
func (c *link) deliver(s settlement, m domain.Message, line []byte) {
	id := s.send.RequestID
	c.lane.m.mark("read", s.send.Method)
	switch {
	case s.send.Method == domain.MethodCall:
		c.deliverCall(s, m)
	case signOfLife(s.send):
		c.lane.m.report(domain.HealthAnswered{At: c.at, RequestID: id})
	case s.send.Method == domain.MethodList:
		evidence := c.evidence(line)
		c.lane.m.cfg.Report(domain.CatalogListed{At: c.at, RequestID: id, Frame: domain.RefTo(evidence), Context: s.send.Context,
			Page: c.readPage(evidence, s.send.Era)}, evidence, nil)
	case s.send.Method == domain.MethodListen:
		how, code := message.ReadEnd(m, id)
		c.lane.m.report(ended(s.send, how, code))
	default:
		evidence := c.evidence(line)
		c.lane.m.cfg.Report(domain.ProbeAnswered{At: c.at, RequestID: id, Modern: domain.ModernEvidence(line), Frame: domain.RefTo(evidence)},
			evidence, nil)
	}
}

func (c *link) deliverCall(s settlement, m domain.Message) {
	a := domain.ReadAnswer(m)
	payload := c.keep(a.Value)
	a.Facts.Schema = c.schemas.verdict(s, a.Facts, payload)
	answered := domain.CallAnswered{CallID: callID(s.send.Call), At: c.at, RequestID: s.send.RequestID,
		Result: c.lane.m.cfg.Digest(payload), Facts: a.Facts}
	if a.RequestState != nil {
		state := c.lane.m.cfg.Digest(domain.StateText(a.RequestState))
		answered.RequestState = &state
	}
	c.lane.m.cfg.Report(answered, nil, payload)
}

// readPage does the work of reading a list where nobody but its own peer waits for it.
func (c *link) readPage(evidence []byte, era domain.Era) *catalog.Page {
	parse := func(frame []byte, modern bool) (catalog.Page, catalog.Problem, string) {
		return catalog.ParsePage(frame, modern, true)
	}
	if c.lane.spec.Web != nil {
		parse = catalog.ParsePageHTTP
	}
	page, problem, _ := parse(evidence, era == domain.EraModern)
	if problem != "" {
		return nil
	}
	return &page
}

// evidence returns a line as it may be recorded, and may be kept.
func (c *link) evidence(line []byte) []byte { return c.lane.redact(c.keep(line)) }

// callID reads the key of a call, "host/id". A host's name has no slash.
func callID(key string) domain.CallID {
	host, id, _ := strings.Cut(key, "/")
	return domain.CallID{Host: host, ID: id}
}

// unasked takes a notification or a request of the peer's own.
func (c *link) unasked(m domain.Message, line []byte) {
	size := len(line)
	switch {
	case !m.Is2():
		c.noise.count(noiseWrongJSONRPC, size)
	case m.ID == nil && m.MethodName() == "notifications/progress":
		c.progressed(m, size)
	case m.ID == nil:
		c.notified(m, line)
	case !m.HasID():
		c.noise.count(noiseNullID, size)
	default:
		c.noise.count(noiseRequest, size)
		if c.table.selected() == domain.EraLegacy {
			c.reply(m, size)
		}
	}
}

func notificationKind(method string) string {
	switch {
	case method == "notifications/message":
		return noiseMessage
	case method == "notifications/cancelled":
		return noiseCancelled
	case method == "notifications/subscriptions/acknowledged":
		return noiseAcknowledged
	case strings.HasSuffix(method, "/list_changed"):
		return noiseListChanged
	}
	return noiseNotification
}

// reply answers a request of a legacy peer. One that asks faster than it reads, or under something that is no id, is not
// answered.
func (c *link) reply(m domain.Message, size int) {
	kind := m.ID.Kind()
	if kind != '"' && kind != '0' || len(m.ID) > maxReplyID || c.replies.Load() >= maxReplies {
		c.noise.count(noiseRequestDrop, size)
		return
	}
	c.replies.Add(1)
	c.carrier.reply(message.Reply(m.ID, m.MethodName()))
}
