// Package web says what Streamable HTTP means, over plain values: which headers
// a request carries, which annotations of a tool's schema become headers, and
// what an answer is, read off its status and its type.
//
// What may not enter: connections, input or output, and any decision: what
// follows from an answer is package domain's. Nothing here panics, whatever bytes
// it is given, and the work is in proportion to their number.
package web
