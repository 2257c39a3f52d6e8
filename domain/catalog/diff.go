package catalog

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxLines = 20
	maxLine  = 240 // bytes
)

// What is said of two definitions as a whole.
const (
	onlySpelling = "only white space, the order of members or the spelling of characters is another"
	notJSON      = "one of the definitions is no JSON, and not the same bytes as the other"
)

// Diff says what changed between two definitions of one tool, for people: one
// line for each difference, first the path to it, then what was and what is, in
// ASCII. Members are compared by name, elements by position. Of long texts 80
// characters are shown, around the first difference. There are at most 20
// lines, of which the last may say how many there are more, and none is longer
// than 240 bytes. If all values are the same, but not the bytes, one line says
// so; the same bytes give none.
//
// Diff is total, gives the same lines for the same bytes, and takes time in
// proportion to their number, apart from sorting the names of members. It is
// safe for concurrent use.
func Diff(before, after jsontext.Value) []string {
	if bytes.Equal(before, after) {
		return nil
	}
	a, okA := parse(before)
	b, okB := parse(after)
	if !okA || !okB {
		return []string{notJSON}
	}
	var d differences
	d.compare(a, b)
	switch more := d.count - len(d.lines); {
	case d.count == 0:
		return []string{onlySpelling}
	case more > 0:
		d.lines[maxLines-1] = fmt.Sprintf("and %d more differences", more+1)
	}
	return d.lines
}

// differences are found in the order of the names that lead to them.
type differences struct {
	path  []string
	lines []string
	count int
}

// say adds a line. What it says is made only if there is room for it.
func (d *differences) say(what func() string) {
	if d.count++; d.count <= maxLines {
		d.lines = append(d.lines, place(d.path)+": "+what())
	}
}

func (d *differences) compare(a, b *value) {
	switch {
	case bytes.Equal(a.raw, b.raw):
	case a.kind == '{' && b.kind == '{':
		d.members(a.below, b.below)
	case a.kind == '[' && b.kind == '[':
		d.elements(a.below, b.below)
	case a.kind == '"' && b.kind == '"':
		if s, t := a.text(), b.text(); s != t {
			d.say(func() string { return changedText(s, t) })
		}
	default:
		d.say(func() string { return changedRaw(a.raw, b.raw) })
	}
}

// members compares two objects, whose members are sorted by name.
func (d *differences) members(a, b []*value) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].name < b[0].name:
			d.only(a[0], "removed ")
			a = a[1:]
		case len(a) == 0 || b[0].name < a[0].name:
			d.only(b[0], "added ")
			b = b[1:]
		default:
			d.path = append(d.path, a[0].name)
			d.compare(a[0], b[0])
			d.path = d.path[:len(d.path)-1]
			a, b = a[1:], b[1:]
		}
	}
}

func (d *differences) elements(a, b []*value) {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			d.only(b[i], "added ")
		case i >= len(b):
			d.only(a[i], "removed ")
		default:
			d.path = append(d.path, a[i].name)
			d.compare(a[i], b[i])
			d.path = d.path[:len(d.path)-1]
		}
	}
}

// only says that one side has a value that the other has not.
func (d *differences) only(v *value, word string) {
	d.path = append(d.path, v.name)
	d.say(func() string { return word + showRaw(v.raw, 0) })
	d.path = d.path[:len(d.path)-1]
}
