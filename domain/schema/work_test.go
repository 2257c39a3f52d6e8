package schema

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// counted is a schema whose evaluations by the library are counted.
type counted struct {
	*Schema
	evaluations *int
}

// count compiles a schema and has the library say when it evaluates a part of
// it. It can do so where a format is checked, which is after the type.
func count(t *testing.T, raw string) counted {
	t.Helper()
	doc, reason := readSchema(jsontext.Value(raw))
	if reason != "" {
		t.Fatal(reason)
	}
	s, reason := surveyOf(doc)
	if reason != "" {
		t.Fatal(reason)
	}
	c, reason := compile(doc, s)
	if reason != "" {
		t.Fatal(reason)
	}
	g, reason := graphOf(c, s)
	if reason != "" {
		t.Fatal(reason)
	}
	evaluations := new(int)
	for s := range g.nodes {
		s.Format = &jsonschema.Format{Name: "counted", Validate: func(any) error { *evaluations++; return nil }}
	}
	return counted{&Schema{inverse: c.inverse, start: g.start}, evaluations}
}

// steps is what the walk over a value counts, without a limit.
func (c counted) steps(v any) int {
	w := work{left: math.MaxInt}
	w.affords(c.start, v)
	return math.MaxInt - w.left
}

// TestStepsBoundTheLibrary: the library never evaluates more than was counted
// before.
func TestStepsBoundTheLibrary(t *testing.T) {
	for _, row := range append(rows, referenceRows...) {
		t.Run(row.name, func(t *testing.T) {
			c := count(t, row.schema)
			for _, value := range append(row.valid, row.invalid...) {
				c.bounded(t, value)
			}
		})
	}
}

func (c counted) bounded(t *testing.T, value string) {
	t.Helper()
	v, reason := readValue(jsontext.Value(value))
	if reason != "" {
		t.Fatal(reason)
	}
	*c.evaluations = 0
	c.judge(v)
	if steps := c.steps(v); *c.evaluations > steps {
		t.Errorf("%.200s: the library made %d evaluations, and %d steps were counted", value, *c.evaluations, steps)
	}
}

// TestStepsAreNotFarOff: a count that is much too high would leave honest
// values unchecked.
func TestStepsAreNotFarOff(t *testing.T) {
	for _, row := range []struct{ schema, value string }{
		{`{"items":{"required":["a"],"properties":{"a":{"type":"integer"},"b":{"type":["string","null"]}}}}`, list(1000, `{"a":%d,"b":"c"}`)},
		{`{"items":{"anyOf":[{"properties":{"a":{}}},{"type":"string"}]}}`, list(1000, `{"a":%d}`)},
		{`{"properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}},"additionalProperties":{"type":"number"}}`,
			nest(30, `{"left":*,"right":{"a":1}}`, `{}`)},
		{`{"items":{"patternProperties":{"^[a-z]+$":{"pattern":"^[a-z]"}},"additionalProperties":false}}`, list(1000, `{"abc":"def"}`)},
	} {
		c := count(t, row.schema)
		c.bounded(t, row.value)
		v, _ := readValue(jsontext.Value(row.value))
		if got := c.Check(structured(row.value)); got != Valid {
			t.Errorf("%s: %s", row.schema, got)
		}
		if steps := c.steps(v); steps > 6**c.evaluations {
			t.Errorf("%s: %d steps for %d evaluations", row.schema, steps, *c.evaluations)
		}
	}
}

// A bomb is a schema that keeps to all bounds on schemas, with a value that
// keeps to all bounds on values, that together are too much work.
type bomb struct{ name, schema, value string }

