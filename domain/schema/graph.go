package schema

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// node is one compiled schema as far as work can depend on it: which schemas
// the library evaluates next, on which part of the value, and at what price.
type node struct {
	always bool // true or false, and nothing else
	kinds  kind // the kinds that get past "type"; all if it is not there
	price  price

	here       []*node  // evaluated on the same value
	dependents []member // and these, if the value has the member

	members    map[string]*node // "properties"
	patterns   []matched
	additional *node
	closed     bool  // "additionalProperties" is there, so no member is left over
	leftover   *node // "unevaluatedProperties"
	names      *node

	prefix    []*node
	rest      *node // of the items after the prefix
	contains  *node
	leftItems *node // "unevaluatedItems"
	unique    bool

	total    int // evaluations of one value, at most; 0 is not known yet
	entering bool
}

type member struct {
	name string
	node *node
}

type matched struct {
	program *program
	node    *node
}

// graph builds nodes, each schema's once.
type graph struct {
	places  map[string]bool
	dynamic []*jsonschema.Schema
	nodes   map[*jsonschema.Schema]*node
	waiting []*jsonschema.Schema
	start   *node
	tracks  bool // something asks what was left unevaluated, so the library keeps account of it
}

// graphOf follows every way that the library can go from the root. It refuses
// a schema that leads outside, that can refer to itself without going down in
// the value, or that branches too much on one value. On the way it turns off
// what is not judged here.
func graphOf(c compiled, s *survey) (g *graph, reason string) {
	g = &graph{places: s.places, dynamic: c.dynamic, nodes: make(map[*jsonschema.Schema]*node)}
	g.start = g.node(c.root)
	for len(g.waiting) > 0 {
		next := g.waiting[0]
		g.waiting = g.waiting[1:]
		switch {
		case !strings.HasPrefix(next.Location, base+"#"):
			return nil, reasonOutside
		case !g.places[next.Location]:
			return nil, reasonPlace
		}
		g.fill(g.nodes[next], next)
	}
	return g, g.bounded()
}

// bounded looks at all nodes, not only at those that the root leads to without
// going down: a part that can never be evaluated spoils the whole.
func (g *graph) bounded() (reason string) {
	tooMuch := false
	// order-free: a loop anywhere wins
	for _, n := range g.nodes {
		n.price.tracks = g.tracks
		total, loops := n.count()
		if loops {
			return reasonLoop
		}
		tooMuch = tooMuch || total > maxSteps
	}
	if tooMuch {
		return reasonWork
	}
	return ""
}

// count gives the evaluations of one value that this one leads to, itself
// included, saturating above maxSteps.
func (n *node) count() (total int, loops bool) {
	switch {
	case n.entering:
		return 0, true
	case n.total > 0:
		return n.total, false
	}
	n.entering = true
	total = 1
	for next := range n.onSame() {
		more, loops := next.count()
		if loops {
			return 0, true
		}
		total = min(total+more, maxSteps+1)
	}
	n.entering, n.total = false, total
	return total, false
}

func (n *node) onSame() func(yield func(*node) bool) {
	return func(yield func(*node) bool) {
		for _, next := range n.here {
			if !yield(next) {
				return
			}
		}
		for _, d := range n.dependents {
			if !yield(d.node) {
				return
			}
		}
	}
}

func (g *graph) node(s *jsonschema.Schema) *node {
	if s == nil {
		return nil
	}
	n := g.nodes[s]
	if n == nil {
		n = &node{}
		g.nodes[s] = n
		g.waiting = append(g.waiting, s)
	}
	return n
}

func (g *graph) list(schemas []*jsonschema.Schema) []*node {
	var nodes []*node
	for _, s := range schemas {
		if n := g.node(s); n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func (g *graph) fill(n *node, s *jsonschema.Schema) {
	if s.Bool != nil {
		n.always, n.price.each = true, 1
		return
	}
	s.Format = nil // an annotation, as in 2020-12
	if s.DraftVersion < 2019 && s.Ref != nil {
		s.Const = nil // what stands beside a reference is not read; the library forgets this one
		n.here, n.kinds = g.list([]*jsonschema.Schema{s.Ref}), anyKind
		n.price = price{each: 1}
		return
	}
	n.kinds = kindsOf(s.Types)
	n.here = g.list(slices.Concat([]*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else},
		g.dynamicTargets(s.DynamicRef), s.AllOf, s.AnyOf, s.OneOf))
	g.fillObject(n, s)
	g.fillArray(n, s)
	n.price = priceOf(s)
}

// dynamicTargets gives all that a dynamic reference may lead to: which it is
// depends on how it was reached.
func (g *graph) dynamicTargets(ref *jsonschema.DynamicRef) []*jsonschema.Schema {
	if ref == nil {
		return nil
	}
	targets := []*jsonschema.Schema{ref.Ref}
	for _, s := range g.dynamic {
		if s != ref.Ref && s.DynamicAnchor == ref.Anchor {
			targets = append(targets, s)
		}
	}
	return targets
}

func (g *graph) fillObject(n *node, s *jsonschema.Schema) {
	n.members = make(map[string]*node, len(s.Properties))
	// order-free: a map from a map, of nodes that are the same in any order
	for name, member := range s.Properties {
		n.members[name] = g.node(member)
	}
	// order-free: work is a sum over patterns
	for re, member := range s.PatternProperties {
		n.patterns = append(n.patterns, matched{re.(*program), g.node(member)})
	}
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	n.additional, n.closed = g.node(additional), s.AdditionalProperties != nil
	n.names = g.node(s.PropertyNames)
	n.leftover = g.node(s.UnevaluatedProperties)
	g.tracks = g.tracks || s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil
	// order-free: work is a sum over members
	for name, dependent := range s.Dependencies {
		if dependent, ok := dependent.(*jsonschema.Schema); ok {
			n.dependents = append(n.dependents, member{name, g.node(dependent)})
		}
	}
	// order-free: work is a sum over members
	for name, dependent := range s.DependentSchemas {
		n.dependents = append(n.dependents, member{name, g.node(dependent)})
	}
}

// fillArray takes the keywords of all dialects to a prefix and a rest. Of each
// keyword the library sets only what its dialect knows.
func (g *graph) fillArray(n *node, s *jsonschema.Schema) {
	prefix, rest := s.PrefixItems, s.Items2020
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		rest = items
	case []*jsonschema.Schema:
		prefix = items
		rest, _ = s.AdditionalItems.(*jsonschema.Schema)
	}
	n.prefix, n.rest = g.list(prefix), g.node(rest)
	n.contains, n.leftItems = g.node(s.Contains), g.node(s.UnevaluatedItems)
	n.unique = s.UniqueItems
}
