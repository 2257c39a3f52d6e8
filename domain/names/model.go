package names

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Model APIs take tool names of 1 to modelLength characters of [a-zA-Z0-9_-].
//
// modelDigits is the length of a hash in hex. Of 5,000,000 names (200 peers,
// 25,000 tools each) that are all hashed, two meet on 64 bits with a
// probability below one in a million; on 40 bits some eleven pairs would. The
// other reason is malice: a peer may look for a name that meets a given one, to
// make that unreachable. That takes 2^40 tries on 40 bits, minutes on one
// graphics card, and 2^64 on 64, centuries. A name is cut to what is left, 47
// characters.
const (
	modelLength = 64
	modelDigits = 16
)

// ModelName returns the form of a canonical name that fits model APIs: 1 to 64
// characters of [a-zA-Z0-9_-]. It depends on that name alone, so no tool can
// change the form of another. A name that fits already stays as it is, unless
// it has the shape of a hashed form: its end is "_" and 16 digits of
// [0-9a-f]. Of every other name each character outside of [a-zA-Z0-9_-] (a code
// point, or a byte that is part of none) becomes "_", the first 47 characters
// stay, and "_" and the first 16 lower-case hex digits of SHA-256 of the
// canonical name follow. So two names have one form only if their hashes meet,
// see ModelCollisions. The way back is Table.FromModel.
func ModelName(canonical string) string { return modelForm(canonical, modelDigits) }

func modelForm(canonical string, digits int) string {
	if plain(canonical, digits) {
		return canonical
	}
	sum := sha256.Sum256([]byte(canonical))
	b := make([]byte, 0, modelLength)
	for _, r := range canonical {
		if len(b) == modelLength-1-digits {
			break
		}
		if r < 0x80 && fitByte(byte(r)) {
			b = append(b, byte(r))
		} else {
			b = append(b, '_')
		}
	}
	b = append(b, '_')
	return string(append(b, hex.EncodeToString(sum[:])[:digits]...))
}

// plain reports whether a name is its own model form.
func plain(name string, digits int) bool { return fit(name) && !hashed(name, digits) }

func fit(name string) bool {
	for i := range len(name) {
		if !fitByte(name[i]) {
			return false
		}
	}
	return name != "" && len(name) <= modelLength
}

func fitByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// hashed reports whether a name has the shape of a hashed form.
func hashed(name string, digits int) bool {
	at := len(name) - digits
	return at > 0 && name[at-1] == '_' && strings.Trim(name[at:], "0123456789abcdef") == ""
}

// FromModel returns the canonical name that a model form stands for. ok is
// false if no bound name has this form, or more than one has.
func (t *Table) FromModel(model string) (canonical string, ok bool) {
	if !fit(model) {
		return "", false
	}
	if !hashed(model, t.digits) {
		if _, ok := t.Lookup(model); ok {
			return model, true
		}
		return "", false
	}
	key, err := strconv.ParseUint(model[len(model)-t.digits:], 16, 64)
	found := slices.DeleteFunc(t.models.at(key), func(name string) bool { return modelForm(name, t.digits) != model })
	if err != nil || len(found) != 1 {
		return "", false
	}
	return found[0], true
}

// ModelCollision is a model form that more than one canonical name has, so that
// it leads to none of them.
type ModelCollision struct {
	Model string
	Names []string // canonical, sorted
}

// ModelCollisions returns, sorted by form, the model forms that bound names
// share. It costs in proportion to the names whose hashes meet.
func (t *Table) ModelCollisions() []ModelCollision {
	byForm := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(t.models.more)) {
		for _, name := range t.models.at(key) {
			form := modelForm(name, t.digits)
			byForm[form] = append(byForm[form], name)
		}
	}
	var out []ModelCollision
	for _, form := range slices.Sorted(maps.Keys(byForm)) {
		if len(byForm[form]) > 1 {
			out = append(out, ModelCollision{Model: form, Names: byForm[form]})
		}
	}
	return out
}