var bombs = []bomb{
	{"recursion twice in a member", `{"properties":{"a":{"$ref":"#"}},"patternProperties":{"a":{"$ref":"#"}}}`, nest(40, `{"a":*}`, `1`)},
	{"recursion in two branches", `{"type":["object","null"],"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`,
		nest(40, `{"a":*}`, `1`)},
	{"recursion in branches that fail", `{"not":{"anyOf":[{"items":{"$ref":"#"},"minItems":9},{"items":{"$ref":"#"},"minItems":9},{"type":"string"}]}}`,
		nest(40, `[*]`, `1`)},
	{"recursion in items and contains", `{"items":{"$ref":"#"},"contains":{"$ref":"#"}}`, nest(40, `[*]`, `[1]`)},
	{"recursion in what is left over", `{"properties":{"b":true},"unevaluatedProperties":{"$ref":"#/$defs/a"},
		"$defs":{"a":{"unevaluatedProperties":{"$ref":"#"},"anyOf":[{"additionalProperties":{"$ref":"#"}}]}}}`, nest(60, `{"a":*}`, `1`)},
	{"dynamic recursion", `{"$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n"}},"additionalProperties":{"$ref":"#"},
		"allOf":[{"properties":{"a":{"$dynamicRef":"#n"}}}]}`, nest(40, `{"a":*}`, `1`)},
	{"many branches on many items", `{"items":{"anyOf":[` + items(100, `{"const":%d}`) + `]}}`, list(50_000, `7`)},
	{"a long chain on many items", `{"items":{"$ref":"#/$defs/d0"},"$defs":{` + chain(400, `true`) + `}}`, list(2000, `7`)},
	{"a long enumeration on many items", `{"items":{"enum":` + list(5000, `%d`) + `}}`, list(1000, `7`)},
	{"an enumeration of trees on many items", `{"items":{"enum":` + list(100, `[[[%d]]]`) + `}}`, list(10_000, `[[[7]]]`)},
	{"unique objects", `{"uniqueItems":true}`, list(5000, `{"a":%d}`)},
	{"unique objects below", `{"items":{"items":{"uniqueItems":true}}}`, `[[` + list(4000, `[%d]`) + `]]`},
	{"long numbers", `{"items":{"multipleOf":1e-400,"minimum":0}}`, list(20_000, `0.123456789e-400`)},
	{"a pattern on a long text", `{"pattern":"(a?){500}a{500}"}`, padded(100_000, `"*"`)},
	{"patterns on names", `{"patternProperties":{"(a?){500}a{500}b":true}}`, padded(100_000, `{"*":1}`)},
	{"a long text again and again", `{"anyOf":[` + items(200, `{"minLength":2000000}`) + `]}`, padded(1_000_000, `"*"`)},
	{"required members on many objects", `{"items":{"required":` + list(4000, `"a%d"`) + `}}`, list(5000, `{}`)},
	{"account of many members", `{"allOf":[` + items(100, `{"title":"a"}`) + `],"unevaluatedProperties":false}`, `{` + names(20_000, `1`) + `}`},
	{"a deep stack", `{"items":{"$ref":"#/$defs/d0"},"$defs":{` + chain(100, `{"items":{"$ref":"#/$defs/d0"}}`) + `}}`, nest(60, `[*]`, `1`)},
}

// chain makes definitions each of which refers to the next one, and a last one.
func chain(n int, last string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
	}
	fmt.Fprintf(&b, `"d%d":%s`, n, last)
	return b.String()
}

// TestBombs: what would take the library long is not begun. The walk ends
// within its steps, and the library evaluates nothing.
func TestBombs(t *testing.T) {
	for _, b := range bombs {
		t.Run(b.name, func(t *testing.T) {
			c := count(t, b.schema)
			if got := c.Check(structured(b.value)); got != Unchecked {
				t.Errorf("the verdict is %s", got)
			}
			if *c.evaluations != 0 {
				t.Errorf("the library made %d evaluations", *c.evaluations)
			}
			if v, reason := readValue(jsontext.Value(b.value)); reason != "" {
				t.Errorf("refused before any work, the value counts for nothing here: %s", reason)
			} else if got := Compile(jsontext.Value(`{}`)).judge(v); got != Valid {
				t.Errorf("under an empty schema it is %s", got)
			}
		})
	}
}

// TestLastStep: the limit is exact, on both sides.
func TestLastStep(t *testing.T) {
	c := count(t, `{"items":{"$ref":"#/$defs/a"},"$defs":{"a":{"properties":{"b":{"minimum":1}}}}}`)
	v, _ := readValue(jsontext.Value(`[{"b":2},{"b":3}]`))
	steps := c.steps(v)
	for left, want := range map[int]bool{steps: true, steps - 1: false, 0: false} {
		if w := (work{left: left}); w.affords(c.start, v) != want {
			t.Errorf("%d of %d steps suffice: %t", left, steps, !want)
		}
	}
}

// TestScope: evaluations stand in one another no deeper than the limit, which
// takes the depth of the value and chains of references together. Here there
// are twenty to a level.
func TestScope(t *testing.T) {
	s := Compile(jsontext.Value(`{"$ref":"#/$defs/d0","$defs":{` + chain(19, `{"items":{"$ref":"#/$defs/d1"}}`) + `}}`))
	if s.Reason() != "" {
		t.Fatal(s.Reason())
	}
	for depth, want := range map[int]Verdict{maxScope / 20: Valid, maxScope/20 + 1: Unchecked} {
		if got := s.Check(structured(nest(depth, `[*]`, ``))); got != want {
			t.Errorf("at depth %d it is %s, want %s", depth, got, want)
		}
	}
}
