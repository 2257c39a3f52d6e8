package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// list makes an array of n items, each from its number.
func list(n int, format string) string { return "[" + items(n, format) + "]" }

// items makes n items, each from its number, or all alike if format has no verb.
func items(n int, format string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = format
		if strings.Contains(format, "%") {
			all[i] = strings.ReplaceAll(format, "%d", fmt.Sprint(i))
		}
	}
	return strings.Join(all, ",")
}

// nest puts a text into n others, each of which has it at the place of a star.
func nest(n int, around, inner string) string {
	before, after, _ := strings.Cut(around, "*")
	return strings.Repeat(before, n) + inner + strings.Repeat(after, n)
}

// padded makes a text of n bytes from one that has a star to be filled.
func padded(n int, text string) string {
	return strings.Replace(text, "*", strings.Repeat("a", n-len(text)+1), 1)
}

// names makes n names under which all are the same.
func names(n int, format string) string { return items(n, `"d%d":`+format) }

// boundRows has each bound with a schema that just keeps to it and one that just
// does not.
func boundRows() []struct{ name, in, out, reason string } {
	return []struct{ name, in, out, reason string }{
		{"bytes", padded(maxSchemaBytes, `{"title":"*"}`), padded(maxSchemaBytes+1, `{"title":"*"}`), reasonBytes},
		{"depth", nest(maxSchemaDepth-1, `{"not":*}`, `{}`), nest(maxSchemaDepth, `{"not":*}`, `{}`), reasonDepth},
		{"depth of what is no schema", `{"default":` + nest(maxSchemaDepth-1, `[*]`, ``) + `}`,
			`{"default":` + nest(maxSchemaDepth, `[*]`, ``) + `}`, reasonDepth},
		{"digits", `{"default":` + strings.Repeat("1", maxDigits) + `}`, `{"default":` + strings.Repeat("1", maxDigits+1) + `}`, reasonNumber},
		{"exponent", `{"maximum":1e400}`, `{"maximum":1e401}`, reasonNumber},
		{"negative exponent", `{"examples":[1E-400]}`, `{"examples":[1E-401]}`, reasonNumber},
		{"an exponent that is a bomb", `{"multipleOf":1e9}`, `{"multipleOf":1e1000000000}`, reasonNumber},
		{"an exponent beyond integers", `{"multipleOf":1e+0009}`, `{"multipleOf":1e99999999999999999999}`, reasonNumber},
		{"counts", `{"maxLength":9223372036854775807}`, `{"maxLength":9223372036854775808}`, reasonCount},
		{"counts below", `{"items":{"minItems":1e18}}`, `{"items":{"minItems":1e19}}`, reasonCount},
		{"objects", `{"x":` + list(maxSchemas-1, `{}`) + `}`, `{"x":` + list(maxSchemas, `{}`) + `}`, reasonSchemas},
		{"objects that are used", `{"allOf":` + list(maxSchemas-1, `{}`) + `}`, `{"allOf":` + list(maxSchemas, `{}`) + `}`, reasonSchemas},
		{"booleans", `{"x":` + list(maxSchemas-1, `true`) + `}`, `{"x":` + list(maxSchemas, `true`) + `}`, reasonSchemas},
		{"paths", `{"` + strings.Repeat("k", 1000) + `":` + list(1040, `{}`) + `}`, `{"` + strings.Repeat("k", 1000) + `":` + list(1050, `{}`) + `}`, reasonSchemas},
		{"references", `{"$defs":{` + names(maxRefs, `{}`) + `},"anyOf":` + list(maxRefs, `{"$ref":"#/$defs/d%d"}`) + `}`,
			`{"$defs":{` + names(maxRefs+1, `{}`) + `},"anyOf":` + list(maxRefs+1, `{"$ref":"#/$defs/d%d"}`) + `}`, reasonRefs},
		{"identifiers", `{"$defs":{` + names(maxIDs, `{"$id":"i%d"}`) + `}}`, `{"$defs":{` + names(maxIDs+1, `{"$id":"i%d"}`) + `}}`, reasonRefs},
		{"length of an identifier", `{"$id":"` + strings.Repeat("i", maxIDBytes) + `"}`, `{"$id":"` + strings.Repeat("i", maxIDBytes+1) + `"}`, reasonRefs},
		{"length of a pattern", `{"pattern":"` + strings.Repeat("a", maxPatternBytes) + `"}`, `{"pattern":"` + strings.Repeat("a", maxPatternBytes+1) + `"}`, reasonPattern},
		{"size of a pattern", `{"pattern":"(?:aaaaaaaaaaaaaaaaaaa){1000}"}`, `{"pattern":"(?:aaaaaaaaaaaaaaaaaaaa){1000}"}`, reasonPattern},
		{"size of all patterns", `{"patternProperties":{` + items(9, `"a{1000}b%d":true`) + `}}`, `{"patternProperties":{` + items(10, `"a{1000}b%d":true`) + `}}`, reasonPattern},
		{"evaluations", fan(maxSteps), fan(maxSteps + 1), reasonWork},
	}
}

