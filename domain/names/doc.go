// Package names gives the tools of many peers one namespace: the canonical name
// of each tool, the name a model may call it by, and the names that a person
// could take for it.
//
// Merge is the rule: simple, whole and slow. A Table is the same function, kept
// up to date as lists change, at a cost in proportion to the change. Tests hold
// the one to the other.
//
// What may not enter: input or output, clocks, other packages of this module,
// and what a table of Unicode in a library would change under us: a name means
// the same in every build, or a decision could not be made again.
package names
