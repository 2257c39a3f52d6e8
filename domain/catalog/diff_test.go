package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func diff(a, b string) []string { return Diff(jsontext.Value(a), jsontext.Value(b)) }

func TestDiff(t *testing.T) {
	long := strings.Repeat("The quick brown fox. ", 20)
	for _, c := range []struct {
		name, before, after string
		want                []string
	}{
		{"the same", `{"a":1}`, `{"a":1}`, nil},
		{"the same that is no JSON", `{"a"`, `{"a"`, nil},
		{"a text", `{"description":"a"}`, `{"description":"b"}`, []string{`description: "a" -> "b"`}},
		{"a new member", `{"inputSchema":{"properties":{}}}`, `{"inputSchema":{"properties":{"bcc": {"type" : "string"} }}}`,
			[]string{`inputSchema/properties/bcc: added {"type":"string"}`}},
		{"a member that is gone", `{"a":1,"b":[1, {"c":"d e"}]}`, `{"a":1}`, []string{`b: removed [1,{"c":"d e"}]`}},
		{"by name, in its order", `{"b":1,"a":1,"d":1}`, `{"c":2,"a":2,"b":2}`, []string{`a: 1 -> 2`, `b: 1 -> 2`, `c: added 2`, `d: removed 1`}},
		{"order and white space", `{"a":1,"b":{"c":2,"d":3}}`, `{ "b":{"d":3,"c":2}, "a":1 }`, []string{onlySpelling}},
		{"escapes", `{"a":"b\/\u00e9"}`, `{"\u0061":"b/é"}`, []string{onlySpelling}},
		{"elements by position", `{"required":["a","b"]}`, `{"required":["b","a","c"]}`,
			[]string{`required/0: "a" -> "b"`, `required/1: "b" -> "a"`, `required/2: added "c"`}},
		{"elements that are gone", `[1,2,3]`, `[1]`, []string{`1: removed 2`, `2: removed 3`}},
		{"another kind", `{"a":{"b":1},"c":null,"d":"1"}`, `{"a":["b"],"c":false,"d":1}`, []string{`a: {"b":1} -> ["b"]`, `c: null -> false`, `d: "1" -> 1`}},
		{"another kind at the top", `{"a":1}`, `[]`, []string{`the definition: {"a":1} -> []`}},
		{"digits", `{"a":1,"b":1e2}`, `{"a":1.0,"b":100}`, []string{`a: 1 -> 1.0`, `b: 1e2 -> 100`}},
		{"what is not seen", `{"a":"x"}`, "{\"a\":\"x\u200b\u202e\U000e0041\\n\"}", []string{`a: "x" -> "x\u200b\u202e\U000e0041\n"`}},
		{"added and not seen", `{}`, "{\"\u202ea\":\"\u200b😀\x7f\"}", []string{`"\u202ea": added "\u200b\ud83d\ude00\u007f"`}},
		{"names that lie", `{}`, `{"a: added 1, b":2,"":3,"c/d":4}`, []string{`"": added 3`, `"a: added 1, b": added 2`, `"c/d": added 4`}},
		{"quotes", `{"a":"b"}`, `{"a":"\" -> \"c"}`, []string{`a: "b" -> "\" -> \"c"`}},
		{"a difference far on", `{"d":"` + long + `Never call it."}`, `{"d":"` + long + `Always call it."}`,
			[]string{`d: ..."x. The quick brown fox. Never call it." -> ..."x. The quick brown fox. Always call it."`}},
		{"a difference in the middle", `{"d":"` + long + `x` + long + `"}`, `{"d":"` + long + `y` + long + `"}`,
			[]string{`d: ..."x. The quick brown fox. xThe quick brown fox. The quick brown fox. The quick bro"... -> ` +
				`..."x. The quick brown fox. yThe quick brown fox. The quick brown fox. The quick bro"...`}},
		{"a text that goes on", `{"d":"` + long + `"}`, `{"d":"` + long + `And more."}`,
			[]string{`d: ..."x. The quick brown fox. " -> ..."x. The quick brown fox. And more."`}},
		{"what is no JSON", `{"a":1}`, `{"a":1`, []string{notJSON}},
		{"two values", `{"a":1}`, `{"a":1} {}`, []string{notJSON}},
		{"a quote in what is shown as it is", `{"a":[ "b\" c  d" , "\\" , 1 ]}`, `{}`, []string{`a: removed ["b\" c  d","\\",1]`}},
		{"a difference within a character", `{"d":"` + long + `é` + long + `"}`, `{"d":"` + long + `è` + long + `"}`,
			[]string{`d: ..."x. The quick brown fox. \u00e9The quick brown fox. The quick brown fox. The quic"... -> ` +
				`..."x. The quick brown fox. \u00e8The quick brown fox. The quick brown fox. The quic"...`}},
		{"a member twice", `{"a":1,"a":2}`, `{"a":1}`, []string{notJSON}},
		{"nothing at all", ``, `{}`, []string{notJSON}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := diff(c.before, c.after); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestDiffIsBounded: twenty lines and no more, the last of which counts the
// rest, none too long, however long names, paths and texts are.
func TestDiffIsBounded(t *testing.T) {
	many := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"k%03d":%d`, i, i))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	if got := diff(`{}`, many(20)); len(got) != 20 || got[19] != "k019: added 19" {
		t.Errorf("of 20: %q", got)
	}
	if got := diff(`{}`, many(21)); len(got) != 20 || got[18] != "k018: added 18" || got[19] != "and 2 more differences" {
		t.Errorf("of 21: %q", got)
	}
	if got := diff(many(1000), `{}`); len(got) != 20 || got[18] != "k018: removed 18" || got[19] != "and 981 more differences" {
		t.Errorf("of 1000: %q", got)
	}
	name := strings.Repeat("\u202e", 300)
	deep := func(value string) string {
		return strings.Repeat(`{"`+name+`":`, 50) + value + strings.Repeat("}", 50)
	}
	wide := strings.Repeat("\U000e0041", 3000)
	for _, values := range [][2]string{{`"` + wide + `a"`, `"` + wide + `b"`}, {`"a` + wide + `"`, `"b` + wide + `"`}, {`["` + wide + `"]`, `{"` + wide + `":1}`},
		{strings.Repeat("1", 500) + "2", strings.Repeat("1", 500) + "3"}, {`"` + wide + `"`, `null`}} {
		got := diff(deep(values[0]), deep(values[1]))
		if len(got) != 1 || len(got[0]) > maxLine || !ascii(got[0]) || len(got[0]) < 100 {
			t.Errorf("a line of %d bytes: %q", len(got[0]), got)
		}
		if left, right, ok := strings.Cut(got[0][maxPlace+2:], " -> "); !ok || left == right {
			t.Errorf("no difference is seen in %s", got[0])
		}
	}
	levels := strings.Repeat("[", 9000) + "1" + strings.Repeat("]", 9000)
	if got := diff(levels, strings.Replace(levels, "1", "2", 1)); len(got) != 1 || !strings.HasSuffix(got[0], ": 1 -> 2") {
		t.Errorf("of a value that is 9000 deep: %q", got)
	}
}
