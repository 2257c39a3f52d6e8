package catalog

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// value is a JSON value in pieces, which alias the text.
type value struct {
	name  string // of a member, or the position of an element
	kind  jsontext.Kind
	raw   []byte
	below []*value // members sorted by name, or elements
}

// text returns the string that a value is.
func (v *value) text() string {
	b, _ := jsontext.AppendUnquote(nil, v.raw)
	return string(b)
}

// parse takes a text to pieces; false if it is not exactly one value.
func parse(raw []byte) (*value, bool) {
	if !jsontext.Value(raw).IsValid() {
		return nil, false
	}
	p := parser{dec: jsontext.NewDecoder(bytes.NewBuffer(raw)), raw: raw}
	v := p.value("")
	return v, p.err == nil
}

type parser struct {
	dec *jsontext.Decoder
	raw []byte
	err error
}

func (p *parser) value(name string) *value {
	v := &value{name: name, kind: p.dec.PeekKind()}
	if p.err != nil || v.kind != '{' && v.kind != '[' {
		v.raw = p.scalar()
		return v
	}
	_, p.err = p.dec.ReadToken()
	start := p.dec.InputOffset() - 1
	for n := 0; p.err == nil && p.dec.PeekKind() != '}' && p.dec.PeekKind() != ']'; n++ {
		name := strconv.Itoa(n)
		if v.kind == '{' {
			name = (&value{raw: p.scalar()}).text()
		}
		v.below = append(v.below, p.value(name))
	}
	if p.err == nil {
		_, p.err = p.dec.ReadToken()
	}
	v.raw = p.raw[start:p.dec.InputOffset()]
	if v.kind == '{' {
		slices.SortFunc(v.below, func(a, b *value) int { return cmp.Compare(a.name, b.name) })
	}
	return v
}

// scalar reads a value that is taken as a whole.
func (p *parser) scalar() []byte {
	if p.err != nil {
		return nil
	}
	read, err := p.dec.ReadValue()
	p.err = err
	end := p.dec.InputOffset() // what was read is good only until the next call
	return p.raw[end-int64(len(read)) : end]
}
