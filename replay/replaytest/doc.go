// Package replaytest makes logs for tests: by a scripted world that drives the
// real rules, in memory or as a log file, and forged ones that are as well made
// as the others. Its trees are made by golang.org/x/mod/sumdb/tlog alone, so
// that those of replay and store are compared with a second implementation. It
// may import any room, and tests only may import it.
package replaytest
