package schema

// work counts what the library will do on a value, down from a number of
// steps.
type work struct{ left int }

// depth says where an evaluation stands: below how many others, and how many
// of these are on the same value.
type depth struct{ all, same int }

func (d depth) here() depth { return depth{d.all + 1, d.same + 1} }
func (d depth) down() depth { return depth{d.all + 1, 0} }

// affords says whether a value can be judged within the steps. It takes every
// branch, so it does not depend on the order in which the library takes them.
func (w *work) affords(n *node, v any) bool {
	w.value(n, v, depth{})
	return w.left >= 0
}

func (w *work) pay(steps int) bool {
	if w.left >= 0 {
		w.left -= steps
	}
	return w.left >= 0
}

func (w *work) value(n *node, v any, at depth) {
	if n == nil || !w.pay(n.price.of(v, at)) {
		return
	}
	if at.all > maxScope {
		w.left = -1
		return
	}
	if n.always || n.kinds&kindOf(v) == 0 {
		return // as the library does: nothing follows a wrong type
	}
	for _, next := range n.here {
		w.value(next, v, at.here())
	}
	switch v := v.(type) {
	case map[string]any:
		w.object(n, v, at)
	case []any:
		w.array(n, v, at)
	}
}

func (w *work) object(n *node, v map[string]any, at depth) {
	for _, d := range n.dependents {
		if _, ok := v[d.name]; ok {
			w.value(d.node, v, at.here())
		}
	}
	// order-free: it adds up, and stops on one side of the limit in any order
	for name, member := range v {
		if w.left < 0 {
			return
		}
		w.member(n, name, member, at.down())
		w.value(n.names, name, depth{}) // the library begins anew for names
	}
}

// member goes where the library goes with a member of an object. What is left
// unevaluated depends on verdicts, so it counts with all that could be.
func (w *work) member(n *node, name string, v any, at depth) {
	next, seen := n.members[name]
	w.value(next, v, at)
	for _, p := range n.patterns {
		if !w.pay(p.program.cost(name)) {
			return
		}
		if p.program.MatchString(name) {
			seen = true
			w.value(p.node, v, at)
		}
	}
	if !seen {
		w.value(n.additional, v, at)
	}
	if !seen && !n.closed {
		w.value(n.leftover, v, at)
	}
}

func (w *work) array(n *node, items []any, at depth) {
	if n.unique && !w.pay(uniqueCost(items)) {
		return
	}
	for i, item := range items {
		if w.left < 0 {
			return
		}
		switch {
		case i < len(n.prefix):
			w.value(n.prefix[i], item, at.down())
		case n.rest != nil:
			w.value(n.rest, item, at.down())
		default:
			w.value(n.leftItems, item, at.down())
		}
		w.value(n.contains, item, at.down())
	}
}
