package yamldoc

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Section is one mapping that is being read. The keys that are asked for are
// the keys it may have. What reads a value returns the default where the key is
// not there, and where the value is wrong, which is reported.
type Section struct {
	Doc    *Document
	Key    string // dotted, "" at the top
	Line   int
	Column int
	Values map[string]Entry
	Order  []string // of the keys; one that is taken out is not reported by End
	asked  []string
}

// Section makes one of a node. What is no mapping is reported and read as an
// empty one, so that the mistakes after it are found too.
func (d *Document) Section(n *Node, key string) *Section {
	s := &Section{Doc: d, Key: key, Values: make(map[string]Entry)}
	if n == nil {
		return s
	}
	s.Line, s.Column = n.Line, n.Column
	if n.Kind != Mapping && n.Kind != Broken {
		d.Fail(n.Line, n.Column, key, "must be %s, not %s", Mapping, n.Kind)
	}
	for _, e := range n.Entries {
		s.Values[e.Key] = e
		s.Order = append(s.Order, e.Key)
	}
	return s
}

// Fail reports a mistake in the value of a key, or in the section if the key is
// not there.
func (s *Section) Fail(name, format string, args ...any) {
	line, column := s.Line, s.Column
	if e, ok := s.Values[name]; ok {
		line, column = e.Value.Line, e.Value.Column
	}
	s.Doc.Fail(line, column, Join(s.Key, name), format, args...)
}

// Value returns the value of a key, nil if it is not there or has none.
func (s *Section) Value(name string) *Node {
	s.asked = append(s.asked, name)
	e, ok := s.Values[name]
	switch {
	case !ok:
		return nil
	case e.Value.Kind == Null:
		s.Doc.Fail(e.Line, e.Column, Join(s.Key, name), "has no value: give one, or take the key out")
		return nil
	case e.Value.Kind == Broken:
		return nil
	}
	return e.Value
}

// Typed is Value for one kind.
func (s *Section) Typed(name string, want Kind) *Node {
	n := s.Value(name)
	if n == nil || n.Kind == want {
		return n
	}
	s.Fail(name, "must be %s, not %s", want, n.Kind)
	return nil
}

// Has reports whether the file gives the key, rightly or wrongly.
func (s *Section) Has(name string) bool {
	_, ok := s.Values[name]
	return ok
}

// Ask says that a key may be there, whatever its value.
func (s *Section) Ask(name string) { s.asked = append(s.asked, name) }

// Refuse reports a key that has no place here, with the reason and what to do.
func (s *Section) Refuse(name, reason string) {
	if e, ok := s.Values[name]; ok {
		s.Doc.Fail(e.Line, e.Column, Join(s.Key, name), "%s", reason)
		s.Order = slices.DeleteFunc(s.Order, func(key string) bool { return key == name })
	}
}

// Under makes the section of a key whose value is a mapping, an empty one where
// the key is not there.
func (s *Section) Under(name string) *Section {
	return s.Doc.Section(s.Typed(name, Mapping), Join(s.Key, name))
}

// End reports the keys that nobody asked for.
func (s *Section) End() {
	for _, name := range s.Order {
		if slices.Contains(s.asked, name) {
			continue
		}
		e := s.Values[name]
		msg := "unknown key"
		if near := Nearest(name, s.asked); near != "" {
			msg += "; did you mean " + near + "?"
		}
		s.Doc.Fail(e.Line, e.Column, Join(s.Key, name), "%s", msg)
	}
}

// Text reads a text.
func (s *Section) Text(name, otherwise string) string {
	if n := s.Typed(name, Text); n != nil {
		return n.Text
	}
	return otherwise
}

// Boolean reads true or false.
func (s *Section) Boolean(name string, otherwise bool) bool {
	if n := s.Typed(name, Boolean); n != nil {
		return strings.EqualFold(n.Text, "true")
	}
	return otherwise
}

// Path reads the name of a file or folder. One that is empty is a mistake unless it
// is so by default.
func (s *Section) Path(name, otherwise string) string {
	value := s.Text(name, otherwise)
	if value == "" && otherwise != "" {
		s.Fail(name, "is empty: name a path, or take the key out")
	}
	if strings.ContainsRune(value, 0) {
		s.Fail(name, "contains a NUL byte, which no path can")
	}
	return value
}

// OneOf reads a choice; the first one is the default.
func (s *Section) OneOf(name string, choices ...string) string {
	value := s.Text(name, choices[0])
	if !slices.Contains(choices, value) {
		s.Fail(name, "%q is not one of %s", value, strings.Join(choices, ", "))
		return choices[0]
	}
	return value
}

// Number reads a whole number from low to high.
func (s *Section) Number(name string, otherwise, low, high int64) int64 {
	n := s.Typed(name, Integer)
	if n == nil {
		return otherwise
	}
	v, err := strconv.ParseInt(n.Text, 10, 64)
	if err != nil || v < low || v > high {
		s.Fail(name, "must be a whole number from %d to %d", low, high)
		return otherwise
	}
	return v
}

