package redact

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
)

// Word stands where a secret stood. It has nothing that JSON escapes.
const Word = "[redacted]"

// MinSecret is the least length of a secret in bytes: a shorter one occurs in
// other text by chance.
const MinSecret = 8

const (
	maxRounds = 8 // of replacing, where a replacement completes a secret anew
	maxLevels = 3 // of escapes inside escapes that are looked through
)

// A Redactor takes secret values out of bytes that are about to be written. The
// zero Redactor and nil know no secrets. It may be used by several goroutines at
// once: what Add has returned for is known to every Redact that begins afterwards.
type Redactor struct {
	forms atomic.Pointer[forms] // nil for no secrets; what it points to never changes
	mu    sync.Mutex            // held by Add
	given map[string]bool       // what New was given
	kept  []learned             // what Add was given, oldest first
}

// forms is what is looked for: what New was given and what was learned since apart,
// so that learning takes time in the latter only.
type forms struct{ given, learned *matcher }

// New makes one for these values. Those that are Unfit are left out. Of a value
// with several lines every line of 16 bytes and more is a secret too.
func New(secrets []string) *Redactor {
	r := &Redactor{given: make(map[string]bool)}
	for _, secret := range secrets {
		r.given[secret] = true
	}
	if list := patterns(secrets); len(list) > 0 {
		r.forms.Store(&forms{given: newMatcher(list)})
	}
	return r
}

// Unfit reports a value that cannot be redacted: it is shorter than MinSecret, or a
// part of Word.
func Unfit(value string) bool {
	return len(value) < MinSecret || strings.Contains(`"`+Word+`"`, value)
}

// Redact returns b with every secret replaced by "[redacted]". Where there is
// none it returns b itself, and otherwise new bytes; it never changes b. What it
// returns has no secret left, so redacting it again changes nothing.
//
// If b is one JSON value, so is the result, and the numbers and texts around a
// secret stay as they were. A secret that reaches over several values takes the
// smallest value with it that holds it all; one that can be taken out in no other
// way takes the whole of b.
func (r *Redactor) Redact(b []byte) []byte {
	if r == nil {
		return b
	}
	known := r.forms.Load()
	if known == nil {
		return b
	}
	spans := known.find(b)
	if len(spans) == 0 {
		return b
	}
	asJSON, strict := validJSON(b), jsontext.Value(b).IsValid()
	whole := []byte(Word)
	if asJSON {
		whole = []byte(`"` + Word + `"`)
	}
	out := b
	for range maxRounds {
		if asJSON {
			out = replaceJSON(out, spans)
		} else {
			out = replaceText(out, spans)
		}
		if asJSON && !validJSON(out) || strict && !jsontext.Value(out).IsValid() {
			return whole // two names have become one
		}
		if spans = known.find(out); len(spans) == 0 {
			return out
		}
	}
	return whole
}

// find lists the places of secrets in b, in order and apart from each other.
func (f *forms) find(b []byte) []span {
	var spans []span
	views := []*view{{text: b}}
	for i := 0; i < len(views); i++ {
		v := views[i]
		spans = f.look(v, spans)
		if folded := v.under(breaks); folded != nil {
			spans = f.look(folded, spans)
		}
		for _, l := range []layer{escapes, percents} {
			if v.depth == maxLevels {
				break
			}
			if next := v.under(l); next != nil && !seen(views, next) {
				views = append(views, next)
			}
		}
	}
	return union(spans)
}

func (f *forms) look(v *view, spans []span) []span {
	for _, m := range []*matcher{f.given, f.learned} {
		if m != nil {
			m.find(v.text, func(s span) { spans = append(spans, v.origin(s)) })
		}
	}
	return spans
}

// seen reports a view that two layers lead to in either order.
func seen(views []*view, v *view) bool {
	for _, old := range views {
		if old.depth == v.depth && bytes.Equal(old.text, v.text) {
			return true
		}
	}
	return false
}

// replaceText puts Word where secrets are.
func replaceText(b []byte, spans []span) []byte {
	out := make([]byte, 0, len(b))
	done := 0
	for _, s := range spans {
		out = append(append(out, b[done:s.from]...), Word...)
		done = s.to
	}
	return append(out, b[done:]...)
}

// validJSON is lenient where readers differ: names may be there twice, and text
// need not be UTF-8.
func validJSON(b []byte) bool {
	return jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}
