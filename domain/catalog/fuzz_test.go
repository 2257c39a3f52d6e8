package catalog

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain/web"
)

// definitionSeeds are definitions of all kinds.
func definitionSeeds() []string {
	seeds := []string{tool("a", ""), tool("b", `,"title":"\u200b"`), output("t", `{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#"}}}}`),
		withInput("t", `{"type":"object","required":null}`), withInput("t", `{"type":"object","allOf":[{"$ref":"x"}]}`),
		withInput("t", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`), output("t", `{"$id":"a","anyOf":[{"$ref":"a#b"},{"$anchor":"b"}]}`)}
	for _, b := range append(badTools, badHeaders...) {
		seeds = append(seeds, b.definition)
	}
	return seeds
}

// FuzzBuild: whatever a peer answers, a page is read or refused, every tool of
// it is listed or left out, and strictly the same are left out or more.
func FuzzBuild(f *testing.F) {
	for _, s := range definitionSeeds() {
		f.Add([]byte(answer(hints, s, tool("a", ""))))
	}
	f.Add([]byte(answer("", definitionSeeds()...)))
	f.Add([]byte(answer(hints + `,"nextCursor":""`)))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}`))
	f.Fuzz(func(t *testing.T, frame []byte) {
		for _, modern := range []bool{true, false} {
			p, problem, reason := ParsePage(frame, modern, false)
			again, problem2, reason2 := ParsePage(frame, modern, false)
			if !reflect.DeepEqual(p, again) || problem != problem2 || reason != reason2 || (problem == "") != (reason == "") {
				t.Fatalf("read twice, the page came out differently: %+v %s, %+v %s", p, problem, again, problem2)
			}
			overHTTP, problem2, reason2 := ParsePageHTTP(frame, modern)
			if problem != problem2 || reason != reason2 || overHTTP.HTTP() != (problem == "") || overHTTP.Tools() != p.Tools() || p.HTTP() {
				t.Errorf("over HTTP the page is %+v, %s, and else %+v, %s", overHTTP, problem2, p, problem)
			}
			if problem == "" {
				builds(t, frame, p)
				builds(t, frame, overHTTP)
				mirrors(t, p, overHTTP)
			}
		}
	})
}

func builds(t *testing.T, frame []byte, p Page) {
	list := []Page{p, p}
	loose, bad, warnings := Build(list, false)
	strict, badToo, more := Build(list, true)
	if again, bad2, _ := Build(list, true); !reflect.DeepEqual(again, strict) || !reflect.DeepEqual(badToo, bad2) {
		t.Errorf("built twice, the catalog came out differently")
	}
	if len(loose.Tools)+len(bad) != 2*p.Tools() || len(strict.Tools)+len(badToo) != 2*p.Tools() {
		t.Errorf("%d and %d tools of %d, %d and %d left out", len(loose.Tools), len(strict.Tools), 2*p.Tools(), len(bad), len(badToo))
	}
	for _, tool := range loose.Tools {
		if !ValidToolName(tool.Local) || !bytes.Contains(frame, tool.Definition) || tool.Digest != digest(tool.Definition) || !loose.Has(tool.Local) {
			t.Errorf("tool %q with %q", tool.Local, tool.Definition)
		}
		Hidden(tool.Definition)
	}
	subset(t, loose, strict)
	if len(more) < len(warnings) || !slices.Equal(more[:len(warnings)], warnings) || len(more) > len(warnings)+1 {
		t.Errorf("warnings %q, strictly %q", warnings, more)
	}
	for _, b := range append(bad, badToo...) {
		if len(b.Name) > 128*10 || !ascii(b.Name) || len(b.Reason) > 300 || !ascii(b.Reason) || b.Problem == "" {
			t.Errorf("left out as %+v", b)
		}
	}
}

// mirrors: over HTTP the same tools are listed but those with bad annotations, and
// in the legacy era these too.
func mirrors(t *testing.T, p, overHTTP Page) {
	strict, bad, warnings := Build([]Page{p, p}, true)
	c, badToo, warningsToo := Build([]Page{overHTTP, overHTTP}, true)
	want := Keep(strict, func(tool Tool) bool {
		var input jsontext.Value
		each(tool.Definition, func(key string, v jsontext.Value) {
			if key == "inputSchema" {
				input = v
			}
		})
		_, reason := web.Params(input)
		return !p.Modern() || reason == ""
	})
	if !reflect.DeepEqual(c, want) || len(badToo)-len(bad) != len(strict.Tools)-len(want.Tools) || len(warningsToo) > len(warnings) {
		t.Errorf("over HTTP there are %s, and else %s", listing(c, badToo), listing(strict, bad))
	}
}

