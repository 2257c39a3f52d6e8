// Package syntax says what is well formed among the small texts of a configuration:
// addresses, hosts, header fields, names of variables.
//
// What may not enter: looking a name up, the environment, and what any of it is for.
package syntax
