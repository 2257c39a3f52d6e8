package events

import (
	"reflect"
	"strings"
	"testing"
)

// TestTheQuickWayAndTheWholeOneAgree holds what is opened at sight to what the
// decoder makes of the same bytes, for every kind, and for text with escapes.
func TestTheQuickWayAndTheWholeOneAgree(t *testing.T) {
	taken := 0
	for _, kind := range Kinds() {
		b := golden(t, kind)
		log, e, ok := quick(b)
		if !ok {
			t.Errorf("%s is not taken at sight", kind)
			continue
		}
		taken++
		if sealed, same, err := OpenSealed(b); err != nil || sealed != log || !reflect.DeepEqual(same, e) {
			t.Errorf("%s, sealed: %v\n got %+v of %s\nwant %+v of %s", kind, err, same, sealed, e, log)
		}
		wantLog, want, err := openWhole(b)
		if err != nil || log != wantLog || !reflect.DeepEqual(e, want) {
			t.Errorf("%s: %v\n got %+v of %s\nwant %+v of %s", kind, err, e, log, want, wantLog)
		}
	}
	if taken == 0 {
		t.Error("nothing was taken at sight")
	}
}

func TestWhatIsNotTakenAtSightIsOpenedAllTheSame(t *testing.T) {
	e := event(sampleOf("call.routed"))
	for _, log := range []string{`a"quote`, `a\backslash`, "a\ttab"} {
		b, err := Seal(log, e)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := quick(b); ok {
			t.Errorf("%q was taken at sight", log)
		}
		if got, _, err := Open(b); err != nil || got != log {
			t.Errorf("Open of an event of %q gives %q, %v", log, got, err)
		}
	}
}

// TestCutEnvelopesAreTakenByNeither cuts one at each byte.
func TestCutEnvelopesAreTakenByNeither(t *testing.T) {
	b := golden(t, "call.routed")
	for n := range b {
		if _, _, err := Open(b[:n]); err == nil {
			t.Errorf("the first %d bytes were opened", n)
		}
		if _, _, err := Open([]byte(strings.Repeat(string(b[:n]), 2))); err == nil {
			t.Errorf("the first %d bytes, twice, were opened", n)
		}
	}
}
