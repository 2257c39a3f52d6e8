// Package heads signs the heads of a log as C2SP checkpoints, stores them in the
// log, keeps the last one in a file beside it, and hands each on to be published.
// At the start it holds the log to that file: one that is shorter or another is
// refused.
//
// It may import events, store and harness.
package heads
