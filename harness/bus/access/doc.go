// Package access says who may do what on NATS: the subjects there are, the users and
// their keys, and the accounts that keep them apart. From one description it makes
// both the configuration of the embedded server and the file for an outside one. It
// reads and writes files of keys; it never connects, and no message comes here.
//
// The service has three users. One publishes events and signed heads, one makes the
// stream that dashboards read, and the replier receives requests and answers them; it
// may not publish events, so that a host that chooses a reply subject with care still
// cannot write into the audit stream. Each host submits calls under its own name, and
// the operator gives orders that hosts may not. Auditors and dashboards read.
package access
