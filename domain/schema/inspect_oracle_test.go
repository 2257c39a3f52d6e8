package schema

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// anyPattern takes every text for a pattern: patterns are no matter of Inspect.
func anyPattern(string) (jsonschema.Regexp, error) { return regexp.MustCompile(`a`), nil }

// oracle says of a schema what the library and Compile say, with all places of
// it compiled as if something led there. Patterns, counts and places that are no
// faults for Inspect are none here.
func oracle(raw string) Fault {
	doc, reason := readSchema(jsontext.Value(raw))
	if reason != "" {
		return faultOf(reason)
	}
	s, reason := surveyOf(doc)
	switch reason {
	case "":
	case reasonDialect:
		return Foreign
	default:
		return faultOf(reason)
	}
	if named, ok := doc["$schema"].(string); ok && named != "" {
		doc = maps.Clone(doc)
		delete(doc, "$schema") // named, it makes the library leave parts of the dialect unchecked
	}
	return compiled2(doc, s)
}

func compiled2(doc map[string]any, s *survey) Fault {
	lib := jsonschema.NewCompiler()
	lib.UseLoader(closed{})
	lib.UseRegexpEngine(anyPattern)
	lib.DefaultDraft(s.draft)
	if err := lib.AddResource(base, doc); err != nil {
		return Malformed
	}
	var all []*jsonschema.Schema
	worst := Fault("")
	for _, place := range slices.Sorted(maps.Keys(s.places)) {
		compiled, err := lib.Compile(place)
		if err != nil {
			worst = worse(worst, faultOfError(err))
			continue
		}
		all = append(all, compiled)
	}
	if worst != "" {
		return worst
	}
	return circlesOf(all, s)
}

func faultOfError(err error) Fault {
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) || errors.Is(err, errRefused) {
		return External
	}
	return Malformed
}

func worse(a, b Fault) Fault {
	if a == External || b == External {
		return External
	}
	return b
}

// circlesOf is graphOf, from all places at once.
func circlesOf(all []*jsonschema.Schema, s *survey) Fault {
	g := &graph{places: s.places, nodes: make(map[*jsonschema.Schema]*node)}
	for _, c := range all {
		if c.DynamicAnchor != "" {
			g.dynamic = append(g.dynamic, c)
		}
	}
	for _, c := range all {
		g.node(c)
	}
	for len(g.waiting) > 0 {
		next := g.waiting[0]
		g.waiting = g.waiting[1:]
		if !strings.HasPrefix(next.Location, base+"#") {
			return External
		}
		next.PatternProperties = nil // they judge other values, and their patterns are not ours here
		next.Pattern = nil
		g.fill(g.nodes[next], next)
	}
	switch g.bounded() {
	case "":
		return ""
	case reasonLoop:
		return Malformed
	}
	return TooLarge
}
