// Package message writes the messages that go to a peer, and reads what the messages of a peer say about subscriptions. A request is
// made from scratch, stamped as its era asks, and read back before it may be written. What it reads is told from single frames
// alone: whether anybody waits for them is for who holds the connection.
//
// What may not enter: a transport, a connection's state, processes, goroutines, the clock. It may import domain. All of it may be
// called by several goroutines at once.
package message
