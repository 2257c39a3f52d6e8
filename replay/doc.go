// Package replay answers questions about a log from the log alone.
//
// Verify says whether the log is whole and unaltered: every byte, every seq,
// every piece of evidence, every tile and every root. Replay says whether each
// decision follows from what was recorded before it, by deciding again: between
// two observations the decisions must match exactly, in kind, order and count.
// Neither implies the other; a forged decision in a well-made log passes the
// first and fails the second.
//
// The package may import domain and events, and reads a log through the Source
// it is given. It never spawns, dials or writes.
package replay
