// Package stream is what a log has in JetStream: the copy of its events, whose
// sequence is the log's, and the newest of its signed heads. It writes them, says
// how far behind they are, and reads the copy back for who compares. The log is
// the truth and nothing here may hold it up.
//
// It may import harness/bus, events and domain; it looks inside no event.
package stream
