package events

import (
	"bytes"
	"strconv"
	"time"

	"waybill/domain"
)

// quick opens an envelope that is laid out as Seal does it, with attributes that
// need no escapes, without a JSON decoder for the envelope itself. Whatever it
// does not take at sight, good or bad, it leaves to the whole decoder; what it
// takes is sealed again by Open and compared like any other.
func quick(b []byte) (log string, e domain.Event, ok bool) {
	c := scanner{rest: b, ok: true}
	c.literal(`{"specversion":"` + specVersion + `","id":"`)
	e.Seq = c.number()
	c.literal(`,"source":"`)
	log = c.text()
	c.literal(`,"type":"`)
	k := kinds[c.text()]
	c.skip(`,"subject":"`) // of the data, as call is
	c.literal(`,"time":"`)
	e.Time = c.time()
	c.literal(`,"dataversion":"` + dataVersion + `","mono":"`)
	e.Mono = c.number()
	if c.has(`,"cause":"`) {
		e.Cause = c.number()
		c.literal(rulesAttribute)
	}
	c.skip(`,"call":"`)
	c.literal(`,"data":`)
	if !c.ok || k == nil || len(c.rest) == 0 {
		return "", e, false
	}
	var err error
	e.Data, err = k.decode(c.rest[:len(c.rest)-1])
	return log, e, err == nil
}

var rulesAttribute = `,"rules":"` + strconv.Itoa(domain.RulesVersion) + `"`

// A scanner goes over an envelope. After something that is not as it should be,
// ok is false and what it returns has no meaning.
type scanner struct {
	rest []byte
	ok   bool
}

func (c *scanner) has(s string) bool {
	if len(c.rest) < len(s) || string(c.rest[:len(s)]) != s {
		return false
	}
	c.rest = c.rest[len(s):]
	return true
}

func (c *scanner) literal(s string) { c.ok = c.has(s) && c.ok }

func (c *scanner) skip(s string) {
	if c.has(s) {
		c.value()
	}
}

// value returns what stands before the next quote, and passes both. With a
// backslash it may be the wrong quote, so that is none of its business.
func (c *scanner) value() []byte {
	end := bytes.IndexByte(c.rest, '"')
	if end < 0 || bytes.IndexByte(c.rest[:end], '\\') >= 0 {
		c.ok = false
		return nil
	}
	v := c.rest[:end]
	c.rest = c.rest[end+1:]
	return v
}

func (c *scanner) text() string { return string(c.value()) }

func (c *scanner) number() int64 {
	n, err := strconv.ParseInt(c.text(), 10, 64)
	c.ok = c.ok && err == nil
	return n
}

func (c *scanner) time() int64 {
	t, err := time.Parse(time.RFC3339Nano, c.text())
	c.ok = c.ok && err == nil
	return t.UnixNano()
}
