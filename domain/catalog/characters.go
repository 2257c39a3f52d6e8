package catalog

// kind is what a character does that is not seen.
type kind int

const (
	tag kind = iota
	bidi
	variation
	zeroWidth
	blank
	control
	format
	private
	unassigned
	kinds int = iota

	joiner kind = -1 // zero width, and harmless in its place
	shown  kind = -2
)

var kindNames = [kinds]string{"tag", "bidi", "variation", "zero_width", "blank", "control", "format", "private", "unassigned"}

// String is the word of a Mark.
func (k kind) String() string { return kindNames[k] }

// span is a range of characters.
type span struct{ first, last rune }

// unseen is every character that may be marked, in order. It is written out,
// and not taken from the tables of the language, which grow with Unicode.
var unseen = []struct {
	span
	kind kind
}{
	{span{0x00, 0x08}, control}, {span{0x0b, 0x0c}, control}, {span{0x0e, 0x1f}, control}, {span{0x7f, 0x9f}, control},
	{span{0xad, 0xad}, zeroWidth}, {span{0x34f, 0x34f}, zeroWidth},
	{span{0x600, 0x605}, format}, {span{0x61c, 0x61c}, bidi}, {span{0x6dd, 0x6dd}, format}, {span{0x70f, 0x70f}, format},
	{span{0x890, 0x891}, format}, {span{0x8e2, 0x8e2}, format},
	{span{0x115f, 0x1160}, blank}, {span{0x17b4, 0x17b5}, zeroWidth},
	{span{0x180b, 0x180d}, variation}, {span{0x180e, 0x180e}, zeroWidth}, {span{0x180f, 0x180f}, variation},
	{span{0x200b, 0x200b}, zeroWidth}, {span{0x200c, 0x200d}, joiner}, {span{0x200e, 0x200f}, bidi},
	{span{0x2028, 0x2029}, control}, {span{0x202a, 0x202e}, bidi},
	{span{0x2060, 0x2064}, zeroWidth}, {span{0x2065, 0x2065}, unassigned}, {span{0x2066, 0x2069}, bidi}, {span{0x206a, 0x206f}, format},
	{span{0x2800, 0x2800}, blank}, {span{0x3164, 0x3164}, blank},
	{span{0xe000, 0xf8ff}, private}, {span{0xfdd0, 0xfdef}, unassigned}, {span{0xfe00, 0xfe0f}, variation},
	{span{0xfeff, 0xfeff}, zeroWidth}, {span{0xffa0, 0xffa0}, blank}, {span{0xfff0, 0xfff8}, unassigned}, {span{0xfff9, 0xfffb}, format},
	{span{0xfffe, 0xffff}, unassigned},
	{span{0x110bd, 0x110bd}, format}, {span{0x110cd, 0x110cd}, format}, {span{0x13430, 0x1343f}, format},
	{span{0x1bca0, 0x1bca3}, format}, {span{0x1d173, 0x1d17a}, format}, {span{0x1fffe, 0x1ffff}, unassigned},
	{span{0x2fffe, 0x2ffff}, unassigned}, {span{0x3fffe, 0xdffff}, unassigned},
	{span{0xe0000, 0xe007f}, tag}, {span{0xe0080, 0xe00ff}, unassigned}, {span{0xe0100, 0xe01ef}, variation}, {span{0xe01f0, 0xeffff}, unassigned},
	{span{0xf0000, 0xffffd}, private}, {span{0xffffe, 0xfffff}, unassigned}, {span{0x100000, 0x10fffd}, private}, {span{0x10fffe, 0x10ffff}, unassigned},
}

// kindOf looks a character up. Most are below or between.
func kindOf(r rune) kind {
	if ' ' <= r && r < 0x7f {
		return shown
	}
	low, high := 0, len(unseen)
	for low < high {
		switch m := (low + high) / 2; {
		case r < unseen[m].first:
			high = m
		case r > unseen[m].last:
			low = m + 1
		default:
			return unseen[m].kind
		}
	}
	return shown
}

// pictures are characters that have an emoji form.
var pictures = []span{
	{0xa9, 0xa9}, {0xae, 0xae}, {0x203c, 0x203c}, {0x2049, 0x2049}, {0x2122, 0x2122}, {0x2139, 0x2139}, {0x2194, 0x2199}, {0x21a9, 0x21aa},
	{0x231a, 0x231b}, {0x2328, 0x2328}, {0x23cf, 0x23cf}, {0x23e9, 0x23fa}, {0x24c2, 0x24c2}, {0x25aa, 0x25ab}, {0x25b6, 0x25b6},
	{0x25c0, 0x25c0}, {0x25fb, 0x25fe}, {0x2600, 0x27bf}, {0x2934, 0x2935}, {0x2b05, 0x2b07}, {0x2b1b, 0x2b1c}, {0x2b50, 0x2b50}, {0x2b55, 0x2b55},
	{0x3030, 0x3030}, {0x303d, 0x303d}, {0x3297, 0x3297}, {0x3299, 0x3299}, {0x1f000, 0x1faff},
}

// joined are blocks of scripts whose spelling needs joiners and non-joiners.
var joined = []span{
	{0x600, 0x7ff}, {0x840, 0xdff}, {0xf00, 0x109f}, {0x1780, 0x18af}, {0x1b00, 0x1bff}, {0xa840, 0xa87f}, {0xa8e0, 0xa8ff},
	{0xa980, 0xa9df}, {0xfb50, 0xfdcf}, {0xfdf0, 0xfdff}, {0xfe70, 0xfefe}, {0x10d00, 0x10d3f}, {0x11000, 0x114ff}, {0x11600, 0x1173f}, {0x1e900, 0x1e95f},
}

func among(spans []span, r rune) bool {
	for _, s := range spans {
		if s.first <= r && r <= s.last {
			return true
		}
	}
	return false
}

// at gives a character of a text, or 0 beyond its ends.
func at(text []rune, i int) rune {
	if i < 0 || i >= len(text) {
		return 0
	}
	return text[i]
}

func isTone(r rune) bool { return 0x1f3fb <= r && r <= 0x1f3ff }

// joins says that the joiner or non-joiner at i does what it is there for.
func joins(text []rune, i int) bool {
	before, after := at(text, i-1), at(text, i+1)
	if among(joined, before) && among(joined, after) && kindOf(before) == shown && kindOf(after) == shown {
		return true
	}
	if before == 0xfe0f {
		before = at(text, i-2)
	}
	return text[i] == 0x200d && among(pictures, before) && among(pictures, after) && !isTone(after)
}

// varies says that the variation selector at i chooses between emoji and text.
func varies(text []rune, i int) bool {
	if text[i] != 0xfe0e && text[i] != 0xfe0f {
		return false
	}
	before := at(text, i-1)
	isKey := '0' <= before && before <= '9' || before == '#' || before == '*'
	return among(pictures, before) || isKey && at(text, i+1) == 0x20e3
}
