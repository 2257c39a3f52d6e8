// Package projections folds the log into views that people and commands read:
// the peer table, the tools of the namespace, its generations, collisions and
// calls. The views live in a SQLite file of their own that may be deleted at any
// time: it costs the time to fold the log again and nothing else.
//
// The package may import domain, events and migrations. It never decides, never
// writes to the log, and never starts a goroutine.
package projections
