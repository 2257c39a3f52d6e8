package catalog

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxShown  = 80 // characters of each side, without quotes and dots
	maxBefore = 24 // of them before the first difference
	cut       = "..."
)

// changedText shows two texts that differ.
func changedText(a, b string) string {
	at := common(a, b)
	return quoted(a, at) + " -> " + quoted(b, at)
}

// common counts the bytes that two texts begin with alike.
func common[T string | []byte](a, b T) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// quoted shows a text, or the part of it around a place.
func quoted(s string, at int) string {
	if shown, all := quotedFrom(s, 0); all {
		return `"` + shown + `"`
	}
	start := min(at, len(s))
	for start > 0 && start < len(s) && !utf8.RuneStart(s[start]) {
		start--
	}
	for used := 0; start > 0; {
		_, size := utf8.DecodeLastRuneInString(s[:start])
		if used += len(escaped(s[start-size : start])); used > maxBefore {
			break
		}
		start -= size
	}
	shown, all := quotedFrom(s, start)
	shown = `"` + shown + `"`
	if start > 0 {
		shown = cut + shown
	}
	if !all {
		shown += cut
	}
	return shown
}

// quotedFrom escapes as much of a text as may be shown, and says whether that is
// all that there is.
func quotedFrom(s string, start int) (shown string, all bool) {
	for start < len(s) {
		_, size := utf8.DecodeRuneInString(s[start:])
		next := escaped(s[start : start+size])
		if len(shown)+len(next) > maxShown {
			return shown, false
		}
		shown += next
		start += size
	}
	return shown, true
}

// changedRaw shows two values of which at most one is a text.
func changedRaw(a, b []byte) string {
	at := 0
	if len(a) > maxShown || len(b) > maxShown {
		at = max(0, common(a, b)-maxBefore)
	}
	return showRaw(a, at) + " -> " + showRaw(b, at)
}

// showRaw shows JSON from a place on, without white space and in ASCII.
func showRaw(raw []byte, start int) string {
	shown := ""
	if start > 0 {
		shown = cut
	}
	room, isText := maxShown, false
	for start < len(raw) {
		r, size := utf8.DecodeRune(raw[start:])
		next := string(raw[start : start+size])
		switch {
		case !isText && r <= ' ':
			next = ""
		case r >= 0x7f:
			next = unicodeEscape(r)
		case isText && r == '\\' && start+1 < len(raw):
			size = 2
			next = string(raw[start : start+size])
		case r == '"':
			isText = !isText
		}
		if room -= len(next); room < 0 {
			return shown + cut
		}
		shown += next
		start += size
	}
	return shown
}

// unicodeEscape writes a character as JSON does in ASCII.
func unicodeEscape(r rune) string {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
