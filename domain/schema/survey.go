package schema

import (
	"encoding/json"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// base is the address that a schema is compiled under. It leads nowhere.
const base = "schema://tool/output"

// survey is what is known of a schema before the library sees it.
type survey struct {
	draft   *jsonschema.Draft
	places  map[string]bool // the location of each schema in it, as the library writes them
	anchors []string        // those that a $dynamicRef may lead to
	outward bool            // a reference is more than a fragment

	schemas, pointers, ids, idBytes int
	refs                            map[string]bool
	older, nested, defs             bool
}

// surveyOf refuses what would cost the library much to compile, and what it
// compiles to something else than was meant.
func surveyOf(doc map[string]any) (*survey, string) {
	s := &survey{places: make(map[string]bool), refs: make(map[string]bool)}
	s.measure(doc, 0)
	switch {
	case s.schemas > maxSchemas || s.pointers > maxPointerBytes:
		return nil, reasonSchemas
	case len(s.refs) > maxRefs || s.ids > maxIDs || s.idBytes > maxIDBytes:
		return nil, reasonRefs
	}
	if s.draft = draftOf(doc, jsonschema.Draft2020); s.draft == nil {
		return nil, reasonDialect
	}
	s.older = s.draft == jsonschema.Draft7
	if reason := s.schema(doc, base+"#"); reason != "" {
		return nil, reason
	}
	// draft-07 does not know $defs. The library finds identifiers in there only
	// as it comes by, in the order of a map.
	if s.older && s.defs && s.nested {
		return nil, reasonDialect
	}
	return s, ""
}

// draftOf gives the dialect that a schema names, that of the document if it
// names none, and nil if it is another than the three.
func draftOf(schema map[string]any, document *jsonschema.Draft) *jsonschema.Draft {
	name, ok := schema["$schema"]
	if !ok {
		return document
	}
	text, ok := name.(string)
	if !ok {
		return nil
	}
	if rest, isHTTP := strings.CutPrefix(text, "http://"); isHTTP {
		text = "https://" + rest
	}
	switch strings.TrimSuffix(text, "#") {
	case "https://json-schema.org/draft/2020-12/schema":
		return jsonschema.Draft2020
	case "https://json-schema.org/draft/2019-09/schema":
		return jsonschema.Draft2019
	case "https://json-schema.org/draft-07/schema":
		return jsonschema.Draft7
	}
	return nil
}

// measure counts what may be a schema, wherever it stands: references may lead
// anywhere.
func (s *survey) measure(v any, path int) {
	switch v := v.(type) {
	case bool:
		s.schemas++
	case []any:
		s.pointers += path
		for i, item := range v {
			s.measure(item, path+1+len(strconv.Itoa(i)))
		}
	case map[string]any:
		s.schemas++
		s.pointers += path
		// order-free: it adds up
		for name, member := range v {
			s.identifier(name, member)
			s.measure(member, path+1+len(name))
		}
	}
}

func (s *survey) identifier(name string, member any) {
	text, ok := member.(string)
	if !ok {
		return
	}
	switch name {
	case "$id":
		s.ids++
		s.idBytes = max(s.idBytes, len(text))
	case "$ref", "$dynamicRef", "$recursiveRef":
		s.refs[text] = true
		s.outward = s.outward || !strings.HasPrefix(text, "#")
	}
}

// schema looks at one schema and at those below it that the library looks at
// before it follows any reference.
func (s *survey) schema(v any, location string) (reason string) {
	object, ok := v.(map[string]any)
	if _, isBool := v.(bool); ok || isBool {
		s.places[location] = true
	}
	if !ok {
		return ""
	}
	if reason := s.keywords(object, location); reason != "" {
		return reason
	}
	for _, keyword := range slices.Sorted(maps.Keys(object)) {
		if reason := s.below(keyword, object[keyword], child(location, keyword)); reason != "" {
			return reason
		}
	}
	return ""
}

func (s *survey) keywords(object map[string]any, location string) (reason string) {
	if draftOf(object, s.draft) != s.draft {
		return reasonDialect
	}
	if object["$recursiveAnchor"] == true {
		return reasonRecursive // the library may take another part of the schema for the one that is meant
	}
	if _, ok := object["$id"].(string); ok && location != base+"#" {
		s.nested = true
	}
	if _, ok := object["$dynamicAnchor"].(string); ok {
		s.anchors = append(s.anchors, location)
	}
	for _, keyword := range counts {
		if n, ok := object[keyword].(json.Number); ok && !countable(n) {
			return reasonCount
		}
	}
	return ""
}

// counts are the keywords whose numbers the library cuts to 64 bits.
var counts = []string{
	"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains",
}

func countable(n json.Number) bool {
	r, ok := new(big.Rat).SetString(n.String())
	return ok && r.Num().IsInt64()
}

// below looks at the schemas that a keyword holds: one, or those in a list or
// under names.
func (s *survey) below(keyword string, v any, location string) (reason string) {
	switch keyword {
	case "prefixItems":
		if s.draft != jsonschema.Draft2020 {
			return ""
		}
	case "unevaluatedItems", "unevaluatedProperties", "contentSchema", "dependentSchemas":
		if s.older {
			return ""
		}
	case "$defs":
		s.defs = true
	}
	list, isList := v.([]any)
	switch keyword {
	case "items":
		if isList {
			return s.list(list, location)
		}
		return s.schema(v, location)
	case "not", "if", "then", "else", "contains", "additionalItems", "unevaluatedItems", "contentSchema",
		"propertyNames", "additionalProperties", "unevaluatedProperties":
		return s.schema(v, location)
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return s.list(list, location)
	case "properties", "patternProperties", "dependentSchemas", "dependencies", "definitions", "$defs":
		return s.named(v, location)
	}
	return ""
}

func (s *survey) list(list []any, location string) (reason string) {
	for i, item := range list {
		if reason := s.schema(item, child(location, strconv.Itoa(i))); reason != "" {
			return reason
		}
	}
	return ""
}

func (s *survey) named(v any, location string) (reason string) {
	object, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if reason := s.schema(object[name], child(location, name)); reason != "" {
			return reason
		}
	}
	return ""
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func child(location, name string) string {
	return location + "/" + url.PathEscape(pointerEscapes.Replace(name))
}
