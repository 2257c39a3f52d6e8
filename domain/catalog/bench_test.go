package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// ordinaryTool is a definition of about 600 bytes, as many tools have it.
func ordinaryTool(i int) string {
	return fmt.Sprintf(`{"name":"library_search_%d","title":"Search the library","description":"Finds entries of the library by words, kinds and tags, the best first. `+
		`It changes nothing.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What to look for","minLength":1},`+
		`"limit":{"type":"integer","minimum":1,"maximum":100,"default":20},"kind":{"type":"string","enum":["book","map","letter"]},`+
		`"tags":{"type":"array","items":{"type":"string"},"uniqueItems":true},"shelf%d":{"type":"boolean"}},"required":["query"]},"annotations":{"readOnlyHint":true}}`, i, i)
}

func ordinaryPages(b *testing.B, tools int) []Page {
	var frames []string
	for at := 0; at < tools; at += 1000 {
		var definitions []string
		for i := at; i < at+1000; i++ {
			definitions = append(definitions, ordinaryTool(i))
		}
		frames = append(frames, answer(hints, definitions...))
	}
	return pages(b, frames...)
}

// BenchmarkBuild is an ordinary list of 20,000 tools.
func BenchmarkBuild(b *testing.B) {
	list := ordinaryPages(b, 20_000)
	for _, strict := range []bool{false, true} {
		b.Run(fmt.Sprintf("strict=%t", strict), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if c, bad, _ := Build(list, strict); len(c.Tools) != 20_000 || len(bad) != 0 {
					b.Fatal(listing(c, bad))
				}
			}
		})
	}
}

// hostile are schemas of a length that are dear to look at.
func hostile(size int) map[string]string {
	list := func(n int, each string) string {
		var all []string
		for i := range n {
			all = append(all, strings.ReplaceAll(each, "%d", fmt.Sprint(i)))
		}
		return strings.Join(all, ",")
	}
	fill := func(around, each string) string {
		return strings.Replace(around, "*", list((size-len(around))/(len(each)+3), each), 1)
	}
	few := min(500, size/80)
	return map[string]string{
		"empty schemas": fill(`{"type":"object","default":[*]}`, `{}`),
		"members":       fill(`{"type":"object","default":{*}}`, `"%d":0`),
		"required":      fill(`{"type":"object","required":[*]}`, `"%d"`),
		"references":    fill(`{"type":"object","$defs":{`+list(few, `"d%d":{"items":{"$ref":"#/anyOf/%d"}}`)+`},"anyOf":[*]}`, `{"$ref":"#/$defs/d7"}`),
		"dynamic":       fill(`{"type":"object","anyOf":[*]}`, `{"$dynamicRef":"#a"},{"items":{"$dynamicAnchor":"a%d"}}`),
		"identifiers": fill(nested(12, `{"type":"object","$id":"iiiiiiiiiiiiiiiiiiii/","not":`, `{"anyOf":[*],"$defs":{`+list(40, `"d%d":{"$id":"a%d"}`)+`}}`, `}`),
			`{"$ref":"a7"}`),
		"escapes": strings.Replace(`{"type":"object","title":"*"}`, "*", strings.Repeat(`\u0061`, (size-30)/6), 1),
	}
}

// BenchmarkHostile is a list at the bounds, 25,000 tools or 64 MiB, of one
// schema that differs in nothing but a number.
func BenchmarkHostile(b *testing.B) {
	for _, size := range []int{2500, 60 << 10} {
		for name, schema := range hostile(size) {
			b.Run(fmt.Sprintf("%s of %d bytes", name, size), func(b *testing.B) {
				var p Page
				for total := 0; len(p.tools) < MaxTools && total < MaxList; total += len(schema) + 60 {
					p.tools = append(p.tools, readTool(jsontext.Value(withInput(fmt.Sprint("t", len(p.tools)), schema)), rules{strict: false}))
				}
				for b.Loop() {
					c, bad, _ := Build([]Page{p}, true)
					b.ReportMetric(float64(len(bad)), "left/op")
					b.ReportMetric(float64(len(c.Tools)), "kept/op")
				}
			})
		}
	}
}

func BenchmarkHidden(b *testing.B) {
	list := ordinaryPages(b, 1000)[0].tools
	b.Run("plain", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			Hidden(list[i%len(list)].tool.Definition)
		}
	})
	marked := jsontext.Value(strings.Replace(ordinaryTool(1), "best first", "best\u200b first", 1))
	b.Run("marked", func(b *testing.B) {
		for b.Loop() {
			Hidden(marked)
		}
	})
	large := jsontext.Value(`{"` + strings.Repeat("k", 128<<10) + `":[` + strings.Repeat("\"\u200b\",", 20_000) + `1]}`)
	b.Run("256 KiB of marks under a long name", func(b *testing.B) {
		for b.Loop() {
			Hidden(large)
		}
	})
}

func BenchmarkDiff(b *testing.B) {
	a, c := jsontext.Value(ordinaryTool(1)), jsontext.Value(ordinaryTool(2))
	b.Run("ordinary", func(b *testing.B) {
		for b.Loop() {
			Diff(a, c)
		}
	})
	large := func(n int) jsontext.Value {
		var all []string
		for i := range 20_000 {
			all = append(all, fmt.Sprintf(`"m%d":%d`, (i*7919)%20_000, n))
		}
		return jsontext.Value(`{"` + strings.Repeat("k", 10<<10) + `":{` + strings.Join(all, ",") + `}}`)
	}
	one, two := large(1), large(2)
	b.Run("256 KiB in which all differs", func(b *testing.B) {
		for b.Loop() {
			Diff(one, two)
		}
	})
}
