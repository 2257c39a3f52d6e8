package schema

import "strings"

// edge says that one schema asks another about the same value.
type edge struct{ from, to int32 }

// name adds a schema to those that a dynamic reference of this name may lead
// to.
func (x *inspection) name(name string, i int32) {
	if x.named == nil {
		x.named = make(map[string][]int32)
	}
	x.named[name] = append(x.named[name], i)
}

// lead adds the way from a reference to where it leads by its text.
func (x *inspection) lead(r reference, to int32) {
	x.edges = append(x.edges, edge{r.from, to})
	_, fragment, _ := strings.Cut(r.text, "#")
	switch {
	case r.keyword == "$dynamicRef" && fragment != "" && !strings.HasPrefix(fragment, "/"):
		x.dynamic = append(x.dynamic, reference{from: r.from, text: fragment})
	case r.keyword == "$recursiveRef":
		x.dynamic = append(x.dynamic, reference{from: r.from})
	}
}

// circles says whether a value can be sent round for ever, or asks for too many
// evaluations. All the ways that a dynamic reference may lead count, as one
// place between those who refer and those who may be meant.
func (x *inspection) circles() Finding {
	if len(x.edges) == 0 {
		return Finding{}
	}
	between := make(map[string]int32)
	next := int32(len(x.items))
	for _, r := range x.dynamic {
		place, known := between[r.text]
		if !known {
			place = next
			next++
			between[r.text] = place
			for _, to := range x.named[r.text] {
				x.edges = append(x.edges, edge{place, to})
			}
		}
		x.edges = append(x.edges, edge{r.from, place})
	}
	return x.rounds(newRounds(x.edges, next))
}

func (x *inspection) rounds(r *rounds) Finding {
	tooMuch := Finding{}
	for i := range x.items {
		total, loops := r.count(int32(i))
		switch {
		case loops:
			return Finding{Malformed, reasonLoop, x.path(int32(i))}
		case total > maxSteps && tooMuch.Reason == "":
			tooMuch = Finding{TooLarge, reasonWork, x.path(int32(i))}
		}
	}
	return tooMuch
}

// rounds counts the evaluations of one value, as node.count does.
type rounds struct {
	starts []int32 // of each schema's part of to, and the end of the last
	to     []int32
	totals []int // 0 is not known yet, -1 is being counted
}

func newRounds(edges []edge, places int32) *rounds {
	r := &rounds{starts: make([]int32, places+1), to: make([]int32, len(edges)), totals: make([]int, places)}
	for _, e := range edges {
		r.starts[e.from+1]++
	}
	for i := range places {
		r.starts[i+1] += r.starts[i]
	}
	filled := make([]int32, places)
	for _, e := range edges {
		r.to[r.starts[e.from]+filled[e.from]] = e.to
		filled[e.from]++
	}
	return r
}

func (r *rounds) count(i int32) (total int, loops bool) {
	switch {
	case r.totals[i] < 0:
		return 0, true
	case r.totals[i] > 0:
		return r.totals[i], false
	}
	r.totals[i] = -1
	total = 1
	for _, next := range r.to[r.starts[i]:r.starts[i+1]] {
		more, loops := r.count(next)
		if loops {
			return 0, true
		}
		total = min(total+more, maxSteps+1)
	}
	r.totals[i] = total
	return total, false
}
