package config

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// redacted stands where a secret stood. It has nothing that JSON escapes.
const redacted = "[redacted]"

const (
	maxRounds = 8 // of replacing, where a replacement completes a secret anew
	maxLevels = 3 // of escapes inside escapes that are looked through
)

// A Redactor takes secret values out of bytes that are about to be written. It
// finds a value as it is, escaped as JSON (also several times over) or as part
// of a URL, and in base64 at any offset. The zero Redactor and nil know no secrets. It never changes and
// may be used by several goroutines at once.
type Redactor struct {
	plain  [][]byte // longest first
	base64 [][]byte // the characters that the secret alone decides
}

// NewRedactor makes one for these values. Those that Load refuses are left out:
// of less than 8 bytes, or a part of "[redacted]" itself.
func NewRedactor(secrets []string) *Redactor {
	r := &Redactor{}
	for _, secret := range secrets {
		for _, value := range []string{secret, strings.TrimSpace(secret)} {
			if !unfit(value) {
				r.add(value)
			}
		}
	}
	longestFirst := func(a, b []byte) int { return cmp.Or(cmp.Compare(len(b), len(a)), bytes.Compare(a, b)) }
	for _, forms := range []*[][]byte{&r.plain, &r.base64} {
		slices.SortFunc(*forms, longestFirst)
		*forms = slices.CompactFunc(*forms, bytes.Equal)
	}
	return r
}

// unfit reports a value that cannot be redacted: it occurs in other text by
// chance, or in the text that takes its place.
func unfit(value string) bool {
	return len(value) < minSecret || strings.Contains(`"`+redacted+`"`, value)
}

func (r *Redactor) add(value string) {
	forms := []string{value, url.QueryEscape(value), url.PathEscape(value)}
	escaped := value
	for range maxLevels {
		// A value that is not UTF-8 cannot stand in JSON as it is.
		quoted, err := jsontext.AppendQuote(nil, escaped)
		if err != nil {
			break
		}
		escaped = string(quoted[1 : len(quoted)-1])
		forms = append(forms, escaped)
	}
	for _, form := range forms {
		r.plain = append(r.plain, []byte(form))
	}
	for offset := range 3 {
		std := base64Core(value, offset)
		r.base64 = append(r.base64, []byte(std), []byte(urlAlphabet.Replace(std)))
	}
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

// Redact returns b with every secret replaced by "[redacted]". Where there is
// none it returns b itself, and otherwise new bytes; it never changes b. If b
// is one JSON value, so is the result, and the numbers and texts around a
// secret stay as they were; a secret that can be taken out in no other way
// takes the whole of b with it.
func (r *Redactor) Redact(b []byte) []byte {
	if r == nil || len(r.plain) == 0 || !r.suspect(b) {
		return b
	}
	if !validJSON(b) {
		return r.text(b)
	}
	out, changed := r.json(b)
	switch {
	case !changed && !r.found(b):
		return b
	case r.found(out), !validJSON(out), jsontext.Value(b).IsValid() && !jsontext.Value(out).IsValid():
		return []byte(`"` + redacted + `"`)
	}
	return out
}

// suspect is quick and never wrong in saying no: a secret that shows in none of
// its forms can hide behind escapes that need not be there.
func (r *Redactor) suspect(b []byte) bool {
	return r.found(b) || bytes.Contains(b, []byte(`\u`)) || bytes.Contains(b, []byte(`\/`))
}

func (r *Redactor) found(b []byte) bool {
	in := func(form []byte) bool { return bytes.Contains(b, form) }
	return slices.ContainsFunc(r.plain, in) || slices.ContainsFunc(r.base64, in)
}

// text replaces in what is no JSON.
func (r *Redactor) text(b []byte) []byte {
	out := b
	for range maxRounds {
		if !r.found(out) {
			break
		}
		out = r.replace(out)
	}
	if r.found(out) || r.hidden(out) {
		return []byte(redacted)
	}
	return out
}

// replace makes one pass. Of base64 the whole run goes, since its other
// characters may be shared with the secret.
func (r *Redactor) replace(b []byte) []byte {
	for _, form := range r.plain {
		b = bytes.ReplaceAll(b, form, []byte(redacted))
	}
	for _, form := range r.base64 {
		b = replaceRuns(b, form)
	}
	return b
}

func replaceRuns(b, form []byte) []byte {
	var out []byte
	for {
		start := bytes.Index(b, form)
		if start < 0 {
			return append(out, b...)
		}
		end := start + len(form)
		for start > 0 && isBase64(b[start-1]) {
			start--
		}
		for end < len(b) && (isBase64(b[end]) || b[end] == '=') {
			end++
		}
		out = append(append(out, b[:start]...), redacted...)
		b = b[end:]
	}
}

func isBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("+/-_", c) >= 0
}

// hidden reports a secret that appears only when escapes are resolved.
func (r *Redactor) hidden(b []byte) bool {
	for range maxLevels {
		if bytes.IndexByte(b, '\\') < 0 {
			return false
		}
		b = unescape(b)
		if r.found(b) {
			return true
		}
	}
	return false
}

// unescape resolves what looks like an escape of JSON, one level of it.
func unescape(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return append(out, b...)
		}
		out, b = append(out, b[:i]...), b[i:]
		n := escapeLen(b)
		value, err := jsontext.AppendUnquote(nil, slices.Concat([]byte{'"'}, b[:n], []byte{'"'}))
		if err != nil {
			value, n = b[:1], 1
		}
		out, b = append(out, value...), b[n:]
	}
}

// escapeLen is the length of the escape that b begins with, as far as it can
// be told by the first bytes.
func escapeLen(b []byte) int {
	switch {
	case len(b) < 2 || b[1] != 'u':
		return min(2, len(b))
	case len(b) >= 12 && b[6] == '\\' && b[7] == 'u' && bytes.IndexByte([]byte("dD"), b[2]) >= 0:
		return 12 // a surrogate pair
	}
	return min(6, len(b))
}

// json goes through a valid JSON value and changes nothing but the strings and
// numbers that hold a secret.
func (r *Redactor) json(b []byte) (out []byte, changed bool) {
	out = make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		n := tokenLen(b[i:])
		token := b[i : i+n]
		i += n
		if clean, ok := r.jsonToken(token); ok {
			out, changed = append(out, clean...), true
			continue
		}
		out = append(out, token...)
	}
	return out, changed
}

func (r *Redactor) jsonToken(token []byte) ([]byte, bool) {
	if token[0] != '"' {
		return []byte(`"` + redacted + `"`), r.found(token)
	}
	// An error tells of text that is not UTF-8; value is then only close to it.
	value, broken := jsontext.AppendUnquote(nil, token)
	if !r.found(value) && !r.hidden(value) && !r.found(token) {
		return nil, false
	}
	clean, err := jsontext.AppendQuote(nil, r.text(value))
	if broken != nil || err != nil || r.found(clean) {
		return []byte(`"` + redacted + `"`), true
	}
	return clean, true
}

// tokenLen is the length of what valid JSON begins with: a whole string, a run
// of a number or literal, or one byte of anything else.
func tokenLen(b []byte) int {
	if b[0] == '"' {
		for i := 1; i < len(b); i++ {
			switch b[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return len(b)
	}
	n := 0
	for n < len(b) && isWord(b[n]) {
		n++
	}
	return max(n, 1)
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c == 'E' || c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'
}

// validJSON is lenient where readers differ: names may be there twice, and text
// need not be UTF-8.
func validJSON(b []byte) bool {
	return jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}
