package schema

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// item is one value of a document. Items stand in the order of the text; the
// number 0, which is the root's, is also that of none.
type item struct {
	kind                jsontext.Kind
	name                []byte // of a member, unquoted
	text                []byte // a string, unquoted, or a number
	parent, first, next int32
}

// string returns the string that an item is, or "".
func (i *item) string() string {
	if i.kind != '"' {
		return ""
	}
	return string(i.text)
}

// document is a schema in pieces, with the measures of survey. It aliases the
// text.
type document struct {
	raw   []byte
	at    int // how far raw is read
	items []item

	schemas, pointers, ids, idBytes int
	refs                            map[string]bool
}

// read takes a text to pieces, within the bounds that Compile has. Once it is
// known to be JSON there is little to look for, so this is several times as
// fast as to read it by a decoder.
func (d *document) read(raw []byte) (reason string) {
	switch {
	case len(raw) > maxSchemaBytes:
		return reasonBytes
	case !jsontext.Value(raw).IsValid():
		return reasonText
	}
	d.raw, d.items = raw, make([]item, 0, 16+len(raw)/12)
	if _, reason = d.value(item{}, 0, 0); reason != "" {
		return reason
	}
	if d.items[0].kind != '{' {
		return reasonObject
	}
	return d.beyond()
}

// beyond says which count is too high.
func (d *document) beyond() (reason string) {
	switch {
	case d.schemas > maxSchemas || d.pointers > maxPointerBytes:
		return reasonSchemas
	case len(d.refs) > maxRefs || d.ids > maxIDs || d.idBytes > maxIDBytes:
		return reasonRefs
	}
	return ""
}

// value reads one value, whose name and parent are known. It stands at a depth,
// and at the end of a path of so many bytes.
func (d *document) value(v item, depth, path int) (i int32, reason string) {
	d.pass(' ')
	v.kind = jsontext.Value(d.raw[d.at : d.at+1]).Kind()
	i = int32(len(d.items))
	d.items = append(d.items, v)
	switch v.kind {
	case '{', '[':
		return i, d.nested(i, depth, path)
	case '"':
		d.items[i].text = d.text()
		d.identifier(v.name, d.items[i].text)
		return i, ""
	case 't', 'f':
		d.schemas++
	}
	start := d.at
	for d.at < len(d.raw) && d.raw[d.at] > ' ' && d.raw[d.at] != ',' && d.raw[d.at] != ']' && d.raw[d.at] != '}' {
		d.at++
	}
	d.items[i].text = d.raw[start:d.at]
	if v.kind == '0' {
		if digits, exponent := numberSize(string(d.items[i].text)); digits > maxDigits || exponent > maxExponent {
			return i, reasonNumber
		}
	}
	return i, ""
}

func (d *document) nested(parent int32, depth, path int) (reason string) {
	isObject := d.items[parent].kind == '{'
	if isObject {
		d.schemas++
	}
	d.pointers += path
	if reason := d.beyond(); reason != "" {
		return reason
	}
	if depth == maxSchemaDepth {
		return reasonDepth
	}
	d.at++
	var last int32
	for n := 0; !d.closes(); n++ {
		v, step := item{parent: parent}, 1+digits(n)
		if isObject {
			v.name = d.text()
			step = 1 + len(v.name)
			d.pass(':')
		}
		i, reason := d.value(v, depth+1, path+step)
		if reason != "" {
			return reason
		}
		if last == 0 {
			d.items[parent].first = i
		} else {
			d.items[last].next = i
		}
		last = i
	}
	d.at++
	return ""
}

// pass goes on after white space and a sign, where they are.
func (d *document) pass(sign byte) {
	for d.raw[d.at] <= ' ' || d.raw[d.at] == sign {
		d.at++
	}
}

// closes says whether an object or array ends here, and goes on to what is next
// in it if not.
func (d *document) closes() bool {
	d.pass(',')
	return d.raw[d.at] == '}' || d.raw[d.at] == ']'
}

// text reads a string.
func (d *document) text() []byte {
	start, escaped := d.at+1, false
	for d.at = start; d.raw[d.at] != '"'; d.at++ {
		if d.raw[d.at] == '\\' {
			escaped = true
			d.at++
		}
	}
	text := d.raw[start:d.at]
	d.at++
	if escaped {
		text, _ = jsontext.AppendUnquote(nil, d.raw[start-1:d.at])
	}
	return text
}

// digits counts those of a position.
func digits(n int) int {
	count := 1
	for ; n > 9; n /= 10 {
		count++
	}
	return count
}

func (d *document) identifier(name, text []byte) {
	switch string(name) {
	case "$id":
		d.ids++
		d.idBytes = max(d.idBytes, len(text))
	case "$ref", "$dynamicRef", "$recursiveRef":
		if d.refs == nil {
			d.refs = make(map[string]bool)
		}
		d.refs[string(text)] = true
	}
}

// path gives the names and positions that lead to an item.
func (d *document) path(i int32) []string {
	var path []string
	for ; i != 0; i = d.items[i].parent {
		parent := d.items[i].parent
		if d.items[parent].kind == '{' {
			path = append(path, string(d.items[i].name))
			continue
		}
		n := 0
		for c := d.items[parent].first; c != i; c = d.items[c].next {
			n++
		}
		path = append(path, strconv.Itoa(n))
	}
	slices.Reverse(path)
	return path
}
