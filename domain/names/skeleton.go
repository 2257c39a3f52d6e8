package names

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// span is a run of characters that look like those of an alphabet, over and
// over; with an empty alphabet they look like nothing at all.
type span struct {
	from, to rune
	alphabet string
}

const (
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lower  = "abcdefghijklmnopqrstuvwxyz"
	digits = "123456789"
	blank  = "_"
	ascii  = "!\"#$%&'()*+,-./0" + digits + ":;<=>?@" + upper + "[\\]^_`" + lower + "{|}~"
)

// spans is sorted. What looks like nothing: controls, marks above and below
// letters, zero-width and bidirectional characters, fillers, variation
// selectors, tags.
var spans = [...]span{
	{0x80, 0x9F, ""}, {0xA0, 0xA0, blank}, {0xAD, 0xAD, ""},
	{0x300, 0x36F, ""}, {0x483, 0x489, ""}, {0x61C, 0x61C, ""}, {0x115F, 0x1160, ""}, {0x1680, 0x1680, blank},
	{0x17B4, 0x17B5, ""}, {0x180B, 0x180F, ""}, {0x1AB0, 0x1AFF, ""}, {0x1DC0, 0x1DFF, ""},
	{0x2000, 0x200A, blank}, {0x200B, 0x200F, ""}, {0x2028, 0x2029, blank}, {0x202A, 0x202E, ""},
	{0x202F, 0x202F, blank}, {0x205F, 0x205F, blank}, {0x2060, 0x206F, ""}, {0x20D0, 0x20FF, ""},
	{0x2460, 0x2468, digits}, {0x2474, 0x247C, digits}, {0x249C, 0x24B5, lower}, {0x24B6, 0x24CF, upper}, {0x24D0, 0x24E9, lower},
	{0x2776, 0x277E, digits}, {0x2780, 0x2788, digits}, {0x278A, 0x2792, digits},
	{0x2800, 0x2800, blank}, {0x3000, 0x3000, blank}, {0x3164, 0x3164, ""},
	{0xFE00, 0xFE0F, ""}, {0xFE20, 0xFE2F, ""}, {0xFEFF, 0xFEFF, ""}, {0xFF01, 0xFF5E, ascii},
	{0xFFA0, 0xFFA0, ""}, {0xFFF0, 0xFFFB, ""},
	{0x1BCA0, 0x1BCA3, ""}, {0x1CCD6, 0x1CCEF, upper}, {0x1CCF0, 0x1CCF9, "0" + digits}, {0x1D173, 0x1D17A, ""},
	{0x1D400, 0x1D6A3, upper + lower}, {0x1D7CE, 0x1D7FF, "0" + digits},
	{0x1F110, 0x1F129, upper}, {0x1F130, 0x1F149, upper}, {0x1F150, 0x1F169, upper}, {0x1F170, 0x1F189, upper}, {0x1F1E6, 0x1F1FF, upper},
	{0x1FBF0, 0x1FBF9, "0" + digits}, {0xE0000, 0xE0FFF, ""},
}

// styledGreek are mathematical Greek letters, in runs of 58: 25 capitals, a
// sign, 25 small ones and 7 signs.
const styledGreekFrom, styledGreekTo = 0x1D6A8, 0x1D7C9

// asciiLooks gives each ASCII character what it looks like, and glyphLooks the
// others. Both are made once, and never change.
var (
	asciiLooks = makeASCIILooks()
	glyphLooks = makeGlyphLooks()
)

func makeASCIILooks() (looks [utf8.RuneSelf]string) {
	for c := range looks {
		switch {
		case 'A' <= c && c <= 'Z':
			looks[c] = string(rune(c - 'A' + 'a'))
		case c > ' ' && c < 0x7F:
			looks[c] = string(rune(c))
		}
	}
	for _, same := range []struct{ looks, chars string }{
		{"o", "0Oo"}, {"l", "1lLIi|!"}, {"s", "5Ss$"}, {"z", "2Zz"}, {"b", "8Bb"}, {blank, "_-./ \t\n\v\f\r\\"},
		{"rn", "mM"}, {"vv", "wW"}, {"cl", "dD"},
	} {
		for _, c := range same.chars {
			looks[c] = same.looks
		}
	}
	return looks
}

