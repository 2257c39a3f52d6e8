package events

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

// random fills data with whatever its fields can hold.
type random struct{ *rand.Rand }

func (r random) event(kind string) domain.Event {
	d := reflect.New(reflect.TypeOf(sampleOf(kind))).Elem()
	r.fill(d, "")
	e := event(d.Interface().(domain.Data))
	e.Seq, e.Time, e.Mono = r.number(), r.number(), r.number()
	if e.Cause != 0 {
		e.Cause = 1 + r.Int64N(math.MaxInt64)
	}
	return e
}

func sampleOf(kind string) domain.Data {
	for _, d := range samples {
		if d.Kind() == kind {
			return d
		}
	}
	panic("no sample of " + kind)
}

func (r random) fill(v reflect.Value, tag string) {
	if v.Type() == reflect.TypeFor[jsontext.Value]() {
		values := []string{"{}", "null", `{"a":{"b":[1,"x",true]}}`, `{"roots":{"listChanged":true},"z":1e400}`}
		v.SetBytes([]byte(values[r.IntN(len(values))]))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") == "-" {
				continue // no part of the event
			}
			r.fill(v.Field(i), string(v.Type().Field(i).Tag))
		}
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			r.fill(v.Elem(), "")
		}
	case reflect.Slice:
		n := r.IntN(4)
		if n == 0 && strings.Contains(tag, "omitempty") {
			return // nothing is written, and nothing is read
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			r.fill(v.Index(i), "")
		}
	case reflect.String:
		v.SetString(r.text())
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.number())
	default:
		panic("events hold a " + v.Type().String() + ": teach this test")
	}
}

func (r random) number() int64 {
	edges := []int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1<<53 + 1, 1_785_240_000_000_000_000, 100}
	if n := r.IntN(2 * len(edges)); n < len(edges) {
		return edges[n]
	}
	return int64(r.Uint64())
}

func (r random) text() string {
	pieces := []string{"", "search", "a/b", `"`, `\`, "\n\t\x00\x1f\x7f", "<&>", "\u2028\u202e", "é", "\U0001f4dc", "\ufffd", "\u0085"}
	var b strings.Builder
	for range r.IntN(4) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

func TestOpenGivesBackWhatWasSealed(t *testing.T) {
	r := random{rand.New(rand.NewPCG(1, 2))}
	for _, kind := range Kinds() {
		for range 200 {
			e := r.event(kind)
			b, err := Seal(logID, e)
			if err != nil {
				t.Fatalf("seal %#v: %v", e, err)
			}
			log, back, err := Open(b)
			if err != nil {
				t.Fatalf("open %s: %v", b, err)
			}
			if log != logID || !reflect.DeepEqual(back, e) {
				t.Fatalf("log %s\nsealed %#v\nopened %#v", log, e, back)
			}
			again, err := Seal(log, back)
			if err != nil || !bytes.Equal(again, b) {
				t.Fatalf("sealed %s\nand again %s, error %v", b, again, err)
			}
		}
	}
}

// TestSealIsDeterministic seals with the members of maps and all else that a
// second run might see in another order.
func TestSealIsDeterministic(t *testing.T) {
	for _, d := range samples {
		first, err := Seal(logID, event(d))
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if again, err := Seal(logID, event(d)); err != nil || !bytes.Equal(again, first) {
				t.Fatalf("%s\nand again %s, error %v", first, again, err)
			}
		}
	}
}

// TestTextThatIsNotUTF8NeverFailsToSeal fills every string of every kind with
// bytes that are no text, as a peer's or a host's can be, and the log id too.
func TestTextThatIsNotUTF8NeverFailsToSeal(t *testing.T) {
	const bad = "a\xff\xed\xa0\x80\"\xc0"
	for _, d := range samples {
		v := reflect.New(reflect.TypeOf(d)).Elem()
		v.Set(reflect.ValueOf(d))
		spoil(v, bad)
		b, err := Seal(bad, event(v.Interface().(domain.Data)))
		if err != nil {
			t.Errorf("%s: %v", d.Kind(), err)
			continue
		}
		log, e, err := Open(b)
		if err != nil {
			t.Errorf("%s\ncannot be opened: %v", b, err)
			continue
		}
		if again, err := Seal(log, e); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s\nis sealed again as %s, error %v", b, again, err)
		}
	}
}

// spoil sets every string in v. A list is made anew: the sample keeps its own.
func spoil(v reflect.Value, s string) {
	switch {
	case v.Type() == reflect.TypeFor[jsontext.Value]():
		v.SetBytes([]byte(`{"` + "\xff" + `":"` + "\xed\xa0\x80" + `"}`))
	case v.Kind() == reflect.String:
		v.SetString(s)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				spoil(v.Field(i), s)
			}
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		spoil(v.Elem(), s)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		spoil(v.Index(0), s)
	}
}

// TestAttributesHoldAnyText does not rest on names being plain where they are
// made.
func TestAttributesHoldAnyText(t *testing.T) {
	const odd = `a"b\c` + "\n\x00\u2028<>é"
	e := event(domain.CallRouted{CallID: domain.CallID{Host: odd, ID: odd}, At: domain.At{Peer: odd}, Capabilities: none})
	b, err := Seal(odd, e)
	if err != nil {
		t.Fatal(err)
	}
	log, back, err := Open(b)
	if err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	if log != odd || back.Peer() != odd || back.Call() != odd+"/"+odd {
		t.Errorf("log %q, peer %q, call %q", log, back.Peer(), back.Call())
	}
}

func TestEnvelopeOfMaxSizeIsTheLargest(t *testing.T) {
	size := func(n int) (int, error) {
		b, err := Seal(logID, event(domain.ServiceStopped{Reason: strings.Repeat("x", n)}))
		return len(b), err
	}
	empty, err := size(0)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := size(MaxSize - empty); n != MaxSize || err != nil {
		t.Errorf("an envelope of %d bytes has %d and error %v", MaxSize, n, err)
	}
	if _, err := size(MaxSize - empty + 1); err == nil {
		t.Errorf("an envelope of %d bytes was sealed", MaxSize+1)
	}
	b, err := Seal(logID, event(domain.ServiceStopped{Reason: strings.Repeat("x", MaxSize-empty)}))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(b); err != nil {
		t.Errorf("the largest envelope cannot be opened: %v", err)
	}
	if _, _, err := Open(bytes.Replace(b, []byte("xx"), []byte("xxx"), 1)); err == nil {
		t.Errorf("an envelope of %d bytes was opened", MaxSize+1)
	}
}

type unregistered struct{}

func (unregistered) Kind() string { return "nothing.registered" }

func TestSealRefusesWhatOpenCouldNotRead(t *testing.T) {
	for _, e := range []domain.Event{
		{Seq: 1, Data: unregistered{}},
		{Seq: 1, Data: domain.CallSettled{CallID: call}},
		{Seq: 2, Cause: 1, Data: domain.DeadlinePassed{At: notes}},
	} {
		if b, err := Seal(logID, e); err == nil {
			t.Errorf("sealed %s", b)
		}
	}
}
