package events

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

// MaxSize is the most bytes an envelope may have: 60 KiB, so that it fits a
// tile entry and a NATS message.
const MaxSize = 60 << 10

const dataVersion = "1"

// envelope is the CloudEvents 1.0 object. The attributes mono, cause, rules,
// call and dataversion are extensions; integers of 64 bits travel as strings,
// because the CloudEvents Integer has 32.
type envelope struct {
	SpecVersion string         `json:"specversion"`
	ID          string         `json:"id"`                // the seq
	Source      string         `json:"source"`            // the log id
	Type        string         `json:"type"`              // noun.past-participle
	Subject     string         `json:"subject,omitempty"` // the peer
	Time        string         `json:"time"`              // of the observation
	DataVersion string         `json:"dataversion"`
	Mono        string         `json:"mono"`            // nanoseconds since service.started
	Cause       string         `json:"cause,omitempty"` // seq of the observation a decision follows from
	Rules       string         `json:"rules,omitempty"` // the rules that decided
	Call        string         `json:"call,omitempty"`
	Data        jsontext.Value `json:"data"`
}

// Seal returns the envelope of an event of a log: the bytes that are stored.
// The same event gives the same bytes. It fails if they would exceed MaxSize.
func Seal(log string, e domain.Event) ([]byte, error) {
	data, err := json.Marshal(e.Data, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.Data.Kind(), err)
	}
	b := make([]byte, 0, len(data)+320)
	b = append(b, `{"specversion":"1.0","id":"`...)
	b = strconv.AppendInt(b, e.Seq, 10)
	b = attribute(b, "source", log)
	b = attribute(b, "type", e.Data.Kind())
	if p := e.Peer(); p != "" {
		b = attribute(b, "subject", p)
	}
	b = append(b, `","time":"`...)
	b = time.Unix(0, e.Time).UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","dataversion":"`+dataVersion+`","mono":"`...)
	b = strconv.AppendInt(b, e.Mono, 10)
	if e.IsDecision() {
		b = append(b, `","cause":"`...)
		b = strconv.AppendInt(b, e.Cause, 10)
		b = append(b, `","rules":"`...)
		b = strconv.AppendInt(b, domain.RulesVersion, 10)
	}
	if c := e.Call(); c != "" {
		b = attribute(b, "call", c)
	}
	b = append(append(append(b, `","data":`...), data...), '}')
	if len(b) > MaxSize {
		return nil, fmt.Errorf("event %d (%s) has %d bytes, more than %d", e.Seq, e.Data.Kind(), len(b), MaxSize)
	}
	return b, nil
}

// attribute closes the string before it and writes the next one, left open.
// Values are names of ours, which need no escaping; the log id, the peer and the
// call are all held to plain characters where they are made.
func attribute(b []byte, name, value string) []byte {
	b = append(b, `","`...)
	b = append(b, name...)
	b = append(b, `":"`...)
	return append(b, value...)
}

// Open reads an envelope back. It returns the log id and the event without its
// evidence. Bytes that Seal would not have written are refused, so that there
// is one encoding of each event only.
func Open(b []byte) (log string, e domain.Event, err error) {
	var v envelope
	if err := json.Unmarshal(b, &v, json.RejectUnknownMembers(true)); err != nil {
		return "", e, fmt.Errorf("envelope: %w", err)
	}
	if e.Data, err = decodeData(v.Type, v.DataVersion, v.Data); err != nil {
		return "", e, fmt.Errorf("envelope %s: %w", v.ID, err)
	}
	if err := v.numbers(&e); err != nil {
		return "", e, fmt.Errorf("envelope %s: %w", v.ID, err)
	}
	again, err := Seal(v.Source, e)
	if err != nil {
		return "", e, err
	}
	if !bytes.Equal(again, b) {
		return "", e, fmt.Errorf("envelope %s: not in the one encoding of its event", v.ID)
	}
	return v.Source, e, nil
}

func (v envelope) numbers(e *domain.Event) error {
	t, err := time.Parse(time.RFC3339Nano, v.Time)
	if err != nil {
		return err
	}
	e.Time = t.UnixNano()
	for _, n := range []struct {
		s  string
		to *int64
	}{{v.ID, &e.Seq}, {v.Mono, &e.Mono}, {v.Cause, &e.Cause}} {
		if n.s == "" {
			continue
		}
		if *n.to, err = strconv.ParseInt(n.s, 10, 64); err != nil {
			return err
		}
	}
	return nil
}

// Subject returns the NATS subject an event is published on:
// <prefix>.v1.events.<log>.<noun>.<participle>.<peer or ->.
func Subject(prefix, log, kind, peer string) string {
	if peer == "" {
		peer = "-"
	}
	noun, participle, _ := strings.Cut(kind, ".")
	return prefix + ".v1.events." + log + "." + noun + "." + participle + "." + peer
}
