// Package logfile lets the replay package read a log file: it is all that
// stands between the two, and holds no rule of its own. It may import store and
// replay.
package logfile
