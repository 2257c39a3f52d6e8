package schema

import (
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestPatterns judges texts as ECMA-262 reads the pattern. A pattern without
// any is left unchecked.
func TestPatterns(t *testing.T) {
	for _, row := range []struct {
		pattern         string
		matches, others []string
	}{
		{`b`, []string{"abc"}, []string{"", "ac"}},
		{`^b$`, []string{"b"}, []string{"b\n", "a\nb"}},
		{`^\s+$`, []string{" \t\n\v\f\r\u00a0\u1680\u2003\u2028\u202f\u3000\ufeff"}, []string{"", "\u200b", "\u0085"}},
		{`^\S$`, []string{"a", "\u200b"}, []string{"\u00a0", "\v"}},
		{`^[\s,]$`, []string{",", "\u00a0"}, []string{"a"}},
		{`^[^\s,]$`, []string{"a"}, []string{",", "\u00a0"}},
		{`^.$`, []string{"a", "😀", "\u0085"}, []string{"\n", "\r", "\u2028"}},
		{`^[.]$`, []string{"."}, []string{"a"}},
		{`^\.$`, []string{"."}, []string{"a"}},
		{`^[[:alpha:]]$`, []string{"[]", ":]", "a]"}, []string{"b", "b]"}},
		{`^[a\]]$`, []string{"]", "a"}, []string{"b"}},
		{`^\u00e4\u{1f600}$`, []string{"ä😀"}, []string{"u00e4"}},
		{`^[\u0061-\u0063]$`, []string{"b"}, []string{"d"}},
		{`^\d\D\w\W$`, []string{"1a_-"}, []string{"١a_-", "1aä-"}},
		{`\bb\B`, []string{"a bc"}, []string{"ab c", "b"}},
		{`^\x41\0\/\-\$$`, []string{"A\x00/-$"}, []string{"A0/-$"}},
		{`^\p{Lu}\P{L}$`, []string{"Ä1"}, []string{"ä1", "ÄÄ"}},
		{`^(?:a|(?<n>b))+?$`, []string{"ab"}, []string{"c"}},
		{`^a{2,3}$`, []string{"aa"}, []string{"a", "aaaa"}},
		{`(?i)a`, nil, nil},
		{`(?i:a)`, nil, nil},
		{`(?P<n>a)`, nil, nil},
		{`(?=a)`, nil, nil},
		{`(?!a)`, nil, nil},
		{`(?<=a)b`, nil, nil},
		{`(a)\1`, nil, nil},
		{`(?<n>a)\k<n>`, nil, nil},
		{`\Aa\z`, nil, nil},
		{`\Qa\E`, nil, nil},
		{`\cA`, nil, nil},
		{`[]`, nil, nil},
		{`[^]`, nil, nil},
		{`[\S]`, nil, nil},
		{`\ud83d\ude00`, nil, nil},
		{`\u12`, nil, nil},
		{`\u12}4a`, nil, nil},
		{`\u{`, nil, nil},
		{`\u{110000}`, nil, nil},
		{`a\`, nil, nil},
		{`a{1001}`, nil, nil},
	} {
		t.Run(row.pattern, func(t *testing.T) {
			s := Compile(jsontext.Value(`{"pattern":` + quote(t, row.pattern) + `}`))
			if unchecked := s.Reason() == reasonPattern; unchecked != (row.matches == nil) {
				t.Fatalf("the reason is %q", s.Reason())
			}
			for _, text := range row.matches {
				if got := s.Check(structured(quote(t, text))); got != Valid {
					t.Errorf("%q is %s", text, got)
				}
			}
			for _, text := range row.others {
				if got := s.Check(structured(quote(t, text))); got != Invalid {
					t.Errorf("%q is %s", text, got)
				}
			}
		})
	}
}

func quote(t *testing.T, text string) string {
	t.Helper()
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		t.Fatal(err)
	}
	return string(quoted)
}

// TestSizeOfPatterns compares what is found before with what is compiled.
func TestSizeOfPatterns(t *testing.T) {
	for _, pattern := range []string{`a`, `abc`, `^a*b+c?$`, `a{7}`, `a{3,}`, `a{0,9}`, `(a{9}){9}`, `((a|b){2,5}c){1,4}`, `[a-z0-9]{40}`, `x{0}`,
		`(?:a?){50}a{50}`, `\bfoo\b|bar`, `.*.*.*`, `((((a))))`, strings.Repeat("(a{2}|", 5) + "b" + strings.Repeat("){2}", 5)} {
		tree, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		size := sizeOf(tree)
		program, err := syntax.Compile(tree.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if real := len(program.Inst) - 2; real > 2*size || size > 4*real+4 { // but for the first and the last
			t.Errorf("%s: found %d instructions, and there are %d", pattern, size, real)
		}
	}
}

// TestLocations: places are written as the library writes them, or it could
// not be told where it goes.
func TestLocations(t *testing.T) {
	for _, name := range []string{"a", "", "a/b", "~", "~1", "%", "%41", "a b", "ä", "\"", "#", "?", "\\", "\u2028", "+", "&=", ":", "@"} {
		quoted := quote(t, name)
		ref := strings.TrimPrefix(child("#", name), "#")
		s := Compile(jsontext.Value(`{"items":{"$ref":` + quote(t, "#/$defs"+ref) + `},"properties":{` + quoted + `:{"type":"string"}},"$defs":{` + quoted + `:{"type":"string"}}}`))
		if s.Reason() != "" {
			t.Errorf("%q: %s", name, s.Reason())
		}
		for value, want := range map[string]Verdict{`["b"]`: Valid, `[1]`: Invalid, `{` + quoted + `:"b"}`: Valid, `{` + quoted + `:1}`: Invalid} {
			if got := s.Check(structured(value)); got != want {
				t.Errorf("%q: %s is %s", name, value, got)
			}
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{1, 100} {
		raw := jsontext.Value(`{"type":"object","properties":{` + items(n, `"p%d":{"type":"string","description":"what it is"}`) + `}}`)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				if s := Compile(raw); s.Reason() != "" {
					b.Fatal(s.Reason())
				}
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	s := Compile(jsontext.Value(`{"type":"object","required":["rows"],"properties":{"rows":{"type":"array","items":{"$ref":"#/$defs/row"}}},
		"$defs":{"row":{"type":"object","required":["id","name"],"additionalProperties":false,"properties":{"id":{"type":"integer","minimum":0},
		"name":{"type":"string","maxLength":100},"price":{"type":"number"},"tags":{"type":"array","items":{"type":"string"}},
		"parent":{"anyOf":[{"type":"null"},{"type":"string"}]}}}}}`))
	const row = `{"id":%d,"name":"a name of some length","price":12.5,"tags":["one","two"],"parent":null}`
	for _, size := range []int{1 << 10, 100 << 10} {
		result := structured(`{"rows":` + list(size/len(row), row) + `}`)
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(result)))
			b.ReportAllocs()
			for b.Loop() {
				if got := s.Check(result); got != Valid {
					b.Fatal(got)
				}
			}
		})
	}
}
