// Package secure says how connections to NATS are encrypted, and whom they trust
// with it. It knows files by their names and reads them; it opens no connection.
// Keys of NATS users are not its business, nor is what any message holds.
package secure
