// Package yamldoc reads one YAML file into values that know where they stand, and
// gathers what is wrong with them: every mistake with its file, line, column and
// key, and no key that nobody asked for.
//
// What may not enter: what a key means, and any file but the one whose bytes it is
// handed.
package yamldoc
