// Package web speaks HTTP with one MCP endpoint: it sends one request at a time
// as it is told to, keeps to the limits, and reads what comes back as messages,
// from a JSON body or a stream of events.
//
// What may not enter: what a message means, which of them answers whom, eras,
// retries of its own, and anything that decides. A credential is a header to it,
// which goes to the endpoint's own origin and nowhere else.
package web
