package peer

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

// decimal is a number as JSON writes it, exactly: 0.digits * 10^point, with no zero at either end of the digits. Zero has none.
type decimal struct {
	negative bool
	digits   string
	point    int64
}

// readDecimal reads a number; false if v is none, or one that is absurdly long or large.
func readDecimal(v jsontext.Value) (decimal, bool) {
	if v.Kind() != '0' || len(v) > maxNumber {
		return decimal{}, false
	}
	mantissa, exponent, scaled := strings.Cut(string(bytes.ToLower(v)), "e")
	power := int64(0)
	if scaled {
		var err error
		if power, err = strconv.ParseInt(exponent, 10, 64); err != nil || max(power, -power) > maxExponent {
			return decimal{}, false
		}
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	point := power + int64(len(whole)) - int64(len(whole+fraction)-len(digits))
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		return decimal{}, true
	}
	return decimal{negative, digits, point}, true
}

// less reports whether d is less than e.
func (d decimal) less(e decimal) bool {
	switch {
	case d.sign() != e.sign():
		return d.sign() < e.sign()
	case d.negative:
		return e.magnitude(d) < 0
	}
	return d.magnitude(e) < 0
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// magnitude compares without the signs, which are the same.
func (d decimal) magnitude(e decimal) int {
	return cmp.Or(cmp.Compare(d.point, e.point), strings.Compare(d.digits, e.digits))
}
