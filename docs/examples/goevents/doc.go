// Command goevents is an example of a dashboard or an auditor in Go: it reads the
// events that were published before, until it has the last one. It needs the NATS
// client and nothing of this module.
package main
