package redact

import "slices"

// maxWide bounds the secrets that reach over several values of one text: what
// has more of them is taken out whole.
const maxWide = 64

// edit is a part of a JSON text and what stands there instead.
type edit struct {
	span
	quoted bool // a whole value goes
}

// replaceJSON puts Word where secrets are in one valid JSON value, so that the
// result is one too.
func replaceJSON(b []byte, spans []span) []byte {
	edits, wide := narrow(b, spans)
	if len(wide) > 0 {
		edits = append(edits, enclosing(b, wide)...)
		edits = outermost(edits)
	}
	out := make([]byte, 0, len(b))
	done := 0
	for _, e := range edits {
		out = append(out, b[done:e.from]...)
		if e.quoted {
			out = append(out, `"`+Word+`"`...)
		} else {
			out = append(out, Word...)
		}
		done = e.to
	}
	return append(out, b[done:]...)
}

// narrow finds the edits for spans that lie in one token, and lists the others.
func narrow(b []byte, spans []span) (edits []edit, wide []span) {
	at := 0
	for i := 0; i < len(b) && at < len(spans); {
		token := span{i, i + tokenLen(b[i:])}
		i = token.to
		for at < len(spans) && spans[at].from < token.to {
			e, ok := within(b, token, spans[at])
			switch {
			case !ok:
				wide = append(wide, spans[at])
			case len(edits) == 0 || edits[len(edits)-1].to <= e.from:
				edits = append(edits, e)
			default: // both were widened to one escape, or are in one number
				edits[len(edits)-1].to = max(edits[len(edits)-1].to, e.to)
			}
			at++
		}
	}
	return edits, wide
}

// within is the edit for a span inside a token; false if it is not inside.
func within(b []byte, token, s span) (edit, bool) {
	switch c := b[token.from]; {
	case s.to > token.to:
		return edit{}, false
	case c == '"':
		if s.from == token.from || s.to == token.to {
			return edit{}, false // it holds a quotation mark that is none of its own
		}
		return edit{span: aligned(b, token, s)}, true
	case isWord(c):
		return edit{token, true}, true
	}
	return edit{}, false
}

// aligned widens a span, so that no escape is cut in two.
func aligned(b []byte, token, s span) span {
	if from, _, cut := escapeAround(b, token.from+1, s.from); cut {
		s.from = from
	}
	if _, to, cut := escapeAround(b, token.from+1, s.to); cut {
		s.to = to
	}
	return s
}

// escapeAround finds the escape that has i inside it, in a string whose text
// begins at start.
func escapeAround(b []byte, start, i int) (from, to int, ok bool) {
	for from = i - 1; from >= max(start, i-5); from-- {
		if b[from] != '\\' {
			continue
		}
		before := from
		for before > start && b[before-1] == '\\' {
			before--
		}
		if (from-before)%2 != 0 {
			continue // escaped itself
		}
		to = from + 2
		if b[from+1] == 'u' {
			to = from + 6
		}
		return from, to, i < to
	}
	return 0, 0, false
}

// enclosing finds the smallest object or array around each span.
func enclosing(b []byte, spans []span) []edit {
	all := edit{span{0, len(b)}, true}
	if len(spans) > maxWide {
		return []edit{all}
	}
	edits := slices.Repeat([]edit{all}, len(spans))
	var open []int
	for i := 0; i < len(b); {
		switch b[i] {
		case '{', '[':
			open = append(open, i)
		case '}', ']':
			value := span{open[len(open)-1], i + 1}
			open = open[:len(open)-1]
			for k, s := range spans {
				if value.from <= s.from && s.to <= value.to && value.to-value.from < edits[k].to-edits[k].from {
					edits[k].span = value
				}
			}
		}
		i += tokenLen(b[i:])
	}
	return edits
}

// outermost sorts edits and drops those inside others.
func outermost(edits []edit) []edit {
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	out := edits[:0]
	for _, e := range edits {
		if n := len(out); n == 0 || out[n-1].to <= e.from {
			out = append(out, e)
		}
	}
	return out
}

// tokenLen is the length of what valid JSON begins with: a whole string, a run
// of a number or literal, or one byte of anything else.
func tokenLen(b []byte) int {
	if b[0] == '"' {
		for i := 1; i < len(b); i++ {
			switch b[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return len(b)
	}
	n := 0
	for n < len(b) && isWord(b[n]) {
		n++
	}
	return max(n, 1)
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c == 'E' || c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'
}
