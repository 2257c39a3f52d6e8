package names

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSkeletonOfAlikeNames(t *testing.T) {
	for _, c := range []struct{ name, a, b string }{
		{"case", "read_file", "Read_FILE"},
		{"zero", "tool0", "toolO"},
		{"one", "fi1e", "file"},
		{"capital i", "fIle", "file"},
		{"capital l", "fiLe", "fi1e"},
		{"five", "5earch", "Search"},
		{"two", "2ip", "Zip"},
		{"eight", "8ase", "Base"},
		{"rn and m", "intemal", "internal"},
		{"vv and w", "vvrite", "write"},
		{"w after v, v after w", "vw", "wv"},
		{"cl and d", "clelete", "delete"},
		{"c1 and d", "c1ose", "dose"},
		{"slash and underscores", "github/search", "github__search"},
		{"dot and dash", "a.b", "a-b"},
		{"separators in a row", "a/_b", "a.b"},
		{"Cyrillic", "ѕеаrсh", "search"},
		{"Cyrillic capitals", "ВАНК", "BAHK"},
		{"Greek", "ρορ_υρ", "pop_up"},
		{"Greek capitals", "ΤΟΟΖ", "TOOZ"},
		{"full width", "ｓｅａｒｃｈ＿ａｌｌ／９", "search_all/9"},
		{"zero width", "sea\u200brch\ufeff\u2060\u00ad", "search"},
		{"bidirectional", "\u202esearch\u202c\u2066\u200f", "search"},
		{"tags", "search\U000E0061\U000E007F", "search"},
		{"variation selector", "search\ufe0f\U000E0101", "search"},
		{"control", "se\x00ar\x7fch\u0085", "search"},
		{"marks", "se\u0301arch", "search"},
		{"a letter with a mark", "séàrçh", "search"},
		{"mathematical", "𝐬𝑒𝖺𝙧𝓬𝔥", "search"},
		{"mathematical capitals and digits", "𝐀𝚭𝟘𝟗", "AZ09"},
		{"mathematical Greek", "𝛒𝝄𝞺", "pop"},
		{"circled", "ⓢⒺⓐⓡⓒⓗ①", "search1"},
		{"ligature", "ﬁnd", "find"},
		{"Roman numeral", "step_Ⅲ", "step_iii"},
		{"superscript", "x²", "x2"},
		{"space", "read file", "read_file"},
		{"no-break space and tab", "read\u00a0\tfile", "read_file"},
		{"dash", "read–file", "read-file"},
		{"division slash", "a∕b⁄c", "a/b/c"},
		{"bar", "fi|e", "file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if a, b := Skeleton(c.a), Skeleton(c.b); a != b {
				t.Errorf("%q looks like %q, %q like %q", c.a, a, c.b, b)
			}
		})
	}
}

func TestSkeletonOfOtherNames(t *testing.T) {
	for _, c := range [][2]string{
		{"read", "write"}, {"a_b", "ab"}, {"search", "searches"}, {"get_3", "get_8"}, {"rn", "n"}, {"r_n", "m"}, {"cat", "dat"},
		{"v", "w"}, {"", "_"}, {"file", "fle"}, {"поиск", "search"}, {"搜索", "探索"}, {"a\xff", "a"}, {"ж", "ш"},
	} {
		if a, b := Skeleton(c[0]), Skeleton(c[1]); a == b {
			t.Errorf("%q and %q both look like %q", c[0], c[1], a)
		}
	}
}

// TestSkeletonForEver: what a name looks like may be part of a decision on
// record.
func TestSkeletonForEver(t *testing.T) {
	for name, want := range map[string]string{
		"":                           "",
		"abcdefghijklmnopqrstuvwxyz": "abcclefghljklrnnopqrstuvvvxyz",
		"0123456789":                 "olz34s67b9",
		"GitHub/create-issue.v2":     "glthub_create_lssue_vz",
		"搜索\xff":                     "搜索\ufffd",
		"\u202eжѕ":                   "жs",
	} {
		if got := Skeleton(name); got != want {
			t.Errorf("%q looks like %q, want %q", name, got, want)
		}
	}
}

