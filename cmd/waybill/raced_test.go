//go:build race

package main

// raced says that the race detector makes every process of a test slow.
const raced = true
