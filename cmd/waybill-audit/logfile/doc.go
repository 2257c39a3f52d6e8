// Package logfile lets the replay package read a log file: it is all that
// stands between the two, and holds no rule of its own. An export stands for the log
// that it was made of. It may import store, events and replay.
package logfile
