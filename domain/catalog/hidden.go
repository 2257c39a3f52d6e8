package catalog

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Mark says that a definition holds characters that a person does not see, or
// that change the order in which a text is shown.
type Mark struct {
	Where string // JSON pointer (RFC 6901) of the text, in ASCII, at most 120 bytes; "*" for all other places together
	What  string // tag, bidi, variation, zero_width, blank, control, format, private or unassigned
	Count int    // characters
}

// mostMarked bounds the marks that name a place. With one for every kind at all
// other places there are at most 20.
const mostMarked = 11

const (
	maxWhere  = 120
	elsewhere = "*"
)

// Hidden finds what a definition hides: in its names, titles, descriptions and
// all other texts and member names, after escapes. These are, by kind:
//
//   - tag: U+E0000 to U+E007F, which spell out ASCII unseen
//   - bidi: what reorders text, U+061C, 200E, 200F, 202A to 202E, 2066 to 2069
//   - variation: U+E0100 to U+E01EF, U+FE00 to U+FE0F, U+180B to U+180F
//   - zero_width: what takes no room, such as U+200B to U+200D, 2060, FEFF, 00AD
//   - blank: letters that show as nothing, such as U+3164 and U+2800
//   - control: C0 and C1 but tab, line feed and carriage return, and U+2028, 2029
//   - format: all other format characters
//   - private and unassigned: what nobody has given a meaning; of the unassigned
//     only those that stay so, so that a later Unicode changes no mark
//
// What is common and harmless is not marked: one variation selector 15 or 16
// after a character that has both an emoji and a text form, one joiner between
// two emoji, and one joiner or non-joiner between letters of scripts that are
// not written right without, such as Arabic or Devanagari. The tag sequences of
// three flags are marked: they are rare, and tags are what text hides in best.
//
// The marks are sorted by place and kind. The first places in the order of the
// text have marks of their own; what is beyond is counted by kind, so that
// nothing hides behind many marks. What is no JSON has none. Hidden is safe for
// concurrent use.
func Hidden(definition jsontext.Value) []Mark {
	if allPlain(definition) || !definition.IsValid() {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(definition))
	var f findings
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		if token.Kind() == '"' {
			f.text(token.String(), dec)
		}
		if dec.StackDepth() == 0 {
			return f.marks()
		}
	}
}

// allPlain says that there is nothing to look for: all is visible ASCII, and no
// escape stands for anything else.
func allPlain(definition []byte) bool {
	for i, c := range definition {
		if c >= 0x7f || c == '\\' && i+1 < len(definition) && bytes.IndexByte([]byte(`ubf`), definition[i+1]) >= 0 {
			return false
		}
	}
	return true
}

// findings are the marks of a definition, as they are found.
type findings struct {
	named  []Mark
	places int // whose pointer was made, which is not for nothing
	others [kinds]int
}

func (f *findings) text(s string, dec *jsontext.Decoder) {
	counts, some := count(s)
	if !some {
		return
	}
	where := elsewhere
	if f.places < mostMarked && len(f.named) < mostMarked {
		where = shorten(escaped(string(dec.StackPointer())), maxWhere)
		f.places++
	}
	for k, n := range counts {
		switch {
		case n == 0:
		case where == elsewhere || !f.add(where, kind(k).String(), n):
			f.others[k] += n
		}
	}
}

// add counts under a mark of its own; false if there is no room for one more.
func (f *findings) add(where, what string, n int) bool {
	i := slices.IndexFunc(f.named, func(m Mark) bool { return m.Where == where && m.What == what })
	if i >= 0 {
		f.named[i].Count += n // the name of a member and its value have one pointer
		return true
	}
	if len(f.named) == mostMarked {
		return false
	}
	f.named = append(f.named, Mark{where, what, n})
	return true
}

func (f *findings) marks() []Mark {
	all := f.named
	for k, n := range f.others {
		if n > 0 {
			all = append(all, Mark{elsewhere, kind(k).String(), n})
		}
	}
	slices.SortFunc(all, func(a, b Mark) int {
		return cmp.Or(cmp.Compare(a.Where, b.Where), cmp.Compare(a.What, b.What))
	})
	return all
}

// count counts the characters of each kind that are marked in a text.
func count(s string) (counts [kinds]int, some bool) {
	text := []rune(s)
	for i := range text {
		k := kindOf(text[i])
		if k == shown || k == joiner && joins(text, i) || k == variation && varies(text, i) {
			continue
		}
		if k == joiner {
			k = zeroWidth
		}
		counts[k]++
		some = true
	}
	return counts, some
}
