package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
)

// minLine is the least length of a line of a secret that has several, to be a
// secret by itself: such a value is often logged line by line.
const minLine = 16

// values lists what is a secret where this one is: it may be trimmed, meant with
// its escapes resolved, or said line by line.
func values(secret string) []string {
	out := []string{secret, strings.TrimSpace(secret)}
	if v := (&view{text: []byte(secret)}).under(escapes); v != nil {
		out = append(out, string(v.text))
	}
	for _, value := range slices.Clone(out) {
		lines := strings.FieldsFunc(value, func(r rune) bool { return r == '\n' || r == '\r' })
		for _, line := range lines {
			line = strings.TrimSpace(line)
			// The frame of a PEM block is no secret.
			if len(lines) > 1 && len(line) >= minLine && !strings.HasPrefix(line, "-----") {
				out = append(out, line)
			}
		}
	}
	return out
}

// patterns lists what is looked for in each view of a text.
func patterns(secrets []string) []pattern {
	var out []pattern
	seen := make(map[string]bool)
	add := func(text string, base64 bool) {
		if !Unfit(text) && !seen[text] {
			seen[text] = true
			out = append(out, pattern{[]byte(text), base64})
		}
	}
	for _, secret := range secrets {
		for _, value := range values(secret) {
			if Unfit(value) {
				continue
			}
			for _, s := range spellings(value) {
				add(s, false)
				add(folded(s), false)
				add(hex.EncodeToString([]byte(s)), false)
				add(strings.ToUpper(hex.EncodeToString([]byte(s))), false)
				for offset := range 3 {
					core := base64Core(s, offset)
					add(core, true)
					add(urlAlphabet.Replace(core), true)
				}
			}
		}
	}
	return out
}

// spellings lists how a value may have been written down before it was encoded.
func spellings(value string) []string {
	out := []string{value, strings.ReplaceAll(value, " ", "+"), url.QueryEscape(value), url.PathEscape(value), html.EscapeString(value)}
	// A value that is not UTF-8 cannot stand in JSON as it is.
	if quoted, err := jsontext.AppendQuote(nil, value); err == nil {
		forWeb, _ := json.Marshal(value) // a string always marshals
		out = append(out, inner(quoted), inner(forWeb), inner(ascii(quoted)))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func inner(quoted []byte) string { return string(quoted[1 : len(quoted)-1]) }

// ascii escapes what is none.
func ascii(quoted []byte) []byte {
	var out []byte
	for _, r := range string(quoted) {
		if r < 0x80 {
			out = append(out, byte(r))
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}

func folded(s string) string {
	if v := (&view{text: []byte(s)}).under(breaks); v != nil {
		return string(v.text)
	}
	return s
}

var urlAlphabet = strings.NewReplacer("+", "-", "/", "_")

// base64Core encodes value behind offset other bytes and keeps the characters
// that depend on nothing but value.
func base64Core(value string, offset int) string {
	encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", offset) + value))
	first := (offset*8 + 5) / 6
	last := (offset + len(value)) * 8 / 6
	return encoded[first:last]
}
