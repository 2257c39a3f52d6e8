package schema

// The bounds on a schema. A schema beyond one of them is not compiled.
const (
	maxSchemaBytes  = 64 << 10
	maxSchemaDepth  = 64
	maxSchemas      = 4096    // objects and booleans in it, each of which may be a schema; the library compares them in pairs
	maxPointerBytes = 1 << 20 // the lengths of the paths to all objects and arrays: the library keeps several copies of each
	maxRefs         = 512     // different references: the library copies its index for some of them
	maxIDs          = 64      // "$id": each is compared with each
	maxIDBytes      = 512
	maxPatternBytes = 1024
	maxProgram      = 20_000 // instructions of all patterns together
)

// The bounds on a value, which is judged only within all of them.
const (
	maxValueBytes = 1 << 20
	maxValueDepth = 64
	maxValues     = 100_000
)

// The bounds on numbers, in schemas and in values. They leave room for every
// float64 and for decimals of any precision in use, and keep the exact
// fractions that the library computes with small.
const (
	maxDigits   = 400 // characters before the exponent
	maxExponent = 400
)

// The bounds on the work of one check.
const (
	// maxSteps is in evaluations of a subschema, half a microsecond each or
	// less; what costs more counts as several.
	maxSteps = 500_000
	// maxScope is how deep evaluations may stand in one another. A stack that
	// overflows ends the process and cannot be recovered from.
	maxScope = 1000
)

// Why a schema's checks are not made.
const (
	reasonBytes     = "the schema is longer than 64 KiB"
	reasonDepth     = "the schema is nested deeper than 64 levels"
	reasonText      = "the schema is not well-formed JSON"
	reasonObject    = "the schema is not a JSON object"
	reasonNumber    = "the schema has a number of more than 400 digits, or an exponent beyond 400"
	reasonCount     = "the schema has a length or count beyond 64 bits"
	reasonSchemas   = "the schema has more than 4096 objects and booleans, or its paths are too long"
	reasonRefs      = "the schema has more than 512 different references, or more than 64 identifiers or a long one"
	reasonDialect   = "the schema is not in one of the dialects 2020-12, 2019-09 and draft-07 alone"
	reasonRecursive = "the schema uses $recursiveAnchor, which is not supported"
	reasonPattern   = "the schema has a pattern that is too large, or that is not matched in linear time"
	reasonOutside   = "the schema refers to something outside itself, which is never loaded"
	reasonPlace     = "the schema refers to a part of itself that is not a schema"
	reasonLoop      = "the schema refers to itself without end"
	reasonWork      = "the schema asks for more than 500000 evaluations of one value"
	reasonCompile   = "the schema is not valid in its dialect"
)
