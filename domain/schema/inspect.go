package schema

import "github.com/go-json-experiment/json/jsontext"

// Fault is what Inspect finds wrong with a schema. The empty Fault is nothing.
type Fault string

// The faults.
const (
	TooLarge  Fault = "too_large" // beyond the bounds of size, or of the work that one value takes
	External  Fault = "external"  // a reference leads outside of the schema
	Foreign   Fault = "foreign"   // in a dialect that is not known here, or in more than one
	Malformed Fault = "malformed" // not valid in its dialect, or a reference leads nowhere
)

// Finding is the first fault of a schema.
type Finding struct {
	Fault  Fault
	Reason string   // one plain sentence, which quotes nothing of the schema
	Path   []string // the names and positions that lead to it, as the peer wrote them
}

// Inspect says whether a schema can be relied on, by its text alone and without
// the library: it is within the bounds, refers to nothing outside itself, is
// valid in its dialect, every reference in it leads to a schema, and no value
// sends it round in circles (specification, basic, "JSON Schema Usage"). All
// places of a schema count, whether anything leads there or not.
//
// What only bears on checking results is no fault: patterns of any kind, and
// counts beyond 64 bits. Neither are texts that should be addresses and are
// not. A schema in a foreign dialect is looked at for its size, and for
// references that are more than a fragment. A schema may refer to itself.
//
// Inspect is total, gives the same finding for the same bytes for ever, and
// takes time in proportion to their number. It is safe for concurrent use.
func Inspect(raw jsontext.Value) Finding {
	var x inspection
	if reason := x.read(raw); reason != "" {
		return Finding{Fault: faultOf(reason), Reason: reason}
	}
	x.places = make([]int32, len(x.items))
	x.begin()
	x.visit(0, 0)
	x.follow()
	switch {
	case x.joins > maxRefs:
		return Finding{Fault: TooLarge, Reason: reasonRefs}
	case x.outside.Reason != "":
		return x.outside
	case x.foreign:
		return Finding{Fault: Foreign, Reason: reasonDialect}
	case x.first.Reason != "":
		return x.first
	}
	return x.circles()
}

func faultOf(reason string) Fault {
	if reason == reasonText || reason == reasonObject {
		return Malformed
	}
	return TooLarge
}

// inspection is one schema that is looked at.
type inspection struct {
	document
	draft   drafts
	foreign bool

	places    []int32 // of each item: 1 + the number of its resource if it is a schema, else 0
	resources []resource
	addresses map[string]int32 // of resources
	joins     int              // addresses that were made of others
	refs      []reference
	targets   map[reference]target // of references that were looked up
	indexes   map[int32]map[string]int32

	edges   []edge             // from schemas to those that judge the same value
	dynamic []reference        // and those of references whose targets depend on the way there
	named   map[string][]int32 // the schemas that one of a name may lead to

	first, outside Finding
}

// fail keeps the first thing that is wrong.
func (x *inspection) fail(i int32, reason string) {
	if x.first.Reason == "" {
		x.first = Finding{Malformed, reason, x.path(i)}
	}
}

// visit looks at one schema of a resource, and at all below it.
func (x *inspection) visit(i, in int32) {
	if x.places[i] != 0 {
		return
	}
	switch x.items[i].kind {
	case 't', 'f':
		x.places[i] = in + 1
	case '{':
		x.object(i, in)
	default:
		x.fail(i, "it must be a schema, which is an object or true or false")
	}
}

func (x *inspection) object(i, in int32) {
	x.places[i] = in + 1
	h := x.head(i)
	if h.id != "" {
		in = x.enter(i, in, h)
		x.places[i] = in + 1
	}
	x.anchor(i, in, h.anchor)
	x.anchor(i, in, h.dynamic)
	if h.dynamic != "" || h.recursive {
		x.name(h.dynamic, i)
	}
	for c := x.items[i].first; c != 0; c = x.items[c].next {
		k, ok := keywords[string(x.items[c].name)]
		if !ok || k.in&x.draft == 0 {
			continue
		}
		if h.passes(k.same) || h.ref && x.draft == in07 { // there nothing beside a reference is read
			k.same = never
		}
		x.keyword(i, c, in, k)
	}
}

// head is what must be known of a schema before the rest of it.
type head struct {
	id, anchor, dynamic string
	ref, recursive      bool
	condition           jsontext.Kind // of "if", or 0
}

// passes says that the schemas below a keyword are never asked, because the
// condition is not there or is settled.
func (h head) passes(s same) bool {
	return s == ifHolds && (h.condition == 0 || h.condition == 'f') || s == ifFails && (h.condition == 0 || h.condition == 't')
}

func (x *inspection) head(i int32) (h head) {
	var anchor, dynamic string
	for c := x.items[i].first; c != 0; c = x.items[c].next {
		member := &x.items[c]
		switch string(member.name) {
		case "if":
			h.condition = member.kind
		case "$ref":
			h.ref = true
		case "$recursiveAnchor":
			h.recursive = member.kind == 't' && x.draft == in2019
		case "$schema":
			x.foreign = x.foreign || member.kind == '"' && draftNamed(string(member.text)) != x.draft
		case "$id":
			h.id = member.string()
		case "$anchor":
			anchor = member.string()
		case "$dynamicAnchor":
			dynamic = member.string()
		}
	}
	switch {
	case x.draft == in07 && h.ref:
		h.id = ""
	case x.draft == in2019:
		h.anchor = anchor
	case x.draft == in2020:
		h.anchor, h.dynamic = anchor, dynamic
	}
	return h
}
