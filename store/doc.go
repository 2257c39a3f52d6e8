// Package store keeps the log on disk: events in one total order, the evidence
// they cite, and the Merkle tree over them, in one SQLite file.
//
// What is appended is durable when Append returns, and is never changed or
// removed. The bytes of an event mean nothing here: the store hashes them, and
// keeps beside them only what a query needs. A log has one writer; readers, in
// this process or another, do not hold it up. Nothing in this folder knows the
// rules of peers or calls, signs anything, reads a clock or starts a goroutine.
package store
