// Package domain decides. It holds the rules of Waybill as pure functions over
// plain values: what a peer's answer means, which era follows, how catalogs
// merge into one namespace, where a call goes and how it ends.
//
// Step is the whole engine. It applies one observation (what the world said)
// to the State and returns it followed by every decision it leads to; Effects
// names the acts towards the world that a decision releases once it is durable.
// The live service, a start after a crash and an auditor's replay all run this
// same Step, so a decision can be made again from the log alone.
//
// What may not enter: input or output, clocks, randomness, goroutines, the
// order of a map, or a package of this module outside of this folder. Time is a field of the
// observation; the bytes a peer sent arrive joined to it as evidence.
package domain
