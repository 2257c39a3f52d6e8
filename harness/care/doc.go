// Package care looks after the data directory of a log over the years: it begins
// a log anew from a backup of another one, says how fast a log grows, and warns
// before it is full.
//
// It never changes a log that is there. It may import what harness may; the log
// is verified by a function that its caller gives it.
package care