// Duration reads one from a millisecond to high.
func (s *Section) Duration(name string, otherwise, high time.Duration) time.Duration {
	return s.Bounded(name, otherwise, time.Millisecond, high, "")
}

// DurationOrNone is a duration that may be 0, for none.
func (s *Section) DurationOrNone(name string, otherwise, low, high time.Duration) time.Duration {
	if n := s.Values[name].Value; n != nil && (n.Kind == Integer || n.Kind == Text) {
		if v, err := ParseDuration(n.Text); err == nil && v == 0 {
			s.asked = append(s.asked, name)
			return 0
		}
	}
	return s.Bounded(name, otherwise, low, high, ", or 0 for none")
}

// Bounded reads a duration from low to high, in whole milliseconds. orNone stands
// at the end of what is said of another.
func (s *Section) Bounded(name string, otherwise, low, high time.Duration, orNone string) time.Duration {
	n := s.Value(name)
	if n == nil {
		return otherwise
	}
	v, err := ParseDuration(n.Text)
	switch {
	case n.Kind != Text || err != nil:
		s.Fail(name, "must be a duration such as 10s, 500ms or 2m%s", orNone)
	case v < low || v > high:
		s.Fail(name, "must be from %s to %s%s", Short(low), Short(high), orNone)
	case v%time.Millisecond != 0:
		s.Fail(name, "must be whole milliseconds")
	default:
		return v
	}
	return otherwise
}

// ParseDuration is time.ParseDuration that also knows whole days, as 30d.
func ParseDuration(t string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(t, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(t)
}

// Short writes a duration without its zero parts: 10m, not 10m0s.
func Short(d time.Duration) string {
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.String())
}

// Rate reads a number of things a second, 0 for no limit.
func (s *Section) Rate(name string, high float64) float64 {
	n := s.Value(name)
	if n == nil {
		return 0
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	if n.Kind != Integer && n.Kind != Decimal || err != nil || !(v == 0 || v >= 0.01 && v <= high) {
		s.Fail(name, "must be a number from 0.01 to %d, or 0 for no limit", int64(high))
		return 0
	}
	return v
}

var units = []struct {
	name string
	size int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}, {"", 1}}

// Size reads a number of bytes from low to high.
func (s *Section) Size(name string, otherwise, low, high int64) int64 {
	n := s.Value(name)
	if n == nil {
		return otherwise
	}
	v, ok := parseSize(n.Text)
	switch {
	case n.Kind != Text && n.Kind != Integer || !ok:
		s.Fail(name, "must be a size such as 16MiB, 512KiB or a number of bytes")
	case v < low || v > high:
		s.Fail(name, "must be from %s to %s", sizeText(low), sizeText(high))
	default:
		return v
	}
	return otherwise
}

func parseSize(t string) (int64, bool) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(t, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 63)
		if err != nil || int64(v) > math.MaxInt64/u.size {
			return 0, false
		}
		return int64(v) * u.size, true
	}
	return 0, false
}

func sizeText(v int64) string {
	if v%(1<<20) == 0 {
		return strconv.FormatInt(v>>20, 10) + "MiB"
	}
	return strconv.FormatInt(v>>10, 10) + "KiB"
}

// Texts reads a list of texts. Where numbers is true, a number or truth value
// stands for its text as written, so that [--port, 8080] needs no quotes.
func (s *Section) Texts(name string, numbers bool) []string {
	n := s.Typed(name, List)
	if n == nil {
		return nil
	}
	values := make([]string, 0, len(n.Items))
	for i, item := range n.Items {
		if item.Kind == Broken {
			continue // reported already
		}
		if !Scalar(item, numbers) {
			s.FailItem(name, i, "must be text, not %s", item.Kind)
			continue
		}
		if strings.ContainsRune(item.Text, 0) {
			s.FailItem(name, i, "contains a NUL byte")
			continue
		}
		values = append(values, item.Text)
	}
	return values
}

// Scalar reports a text, or with numbers what stands for its text as written.
func Scalar(n *Node, numbers bool) bool {
	return n.Kind == Text || numbers && (n.Kind == Integer || n.Kind == Decimal || n.Kind == Boolean)
}

// Distinct is Texts without repetitions, each of which must be valid.
func (s *Section) Distinct(name string, valid func(string) bool, want string) []string {
	values := s.Texts(name, false)
	if len(values) != s.Count(name) {
		return values // an item was no text: the indexes no longer agree
	}
	for i, v := range values {
		switch {
		case !valid(v):
			s.FailItem(name, i, "%q is not %s", v, want)
		case slices.Contains(values[:i], v):
			s.FailItem(name, i, "%q is listed twice", v)
		}
	}
	return values
}

// Count is the number of items of a list, 0 where the key is not there.
func (s *Section) Count(name string) int {
	if e, ok := s.Values[name]; ok {
		return len(e.Value.Items)
	}
	return 0
}

// FailItem reports a mistake in item i, from 0, of a list.
func (s *Section) FailItem(name string, i int, format string, args ...any) {
	item := s.Values[name].Value.Items[i]
	s.Doc.Fail(item.Line, item.Column, Join(s.Key, name)+"["+strconv.Itoa(i)+"]", format, args...)
}
