// Package peer holds live connections to MCP servers: processes over stdio, and endpoints over HTTP. A Manager performs the
// effects of package domain (launch, send, select an era, withdraw, stop) and
// reports what came of them as observations. It stamps every request, correlates answers by id, folds everything else into
// counts, and ends processes so that none outlives the service, with the help of the package watchdog. Progress of a call puts off
// its deadline and goes by to whoever listens; it is reported as no observation. A subscription is a request that waits for as long
// as its incarnation lives once it is acknowledged; what it brings is folded, never lost, and reported before what was written
// after it. A message over the frame limit costs the request that it answers. Over HTTP each request is a POST of its own, and only
// what comes on its stream answers it; a credential goes with it to the endpoint's own origin, and into no report.
//
// What may not enter: a decision. Which era a peer is of, what an answer means, whether to try again, is package domain's; here a
// message is only told apart by its id and its HTTP status, and kept as it came. Nor may anything enter that waits on a peer while
// others wait on it: the reader of a process waits for its pipe alone, a request over HTTP for its own stream, a lane writes to one
// peer, and all other waiting is an entry in a table with a deadline.
package peer