// TestTablesOfLooks: every glyph is given once, outside of the spans, and is
// made of characters of tool names; spans are sorted and do not meet.
func TestTablesOfLooks(t *testing.T) {
	seen := map[rune]bool{}
	for _, g := range glyphs {
		for _, r := range g.glyphs {
			if _, inSpan := spanLooks(r); seen[r] || inSpan || r < utf8.RuneSelf || r == utf8.RuneError {
				t.Errorf("%q (%U) is given twice, or has no place among glyphs", r, r)
			}
			seen[r] = true
			if got := Skeleton(string(r)); got != Skeleton(g.looks) {
				t.Errorf("%q (%U) looks like %q, want %q", r, r, got, g.looks)
			}
		}
		if strings.Trim(g.looks, lower+"0"+digits+"_-./") != "" {
			t.Errorf("%q is no part of a tool name", g.looks)
		}
	}
	if len(seen) != glyphCount {
		t.Errorf("%d glyphs, want %d: an editor may have replaced characters that it takes for the same", len(seen), glyphCount)
	}
	for i, s := range spans {
		if s.from > s.to || i > 0 && spans[i-1].to >= s.from || int(s.to-s.from+1)%max(len(s.alphabet), 1) != 0 {
			t.Errorf("span %U-%U is empty, out of order, or no whole number of alphabets", s.from, s.to)
		}
		for _, r := range []rune{s.from, s.to} {
			if _, found := spanLooks(r); !found {
				t.Errorf("%U is not found in its span", r)
			}
		}
	}
}

// glyphCount is how many characters glyphs lists.
const glyphCount = 1243

// checkSkeleton holds for any bytes.
func checkSkeleton(t *testing.T, name string) {
	t.Helper()
	skeleton := Skeleton(name)
	if again := Skeleton(skeleton); again != skeleton {
		t.Errorf("%q looks like %q, and that like %q", name, skeleton, again)
	}
	if !utf8.ValidString(skeleton) || len(skeleton) > 4*len(name) {
		t.Errorf("%q of %d bytes looks like %q of %d", name, len(name), skeleton, len(skeleton))
	}
	if upper := Skeleton(strings.Map(upperASCII, name)); upper != skeleton {
		t.Errorf("%q looks like %q, in capitals like %q", name, skeleton, upper)
	}
}

func upperASCII(r rune) rune {
	if 'a' <= r && r <= 'z' {
		return r - 'a' + 'A'
	}
	return r
}

// TestSkeletonForgivesEachPair: any replacement of one that looks alike by the
// other, anywhere, leaves the skeleton as it is.
func TestSkeletonForgivesEachPair(t *testing.T) {
	r := seeded(t, 5)
	groups := [][]string{{"0", "O", "o"}, {"1", "l", "L", "I", "i"}, {"5", "S", "s"}, {"2", "Z", "z"}, {"8", "B", "b"},
		{"rn", "m", "M", "RN"}, {"vv", "w", "W"}, {"cl", "d", "D", "c1"}, {"_", "-", ".", "/"}, {"a", "A", "а", "ａ"}, {"r"}, {"c"}, {"v"}, {"n"}}
	for range 5000 {
		var a, b strings.Builder
		for range 1 + r.IntN(8) {
			same := groups[r.IntN(len(groups))]
			a.WriteString(pick(r, same))
			b.WriteString(pick(r, same))
		}
		if x, y := Skeleton(a.String()), Skeleton(b.String()); x != y {
			t.Fatalf("%q looks like %q, %q like %q", a.String(), x, b.String(), y)
		}
		checkSkeleton(t, a.String())
	}
}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

// checkAlike holds Alike to the skeletons of all bound names.
func (h *history) checkAlike() {
	h.t.Helper()
	bindings := h.table.Bindings()
	ask := append(slices.Clone(meetingTools), "ВX", "не", "nobody's")
	for _, b := range bindings {
		ask = append(ask, b.Canonical)
	}
	for _, name := range ask {
		var want []string
		for _, b := range bindings {
			if b.Canonical != name && Skeleton(b.Canonical) == Skeleton(name) {
				want = append(want, b.Canonical)
			}
		}
		if got := h.table.Alike(name); !slices.Equal(got, want) {
			h.t.Fatalf("alike to %q are %q, want %q", name, got, want)
		}
	}
}

func TestAlike(t *testing.T) {
	table := tableOf(PrefixOnCollision, "/", lists("github: search create_issue; git-hub: search; helper: Create-Issue 5earch; other: searches"))
	for _, c := range []struct {
		name string
		want []string
	}{
		{"search", []string{"5earch"}},
		{"github/search", nil}, // git-hub/search has a separator more
		{"create_issue", []string{"Create-Issue"}},
		{"сreate\u200b issue", []string{"Create-Issue", "create_issue"}},
		{"nothing", nil},
	} {
		if got := table.Alike(c.name); !reflect.DeepEqual(got, c.want) && len(got)+len(c.want) > 0 {
			t.Errorf("alike to %q are %q, want %q", c.name, got, c.want)
		}
	}
}

// TestAlikeComparesSkeletons: two skeletons may share the number they are
// indexed by.
func TestAlikeComparesSkeletons(t *testing.T) {
	table := tableOf(PrefixOnCollision, "/", lists("a: search; b: 5earch"))
	table.looks.add(skeletonKey("search"), newNode("unlike"))
	if got := table.Alike("Search"); !slices.Equal(got, []string{"5earch", "search"}) {
		t.Errorf("alike to Search are %q", got)
	}
}
