// Package migrations holds the schemas of the files this program keeps, as
// numbered SQL, and the one function that brings a file up to date.
//
// A schema only moves forward: there are no down migrations, and a file that a
// later release has moved on is refused, never turned back. Settings of a
// connection (pragmas) do not belong here, because they must be right before
// the first migration runs; nor does anything that knows what the tables mean.
//
// Every migration, in its own transaction, adds a row with its number to the
// table migrations_done, which the first one makes. That row is what tells a
// migration that committed from one that was interrupted.
package migrations
