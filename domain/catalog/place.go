package catalog

import (
	"strconv"
	"strings"
)

// maxPlace is the length that place keeps to, in bytes.
const maxPlace = 58

// place shows the names and positions that lead to a value, as a path without a
// leading slash. What is no plain word stands in quotes, in ASCII.
func place(path []string) string {
	if len(path) == 0 {
		return "the definition"
	}
	words := make([]string, len(path))
	for i, name := range path {
		words[i] = name
		if !plainWord(name) {
			words[i] = strconv.QuoteToASCII(name)
		}
	}
	return shorten(strings.Join(words, "/"), maxPlace)
}

func plainWord(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.' || c == '$':
		default:
			return false
		}
	}
	return s != ""
}

// shorten leaves out the middle of a text in ASCII that is too long.
func shorten(s string, most int) string {
	const gap = "..."
	if len(s) <= most {
		return s
	}
	head := (most - len(gap)) / 2
	return s[:head] + gap + s[len(s)-(most-len(gap)-head):]
}
