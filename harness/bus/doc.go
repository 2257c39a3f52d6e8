// Package bus is the room where Waybill meets NATS: calls come in and replies
// go out, and names are bound to keys and permissions; package stream, below it,
// copies the log to JetStream. It moves bytes and knows who sent them; it never
// looks inside a call or an event and decides nothing about either. The log in
// SQLite is the truth and the stream is a copy: nothing here may hold up a
// decision, and nothing may be published that has not been committed first.
//
// Four kinds of NATS user exist, each with an Ed25519 key of its own. The
// service publishes events and speaks to JetStream, the replier receives
// requests and answers them, each host submits calls under its own name, and the
// operator gives orders that hosts may not.
// The replier may not publish events, so that a host that chooses a reply
// subject with care still cannot write into the audit stream.
package bus
