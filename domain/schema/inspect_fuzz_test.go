package schema

import (
	"reflect"
	"testing"
)

// FuzzInspect: whatever a peer writes, Inspect ends without a panic and says the
// same again, and what is sound for the library is sound. The library refuses
// some that are not wrong, such as texts that should be addresses.
func FuzzInspect(f *testing.F) {
	for _, pair := range nasty() {
		f.Add([]byte(pair[0]))
	}
	f.Add([]byte(ordinary))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := Inspect(raw)
		if !reflect.DeepEqual(got, Inspect(raw)) {
			t.Fatalf("%q is %+v, and then %+v", raw, got, Inspect(raw))
		}
		switch got.Fault {
		case "", TooLarge, External, Foreign, Malformed:
		default:
			t.Errorf("%q is %+v", raw, got)
		}
		if (got.Reason == "") != (got.Fault == "") {
			t.Errorf("%q is %+v", raw, got)
		}
		if want := oracle(string(raw)); want == "" && !agree(got, want) {
			t.Errorf("%s is %+v, and sound for the library", raw, got)
		}
	})
}
