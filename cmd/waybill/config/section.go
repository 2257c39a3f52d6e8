package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A section is one mapping that is being read. The keys that are asked for are
// the keys it may have.
type section struct {
	doc    *document
	key    string // dotted, "" at the top
	line   int
	column int
	values map[string]entry
	order  []string
	asked  []string
}

// section makes one of a node. What is no mapping is reported and read as an
// empty one, so that the mistakes after it are found too.
func (d *document) section(n *node, key string) *section {
	s := &section{doc: d, key: key, values: make(map[string]entry)}
	if n == nil {
		return s
	}
	s.line, s.column = n.line, n.column
	if n.kind != mapping && n.kind != broken {
		d.fail(n.line, n.column, key, "must be %s, not %s", mapping, n.kind)
	}
	for _, e := range n.entries {
		s.values[e.key] = e
		s.order = append(s.order, e.key)
	}
	return s
}

// fail reports a mistake in the value of a key, or in the section if the key is
// not there.
func (s *section) fail(name, format string, args ...any) {
	line, column := s.line, s.column
	if e, ok := s.values[name]; ok {
		line, column = e.value.line, e.value.column
	}
	s.doc.fail(line, column, join(s.key, name), format, args...)
}

// value returns the value of a key, nil if it is not there or has none.
func (s *section) value(name string) *node {
	s.asked = append(s.asked, name)
	e, ok := s.values[name]
	switch {
	case !ok:
		return nil
	case e.value.kind == null:
		s.doc.fail(e.line, e.column, join(s.key, name), "has no value: give one, or take the key out")
		return nil
	case e.value.kind == broken:
		return nil
	}
	return e.value
}

// typed is value for one kind.
func (s *section) typed(name string, want kind) *node {
	n := s.value(name)
	if n == nil || n.kind == want {
		return n
	}
	s.fail(name, "must be %s, not %s", want, n.kind)
	return nil
}

// has reports whether the file gives the key, rightly or wrongly.
func (s *section) has(name string) bool {
	_, ok := s.values[name]
	return ok
}

// end reports the keys that nobody asked for.
func (s *section) end() {
	for _, name := range s.order {
		if slices.Contains(s.asked, name) {
			continue
		}
		e := s.values[name]
		msg := "unknown key"
		if near := nearest(name, s.asked); near != "" {
			msg += "; did you mean " + near + "?"
		}
		s.doc.fail(e.line, e.column, join(s.key, name), "%s", msg)
	}
}

func (s *section) text(name, otherwise string) string {
	if n := s.typed(name, text); n != nil {
		return n.text
	}
	return otherwise
}

func (s *section) boolean(name string, otherwise bool) bool {
	if n := s.typed(name, boolean); n != nil {
		return strings.EqualFold(n.text, "true")
	}
	return otherwise
}

// oneOf reads a choice; the first one is the default.
func (s *section) oneOf(name string, choices ...string) string {
	value := s.text(name, choices[0])
	if !slices.Contains(choices, value) {
		s.fail(name, "%q is not one of %s", value, strings.Join(choices, ", "))
		return choices[0]
	}
	return value
}

func (s *section) number(name string, otherwise, low, high int64) int64 {
	n := s.typed(name, integer)
	if n == nil {
		return otherwise
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil || v < low || v > high {
		s.fail(name, "must be a whole number from %d to %d", low, high)
		return otherwise
	}
	return v
}

func (s *section) duration(name string, otherwise, high time.Duration) time.Duration {
	return s.bounded(name, otherwise, time.Millisecond, high, "")
}

// durationOrNone is a duration that may be 0, for none.
func (s *section) durationOrNone(name string, otherwise, low, high time.Duration) time.Duration {
	if n := s.values[name].value; n != nil && (n.kind == integer || n.kind == text) {
		if v, err := ParseDuration(n.text); err == nil && v == 0 {
			s.asked = append(s.asked, name)
			return 0
		}
	}
	return s.bounded(name, otherwise, low, high, ", or 0 for none")
}

func (s *section) bounded(name string, otherwise, low, high time.Duration, orNone string) time.Duration {
	n := s.value(name)
	if n == nil {
		return otherwise
	}
	v, err := ParseDuration(n.text)
	switch {
	case n.kind != text || err != nil:
		s.fail(name, "must be a duration such as 10s, 500ms or 2m%s", orNone)
	case v < low || v > high:
		s.fail(name, "must be from %s to %s%s", short(low), short(high), orNone)
	case v%time.Millisecond != 0:
		s.fail(name, "must be whole milliseconds")
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

// short writes a duration without its zero parts: 10m, not 10m0s.
func short(d time.Duration) string {
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.String())
}

// rate reads a number of things a second, 0 for no limit.
func (s *section) rate(name string, high float64) float64 {
	n := s.value(name)
	if n == nil {
		return 0
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if n.kind != integer && n.kind != decimal || err != nil || !(v == 0 || v >= 0.01 && v <= high) {
		s.fail(name, "must be a number from 0.01 to %d, or 0 for no limit", int64(high))
		return 0
	}
	return v
}

var units = []struct {
	name string
	size int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}, {"", 1}}

func (s *section) size(name string, otherwise, low, high int64) int64 {
	n := s.value(name)
	if n == nil {
		return otherwise
	}
	v, ok := parseSize(n.text)
	switch {
	case n.kind != text && n.kind != integer || !ok:
		s.fail(name, "must be a size such as 16MiB, 512KiB or a number of bytes")
	case v < low || v > high:
		s.fail(name, "must be from %s to %s", sizeText(low), sizeText(high))
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

// texts reads a list of texts. Where numbers is true, a number or truth value
// stands for its text as written, so that [--port, 8080] needs no quotes.
func (s *section) texts(name string, numbers bool) []string {
	n := s.typed(name, list)
	if n == nil {
		return nil
	}
	values := make([]string, 0, len(n.items))
	for i, item := range n.items {
		if item.kind == broken {
			continue // reported already
		}
		if !scalar(item, numbers) {
			s.failItem(name, i, "must be text, not %s", item.kind)
			continue
		}
		if strings.ContainsRune(item.text, 0) {
			s.failItem(name, i, "contains a NUL byte")
			continue
		}
		values = append(values, item.text)
	}
	return values
}

func scalar(n *node, numbers bool) bool {
	return n.kind == text || numbers && (n.kind == integer || n.kind == decimal || n.kind == boolean)
}

// distinct is texts without repetitions, each of which must be valid.
func (s *section) distinct(name string, valid func(string) bool, want string) []string {
	values := s.texts(name, false)
	if len(values) != s.count(name) {
		return values // an item was no text: the indexes no longer agree
	}
	for i, v := range values {
		switch {
		case !valid(v):
			s.failItem(name, i, "%q is not %s", v, want)
		case slices.Contains(values[:i], v):
			s.failItem(name, i, "%q is listed twice", v)
		}
	}
	return values
}

func (s *section) count(name string) int {
	if e, ok := s.values[name]; ok {
		return len(e.value.items)
	}
	return 0
}

func (s *section) failItem(name string, i int, format string, args ...any) {
	item := s.values[name].value.items[i]
	s.doc.fail(item.line, item.column, join(s.key, name)+"["+strconv.Itoa(i)+"]", format, args...)
}

// nearest finds the known name that a misspelt one most likely means.
func nearest(name string, known []string) string {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	for _, k := range known {
		if len(k) > 3 && oneSlip(name, k) {
			return k
		}
	}
	return ""
}

// oneSlip is true where at most one letter is missing, added or another, or two
// neighbours have changed places.
func oneSlip(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}
