package schema

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// ordinary is an input schema as many tools have it, of about 400 bytes.
const ordinary = `{"type":"object","properties":{"query":{"type":"string","description":"What to look for, in the words of the library","minLength":1},` +
	`"limit":{"type":"integer","minimum":1,"maximum":100,"default":20},"kind":{"type":"string","enum":["book","map","letter"]},` +
	`"tags":{"type":"array","items":{"type":"string"},"uniqueItems":true}},"required":["query"],"additionalProperties":false}`

// costly are schemas that fill a length with what is dear to inspect.
func costly(size int) map[string]string {
	fill := func(format, around string) string {
		n := size / (len(format) + 3)
		return strings.Replace(around, "*", items(n, format), 1)
	}
	ids := func() string {
		deep := nest(50, `{"$id":"`+strings.Repeat("i", 15)+`/","not":*,"x":1}`, `{"anyOf":[*]}`)
		return strings.Replace(deep, "*", items((size-len(deep))/24, `{"$ref":"a%d"}`), 1)
	}
	return map[string]string{
		"nothing else but members": fill(`"%d":0`, `{"default":{*}}`),
		"empty schemas":            fill(`{}`, `{"default":[*]}`),
		"required":                 fill(`"n%d"`, `{"required":[*]}`),
		"references":               fill(`{"$ref":"#/$defs/d%d"}`, `{"$defs":{`+names(min(500, size/100), `{}`)+`},"anyOf":[*]}`),
		"dynamic references":       fill(`{"$dynamicRef":"#a"},{"$id":"i%d","$dynamicAnchor":"a"}`, `{"anyOf":[*]}`),
		"identifiers":              ids(),
		"escapes":                  fill(`\u0061`, `{"title":"*"}`),
		"numbers":                  fill(`1e-300`, `{"enum":[*]}`),
	}
}

func BenchmarkInspect(b *testing.B) {
	all := costly(60 << 10)
	all["an ordinary schema"] = ordinary
	for name, raw := range all {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				Inspect(jsontext.Value(raw))
			}
		})
	}
}
