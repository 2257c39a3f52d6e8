// Package peer holds live connections to MCP servers over stdio: their processes, the lines they write, and the requests that
// wait for an answer. A Manager performs the effects of package domain (launch, send, select an era, withdraw, stop) and
// reports what came of them as observations. It stamps every request, correlates answers by id, folds everything else into
// counts, and ends processes so that none outlives the service, with the help of one watchdog process. Progress of a call puts off
// its deadline and goes by to whoever listens; it is reported as no observation. A subscription is a request that waits for as long
// as its incarnation lives once it is acknowledged; what it brings is folded, never lost, and reported before what was written
// after it. A line over the frame limit costs the request that it answers.
//
// What may not enter: a decision. Which era a peer is of, what an answer means, whether to try again, is package domain's; here a
// frame is only told apart by its id and kept as it came. Nor may anything enter that waits on a peer while others wait on it: the
// reader of a peer waits for its pipe alone, a lane writes to one peer, and all other waiting is an entry in a table with a deadline.
package peer