func TestBoundsOnSchemas(t *testing.T) {
	for _, row := range boundRows() {
		t.Run(row.name, func(t *testing.T) {
			if s := Compile(jsontext.Value(row.in)); s.Reason() != "" {
				t.Errorf("within the bound: %s", s.Reason())
			}
			s := Compile(jsontext.Value(row.out))
			if s.Reason() != row.reason {
				t.Errorf("beyond the bound the reason is %q, want %q", s.Reason(), row.reason)
			}
			if got := s.Check(structured(`{}`)); got != Unchecked {
				t.Errorf("beyond the bound a value is %q", got)
			}
		})
	}
}

// fan makes a schema of which one value takes so many evaluations. Each of its
// parts refers to the next one twice; the root has as many as it takes.
func fan(evaluations int) string {
	const parts = 16
	defs := make([]string, parts+1)
	costs := make([]int, parts+1)
	defs[parts], costs[parts] = fmt.Sprintf(`"d%d":{"type":"string"}`, parts), 1
	for i := parts - 1; i >= 0; i-- {
		defs[i] = fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1)
		costs[i] = 1 + 2*(1+costs[i+1])
	}
	var roots []string
	left := evaluations - 1
	for i, cost := range costs {
		for left >= cost+1 {
			roots = append(roots, fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i))
			left -= cost + 1
		}
	}
	for range left {
		roots = append(roots, "true")
	}
	return `{"anyOf":[` + strings.Join(roots, ",") + `],"$defs":{` + strings.Join(defs, ",") + `}}`
}

