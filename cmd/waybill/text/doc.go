// Package text writes what commands show to people: the start-up report, and JSON
// that is pleasant to read. Nothing a program reads comes from here. It may
// import domain.
package text
