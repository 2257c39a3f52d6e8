// Command waybill-audit answers questions about a log file, a backup or a copy:
// is it whole, does every decision follow, what does an event say. It can
// neither spawn a process nor open a connection, and a test shows that on the
// built binary. It may import events, store, projections and replay.
package main