// TestSchemasThatAreNotChecked has what is left unchecked whatever its size.
func TestSchemasThatAreNotChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "string.json")
	if err := os.WriteFile(file, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, schema, reason string }{
		{"empty", ``, reasonText},
		{"cut short", `{"type":"object"`, reasonText},
		{"two", `{} {}`, reasonText},
		{"a member twice", `{"type":"object","type":"array"}`, reasonText},
		{"bad UTF-8", "{\"title\":\"\xff\"}", reasonText},
		{"true", `true`, reasonObject},
		{"null", `null`, reasonObject},
		{"a list", `[{}]`, reasonObject},
		{"a type that is none", `{"type":"strnig"}`, reasonCompile},
		{"a keyword of a wrong kind", `{"properties":[]}`, reasonCompile},
		{"deep inside", `{"properties":{"a":{"items":{"required":"a"}}}}`, reasonCompile},
		{"a reference to nothing", `{"$ref":"#/$defs/a"}`, reasonCompile},
		{"an anchor that is not there", `{"$ref":"#a"}`, reasonCompile},
		{"an identifier twice", `{"$defs":{"a":{"$id":"x"},"b":{"$id":"x"}}}`, reasonCompile},
		{"an older dialect", `{"$schema":"http://json-schema.org/draft-04/schema#"}`, reasonDialect},
		{"an unknown dialect", `{"$schema":"https://example.com/schema"}`, reasonDialect},
		{"no dialect", `{"$schema":5}`, reasonDialect},
		{"part of a dialect", `{"$schema":"https://json-schema.org/draft/2020-12/meta/core"}`, reasonDialect},
		{"another dialect inside", `{"$defs":{"a":{"$id":"a",` + draft7 + `}}}`, reasonDialect},
		{"identifiers in the $defs of draft-07", `{` + draft7 + `,"$ref":"#b","$defs":{"a":{"$id":"#b"}}}`, reasonDialect},
		{"$recursiveAnchor", `{` + draft2019 + `,"$recursiveAnchor":true,"items":{"$recursiveRef":"#"}}`, reasonRecursive},
		{"a file", `{"$ref":"file://` + file + `"}`, reasonOutside},
		{"a path", `{"$ref":"` + file + `"}`, reasonOutside},
		{"a site", `{"items":{"$ref":"https://example.com/a.json#/b"}}`, reasonOutside},
		{"a dynamic reference to a site", `{"items":{"$dynamicRef":"https://example.com/a.json#b"}}`, reasonOutside},
		{"the dialect's own schema", `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, reasonOutside},
		{"the schema that asks", `{"items":{"$ref":"` + inverse + `"}}`, reasonOutside},
		{"a neighbour", `{"$id":"https://example.com/a","items":{"$ref":"b"}}`, reasonOutside},
		{"a part that is no schema", `{"items":{"$ref":"#/x/a"},"x":{"a":{"type":"string"}}}`, reasonPlace},
		{"a part of a value", `{"items":{"$ref":"#/const"},"const":{"type":"string"}}`, reasonPlace},
		{"what its dialect does not know", `{` + draft7 + `,"items":{"$ref":"#/prefixItems/0"},"prefixItems":[{}]}`, reasonPlace},
		{"a loop", `{"$ref":"#"}`, reasonLoop},
		{"a long loop", `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"if":{"$ref":"#/$defs/a"}}}}`, reasonLoop},
		{"a loop that may not be entered", `{"dependentSchemas":{"a":{"$ref":"#"}}}`, reasonLoop},
		{"a loop below", `{"properties":{"a":{"not":{"$ref":"#/properties/a"}}}}`, reasonLoop},
		{"a dynamic loop", `{"$dynamicAnchor":"a","$dynamicRef":"#a"}`, reasonLoop},
		{"a dynamic loop over another part", `{"$id":"a","$dynamicAnchor":"n","anyOf":[{"$ref":"b"}],
			"$defs":{"b":{"$id":"b","$dynamicAnchor":"n","not":{"$ref":"c"}},"c":{"$id":"c","$dynamicRef":"b#n"}}}`, reasonLoop},
		{"a pattern with a look ahead", `{"pattern":"^(?=a)"}`, reasonPattern},
		{"a pattern with a back reference", `{"patternProperties":{"(a)\\1":{}}}`, reasonPattern},
		{"a pattern that is none", `{"pattern":"("}`, reasonPattern},
		{"nested repetitions", `{"pattern":"((a{100}){100}){100}"}`, reasonPattern},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := Compile(jsontext.Value(row.schema))
			if s.Reason() != row.reason {
				t.Errorf("the reason is %q, want %q", s.Reason(), row.reason)
			}
			for _, v := range []string{`{}`, `"a"`, `1`, `null`} {
				if got := s.Check(structured(v)); got != Unchecked {
					t.Errorf("%s is %s", v, got)
				}
			}
		})
	}
}

// TestBoundsOnValues has each bound with a value that just keeps to it and one
// that just does not.
func TestBoundsOnValues(t *testing.T) {
	for _, row := range []struct{ name, in, out string }{
		{"bytes", padded(maxValueBytes, `"*"`), padded(maxValueBytes+1, `"*"`)},
		{"depth", nest(maxValueDepth, `[*]`, ``), nest(maxValueDepth+1, `[*]`, ``)},
		{"depth of objects", nest(maxValueDepth, `{"a":*}`, `1`), nest(maxValueDepth+1, `{"a":*}`, `1`)},
		{"depth of both", nest(maxValueDepth/2, `{"a":[*]}`, ``), nest(maxValueDepth/2, `{"a":[*]}`, `{}`)},
		{"values", list(maxValues-1, `1`), list(maxValues, `1`)},
		{"digits", strings.Repeat("1", maxDigits), strings.Repeat("1", maxDigits+1)},
		{"digits of a fraction", "-1." + strings.Repeat("1", maxDigits-3) + "e7", "-1." + strings.Repeat("1", maxDigits-2) + "e7"},
		{"exponent", `[1e400]`, `[1e401]`},
		{"an exponent that is a bomb", `{"a":1e-300}`, `{"a":1e-1000000000}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := Compile(jsontext.Value(`{"type":["array","object","number","string"]}`))
			if got := s.Check(structured(row.in)); got != Valid {
				t.Errorf("within the bound it is %s", got)
			}
			if got := s.Check(structured(row.out)); got != Unchecked {
				t.Errorf("beyond the bound it is %s", got)
			}
		})
	}
}
