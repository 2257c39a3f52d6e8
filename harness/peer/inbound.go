package peer

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

const (
	maxReplies = 64      // answers to a legacy peer's requests that may wait to be written
	maxReplyID = 1 << 10 // bytes of an id that is sent back
)

// read is the reader of one incarnation. It waits for nothing but the pipe, and ends with it; then no answer can come.
func (c *incarnation) read() {
	in := newLines(c.stdout, c.lane.m.cfg.FrameLimit)
	line, unfinished, err := in.next()
	for ; err == nil; line, unfinished, err = in.next() {
		c.receive(line)
	}
	code := domain.CodeTransportLost
	switch {
	case errors.Is(err, errLineTooLong):
		code = domain.CodeFrameTooLarge
		c.noise.count(noiseTooLong, unfinished)
		c.end(causeTooLong)
	case unfinished > 0:
		c.noise.count(noiseHalfLine, unfinished)
	}
	c.broke(causeStdoutClosed)
	_ = c.stdout.Close() // a peer that goes on writing is told so
	c.table.fail(code)
}

// receive takes one line, which is good until it returns.
func (c *incarnation) receive(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		c.noise.count(noiseBlank, len(line))
		return
	}
	m, err := domain.ParseMessage(line)
	switch {
	case err != nil:
		if !c.suggestive(line) {
			c.noise.count(unparsed(line), len(line))
		}
	case m.Method != nil:
		if !c.suggestive(line) {
			c.unasked(m, len(line))
		}
	default:
		c.answer(m, line)
	}
}

// suggestive reports a line that waits for nobody but shows modern behaviour
// while the era is unknown; false if it is to be counted as noise. The line is
// judged as it came: redaction may take away what it showed.
func (c *incarnation) suggestive(line []byte) bool {
	if c.table.selected() != domain.EraUnknown || !domain.SuggestsModern(line) || !c.table.admitEvidence() {
		return false
	}
	evidence := c.evidence(line)
	c.lane.m.cfg.Report(domain.ProbeAnswered{At: c.at, Modern: true, Frame: domain.RefTo(evidence)}, evidence, nil)
	return true
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
func (c *incarnation) answer(m domain.Message, line []byte) {
	id, ok := m.RequestID()
	if ok {
		if r := c.table.take(id); r != nil {
			c.deliver(r.send, m, line)
			return
		}
	}
	if c.suggestive(line) {
		return
	}
	c.noise.count(c.stray(m, id), len(line))
}

func (c *incarnation) stray(m domain.Message, id int64) string {
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
func (c *incarnation) deliver(s domain.Send, m domain.Message, line []byte) {
	if s.Method == methodCall {
		a := domain.ReadAnswer(m)
		payload := bytes.Clone(a.Value)
		answered := domain.CallAnswered{CallID: callID(s.Call), At: c.at, RequestID: s.RequestID,
			Result: c.lane.m.cfg.Digest(payload), Facts: a.Facts}
		if a.RequestState != nil {
			state := c.lane.m.cfg.Digest(domain.StateText(a.RequestState))
			answered.RequestState = &state
		}
		c.lane.m.cfg.Report(answered, nil, payload)
		return
	}
	evidence := c.evidence(line)
	frame := domain.RefTo(evidence)
	if s.Method == methodList {
		c.lane.m.cfg.Report(domain.CatalogListed{At: c.at, RequestID: s.RequestID, Frame: frame}, evidence, nil)
		return
	}
	c.lane.m.cfg.Report(domain.ProbeAnswered{At: c.at, RequestID: s.RequestID, Modern: domain.ModernEvidence(line), Frame: frame}, evidence, nil)
}

// evidence returns a copy of a line as it may be recorded.
func (c *incarnation) evidence(line []byte) []byte { return c.lane.redact(bytes.Clone(line)) }

// callID reads the key of a call, "host/id". A host's name has no slash.
func callID(key string) domain.CallID {
	host, id, _ := strings.Cut(key, "/")
	return domain.CallID{Host: host, ID: id}
}

// unasked takes a notification or a request of the peer's own.
func (c *incarnation) unasked(m domain.Message, size int) {
	switch {
	case !m.Is2():
		c.noise.count(noiseWrongJSONRPC, size)
	case m.ID == nil:
		c.noise.count(notificationKind(m.MethodName()), size)
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
	case method == "notifications/progress":
		return noiseProgress
	case method == "notifications/message":
		return noiseMessage
	case method == "notifications/cancelled":
		return noiseCancelled
	case strings.HasSuffix(method, "/list_changed"):
		return noiseListChanged
	}
	return noiseNotification
}

// reply answers a request of a legacy peer. One that asks faster than it reads, or under something that is no id, is not
// answered.
func (c *incarnation) reply(m domain.Message, size int) {
	kind := m.ID.Kind()
	if kind != '"' && kind != '0' || len(m.ID) > maxReplyID || c.replies.Load() >= maxReplies {
		c.noise.count(noiseRequestDrop, size)
		return
	}
	c.replies.Add(1)
	frame := reply(m.ID, m.MethodName())
	c.lane.put(task{do: func() {
		c.replies.Add(-1)
		c.write(frame)
	}})
}
