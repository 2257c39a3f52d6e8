package schema

import (
	"net/url"
	"strconv"
	"strings"
)

// rootAddress is where a schema without an address of its own stands. It leads
// nowhere.
var rootAddress = &url.URL{Scheme: "schema", Host: "inspected", Path: "/"}

// maxAddress bounds the length of an address that was made of others.
const maxAddress = 2 * maxIDBytes

// resource is a schema with an address, and what may be referred to in it by a
// plain name.
type resource struct {
	root    int32
	address *url.URL
	anchors map[string]int32
}

// reference is what a keyword of schema from, in a resource, says.
type reference struct {
	from, in      int32
	keyword, text string
}

// target is where a reference leads.
type target struct {
	item int32
	end  end
}

// end says how the search for a target ends.
type end int

const (
	found end = iota
	nothing
	outside
)

const (
	reasonBeyond  = "a reference leads outside of the schema, and nothing outside is ever loaded"
	reasonNothing = "a reference leads to nothing in the schema"
	reasonNone    = "a reference leads to something that is not a schema"
	reasonTwice   = "an identifier or an anchor comes twice, or cannot be read"
)

// enter begins the resource that an identifier makes of a schema, if it has
// more than a fragment. In draft-07 the fragment is an anchor.
func (x *inspection) enter(i, in int32, h head) int32 {
	address, fragment, _ := strings.Cut(h.id, "#")
	if address != "" {
		whole, text := x.join(in, address)
		if _, taken := x.addresses[text]; whole == nil || taken {
			x.fail(i, reasonTwice)
			return in
		}
		if x.addresses == nil {
			x.addresses = make(map[string]int32)
		}
		if i == 0 {
			in = 0
		} else {
			in = int32(len(x.resources))
			x.resources = append(x.resources, resource{root: i})
		}
		x.resources[in].address = whole
		x.addresses[text] = in
	}
	if x.draft == in07 {
		name, err := url.PathUnescape(fragment)
		if err != nil {
			x.fail(i, reasonTwice)
		}
		if !strings.HasPrefix(name, "/") {
			x.anchor(i, in, name)
		}
	}
	return in
}

func (x *inspection) anchor(i, in int32, name string) {
	if name == "" {
		return
	}
	r := &x.resources[in]
	if r.anchors == nil {
		r.anchors = make(map[string]int32)
	}
	if other, taken := r.anchors[name]; taken && other != i {
		x.fail(i, reasonTwice)
		return
	}
	r.anchors[name] = i
}

// join makes a whole address of one that may be relative to that of a resource,
// or nil if it cannot. Addresses are short, and there are not many, or this
// would be most of the work.
func (x *inspection) join(in int32, address string) (whole *url.URL, text string) {
	if x.joins++; x.joins > maxRefs || len(address) > maxIDBytes {
		return nil, ""
	}
	to, err := url.Parse(address)
	if err != nil {
		return nil, ""
	}
	from := x.resources[in].address
	whole = from.ResolveReference(to)
	if !to.IsAbs() && from.Opaque != "" {
		whole.Opaque = from.Opaque
	}
	if text = whole.String(); len(text) > maxAddress {
		return nil, ""
	}
	return whole, text
}

// follow looks up all references, which may lead to schemas at places where
// nobody would look for them, with more references. An anchor may become known
// only by that, so what leads nowhere is looked up again, once.
func (x *inspection) follow() {
	var again []reference
	for n := 0; n < len(x.refs); n++ {
		if !x.resolve(x.refs[n]) {
			again = append(again, x.refs[n])
		}
	}
	rest := len(x.refs)
	clear(x.targets)
	for _, r := range again {
		x.mustResolve(r)
	}
	for n := rest; n < len(x.refs); n++ {
		x.mustResolve(x.refs[n])
	}
}

func (x *inspection) mustResolve(r reference) {
	if x.resolve(r) {
		return
	}
	if x.target(r).end == nothing {
		x.fail(r.from, reasonNothing)
	} else if x.outside.Reason == "" {
		x.outside = Finding{External, reasonBeyond, x.path(r.from)}
	}
}

// resolve looks at what a reference leads to; false if that is nothing.
func (x *inspection) resolve(r reference) bool {
	if r.keyword == "$recursiveRef" && x.draft == in2020 {
		return true // it means nothing there
	}
	t := x.target(r)
	if t.end != found {
		return false
	}
	switch x.items[t.item].kind {
	case '{', 't', 'f':
	default:
		x.fail(r.from, reasonNone)
		return true
	}
	owner := t.item
	for x.places[owner] == 0 {
		owner = x.items[owner].parent
	}
	x.visit(t.item, x.places[owner]-1)
	x.lead(r, t.item)
	return true
}

// target looks a reference up, each text of a resource once.
func (x *inspection) target(r reference) target {
	key := reference{in: r.in, text: r.text}
	t, known := x.targets[key]
	if !known {
		t = x.search(r)
		if x.targets == nil {
			x.targets = make(map[reference]target)
		}
		x.targets[key] = t
	}
	return t
}

func (x *inspection) search(r reference) target {
	address, fragment, _ := strings.Cut(r.text, "#")
	in := r.in
	if address != "" {
		if len(x.addresses) == 0 {
			return target{end: outside}
		}
		whole, text := x.join(in, address)
		known, ok := x.addresses[text]
		if whole == nil || !ok {
			return target{end: outside}
		}
		in = known
	}
	fragment, err := url.PathUnescape(fragment)
	switch {
	case err != nil:
		return target{end: nothing}
	case fragment == "":
		return target{item: x.resources[in].root}
	case fragment[0] == '/':
		return x.pointed(x.resources[in].root, fragment[1:])
	}
	if i, ok := x.resources[in].anchors[fragment]; ok {
		return target{item: i}
	}
	return target{end: nothing}
}

// pointed follows a JSON pointer (RFC 6901) from an item.
func (x *inspection) pointed(i int32, pointer string) target {
	for token := range strings.SplitSeq(pointer, "/") {
		token, ok := unescape(token)
		if i = x.child(i, token); i == 0 || !ok {
			return target{end: nothing}
		}
	}
	return target{item: i}
}

// unescape reads a part of a JSON pointer.
func unescape(token string) (name string, ok bool) {
	if !strings.Contains(token, "~") {
		return token, true
	}
	rest := strings.ReplaceAll(strings.ReplaceAll(token, "~0", ""), "~1", "")
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"), !strings.Contains(rest, "~")
}

// child gives the member or element of an item, or 0.
func (x *inspection) child(i int32, name string) int32 {
	const few = 16
	n := 0
	for c := x.items[i].first; c != 0; c = x.items[c].next {
		if n++; n > few {
			return x.index(i)[name]
		}
		if x.items[i].kind == '{' && string(x.items[c].name) == name || x.items[i].kind == '[' && strconv.Itoa(n-1) == name {
			return c
		}
	}
	return 0
}

// index makes the children of an item known by name, once.
func (x *inspection) index(i int32) map[string]int32 {
	if known := x.indexes[i]; known != nil {
		return known
	}
	names, n := make(map[string]int32), 0
	for c := x.items[i].first; c != 0; c = x.items[c].next {
		name := string(x.items[c].name)
		if x.items[i].kind == '[' {
			name = strconv.Itoa(n)
		}
		names[name] = c
		n++
	}
	if x.indexes == nil {
		x.indexes = make(map[int32]map[string]int32)
	}
	x.indexes[i] = names
	return names
}
