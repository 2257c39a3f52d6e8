// Package bustest helps to test what speaks NATS: waiting with a limit, a server
// that lets everybody do everything, and a wire that loses what it is told to. It
// imports no room of ours, and tests only may import it.
package bustest
