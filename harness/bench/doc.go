// Package bench measures what a machine can do. It holds the bare pipeline, which is the
// least that any service must do that records a call before it makes it, an echo server
// for both sides of a comparison, and callers. It may import nothing of ours: what is
// measured is the caller's to start, and the bare pipeline must not become faster or
// slower with the service.
package bench
