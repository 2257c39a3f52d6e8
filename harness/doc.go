// Package harness is where things block, fail and run at once: the loop that
// owns the state, the followers that read the log, and the life of the service
// from start to stop. All goroutines of the program are started here and in the
// two folders below, each with an owner that waits for it.
//
// The loop takes observations, lets domain decide, appends the whole batch in
// one transaction and only then releases the batch's effects. harness may import
// domain, events, store, projections and replay. It imports neither of its
// subfolders: peers and the bus are handed to it as interfaces, wired by the
// command.
package harness
