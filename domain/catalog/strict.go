package catalog

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain/schema"
	"waybill/domain/wire"
)

// The bounds on one definition in a catalog that is built strictly.
const (
	maxDefinition = 256 << 10 // bytes
	maxDepth      = 64        // levels
)

// reasons say what is wrong by the rules that always hold.
var reasons = map[Problem]string{
	ToolUnnamed:       "the tool has no name that is a text",
	ToolNameInvalid:   "the name is not 1 to 128 of A-Z a-z 0-9 _ - . /",
	ToolSchemaInvalid: `inputSchema is not an object with the type "object"`,
	ToolDuplicate:     "another tool of this name stands before it in the list",
}

// strictly says what is wrong with a definition by the strict rules
// (specification, basic, "JSON Schema Usage" with its limits on resources, and
// server/tools, "Tool"), and whether a schema of it is in a dialect that is not
// known. An outputSchema that is null is taken for none, as many servers write
// it.
func strictly(definition jsontext.Value, m members) (problem Problem, reason string, foreign bool) {
	switch {
	case len(definition) > maxDefinition:
		return ToolTooLarge, "the definition is longer than 256 KiB", false
	case wire.Depth(definition) > maxDepth:
		return ToolTooLarge, "the definition is nested deeper than 64 levels", false
	}
	for i, raw := range []jsontext.Value{m.input, m.output} {
		if raw == nil || raw.Kind() == 'n' {
			continue
		}
		f := schema.Inspect(raw)
		if problem = problemOf(f.Fault); problem != "" {
			key := []string{"inputSchema", "outputSchema"}[i]
			return problem, place(append([]string{key}, f.Path...)) + ": " + f.Reason, false
		}
		foreign = foreign || f.Fault == schema.Foreign
	}
	return "", "", foreign
}

func problemOf(f schema.Fault) Problem {
	switch f {
	case schema.TooLarge:
		return ToolTooLarge
	case schema.External:
		return ToolSchemaExternal
	case schema.Malformed:
		return ToolSchemaInvalid
	}
	return "" // also of a foreign dialect: what cannot be judged is not condemned
}

// warnings say what is true of many tools in one line.
func (b *builder) warnings() []string {
	if len(b.foreign) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("schema: %d of the tools have a schema in a dialect that is not known here, so it is not checked; the first is %s",
		len(b.foreign), b.foreign[0])}
}
