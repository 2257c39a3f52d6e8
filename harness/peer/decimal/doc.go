// Package decimal compares numbers of JSON exactly, however many digits they have.
//
// What may not enter: arithmetic, and what the numbers stand for.
package decimal
