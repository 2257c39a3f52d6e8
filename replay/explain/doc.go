// Package explain says in plain sentences why a call went where it went and ended
// as it did, and why a name could not be called at some moment. Each sentence names
// the events it rests on, so that nobody has to believe it.
//
// It folds a log once, with the same Apply as everything else, and notes on the way
// only the latest event of each peer, list and name that matters to the call in
// question. What it says is what the log says: whether the log is whole, and whether
// its decisions follow, is for Verify and Replay. It may import what replay may, and
// holds no rule of its own: where it has to know what would have become of a call, it
// asks the rules. It never reads the bytes of a call.
package explain
