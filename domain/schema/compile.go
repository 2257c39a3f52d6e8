package schema

import (
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// inverse is the address of the schema that accepts what the tool's refuses.
const inverse = "schema://check/inverse"

// compiled is what the library made of a schema.
type compiled struct {
	inverse *jsonschema.Schema
	root    *jsonschema.Schema
	dynamic []*jsonschema.Schema // the schemas with a $dynamicAnchor
}

var errRefused = errors.New("nothing outside a schema is loaded")

// closed loads nothing, whatever a schema refers to.
type closed struct{}

// Load refuses.
func (closed) Load(string) (any, error) { return nil, errRefused }

// compile hands a surveyed document to the library. A panic in the library is
// a fault of it that the peer's schema has met; it must not end the service.
func compile(doc any, s *survey) (c compiled, reason string) {
	defer func() {
		if recover() != nil {
			reason = reasonCompile
		}
	}()
	var patterns programs
	lib := jsonschema.NewCompiler()
	lib.UseLoader(closed{})
	lib.UseRegexpEngine(patterns.compile)
	c, err := compileAll(lib, doc, s)
	switch {
	case err == nil:
		return c, ""
	case patterns.refused:
		return c, reasonPattern
	case s.outward:
		return c, reasonOutside
	}
	return c, reasonCompile
}

func compileAll(lib *jsonschema.Compiler, doc any, s *survey) (c compiled, err error) {
	lib.DefaultDraft(s.draft)
	not := map[string]any{"not": map[string]any{"$ref": base}}
	if err := errors.Join(lib.AddResource(base, doc), lib.AddResource(inverse, not)); err != nil {
		return c, err
	}
	if c.inverse, err = lib.Compile(inverse); err != nil {
		return c, err
	}
	c.root = c.inverse.Not.Ref
	for _, location := range s.anchors {
		anchored, err := lib.Compile(location)
		if err != nil {
			return c, err
		}
		c.dynamic = append(c.dynamic, anchored)
	}
	return c, nil
}
