//go:build race

package domain

// walks is how many of n random walks are walked. The race detector makes each many
// times slower, and there is one goroutine here.
func walks[N int | int64 | uint64](n N) N { return n / 3 }
