package schema

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// maker writes random schemas of one dialect, most of them almost right.
type maker struct {
	*rand.Rand
	draft string
	left  int // schemas that may still be made
}

func (m *maker) pick(all ...string) string { return all[m.IntN(len(all))] }

// dialects are the roots' "$schema", and how often it is there.
var dialects = []string{"", "", "", draft2020, draft2019, draft2019, draft7, draft7, `"$schema":"http://json-schema.org/draft-04/schema#"`}

func (m *maker) root() string {
	m.draft, m.left = m.pick(dialects...), 3+m.IntN(12)
	members := m.members(0)
	if m.draft != "" {
		members = append(members, m.draft)
	}
	defs := m.pick("$defs", "definitions")
	if m.draft == draft7 {
		defs = "definitions"
	}
	named := []string{`"a":` + m.schema(1), `"b c":` + m.schema(1), `"d/~":` + m.schema(1)}
	if !slices.ContainsFunc(members, func(s string) bool { return strings.HasPrefix(s, `"`+defs) }) && m.IntN(4) > 0 {
		members = append(members, strconv.Quote(defs)+`:{`+strings.Join(named[:m.IntN(4)], ",")+`}`)
	}
	m.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ",") + "}"
}

func (m *maker) schema(depth int) string {
	if m.left--; m.left < 0 || depth > 6 || m.IntN(12) == 0 {
		return m.pick("true", "false", "{}", `{"type":"string"}`)
	}
	return "{" + strings.Join(m.members(depth), ",") + "}"
}

// members are keywords, each once, one in a while with a value of a wrong kind.
func (m *maker) members(depth int) []string {
	all := slices.Sorted(maps.Keys(keywords))
	var members []string
	taken := map[string]bool{"$schema": true, "$vocabulary": true, "$recursiveAnchor": true}
	switch m.draft { // what the library reads, and the dialect does not
	case "", draft2020:
		taken["$recursiveRef"], taken["additionalItems"] = true, true
	case draft7:
		taken["$defs"] = true
	}
	for range m.IntN(5) {
		name := all[m.IntN(len(all))]
		if m.IntN(3) == 0 {
			name = m.pick("$ref", "properties", "items", "allOf", "required", "type", "$id", "$anchor", "if", "$dynamicRef", "$dynamicAnchor")
		}
		if taken[name] {
			continue
		}
		taken[name] = true
		members = append(members, strconv.Quote(name)+":"+m.value(name, depth))
	}
	return members
}

func (m *maker) value(name string, depth int) string {
	if m.IntN(60) == 0 && (name != "enum" || m.draft != draft7) { // the library wants more of those than the specification
		return m.pick("null", "1", "-1", `""`, "[]", "{}", "true", `["a","a"]`, `[1]`, `{"a":1}`)
	}
	switch keywords[name].shape {
	case anIdentifier:
		return m.pick(`"x"`, `"y/"`, `"https://example.com/a"`, `"urn:b:c"`, `"#e"`, `"z#"`, `"w#v"`)
	case aReference:
		return m.pick(`"#"`, `"#/$defs/a"`, `"#/$defs/b%20c"`, `"#/$defs/d~1~0"`, `"#/definitions/a"`, `"#/definitions/a/items"`, `"#/properties/a"`,
			`"#/allOf/0"`, `"#/items"`, `"#e"`, `"x"`, `"y/x"`, `"x#e"`, `"urn:b:c#/properties/a"`, `"https://example.com/a#"`, `"#/$defs/no"`, `"#/x-more/a"`, `"f.json"`)
	case anAnchor:
		return m.pick(`"e"`, `"e"`, `"g"`, `"_h"`, `"i:j"`, `"k.l-1"`)
	case aFlag:
		return m.pick("true", "false")
	case aNumber, aFactor, aCount:
		return m.pick("0", "1", "7", "2.0", "25e-1", "1e2", "1200e-2", "0.0e3", "-0", "-0.0", "-1", "0.5", "1234567890123456789")
	case aList:
		return m.pick(`["a"]`, `[1,{"$ref":"no"}]`)
	case someNames:
		return m.pick(`[]`, `["a"]`, `["a","b"]`, `["a","b","\u0061"]`)
	case someTypes:
		return m.pick(`"object"`, `"string"`, `["null","integer"]`, `["null","null"]`, `"any"`)
	case flagsByName:
		return `{}`
	case namesByName:
		return m.pick(`{}`, `{"a":["b"]}`, `{"a":[]}`, `{"a":"b"}`)
	}
	return m.below(keywords[name].shape, depth+1)
}

func (m *maker) below(s shape, depth int) string {
	switch {
	case s == schemas || s == schemaOrList && m.IntN(3) == 0:
		return "[" + m.schema(depth) + m.pick("", ","+m.schema(depth)) + "]"
	case s == schemasByName:
		return `{"a":` + m.schema(depth) + m.pick("", `,"b":`+m.schema(depth)) + "}"
	case s == schemaOrNames:
		return `{"a":` + m.schema(depth) + m.pick("", `,"b":["c"]`) + "}"
	case s == aString:
		return `"text"`
	}
	return m.schema(depth)
}

// TestInspectAgreesWithTheLibrary on random schemas: what compiles at every
// place is sound, and what is sound compiles.
func TestInspectAgreesWithTheLibrary(t *testing.T) {
	const seed1, seed2 = 20, 12
	random := rand.New(rand.NewPCG(seed1, seed2))
	seen, reasons := map[Fault]int{}, map[string]int{}
	for n := range 2000 {
		m := maker{Rand: random}
		raw := m.root()
		got, want := Inspect(jsontext.Value(raw)), oracle(raw)
		seen[got.Fault]++
		reasons[got.Reason]++
		if !agree(got, want) {
			t.Errorf("schema %d of seed %d, %d: %s is %+v, and %q for the library", n, seed1, seed2, raw, got, want)
		}
	}
	for _, fault := range []Fault{"", External, Foreign, Malformed} {
		if seen[fault] < 100 {
			t.Errorf("only %d of the schemas are %q: %v", seen[fault], fault, seen)
		}
	}
	for _, reason := range []string{reasonNothing, reasonTwice, reasonLoop} {
		if reasons[reason] == 0 {
			t.Errorf("for none of the schemas %q: %v", reason, reasons)
		}
	}
}

// agree allows for the order in which faults are found: the library stops at the
// first, and Inspect looks for references that lead outside above all. To the
// library a list of schemas is as good as one of them.
func agree(got Finding, library Fault) bool {
	switch {
	case got.Fault == External:
		return library != ""
	case got.Reason == reasonNone && library == "":
		return true
	}
	return got.Fault == library
}
