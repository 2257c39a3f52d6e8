package schema

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// nasty are schemas and values that have been trouble somewhere.
func nasty() [][2]string {
	pairs := [][2]string{
		{`{"$ref":"#"}`, `1`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, `1`},
		{`{"$dynamicRef":"#","$dynamicAnchor":"a"}`, `{}`},
		{`{` + draft2019 + `,"$recursiveRef":"#","$recursiveAnchor":false}`, `{}`},
		{`{"$id":"a","$defs":{"b":{"$id":"b","$ref":"a"}},"items":{"$ref":"b"}}`, `[[[]]]`},
		{`{"$id":"schema://check/inverse"}`, `1`},
		{`{"$id":"#a"}`, `1`},
		{`{"$id":"%"}`, `1`},
		{`{"$ref":"#/%"}`, `1`},
		{`{"$ref":"#/~2"}`, `1`},
		{`{"$anchor":""}`, `1`},
		{`{"$vocabulary":{"x":true}}`, `1`},
		{`{"multipleOf":0}`, `1`},
		{`{"multipleOf":-1e-400}`, `1`},
		{`{"maximum":-0.0,"minimum":-0}`, `-0`},
		{`{"maxLength":-1}`, `""`},
		{`{"maxItems":1.0,"minItems":1e0}`, `[1]`},
		{`{"required":["a","a"]}`, `{}`},
		{`{"enum":[]}`, `1`},
		{`{"uniqueItems":true}`, `[-1,1,"1",[1],{"1":1},true,null,1.0]`},
		{`{"uniqueItems":true}`, list(22, `["a","\u0004b%d"]`)},
		{`{"patternProperties":{"":{"type":"string"}}}`, `{"":1}`},
		{`{"dependencies":{"a":["b"],"c":{"$ref":"#/dependencies/a"}}}`, `{"a":1,"c":1}`},
		{`{"if":false,"then":{"$ref":"#/if"},"else":{"$ref":"#/then"}}`, `1`},
		{`{"contentMediaType":"application/json","contentEncoding":"base64","contentSchema":{"type":"string"}}`, `"IiI="`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"#x","items":{"$ref":"#x"}}`, `[]`},
		{`{"x":{"$id":"y"},"allOf":[{"$ref":"#/x"},{"$ref":"y"}]}`, `1`},
		{`{"propertyNames":{"$ref":"#"},"type":["string","object"]}`, `{"a":{"b":1}}`},
		{`{"type":[]}`, `1`},
		{`{"unevaluatedItems":{"$ref":"#"}}`, `[[[]]]`},
	}
	for _, row := range append(rows, referenceRows...) {
		pairs = append(pairs, [2]string{row.schema, append(row.valid, row.invalid...)[0]})
	}
	return pairs
}

// FuzzCheck: whatever a peer writes, a check ends without a panic, says one of
// four things, says it again, and makes the library do no more than was
// counted.
func FuzzCheck(f *testing.F) {
	for _, pair := range nasty() {
		f.Add([]byte(pair[0]), []byte(`{"structuredContent":`+pair[1]+`}`))
	}
	f.Add([]byte(`{}`), []byte(`{"isError":true}`))
	f.Fuzz(func(t *testing.T, raw, result []byte) {
		s := Compile(raw)
		got := s.Check(result)
		switch got {
		case Valid, Invalid:
			if s.Reason() != "" {
				t.Errorf("%s, although %s", got, s.Reason())
			}
			if v := contentOf(t, result); v != nil {
				count(t, string(raw)).bounded(t, string(v))
			}
		case Unchecked, "":
		default:
			t.Errorf("the verdict is %q", got)
		}
		if again := s.Check(result); again != got {
			t.Errorf("first %q, then %q", got, again)
		}
		if again := Compile(raw); again.Check(result) != got {
			t.Errorf("compiled again it is %q, not %q", again.Check(result), got)
		}
	})
}

func contentOf(t *testing.T, result []byte) jsontext.Value {
	t.Helper()
	v, isError, err := parts(result)
	if err != nil || isError {
		t.Errorf("judged although it cannot be: %t, %v", isError, err)
	}
	return v
}

// TestKeyOrder: schema and result mean the same with their members in any
// order.
func TestKeyOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, pair := range nasty() {
		schema, result := jsontext.Value(pair[0]), structured(pair[1])
		s := Compile(schema)
		want, moved := s.Check(result), 0
		for range 20 {
			schema2, result2 := shuffle(t, random, schema), shuffle(t, random, result)
			if !bytes.Equal(schema, schema2) || !bytes.Equal(result, result2) {
				moved++
			}
			s2 := Compile(schema2)
			if got := s2.Check(result2); got != want || s2.Reason() != s.Reason() {
				t.Errorf("%s with %s is %q (%s), but %q (%s) with %s and %s",
					schema, result, want, s.Reason(), got, s2.Reason(), schema2, result2)
			}
		}
		if moved == 0 {
			t.Errorf("nothing was moved in %s", result)
		}
	}
}

// shuffle writes a value with the members of its objects in another order.
func shuffle(t *testing.T, random *rand.Rand, raw jsontext.Value) jsontext.Value {
	t.Helper()
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	out, err := shuffled(random, dec)
	if err != nil {
		t.Fatal(err)
	}
	return jsontext.Value(out)
}

func shuffled(random *rand.Rand, dec *jsontext.Decoder) (string, error) {
	kind := dec.PeekKind()
	if kind != '{' && kind != '[' {
		v, err := dec.ReadValue()
		return v.String(), err
	}
	if _, err := dec.ReadToken(); err != nil {
		return "", err
	}
	var all []string
	for dec.PeekKind() != '}' && dec.PeekKind() != ']' {
		item, err := shuffled(random, dec)
		if err != nil {
			return "", err
		}
		if kind == '{' {
			value, err := shuffled(random, dec)
			if err != nil {
				return "", err
			}
			item += ":" + value
		}
		all = append(all, item)
	}
	_, err := dec.ReadToken()
	if kind == '[' {
		return "[" + strings.Join(all, ",") + "]", err
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return "{" + strings.Join(all, ",") + "}", err
}
