package events

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

// MaxSize is the most bytes an envelope may have: 60 KiB, so that it fits a
// tile entry and a NATS message.
const MaxSize = 60 << 10

const (
	specVersion = "1.0"
	dataVersion = "1"
)

// ErrUnknown is matched by the error of Open for an envelope that a newer
// waybill may have written: its CloudEvents version, kind, data version or rules
// are none that this program knows. What Open refuses otherwise was written by
// no waybill.
var ErrUnknown = errors.New("a newer waybill wrote it")

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
// The same event gives the same bytes. It fails if they would exceed MaxSize,
// if the kind is none of [Kinds], and if a decision has no cause or an
// observation has one. Text that is not UTF-8 is no failure: each bad byte is
// written as U+FFFD.
func Seal(log string, e domain.Event) ([]byte, error) {
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	if err := seal(b, log, e); err != nil {
		return nil, err
	}
	return bytes.Clone(b.Bytes()), nil
}

// buffers are for envelopes that are made: of one that is only compared nothing
// is left.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// seal makes the envelope the content of a buffer.
func seal(to *bytes.Buffer, log string, e domain.Event) error {
	name := e.Data.Kind()
	if err := kinds[name].fits(e); err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	to.Reset()
	to.Write(head(to.AvailableBuffer(), log, name, e))
	if err := json.MarshalWrite(to, e.Data, json.Deterministic(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	to.WriteByte('}')
	if to.Len() > MaxSize {
		return fmt.Errorf("event %d (%s) has %d bytes, more than %d", e.Seq, name, to.Len(), MaxSize)
	}
	return nil
}

// head appends an envelope up to its data.
func head(b []byte, log, name string, e domain.Event) []byte {
	b = append(b, `{"specversion":"`+specVersion+`"`...)
	b = number(b, "id", e.Seq)
	b = attribute(b, "source", log)
	b = attribute(b, "type", name)
	b = optional(b, "subject", e.Peer())
	b = append(b, `,"time":"`...)
	b = time.Unix(0, e.Time).UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","dataversion":"`+dataVersion+`"`...)
	b = number(b, "mono", e.Mono)
	if e.IsDecision() {
		b = number(b, "cause", e.Cause)
		b = number(b, "rules", domain.RulesVersion)
	}
	b = optional(b, "call", e.Call())
	return append(b, `,"data":`...)
}

// attribute appends a member whose value may hold any characters.
func attribute(b []byte, name, value string) []byte {
	b = append(append(append(b, `,"`...), name...), `":`...)
	// The error says that value is not UTF-8; it is then written with U+FFFD.
	b, _ = jsontext.AppendQuote(b, value)
	return b
}

func optional(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return attribute(b, name, value)
}

func number(b []byte, name string, n int64) []byte {
	b = append(append(append(b, `,"`...), name...), `":"`...)
	return append(strconv.AppendInt(b, n, 10), '"')
}

// Open reads an envelope back. It returns the log id and the event without its
// evidence. Bytes that Seal would not have written are refused, so that there
// is one encoding of each event only; if a newer Seal might have written them,
// the error matches [ErrUnknown].
func Open(b []byte) (log string, e domain.Event, err error) {
	if log, e, ok := quick(b); ok {
		if Is(b, log, e) {
			return log, e, nil
		}
	}
	return openWhole(b)
}

// OpenSealed is Open of bytes that Seal gave to this process: that they are in the one
// encoding of their event is not looked at again, which is half of the work.
func OpenSealed(b []byte) (log string, e domain.Event, err error) {
	if log, e, ok := quick(b); ok {
		return log, e, nil
	}
	return openWhole(b)
}

// openWhole takes any envelope, and says what is wrong with one that is refused.
func openWhole(b []byte) (log string, e domain.Event, err error) {
	var v envelope
	if err := json.Unmarshal(b, &v); err != nil {
		return "", e, fmt.Errorf("envelope: %w", err)
	}
	if err := v.open(&e); err != nil {
		return "", e, fmt.Errorf("envelope %.20q: %w", v.ID, err)
	}
	same, err := sealsAs(b, v.Source, e)
	if err != nil {
		return "", e, fmt.Errorf("envelope %d: %w", e.Seq, err)
	}
	if !same {
		return "", e, fmt.Errorf("envelope %d: not in the one encoding of its event", e.Seq)
	}
	return v.Source, e, nil
}

// Is reports whether b is the envelope of an event, byte for byte as Seal makes it,
// and keeps nothing. It is false where Seal fails.
func Is(b []byte, log string, e domain.Event) bool {
	same, err := sealsAs(b, log, e)
	return same && err == nil
}

// sealsAs reports whether Seal gives these bytes.
func sealsAs(b []byte, log string, e domain.Event) (bool, error) {
	again := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(again)
	if err := seal(again, log, e); err != nil {
		return false, err
	}
	return bytes.Equal(again.Bytes(), b), nil
}

func (v *envelope) open(e *domain.Event) (err error) {
	if err := v.known(); err != nil {
		return err
	}
	if e.Data, err = kinds[v.Type].decode(v.Data); err != nil {
		return err
	}
	return v.numbers(e)
}

// known reports whether this program can read the envelope at all. There is one
// version of everything so far; an upgrade of an old one is called here.
func (v *envelope) known() error {
	switch k := kinds[v.Type]; {
	case v.SpecVersion == "" || v.Type == "" || v.DataVersion == "":
		return errors.New("without specversion, type or dataversion")
	case v.SpecVersion != specVersion:
		return fmt.Errorf("CloudEvents %.20q: %w", v.SpecVersion, ErrUnknown)
	case k == nil:
		return fmt.Errorf("kind %.80q: %w", v.Type, ErrUnknown)
	case v.DataVersion != dataVersion:
		return fmt.Errorf("kind %q with data version %.20q: %w", v.Type, v.DataVersion, ErrUnknown)
	case k.decision && newerRules(v.Rules):
		return fmt.Errorf("decided by rules %.20s, and this program knows 1 to %d: %w", v.Rules, domain.RulesVersion, ErrUnknown)
	}
	return nil
}

func newerRules(s string) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && n > domain.RulesVersion && s == strconv.FormatInt(n, 10)
}

func (v *envelope) numbers(e *domain.Event) error {
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
