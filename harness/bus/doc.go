// Package bus is the room where Waybill meets NATS: calls come in and replies
// go out. Package access, below it, says who may do what; package stream copies the
// log to JetStream. It moves bytes and knows who sent them; it never
// looks inside a call or an event and decides nothing about either. The log in
// SQLite is the truth and the stream is a copy: nothing here may hold up a
// decision, and nothing may be published that has not been committed first.
package bus
