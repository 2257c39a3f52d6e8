package redact

import (
	"bytes"
	"slices"
)

// span is a part of a text, from one offset up to another.
type span struct{ from, to int }

// pattern is one spelling of a secret.
type pattern struct {
	text   []byte
	base64 bool // its neighbours may hold a part of the secret
}

// matcher looks for many patterns at once, as Wu and Manber do: the two bytes at
// the end of a window say how far the window can move on without passing over a
// pattern.
type matcher struct {
	window int
	shift  [1 << 16]uint8
	ending map[uint16][]pattern // by the last two bytes of the window
}

// newMatcher takes patterns of at least MinSecret bytes each.
func newMatcher(patterns []pattern) *matcher {
	m := &matcher{window: 255, ending: make(map[uint16][]pattern)}
	for _, p := range patterns {
		m.window = min(m.window, len(p.text))
	}
	for i := range m.shift {
		m.shift[i] = uint8(m.window - 1)
	}
	for _, p := range patterns {
		for i := 0; i+1 < m.window; i++ {
			at := pair(p.text, i)
			m.shift[at] = min(m.shift[at], uint8(m.window-2-i))
		}
		last := pair(p.text, m.window-2)
		m.ending[last] = append(m.ending[last], p)
	}
	return m
}

func pair(b []byte, i int) uint16 { return uint16(b[i])<<8 | uint16(b[i+1]) }

// find calls hit with each place of a pattern.
func (m *matcher) find(b []byte, hit func(span)) {
	var run span // of base64, the last one
	for end := m.window; end <= len(b); {
		last := pair(b, end-2)
		if far := m.shift[last]; far > 0 {
			end += int(far)
			continue
		}
		start := end - m.window
		for _, p := range m.ending[last] {
			at := span{start, start + len(p.text)}
			if !bytes.HasPrefix(b[start:], p.text) || run.from <= at.from && at.to <= run.to {
				continue
			}
			if p.base64 {
				at = wholeRun(b, at)
				run = at
			}
			hit(at)
		}
		end++
	}
}

// wholeRun widens a span to the whole run of base64 around it: its other
// characters may be shared with the secret.
func wholeRun(b []byte, s span) span {
	for s.from > 0 && isBase64[b[s.from-1]] {
		s.from--
	}
	for s.to < len(b) && (isBase64[b[s.to]] || b[s.to] == '=') {
		s.to++
	}
	return s
}

var isBase64 = func() (set [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_") {
		set[c] = true
	}
	return set
}()

// union sorts spans and joins those that overlap.
func union(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}
