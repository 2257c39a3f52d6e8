// Command gohost is an example of a host in Go: it lists the tools of a running
// Waybill and calls one. It needs the NATS client and nothing of this module.
package main
