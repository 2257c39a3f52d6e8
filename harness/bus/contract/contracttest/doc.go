// Package contracttest makes the schemas of package contract from Go types, and
// closes them for tests that must notice every change of a message. It is for tests
// only, and imports no room of ours but contract.
package contracttest
