package decimal

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxNumber   = 256     // bytes of a number that is compared
	maxExponent = 1 << 32 // of a number that is compared
)

// Number is a number as JSON writes it, exactly: 0.digits * 10^point, with no zero at either end of the digits. Zero has none. Two
// that stand for the same are equal.
type Number struct {
	negative bool
	digits   string
	point    int64
}

// Read reads a number as JSON writes it; false if v is none, or one that is absurdly long or large.
func Read(v jsontext.Value) (Number, bool) {
	if v.Kind() != '0' || len(v) > maxNumber {
		return Number{}, false
	}
	mantissa, exponent, scaled := strings.Cut(string(bytes.ToLower(v)), "e")
	power := int64(0)
	if scaled {
		var err error
		if power, err = strconv.ParseInt(exponent, 10, 64); err != nil || max(power, -power) > maxExponent {
			return Number{}, false
		}
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	point := power + int64(len(whole)) - int64(len(whole+fraction)-len(digits))
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		return Number{}, true
	}
	return Number{negative, digits, point}, true
}

// Less reports whether d is less than e.
func (d Number) Less(e Number) bool {
	switch {
	case d.sign() != e.sign():
		return d.sign() < e.sign()
	case d.negative:
		return e.magnitude(d) < 0
	}
	return d.magnitude(e) < 0
}

func (d Number) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// magnitude compares without the signs, which are the same.
func (d Number) magnitude(e Number) int {
	return cmp.Or(cmp.Compare(d.point, e.point), strings.Compare(d.digits, e.digits))
}
