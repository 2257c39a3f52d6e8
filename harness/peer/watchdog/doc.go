// Package watchdog starts programs so that nothing of them outlives the service:
// through one small process, the watchdog, that knows the group of each, and
// ends what is left when the service is gone, however it went.
//
// What may not enter: what the programs are for, and what they say. Whoever has
// one started reads its pipes.
package watchdog
