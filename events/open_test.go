package events

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestOpenRefusesOtherEncodings changes an envelope to one that means the same,
// or nearly.
func TestOpenRefusesOtherEncodings(t *testing.T) {
	routed, answered := string(golden(t, "call.routed")), string(golden(t, "probe.answered"))
	for _, c := range []struct{ name, from, to string }{
		{"a space in front", `{"spec`, ` {"spec`},
		{"a byte order mark", `{"spec`, "\ufeff" + `{"spec`},
		{"keys in another order", `"specversion":"1.0","id":"24"`, `"id":"24","specversion":"1.0"`},
		{"data in another order", `"host":"local","call_id":"first"`, `"call_id":"first","host":"local"`},
		{"an unknown attribute", `"id":"24"`, `"id":"24","more":"1"`},
		{"an unknown member of data", `"host":"local"`, `"host":"local","more":1`},
		{"a key twice", `"id":"24"`, `"id":"24","id":"24"`},
		{"a member of data twice", `"tool":`, `"tool":"x","tool":`},
		{"another case", `"id":"24"`, `"ID":"24"`},
		{"an escaped letter", `"host":"local"`, `"host":"l\u006fcal"`},
		{"an escaped slash", `"call":"local/first"`, `"call":"local\/first"`},
		{"a number for an id", `"id":"24"`, `"id":24`},
		{"a leading zero", `"id":"24"`, `"id":"024"`},
		{"a plus", `"id":"24"`, `"id":"+24"`},
		{"a number with a fraction", `"request_id":9`, `"request_id":9.0`},
		{"a number with an exponent", `"deadline_ms":60000`, `"deadline_ms":6e4`},
		{"another zone", `09Z"`, `09+00:00"`},
		{"a time with more digits", `000009Z"`, `0000090Z"`},
		{"no time", `"time":"2026-07-28T12:00:00.009000009Z",`, ``},
		{"no id", `"id":"24",`, ``},
		{"no source", `"source":"` + logID + `",`, ``},
		{"no version", `"specversion":"1.0",`, ``},
		{"no type", `"type":"call.routed",`, ``},
		{"no data version", `"dataversion":"1",`, ``},
		{"no data", `"data":{`, `"none":{`},
		{"no cause", `"cause":"23",`, ``},
		{"a cause of nothing", `"cause":"23"`, `"cause":"0"`},
		{"no rules", `"rules":"1",`, ``},
		{"rules that never were", `"rules":"1"`, `"rules":"0"`},
		{"rules that are no number", `"rules":"1"`, `"rules":"one"`},
		{"neither cause nor rules", `"cause":"23","rules":"1",`, ``},
		{"another call", `"call":"local/first"`, `"call":"local/second"`},
		{"another peer", `"subject":"notes"`, `"subject":"wiki"`},
		{"no peer", `"subject":"notes",`, ``},
		{"null for a peer", `"subject":"notes"`, `"subject":null`},
		{"null for data", `"data":{`, `"data":null,"x":{`},
	} {
		changed := strings.Replace(routed, c.from, c.to, 1)
		if changed == routed {
			t.Fatalf("%s: %q does not occur", c.name, c.from)
		}
		refused(t, c.name, changed)
	}
	refused(t, "an observation with a cause", strings.Replace(answered, `"data":`, `"cause":"3","rules":"1","data":`, 1))
	refused(t, "an observation with rules", strings.Replace(answered, `"data":`, `"rules":"1","data":`, 1))
	for _, tail := range []string{" ", "\n", "\x00", "{}", routed} {
		refused(t, fmt.Sprintf("%.3q behind", tail), routed+tail)
	}
	for _, b := range []string{"", "{}", "null", "[]", `"x"`, "\xff", routed[:len(routed)-1], "[" + routed + "]"} {
		refused(t, "something else", b)
	}
}

// refused holds that bytes are opened by nobody, now or later.
func refused(t *testing.T, name, b string) {
	t.Helper()
	if _, e, err := Open([]byte(b)); err == nil {
		t.Errorf("%s: opened %s\nas %#v", name, b, e)
	} else if errors.Is(err, ErrUnknown) {
		t.Errorf("%s: said to come from a newer waybill: %v", name, err)
	}
}

// TestWhitespaceIsRefusedWhereverItStands goes through every place between two
// tokens of every kind's envelope.
func TestWhitespaceIsRefusedWhereverItStands(t *testing.T) {
	for _, kind := range Kinds() {
		b := golden(t, kind)
		dec := jsontext.NewDecoder(bytes.NewReader(b))
		for {
			if _, err := dec.ReadToken(); err != nil {
				break
			}
			at := dec.InputOffset()
			refused(t, kind, string(b[:at])+" "+string(b[at:]))
		}
	}
}

// TestWhatANewerWaybillWroteIsSaidToBeUnknown tells it from what is damaged.
func TestWhatANewerWaybillWroteIsSaidToBeUnknown(t *testing.T) {
	for _, c := range []struct{ kind, from, to string }{
		{"call.routed", `"call.routed"`, `"call.teleported"`},
		{"call.routed", `"dataversion":"1"`, `"dataversion":"2"`},
		{"call.routed", `"rules":"1"`, `"rules":"2"`},
		{"call.routed", `"rules":"1"`, `"rules":"2","signed":"yes"`},
		{"call.routed", `"specversion":"1.0"`, `"specversion":"2.0"`},
		{"probe.answered", `"probe.answered"`, `"probe.echoed"`},
		{"probe.answered", `"dataversion":"1"`, `"dataversion":"2"`},
	} {
		b := bytes.Replace(golden(t, c.kind), []byte(c.from), []byte(c.to), 1)
		if _, _, err := Open(b); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %s gives %v", c.kind, c.to, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, kind := range Kinds() {
		f.Add(golden(f, kind))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		log, e, err := Open(b)
		if err != nil {
			return
		}
		again, err := Seal(log, e)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("opened %q, which is sealed as %q, error %v", b, again, err)
		}
		if ref, ok := EvidenceOf(e.Data); ok {
			if d, err := DigestOf(ref); err == nil && fmt.Sprintf("%x", d) != ref.Digest {
				t.Errorf("%q is the digest %x", ref.Digest, d)
			}
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	_, e, err := Open(golden(b, "call.routed"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Seal(logID, e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	sealed := golden(b, "call.routed")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Open(sealed); err != nil {
			b.Fatal(err)
		}
	}
}
