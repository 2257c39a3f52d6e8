// Package schema judges the structured result of a tool against the output
// schema that the tool was listed with.
//
// Both come from the peer, so both are bounded before anything is made of
// them, and what is beyond the bounds is left unchecked rather than judged.
// The bounds that matter most are on work: a schema of a few hundred bytes can
// ask for more evaluations than there are atoms. Before the library judges a
// value, the same schema is walked over it with everything left out but the
// counting, and the walk gives up at a fixed number of steps. It counts every
// branch, whatever the library may leave out once it knows the verdict, so
// that the count, and with it the verdict, does not depend on the order of a
// map.
//
// Dialects: 2020-12 (if the schema names none), 2019-09 and draft-07, one in a
// document. Formats are annotations in all of them. Patterns are read as
// ECMA-262 has them where a linear matcher can; a schema with any other is
// left unchecked. Nothing outside the schema is ever loaded.
//
// Inspect says of a schema, when a tool is listed, whether it can be relied on
// at all. It reads the text alone, in time in proportion to it, and asks no
// library, so that what it said once it says for ever.
//
// What may not enter: input or output of any kind, clocks, other packages of
// this module. The library hashes with a seed of its own when it looks for
// repeated items, and no verdict depends on the seed.
package schema