func makeGlyphLooks() map[rune]string {
	looks := map[rune]string{}
	for _, g := range glyphs {
		for _, r := range g.glyphs {
			looks[r] = g.looks
		}
	}
	return looks
}

// Skeleton maps a name to what it looks like: two names that a person could
// take for each other have one skeleton. It takes any bytes, costs in
// proportion to them, and Skeleton of a skeleton is that skeleton. It is made
// to be compared, not shown.
//
// Upper and lower case look alike, and so do 0 O o, 1 l I i, 5 S, 2 Z, 8 B, m
// and rn, w and vv, d and cl, and the separators _ - . / however many stand
// together. A name that looks like a second one, which looks like a third, looks
// like the third: "clear", "c1ear" and "dear" are alike, and with them "ciear".
// Outside of ASCII, full-width and other styled letters, letters with marks and
// the letters of other scripts that are drawn like Latin ones are what they look
// like; what cannot be seen is left out, space is a separator. Other characters
// stand for themselves, a byte that is part of none for U+FFFD. The tables are
// this package's own, after Unicode's compatibility decompositions and
// confusables; they are not all of either.
func Skeleton(name string) string {
	return string(appendSkeleton(make([]byte, 0, len(name)+len(name)/4), name))
}

func appendSkeleton(b []byte, name string) []byte {
	for _, r := range name {
		if r < utf8.RuneSelf {
			b = appendLooks(b, asciiLooks[r])
		} else {
			b = appendGlyph(b, r)
		}
	}
	return b
}

// appendLooks joins separators that meet.
func appendLooks(b []byte, looks string) []byte {
	if looks == blank && len(b) > 0 && b[len(b)-1] == blank[0] {
		return b
	}
	return append(b, looks...)
}

func appendGlyph(b []byte, r rune) []byte {
	if r >= styledGreekFrom && r <= styledGreekTo {
		r = plainGreek(r)
	}
	looks, ok := glyphLooks[r]
	if !ok {
		looks, ok = spanLooks(r)
	}
	if !ok {
		return utf8.AppendRune(b, r)
	}
	for _, c := range []byte(looks) {
		b = appendLooks(b, asciiLooks[c])
	}
	return b
}

func plainGreek(r rune) rune {
	at := (r - styledGreekFrom) % 58
	switch {
	case at < 25:
		return 'Α' + at
	case at > 25 && at < 51:
		return 'α' + at - 26
	}
	return r
}

func spanLooks(r rune) (string, bool) {
	i, found := slices.BinarySearchFunc(spans[:], r, func(s span, r rune) int { return int(s.to - r) })
	if i == len(spans) || !found && r < spans[i].from {
		return "", false
	}
	s := spans[i]
	if s.alphabet == "" {
		return "", true
	}
	at := int(r-s.from) % len(s.alphabet)
	return s.alphabet[at : at+1], true
}

// skeletonKey is the number that names of one skeleton are indexed by.
func skeletonKey(name string) uint64 {
	var short [128]byte
	sum := sha256.Sum256(appendSkeleton(short[:0], name))
	return binary.BigEndian.Uint64(sum[:])
}

// Alike returns, sorted, the canonical names that have the skeleton of a name,
// without that name itself, which need not be in the table. It costs in
// proportion to the answer.
func (t *Table) Alike(name string) []string {
	skeleton := Skeleton(name)
	return slices.DeleteFunc(t.looks.at(skeletonKey(name)), func(other string) bool {
		return other == name || Skeleton(other) != skeleton
	})
}
