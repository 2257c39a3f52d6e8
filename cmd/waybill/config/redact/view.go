package redact

import (
	"bytes"
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// view is a text as it reads when one layer of an encoding is taken away.
type view struct {
	text   []byte
	seams  []seam // in order
	parent *view  // nil for the text as it came
	depth  int
}

// seam is a place where the view says something else than its parent.
type seam struct {
	at, n         int32 // in the view
	parent, width int32 // what stood there in the parent
}

// reading is what one thing stands for: at most one rune.
type reading struct {
	b [utf8.UTFMax]byte
	n int
}

func one(c byte) reading { return reading{[utf8.UTFMax]byte{c}, 1} }

func char(r rune) (out reading) {
	out.n = utf8.EncodeRune(out.b[:], r)
	return out
}

// layer finds the first thing at or after i that reads otherwise: from where to
// where, and what it stands for. from is negative if there is nothing more.
type layer func(b []byte, i int) (from, to int, reads reading)

// under returns v without a layer; nil if nothing changes.
func (v *view) under(take layer) *view {
	from, to, reads := take(v.text, 0)
	if from < 0 {
		return nil
	}
	out := &view{parent: v, depth: v.depth + 1, text: make([]byte, 0, len(v.text))}
	done := 0
	for from >= 0 {
		out.text = append(out.text, v.text[done:from]...)
		out.seams = append(out.seams, seam{int32(len(out.text)), int32(reads.n), int32(from), int32(to - from)})
		out.text = append(out.text, reads.b[:reads.n]...)
		done = to
		from, to, reads = take(v.text, done)
	}
	out.text = append(out.text, v.text[done:]...)
	return out
}

// origin maps a part of the view to the text as it came.
func (v *view) origin(s span) span {
	for ; v.parent != nil; v = v.parent {
		first, _ := v.back(s.from)
		_, last := v.back(s.to - 1)
		s = span{first, last}
	}
	return s
}

// back says where in the parent that stood which one byte of the view reads from.
func (v *view) back(i int) (from, to int) {
	n := sort.Search(len(v.seams), func(k int) bool { return int(v.seams[k].at) > i })
	if n == 0 {
		return i, i + 1
	}
	s := v.seams[n-1]
	end := int(s.parent + s.width)
	if past := i - int(s.at+s.n); past >= 0 {
		return end + past, end + past + 1
	}
	return int(s.parent), end
}

// escapes is the layer of JSON's escapes, and of \xNN and \' that languages add.
func escapes(b []byte, i int) (from, to int, reads reading) {
	for {
		n := bytes.IndexByte(b[i:], '\\')
		if n < 0 {
			return -1, 0, reading{}
		}
		i += n
		if reads, width := escape(b[i:]); width > 0 {
			return i, i + width, reads
		}
		i++
	}
}

const (
	escapedAs = `"\/'bfnrt`
	escapesTo = "\"\\/'\b\f\n\r\t"
)

// escape reads the escape that b begins with; width is 0 if it is none.
func escape(b []byte) (reads reading, width int) {
	if len(b) < 2 {
		return reading{}, 0
	}
	switch b[1] {
	case 'u':
		return unicodeEscape(b)
	case 'x':
		if c, ok := number(b, 2, 2); ok {
			return one(byte(c)), 4
		}
		return reading{}, 0
	}
	if n := strings.IndexByte(escapedAs, b[1]); n >= 0 {
		return one(escapesTo[n]), 2
	}
	return reading{}, 0
}

// unicodeEscape reads \uNNNN or two of them that are a surrogate pair.
func unicodeEscape(b []byte) (reads reading, width int) {
	r, ok := number(b, 2, 4)
	if !ok {
		return reading{}, 0
	}
	if !utf16.IsSurrogate(r) {
		return char(r), 6
	}
	if len(b) < 8 || b[6] != '\\' || b[7] != 'u' {
		return reading{}, 0
	}
	low, _ := number(b, 8, 4)
	if whole := utf16.DecodeRune(r, low); whole != utf8.RuneError {
		return char(whole), 12
	}
	return reading{}, 0
}

// number reads hexadecimal digits.
func number(b []byte, at, digits int) (n rune, ok bool) {
	if len(b) < at+digits {
		return 0, false
	}
	for _, c := range b[at : at+digits] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		n = n<<4 | rune(c)
	}
	return n, true
}

// percents is the layer of URLs.
func percents(b []byte, i int) (from, to int, reads reading) {
	for {
		n := bytes.IndexByte(b[i:], '%')
		if n < 0 {
			return -1, 0, reading{}
		}
		i += n
		if c, ok := number(b, i+1, 2); ok {
			return i, i + 3, one(byte(c))
		}
		i++
	}
}

// breaks is the layer of line breaks, with the blanks around them.
func breaks(b []byte, i int) (from, to int, reads reading) {
	n := bytes.IndexByte(b[i:], '\n')
	if n < 0 {
		return -1, 0, reading{}
	}
	from, to = i+n, i+n+1
	for from > i && isBlank(b[from-1]) {
		from--
	}
	for to < len(b) && (isBlank(b[to]) || b[to] == '\n') {
		to++
	}
	return from, to, reading{}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }
