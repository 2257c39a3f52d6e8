// Package whatif decides a log again under another configuration, and says which
// decisions, and which calls, would have come out otherwise.
//
// What the world said stays as it was recorded, and is told to the other world as far as
// that had asked for it. What a peer would have said to a question that nobody asked it is
// not in the log, and is not made up: such a call is said to have gone elsewhere, and how
// it would have ended is not known.
package whatif
