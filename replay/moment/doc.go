// Package moment says how things stood at a moment of a log: the peers, the names and
// who held each, the calls under way; and what changed between two of them.
//
// It folds events as they were recorded and decides nothing: whether they follow from
// each other is package replay's question. It never reads what is not in the log.
package moment
