// Package events gives each event of the log one encoding for ever: a
// CloudEvents 1.0 JSON object whose exact bytes are what is stored, hashed,
// published, exported and replayed.
//
// Seal writes an envelope, Open reads one back, strictly: what Seal would not
// have written, Open refuses. The package also knows which evidence an event
// cites and on which subject it is published. It may import domain and nothing
// else of this module; it does no input or output.
package events
