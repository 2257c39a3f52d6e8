package frame

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// maxToken is how much is kept of a name or a value at the top of a line: more than "id" takes with every letter escaped,
// and more than any id of ours.
const maxToken = 64

// scan finds the id of a message in a line that passes by in parts, and holds no more than a few bytes of it. It tells
// strings from structure and counts brackets, no more: a line that is broken deep inside may still have an id.
type scan struct {
	depth             int
	inString, escaped bool

	ended, broken bool // the one object of the line

	token  []byte // of the current name or value, what stands at the top
	over   bool   // there was more of it
	name   []byte
	named  bool // the current member's name has been read
	id     jsontext.Value
	seen   bool // an id, even one that is too long to be kept
	method bool
}

func (s *scan) feed(b []byte) {
	for _, c := range b {
		switch {
		case s.broken:
			return
		case s.inString:
			s.inside(c)
		default:
			s.outside(c)
		}
	}
}

// inside takes a byte of a string.
func (s *scan) inside(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.inString = false
	}
	s.keep(c)
}

// outside takes a byte between strings.
func (s *scan) outside(c byte) {
	switch {
	case c == ' ' || c == '\t' || c == '\r':
		s.keep(c)
	case s.ended || s.depth == 0 && c != '{':
		s.broken = true
	case c == '{' || c == '[':
		s.keep(c)
		s.depth++
	case c == '}' || c == ']':
		s.close(c)
	case s.depth == 1 && c == ':' && !s.named:
		s.name, s.named = bytes.Clone(s.token), true
		s.clear()
	case s.depth == 1 && c == ',':
		s.member()
	default:
		s.inString = c == '"'
		s.keep(c)
	}
}

func (s *scan) close(c byte) {
	s.depth--
	switch {
	case s.depth > 0:
		s.keep(c)
	case c == ']':
		s.broken = true
	default:
		s.member()
		s.ended = true
	}
}

// keep gathers what stands at the top, to its bound.
func (s *scan) keep(c byte) {
	switch {
	case s.depth != 1:
	case len(s.token) == maxToken:
		s.over = true
	default:
		s.token = append(s.token, c)
	}
}

func (s *scan) clear() { s.token, s.over = s.token[:0], false }

// member takes the end of a member. The same name twice is no message, so there is no id then.
func (s *scan) member() {
	name, err := jsontext.AppendUnquote(nil, bytes.TrimSpace(s.name))
	switch {
	case !s.named || err != nil:
	case string(name) == "method":
		s.method = true
	case string(name) == "id":
		s.broken = s.seen
		s.seen = true
		if !s.over {
			s.id = bytes.Clone(bytes.TrimSpace(s.token))
		}
	}
	s.name, s.named = nil, false
	s.clear()
}

// answerID is the id of the line, if it may be an answer; else nil.
func (s *scan) answerID() jsontext.Value {
	if !s.ended || s.broken || s.method {
		return nil
	}
	return s.id
}
