package schema

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// program is one compiled pattern, with what matching costs.
type program struct {
	*regexp.Regexp
	size int // instructions, about
}

// programs compiles the patterns of one schema, each once, within a bound on
// all of them.
type programs struct {
	made    map[string]*program
	size    int
	refused bool
}

var errPattern = errors.New("pattern beyond what is matched")

func (p *programs) compile(pattern string) (jsonschema.Regexp, error) {
	if made := p.made[pattern]; made != nil {
		return made, nil
	}
	made, err := p.make(pattern)
	if err != nil {
		p.refused = true
		return nil, err
	}
	if p.made == nil {
		p.made = make(map[string]*program)
	}
	p.made[pattern] = made
	return made, nil
}

// make finds the size of a pattern before it is compiled, which is when
// repetitions are written out.
func (p *programs) make(pattern string) (*program, error) {
	if len(pattern) > maxPatternBytes {
		return nil, errPattern
	}
	text, ok := translate(pattern)
	if !ok {
		return nil, errPattern
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := sizeOf(tree)
	if p.size += size; p.size > maxProgram {
		return nil, errPattern
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &program{re, size}, nil
}

// sizeOf counts the instructions that a pattern compiles to, the ranges of its
// classes among them. The parser has bounded the product of nested repetitions
// to a thousand, so it does not overflow.
func sizeOf(re *syntax.Regexp) int {
	size := 1
	switch re.Op {
	case syntax.OpLiteral:
		size = len(re.Rune)
	case syntax.OpCharClass:
		size += len(re.Rune) / 16
	}
	for _, sub := range re.Sub {
		size += sizeOf(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= copies(re)
	}
	return size
}

// copies says how often a repetition writes out what it repeats. One without
// an upper end has a loop after its copies.
func copies(re *syntax.Regexp) int {
	if re.Max < 0 {
		return re.Min + 1
	}
	return max(re.Max, 1)
}

// What stands for \s, \S and the dot of ECMA-262, which know more kinds of
// white space and of line ends than RE2 does.
const (
	space = `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	lines = `\n\r\x{2028}\x{2029}`
)

// translate rewrites a pattern of ECMA-262 for RE2. It refuses what RE2 takes
// and ECMA-262 does not, or takes in another sense; what RE2 does not take is
// left for it to refuse.
func translate(pattern string) (text string, ok bool) {
	var out strings.Builder
	class := false
	for rest := pattern; rest != ""; {
		done := 1
		switch c := rest[0]; {
		case c == '\\':
			var as string
			if as, done, ok = escape(rest, class); !ok {
				return "", false
			}
			out.WriteString(as)
		case class && c == '[':
			out.WriteString(`\[`) // RE2 would look for [:alpha:]
		case c == '[':
			if body := strings.TrimPrefix(rest[1:], "^"); strings.HasPrefix(body, "]") {
				return "", false // the empty class, in RE2 one that begins with a bracket
			}
			class = true
			out.WriteByte(c)
		case !class && c == '.':
			out.WriteString("[^" + lines + "]")
		case !class && flagged(rest):
			return "", false
		default:
			class = class && c != ']'
			out.WriteByte(c)
		}
		rest = rest[done:]
	}
	return out.String(), true
}

// flagged finds groups that set flags or are otherwise RE2's own.
func flagged(rest string) bool {
	return strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:") && !strings.HasPrefix(rest, "(?<")
}

// escape translates the escape that a text begins with, and says how long it is.
func escape(rest string, class bool) (text string, length int, ok bool) {
	if len(rest) < 2 {
		return "", 0, false
	}
	c := rest[1]
	switch {
	case c == 's' && class:
		return space, 2, true
	case c == 's':
		return "[" + space + "]", 2, true
	case c == 'S' && !class:
		return "[^" + space + "]", 2, true
	case c == 'u':
		return unicodeEscape(rest)
	case c < 0x80 && !strings.ContainsRune("0bBdDfnrtvwWxpP", rune(c)) && (letter(c) || '1' <= c && c <= '9'):
		return "", 0, false
	}
	return rest[:2], 2, true
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// unicodeEscape takes \uXXXX and \u{X...}, but no half of a surrogate pair.
func unicodeEscape(rest string) (text string, length int, ok bool) {
	length = len(`\uXXXX`)
	if strings.HasPrefix(rest, `\u{`) {
		length = strings.IndexByte(rest, '}') + 1
	}
	if length == 0 || len(rest) < length {
		return "", 0, false
	}
	digits := strings.TrimSuffix(strings.TrimPrefix(rest[2:length], "{"), "}")
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || utf16.IsSurrogate(rune(n)) {
		return "", 0, false
	}
	return `\x{` + digits + `}`, length, true
}
