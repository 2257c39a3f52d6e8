// Package catalog reads the list of tools that a peer gives, page by page, and
// makes one checked list of it. It also says what people should know of a tool
// before they trust it: what its definition hides, and what changed in it.
//
// One bad tool never costs the list. Every page is read by its bytes alone, so
// the same pages give the same list, live and in an audit, for ever: what is
// left out, in which words, and what is marked follows from tables of this
// package and of domain/schema, and not from the version of a library.
//
// What may not enter: input or output, clocks, the state of a peer. Nothing
// here panics, whatever bytes it is given, and the work is in proportion to
// their number.
package catalog
