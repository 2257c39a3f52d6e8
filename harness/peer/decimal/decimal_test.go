package decimal

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestNumbersAreComparedExactly(t *testing.T) {
	rising := []string{"-1e400", "-10", "-9.5", "-1.1e0", "-1.09", "-1", "-1e-400", "0", "1e-4000000", "1e-400", "0.1", "0.1000000000000000000000001", "0.2", "0.25",
		"1", "2", "10", "10.5", "11", "9007199254740992", "9007199254740993", "9007199254740993.5", "1e20", "123456789012345678901", "1e400", "1.0000001E+400"}
	for i, a := range rising {
		for j, b := range rising {
			da, okA := Read(jsontext.Value(a))
			db, okB := Read(jsontext.Value(b))
			if !okA || !okB || da.Less(db) != (i < j) {
				t.Errorf("%s < %s is %v (%v, %v)", a, b, da.Less(db), okA, okB)
			}
		}
	}
}

func TestNumbersThatStandForTheSameAreEqual(t *testing.T) {
	for _, same := range [][]string{{"0", "-0", "0.0", "0e10", "-0.00E-7"}, {"1", "1.0", "10e-1", "0.1e1", "0.01E+2"}, {"-120", "-1.2e2", "-120.00"}} {
		for _, a := range same {
			for _, b := range same {
				da, okA := Read(jsontext.Value(a))
				db, okB := Read(jsontext.Value(b))
				if !okA || !okB || da != db || da.Less(db) {
					t.Errorf("%s and %s: %v, %v", a, b, da, db)
				}
			}
		}
	}
}

func TestWhatIsNoNumberOrAnAbsurdOneIsNotRead(t *testing.T) {
	for _, v := range []string{"", "null", `"1"`, "[1]", "{}", "true", strings.Repeat("1", maxNumber+1), "1e99999999999999999999", "1e-99999999999", "1e4294967297"} {
		if d, ok := Read(jsontext.Value(v)); ok {
			t.Errorf("%.20s is %v", v, d)
		}
	}
}
