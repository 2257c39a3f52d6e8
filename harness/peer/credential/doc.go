// Package credential makes the headers that authorize requests: from a token as
// it is, from a file, or from a command that prints one and is run again, within
// bounds, when a peer has refused what it gave.
//
// What may not enter: requests, and what becomes of one that was refused. A token
// is in no error and no log, and whoever redacts is told of it before it is used.
package credential