// subset: each tool of a strict catalog is one of the other, in the same order.
func subset(t *testing.T, loose, strict Catalog) {
	rest := loose.Tools
	for _, tool := range strict.Tools {
		i := slices.IndexFunc(rest, func(other Tool) bool { return other.Local == tool.Local && other.Digest == tool.Digest })
		if i < 0 {
			t.Fatalf("strictly there is %q, in %q, and not among %q", tool.Local, strict.Locals(), loose.Locals())
		}
		rest = rest[i+1:]
	}
}

// FuzzDiff: between any bytes there are lines if and only if there is a
// difference, as many in both directions, each short and in plain ASCII.
func FuzzDiff(f *testing.F) {
	seeds := append(definitionSeeds(), `{"a":[1,2,{"b":"\u00e9"}]}`, `[[[]]]`, `"a"`, ``, `{"a":1,"a":2}`, "\"\xff\"", strings.Repeat("[", 50))
	for i, s := range seeds {
		f.Add([]byte(s), []byte(seeds[(i+1)%len(seeds)]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, pair := range [][2][]byte{{a, a}, {b, bytes.Clone(b)}} {
			if got := Diff(pair[0], pair[1]); len(got) != 0 {
				t.Errorf("%q differs from itself: %q", pair[0], got)
			}
		}
		there, back := Diff(a, b), Diff(b, a)
		if (len(there) == 0) != bytes.Equal(a, b) || len(there) != len(back) || len(there) > maxLines || !slices.Equal(there, Diff(a, b)) {
			t.Errorf("%q and %q: %q, and back %q", a, b, there, back)
		}
		for _, line := range there {
			if len(line) > maxLine || !ascii(line) || line == "" {
				t.Errorf("a line of %d bytes: %q", len(line), line)
			}
		}
		if jsontext.Value(a).IsValid() && jsontext.Value(b).IsValid() && slices.Equal(there, []string{onlySpelling}) != alike(a, b) {
			t.Errorf("%q and %q are said to be %q", a, b, there)
		}
	})
}

// alike compares two values by a form that has one spelling.
func alike(a, b []byte) bool {
	return !bytes.Equal(a, b) && plainly(a) == plainly(b)
}

func plainly(v []byte) string {
	value := jsontext.Value(bytes.Clone(v))
	if err := value.Format(jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return err.Error()
	}
	return value.String()
}

// FuzzHidden: what is put into a text is found, by count and place, unless it
// stands where it is harmless, and what is found is sorted and bounded.
func FuzzHidden(f *testing.F) {
	for _, s := range definitionSeeds() {
		f.Add([]byte(s), "a", uint32(0x200b))
	}
	f.Add([]byte(`{"a":["\u200b"]}`), "👩", uint32(0x200d))
	f.Add([]byte("\"\\ud800\""), "می", uint32(0x200c))
	f.Fuzz(func(t *testing.T, raw []byte, beside string, character uint32) {
		marks := Hidden(raw)
		if !reflect.DeepEqual(marks, Hidden(raw)) || len(marks) > 20 || !slices.IsSortedFunc(marks, func(a, b Mark) int { return strings.Compare(a.Where, b.Where) }) {
			t.Errorf("%q: %+v", raw, marks)
		}
		for _, m := range marks {
			if m.Count < 1 || len(m.Where) > maxWhere || !ascii(m.Where) || !slices.Contains(kindNames[:], m.What) {
				t.Errorf("%q: %+v", raw, m)
			}
		}
		r := rune(character % 0x110000)
		if 0xd800 <= r && r < 0xe000 || kindOf(r) == shown {
			return
		}
		text := strings.ToValidUTF8(beside, "") + "b" + string(r) + "c"
		found := Hidden(jsontext.Value(`{"title":` + quotedJSON(text, character%2 == 0) + `}`))
		if len(found) == 0 || found[len(found)-1].Where != "/title" {
			t.Errorf("%x is not found in %q: %+v", r, text, found)
		}
	})
}
